"""Files and linked messages, fetched from Discord."""
