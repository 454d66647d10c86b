"""The buttons below an answer."""
