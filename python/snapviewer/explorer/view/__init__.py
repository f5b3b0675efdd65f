"""What is visible of a tree: folds, order, search. Plain data, no terminal."""
