"""Outgoing: what is on disk becomes signed events, which wait in the outbox and are delivered to relays."""
