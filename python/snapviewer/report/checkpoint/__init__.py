"""What `pth` says of checkpoints: as text for people, and as documents for programs."""
