"""The pure core: values and rules. No I/O, no `await`, no clock, no other room of this house."""
