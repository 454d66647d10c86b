"""The command line, `discoclaw`. It may import everything, and is the only package that prints."""
