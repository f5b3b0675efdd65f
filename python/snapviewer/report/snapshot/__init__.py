"""Reports on snapshots: summary, live allocations, one allocation, queries."""
