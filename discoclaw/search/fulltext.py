"""Maps the bot's terms to an FTS5 index and its queries.

There is only one tokeniser (`core/words`). An index stores its terms, separated by spaces, and FTS5 is
configured to treat every character except a space as part of a token. What people write never reaches the
query language, because each term is quoted. Independent of items, entries and ranking.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from discoclaw.memory.disk.database import rows_of

TOKENIZER = "unicode61 remove_diacritics 0 categories ''L* M* N* P* S* Co''"
"""For `tokenize = '…'` of an FTS5 table that holds terms."""


NAME = "="
"""The first character of a token that is a whole name; no other token begins with it."""


def any_of(terms: Sequence[str]) -> str:
    """The MATCH expression for documents with any of the terms; "" without terms."""
    return " OR ".join(f'"{quoted}"' for quoted in (term.replace('"', '""') for term in terms))


def as_column(terms: Iterable[str]) -> str:
    """Terms, with repetitions, as the text of an indexed column."""
    return " ".join(terms)


def orphans(path: Path, rows: str, index: str) -> Iterator[str]:
    """The terms in the pages of a file's index that no text of the query `rows` has. Raises OSError.

    FTS5 keeps a deleted row's terms until it merges the index, and its own vocabulary doesn't show them.
    """
    held = frozenset[str]().union(*(terms.split(" ") for (terms,) in rows_of(path, rows)))
    for (page,) in rows_of(path, f"SELECT block FROM {index}_data WHERE id > 10"):
        yield from (term for term in _terms_in(page) if term not in held)


def _terms_in(page: bytes) -> Iterator[str]:
    """The terms of a leaf: its end lists where each begins, and each leaves out what it shares with the last.

    All begin with a byte that names the index. See "Segment B-Tree" in SQLite's fts5_index.c.
    """
    size, at, term = int.from_bytes(page[2:4]), 0, b""
    end = size if size > 4 else len(page)
    while end < len(page):
        step, end = _varint(page, end)
        at += step
        kept, begin = _varint(page, at) if term else (0, at)
        length, begin = _varint(page, begin)
        term = term[:kept] + page[begin : begin + length]
        yield term[1:].decode("utf-8", "replace")


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """A number of SQLite's, and where it ends."""
    value = page[at] & 0x7F
    while page[at] & 0x80:
        at += 1
        value = value << 7 | page[at] & 0x7F
    return value, at + 1
