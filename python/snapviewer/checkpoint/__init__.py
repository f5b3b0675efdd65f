"""What is in a checkpoint: summary, statistics, differences, values."""
