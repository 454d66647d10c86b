"""Finding the right memory and nothing else. Knows only core; no I/O."""
