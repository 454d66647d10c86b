"""What people can do with a memory: one table of commands for Discord and the terminal."""
