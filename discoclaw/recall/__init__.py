"""Finds the relevant memories and nothing else. Knows only core; no I/O."""
