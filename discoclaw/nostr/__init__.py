"""The Nostr door: memory goes out encrypted to relays and comes back; the owner's key configures us."""
