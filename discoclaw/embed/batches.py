"""Texts for one request each: not too many, not too long. Pure."""

from collections.abc import Iterator, Sequence

MOST_TEXTS = 64
MOST_BYTES = 100_000
"""UTF-8 bytes of the texts of one request."""
LONGEST_TEXT = 8000
"""Characters. What is longer is cut: models read about so much of a text, and say no to more."""


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in their order, cut to `LONGEST_TEXT`, at most `MOST_TEXTS` and `MOST_BYTES` at a time."""
    batch: list[str] = []
    size = 0
    for text in (text[:LONGEST_TEXT] for text in texts):
        length = len(text.encode("utf-8", "replace"))
        if batch and (len(batch) == MOST_TEXTS or size + length > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch
