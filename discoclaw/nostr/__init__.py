"""The Nostr adapter:

mirrors memory to relays, encrypted, recovers it from them, and takes the owner's configuration.
"""
