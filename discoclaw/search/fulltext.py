"""Maps the bot's terms to an FTS5 index and its queries.

There is only one tokeniser (`core/words`). An index stores its terms, separated by spaces, and FTS5 is
configured to treat every character except a space as part of a token. What people write never reaches the
query language, because each term is quoted. Independent of items, entries and ranking.
"""

from collections.abc import Iterable, Sequence

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
