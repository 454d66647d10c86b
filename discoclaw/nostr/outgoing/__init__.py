"""Out: what is on disk becomes signed events, which wait for relays and are delivered."""
