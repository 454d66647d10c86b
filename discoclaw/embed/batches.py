"""Splits texts into batches, one for each request: not too many texts, not too many bytes. Pure."""

from collections.abc import Iterator, Sequence

MAX_TEXTS = 64
"""Texts in one request."""
MAX_BYTES = 100_000
"""UTF-8 bytes of the texts of one request."""
MAX_TEXT_CHARS = 8000
"""Characters of one text; the rest is cut off. Models read some thousand tokens and reject longer input."""


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in order, cut to `MAX_TEXT_CHARS`, at most `MAX_TEXTS` and `MAX_BYTES` at a time."""
    batch: list[str] = []
    size = 0
    for text in (text[:MAX_TEXT_CHARS] for text in texts):
        length = len(text.encode("utf-8", "replace"))
        if batch and (len(batch) == MAX_TEXTS or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch
