"""Who we are: how a personality comes about, what it says, and where it shows. Pure. Knows only core."""
