"""Relays: a connection to each, which checks everything that arrives, and a relay inside this program."""
