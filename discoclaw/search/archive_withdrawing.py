"""Finds the archived messages that a person took back. Blocking; raises sqlite3.Error.

These are the messages that it rested on, and what the person wrote, or was answered, until then that has the
words. A word that the person uses all the time identifies little: it counts only in a message that has at
least half of the words. The index names the messages that may have a word; their text decides, since it is
compared in more forms than the index has.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator

from discoclaw.core.taken_back import Withdrawal, Words, terms_of
from discoclaw.search.archive_rows import number_of
from discoclaw.search.fulltext import any_of

OFTEN = 20
"""In how many messages of the person a word may be and still identify one."""
_ENDING = 3
"""How much longer than the other a term may be: the stems of two languages end differently."""
_WORD = re.compile(r"\S+")
_THEIRS = "((author_id = :person AND NOT :alone) OR to_id = :person) AND sent_at <= :until"
_OPEN = "place NOT LIKE '@d%' AND NOT (session_key LIKE 'discord:thread:%' AND group_id = channel_id)"
"""Where others read along: neither a direct message nor a private thread."""


def withdraw(connection: sqlite3.Connection, withdrawal: Withdrawal) -> list[str]:
    """Delete what a person took back. Returns the texts; runs in the caller's transaction."""
    found = [*_by_id(connection, withdrawal), *_Theirs(connection, withdrawal).holding()]
    rows = sorted({row for row in found if not withdrawal.open_only or _is_open(connection, row)})
    texts = [_text(connection, row) for row in rows]
    connection.executemany("DELETE FROM entries WHERE rowid = ?", ((row,) for row in rows))
    return texts


def remains_of(texts: Iterable[str], withdrawal: Withdrawal) -> list[bytes]:
    """What may be left of deleted texts in the file: the words as they were written, or else a whole text."""
    found = set[str]()
    for text in texts:
        words = {
            word for word in _WORD.findall(text) if not terms_of(word).isdisjoint(withdrawal.words.terms)
        }
        found |= words or {text}
    return [one.encode() for one in found if one]


def _by_id(connection: sqlite3.Connection, withdrawal: Withdrawal) -> Iterator[int]:
    for message_id in withdrawal.messages:
        yield from _first(connection.execute(_WITH_ID, (number_of(message_id),)))


_WITH_ID = "SELECT rowid FROM entries WHERE id = ?"


def _text(connection: sqlite3.Connection, row: int) -> str:
    (text,) = connection.execute("SELECT text FROM entries WHERE rowid = ?", (row,)).fetchone()
    return str(text)


def _is_open(connection: sqlite3.Connection, row: int) -> bool:
    return (
        connection.execute(f"SELECT 1 FROM entries WHERE rowid = ? AND {_OPEN}", (row,)).fetchone()
        is not None
    )


class _Theirs:
    """The messages of a withdrawal's person, and the answers to them."""

    def __init__(self, connection: sqlite3.Connection, withdrawal: Withdrawal) -> None:
        self._connection = connection
        self._words = withdrawal.words
        self._of = {"person": withdrawal.user_id, "until": withdrawal.at, "alone": withdrawal.alone}

    def holding(self) -> Iterator[int]:
        """The rows that have the words."""
        if not self._of["person"]:
            return
        terms, often, counted = self._words.terms, set[str](), Counter[int]()
        for term in terms:
            rows = self._matching(any_of([term]))
            counted.update(rows)
            if len(rows) > OFTEN:
                often.add(term)
        need = (len(terms) + 1) // 2
        yield from (row for row, count in counted.items() if count >= need)
        yield from self._with_any(terms - often)
        if self._words.texts:
            sql = f"SELECT rowid, text FROM entries WHERE {_THEIRS}"
            for row, text in self._connection.execute(sql, self._of):
                if Words(texts=self._words.texts).hold(text):
                    yield row

    def _with_any(self, terms: frozenset[str]) -> Iterator[int]:
        """The rows whose text has any of these terms, in whatever form."""
        near = " OR ".join(f"{any_of([_stump(term)])} *" for term in sorted(terms))
        for row in self._matching(near) if near else ():
            if not terms.isdisjoint(terms_of(_text(self._connection, row))):
                yield row

    def _matching(self, pattern: str) -> list[int]:
        sql = f"""SELECT entries.rowid FROM words JOIN entries ON entries.rowid = words.rowid
            WHERE words MATCH :pattern AND {_THEIRS}"""
        return list(_first(self._connection.execute(sql, {**self._of, "pattern": f"terms : ({pattern})"})))


def _stump(term: str) -> str:
    """How every form of a term in the index begins; of a number, what stands before its first separator."""
    if term.isdigit() and len(term) > _ENDING:
        return term[: (len(term) - 1) % _ENDING + 1]
    return term[: max(_ENDING, len(term) - _ENDING)]


def _first(rows: Iterable[tuple[int]]) -> Iterator[int]:
    return (row for (row,) in rows)
