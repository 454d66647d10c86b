"""From values to the text the model reads. Pure: no I/O, no clock. Knows only core."""
