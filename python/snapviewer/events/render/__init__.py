"""Documents as Markdown, HTML and PDF, and their charts."""
