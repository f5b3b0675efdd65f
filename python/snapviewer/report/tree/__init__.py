"""Model trees as text, JSON, HTML, SVG diagrams and performance overlays."""
