"""What is kept about conversations: rolling summaries, when one was cleared, cached answers."""
