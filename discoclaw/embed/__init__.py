"""Doors to providers of embeddings: each turns texts into vectors. They know core, and not each other."""
