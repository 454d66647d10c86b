"""Erasing a person for good: intents, tombstones, and what is removed. Knows nothing about Discord."""
