"""A conversation at run time: the queue, the window, the turn and its tools. Knows no chat adapter."""
