"""Documents: what a report says, as plain blocks, and the same as Markdown, HTML and PDF.

Only the standard library is needed; a PDF needs fpdf2.
"""
