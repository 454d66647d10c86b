"""From a file that somebody attached to what a model can read of it, or a sentence why not."""
