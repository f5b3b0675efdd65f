"""Reports on memory events, in Chinese and English."""
