"""Erasing a person for good: intents, tombstones, and what goes. Knows nothing about Discord."""
