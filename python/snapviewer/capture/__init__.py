"""Recording snapshots: on a real GPU, and predicted on the null device. One runner for both."""
