"""Snapshots as text and JSON."""
