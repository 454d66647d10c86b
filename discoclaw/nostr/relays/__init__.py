"""Relays: one connection each, nothing believed unchecked; and one within this program."""
