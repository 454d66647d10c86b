"""Finds the archived messages that a person took back. Blocking; raises what the `Holder` raises.

These are the messages that it rested on, and what the person wrote, or was answered, until then that has the
words. A word that the person uses all the time identifies little: it counts only in a message that has at
least half of the words. The index names the messages that may have a word; their text decides, since it is
compared in more forms than the index has.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from discoclaw.core.purge import Withdrawal, Words, terms_of
from discoclaw.search.archive_rows import number_of

OFTEN = 20
"""In how many messages of the person a word may be and still identify one."""
_ENDING = 3
"""How much longer than the other a term may be: the stems of two languages end differently."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Theirs:
    """A person's messages until a time (ms), and the answers to them; with `alone` only the answers."""

    person: str
    until: int
    alone: bool


class Holder(Protocol):
    """The rows of one archive, in one transaction."""

    def texts(self, rows: Iterable[int], *, open_only: bool) -> Mapping[int, str]:
        """The texts of rows; with `open_only` of those that others read along with.

        That is neither a direct message nor a private thread.
        """
        ...

    def of_ids(self, numbers: Iterable[int]) -> Iterable[int]:
        """The rows of messages."""
        ...

    def with_term(self, theirs: Theirs, term: str) -> Sequence[int]:
        """The rows that have a term in the index."""
        ...

    def beginning(self, theirs: Theirs, stumps: Sequence[str]) -> Sequence[int]:
        """The rows that have a term in the index that begins with any of these."""
        ...

    def all_of(self, theirs: Theirs) -> Iterable[tuple[int, str]]:
        """All rows with their texts."""
        ...

    def delete(self, rows: Iterable[int]) -> None:
        """Delete rows."""
        ...


def withdraw(holder: Holder, withdrawal: Withdrawal) -> list[str]:
    """Delete what a person took back. Returns the texts."""
    numbers = (number for number in map(number_of, withdrawal.messages) if number is not None)
    rows = sorted({*holder.of_ids(numbers), *_holding(holder, withdrawal)})
    texts = holder.texts(rows, open_only=withdrawal.open_only)
    holder.delete(texts)
    return list(texts.values())


def remains_of(texts: Iterable[str], withdrawal: Withdrawal) -> list[bytes]:
    """Possible remains of deleted texts in a file: the words as they were written, or else a whole text."""
    found = set[str]()
    for text in texts:
        words = {
            word for word in _WORD.findall(text) if not terms_of(word).isdisjoint(withdrawal.words.terms)
        }
        found |= words or {text}
    return [one.encode() for one in found if one]


def _holding(holder: Holder, withdrawal: Withdrawal) -> Iterator[int]:
    """The rows of the person, and of the answers to them, that have the words."""
    if not withdrawal.user_id:
        return
    theirs = Theirs(withdrawal.user_id, withdrawal.at, withdrawal.alone)
    terms, often, counted = withdrawal.words.terms, set[str](), Counter[int]()
    for term in terms:
        rows = holder.with_term(theirs, term)
        counted.update(rows)
        if len(rows) > OFTEN:
            often.add(term)
    need = (len(terms) + 1) // 2
    yield from (row for row, count in counted.items() if count >= need)
    yield from _with_any(holder, theirs, terms - often)
    if withdrawal.words.texts:
        texts = Words(texts=withdrawal.words.texts)
        yield from (row for row, text in holder.all_of(theirs) if texts.hold(text))


def _with_any(holder: Holder, theirs: Theirs, terms: frozenset[str]) -> Iterator[int]:
    """The rows whose text has any of these terms, in whatever form."""
    stumps = [_stump(term) for term in sorted(terms)]
    near = holder.beginning(theirs, stumps) if stumps else ()
    for row, text in holder.texts(near, open_only=False).items():
        if not terms.isdisjoint(terms_of(text)):
            yield row


def _stump(term: str) -> str:
    """How every form of a term in the index begins; of a number, what stands before its first separator."""
    if term.isdigit() and len(term) > _ENDING:
        return term[: (len(term) - 1) % _ENDING + 1]
    return term[: max(_ENDING, len(term) - _ENDING)]
