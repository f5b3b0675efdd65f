"""What `model` says: on the console, as text, JSON, XML and HTML."""
