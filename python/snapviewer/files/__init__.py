"""Files of the user: atomic writes, directories, settings, the cache of bundles."""
