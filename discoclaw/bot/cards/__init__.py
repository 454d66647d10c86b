"""Cards: what a slash command answers where a wall of text would stand. See `card`."""
