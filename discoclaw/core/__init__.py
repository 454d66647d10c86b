"""The pure core: values and rules. No I/O, no `await`, no clock, and no import from any other package."""
