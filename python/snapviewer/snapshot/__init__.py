"""What Python adds to the core: allocation details, live allocations, frames, annotations."""
