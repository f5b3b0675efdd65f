"""Checkpoints: their structure, values, statistics, differences and code."""
