"""Reports on checkpoints: text for people, JSON for programs."""
