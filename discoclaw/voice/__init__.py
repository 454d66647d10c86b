"""Transcription: turns recordings into words behind the port `Transcriber`. Imports only core."""
