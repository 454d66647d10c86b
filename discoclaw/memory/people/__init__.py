"""What is kept about people and channels beside their ledgers: profiles, choices, tool calls, last use."""
