"""Writers of documents: blocks as Markdown, HTML and PDF, and their charts.

They need the standard library only; PDF needs the extra `pdf`.
"""
