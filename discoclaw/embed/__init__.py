"""Embedding providers: each turns texts into vectors behind the port `Embedder`. Imports only core."""
