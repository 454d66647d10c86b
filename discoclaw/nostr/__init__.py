"""The Nostr adapter: mirrors memory to relays, recovers it from them, and applies the owner's events."""
