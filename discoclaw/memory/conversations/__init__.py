"""What is stored about conversations: rolling summaries, when one was cleared, cached answers."""
