"""Memory on disk and in RAM: the ledger, the files people open, and who may write them. Knows only core."""
