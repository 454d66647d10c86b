"""In: events that relays have become ledgers and files again."""
