"""Reports on models: on the console, as text, JSON, XML, HTML, Markdown and PDF."""
