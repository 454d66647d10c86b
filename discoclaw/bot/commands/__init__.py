"""The commands people give: one table, from which slash commands, text commands, help and docs are made."""
