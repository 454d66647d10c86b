"""The model's door: Claude over the official SDK, servers that speak its API, and an offline stand-in.

Imports only core. Nothing of a vendor leaves this room: values are core's, failures are `ModelError`s.
`door.ClaudeDoor` and `offline.OfflineModel` are the ways in.
"""
