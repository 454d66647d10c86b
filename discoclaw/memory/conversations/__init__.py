"""The store of conversations: rolling summaries, when one was cleared, cached answers."""
