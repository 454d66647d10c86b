"""The command line. Knows the composition root; prints, and nothing else in this house prints."""
