"""Maps the bot's terms to an FTS5 index and its queries.

There is only one tokeniser (`core/words`). An index stores its terms, separated by spaces, and FTS5 is
configured to treat every character except a space as part of a token. What people write never reaches the
query language, because each term is quoted. Independent of items, entries and ranking.
"""

from collections.abc import Iterable, Iterator, Sequence

TOKENIZER = "unicode61 remove_diacritics 0 categories ''L* M* N* P* S* Co''"
"""For `tokenize = '…'` of an FTS5 table that holds terms."""


def any_of(terms: Sequence[str]) -> str:
    """The MATCH expression for documents with any of the terms; "" without terms."""
    return " OR ".join(f'"{quoted}"' for quoted in (term.replace('"', '""') for term in terms))


def as_column(terms: Iterable[str]) -> str:
    """Terms, with repetitions, as the text of an indexed column."""
    return " ".join(terms)


PAGES = "SELECT block FROM {index}_data WHERE id > 10"
"""The query for the pages of an index."""


def orphans(columns: Iterable[tuple[str]], pages: Iterable[tuple[bytes]]) -> Iterator[str]:
    """The terms in the pages of an index that none of its columns' texts has.

    FTS5 keeps a deleted row's terms until it merges the index, and its vocabulary doesn't show them.
    """
    held = frozenset[str]().union(*(terms.split(" ") for (terms,) in columns))
    for (page,) in pages:
        yield from (term for term in _terms_in(page) if term not in held)


def _terms_in(page: bytes) -> Iterator[str]:
    """The terms of a leaf, whose end says where each begins, and each how much it shares with the last."""

    def number(at: int) -> tuple[int, int]:
        value = page[at] & 0x7F
        while page[at] & 0x80:
            at += 1
            value = value << 7 | page[at] & 0x7F
        return value, at + 1

    place, term, end = 0, b"", int.from_bytes(page[2:4]) or len(page)  # inner pages have no such end
    while end < len(page):
        step, end = number(end)
        place += step
        shared, begin = number(place) if term else (0, place)
        length, begin = number(begin)
        term = term[:shared] + page[begin : begin + length]
        yield term[1:].decode("utf-8", "replace")  # the first byte names the index
