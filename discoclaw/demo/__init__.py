"""The tokenless run: the real bot on a simulated Discord in the browser. Knows the composition root."""
