"""Reports: an analysis as a document, and documents as Markdown, HTML and PDF."""
