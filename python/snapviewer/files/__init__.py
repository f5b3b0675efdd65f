"""The user's files: atomic writes, the cache of bundles, settings."""
