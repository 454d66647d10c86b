"""A language model without a network or a key, for the demo and for tests."""
