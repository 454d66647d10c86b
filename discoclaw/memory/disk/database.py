"""Full text in SQLite: connections, and how our terms become an FTS5 index and a query. Blocking.

There is one tokeniser (`core/words`), so an index holds its terms, divided by spaces, and FTS5 is told to
take them as they are: every character but a space belongs to a token. What people write never reaches the
query language: each term stands in quotes. Knows nothing about items, entries or ranking.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

TOKENIZER = "unicode61 remove_diacritics 0 categories ''L* M* N* P* S* Co''"
"""For `tokenize = '…'` of an FTS5 table that holds terms."""
BUSY_S = 5.0
FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What a statement raises: the latter in place of the former, where the message quotes a damaged file."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection for use by one thread at a time, in autocommit mode. Raises sqlite3.Error, OSError.

    What is deleted is overwritten in the file, since it may be somebody's words.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def any_of(terms: Sequence[str]) -> str:
    """The MATCH expression for documents that have one of the terms; "" without terms."""
    return " OR ".join(f'"{quoted}"' for quoted in (term.replace('"', '""') for term in terms))


def as_column(terms: Iterable[str]) -> str:
    """Terms, with repetitions, as the text of an indexed column."""
    return " ".join(terms)
