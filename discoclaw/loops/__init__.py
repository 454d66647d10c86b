"""The background loops on a small model that turn talk into memory. Know core, memory and prompt."""
