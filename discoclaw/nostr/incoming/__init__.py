"""Incoming: events from relays become ledgers and files again."""
