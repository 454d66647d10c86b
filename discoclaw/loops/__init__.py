"""The background loops, which turn talk into memory with a small model. Depend on core, memory and prompt."""
