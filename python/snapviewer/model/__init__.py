"""What a model is, what it computes and what that costs."""
