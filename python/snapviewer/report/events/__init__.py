"""What a report says: an analysis as a document, in Chinese or English."""
