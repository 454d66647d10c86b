"""Builds the text that models read, from values. Pure: no I/O and no clock. Imports only core."""
