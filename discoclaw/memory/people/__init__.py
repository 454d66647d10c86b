"""The store of people and channels beside their ledgers: profiles, choices, tool calls, last use."""
