"""Memory on disk and in RAM: the ledger, the files people open, and their only writers. Knows only core."""
