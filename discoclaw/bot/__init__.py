"""The Discord door: what arrives becomes our values, what we say becomes messages."""
