"""How our terms become an FTS5 index and a query.

There is one tokeniser (`core/words`), so an index holds its terms, divided by spaces, and FTS5 is told to
take them as they are: every character but a space belongs to a token. What people write never reaches the
query language: each term stands in quotes. Knows nothing about items, entries or ranking.
"""

from collections.abc import Iterable, Sequence

TOKENIZER = "unicode61 remove_diacritics 0 categories ''L* M* N* P* S* Co''"
"""For `tokenize = '…'` of an FTS5 table that holds terms."""


def any_of(terms: Sequence[str]) -> str:
    """The MATCH expression for documents that have one of the terms; "" without terms."""
    return " OR ".join(f'"{quoted}"' for quoted in (term.replace('"', '""') for term in terms))


def as_column(terms: Iterable[str]) -> str:
    """Terms, with repetitions, as the text of an indexed column."""
    return " ".join(terms)
