"""Small real servers on the loopback address: the outside world for a test of the whole bot."""
