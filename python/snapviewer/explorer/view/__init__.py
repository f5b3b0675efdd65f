"""What is visible of a tree: folds, order, search, row labels. Plain data, no terminal."""
