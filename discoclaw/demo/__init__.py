"""`discoclaw demo`: the real bot without a token, on a simulated Discord in the browser."""
