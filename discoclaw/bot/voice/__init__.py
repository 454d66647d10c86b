"""Voice messages: they are transcribed before they are talk, and their words are shown below them."""
