"""Full text, archive and vectors on disk: caches that find. Knows core and the disk."""
