"""Reports: blocks and their writers, and one package for each subject."""
