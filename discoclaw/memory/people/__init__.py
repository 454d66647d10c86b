"""What is stored about people and channels beside their ledgers: profiles, choices, tool calls, last use."""
