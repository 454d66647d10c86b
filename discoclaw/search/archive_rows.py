"""Changes of the archive, and how each is made, whatever it is stored in.

The place of an entry is the channel that owns it ("@g55"), or the person whose direct message it is ("@d7").
An implementation is a `Writer`, bound to one transaction. Raises what that raises.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from discoclaw.core.consent import Consent
from discoclaw.core.entry import Entry
from discoclaw.core.text import scrub
from discoclaw.search.fulltext import as_column

COLUMNS = "id, session_key, channel_id, group_id, guild_id, author_id, name, text, sent_at, by_us, to_id"
"""The columns of an `Entry`, in the order of its fields."""
_DM = "discord:dm:"
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Indexed:
    """An entry's index data: its terms, and its length for scoring.

    The first `own` terms are from its text, with repetitions; the next `marks` name it; the rest are dates.
    """

    terms: Sequence[str]
    length: int
    own: int
    marks: int


Words = Callable[[Entry], Indexed]
"""Returns the index data of an entry."""


@dataclass(frozen=True, slots=True)
class Put:
    """Insert or update an entry; `fresh`: only if there is none with its id."""

    entry: Entry
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Amend:
    """Replace the text of a person's message."""

    id: str
    author_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete a message."""

    id: str


@dataclass(frozen=True, slots=True)
class Only:
    """Delete a conversation's other messages by people between the first and the last of these."""

    session_key: str
    ids: tuple[str, ...]


Change = Put | Amend | Drop | Only


class Writer(Protocol):
    """The rows of one archive, in one transaction."""

    def put(self, entry: Entry, words: Words, *, fresh: bool) -> None:
        """Insert an entry; unless `fresh`, update one with its id by the same author.

        Where a message is and who wrote it never change.
        """
        ...

    def entry(self, number: int, author_id: str) -> Entry | None:
        """The entry with an id, if it is by this author."""
        ...

    def drop(self, number: int) -> None:
        """Delete the entry with an id."""
        ...

    def keep_only(self, session_key: str, numbers: Sequence[int]) -> None:
        """Delete people's messages of a conversation from the first to the last of these ids, but these."""
        ...


def make(writer: Writer, change: Change, words: Words, consent: Consent) -> None:
    """Make one change. An entry whose id does not fit the database is left out."""
    if isinstance(change, Only):  # the bot's own answers stay: the chat may lack some
        numbers = [number for number in map(number_of, change.ids) if number is not None]
        if numbers:
            writer.keep_only(change.session_key, numbers)
        return
    number = number_of(change.entry.id if isinstance(change, Put) else change.id)
    if number is None:
        return
    if isinstance(change, Drop):
        writer.drop(number)
        return
    if isinstance(change, Put):
        entry: Entry | None = change.entry
    else:
        known = writer.entry(number, change.author_id)
        entry = replace(known, text=scrub(change.text)) if known is not None else None
    if entry is not None and entry.allowed(consent):
        writer.put(entry, words, fresh=isinstance(change, Put) and change.fresh)


def is_id(text: str) -> bool:
    """Whether a text can be a Discord id."""
    return text.isascii() and text.isdigit() and len(text) <= 20


def place_of(entry: Entry) -> str:
    """The place that decides who may find an entry: a channel, or one person's direct messages."""
    if entry.group_id is None:
        return f"@d{entry.session_key.removeprefix(_DM)}"
    return f"@g{entry.group_id}"


def number_of(message_id: str) -> int | None:
    """A Discord id as a number that fits the database; None if it does not."""
    number = int(message_id) if is_id(message_id) else _LARGEST + 1
    return number if number <= _LARGEST else None


def entry_of(row: Sequence[object]) -> Entry:
    """A row of `COLUMNS`."""
    return Entry(str(row[0]), *row[1:9], by_us=bool(row[9]), to_id=row[10])  # type: ignore[arg-type, misc]


def values_of(entry: Entry) -> tuple[object, ...]:
    """An entry as the values of `COLUMNS`."""
    return (
        number_of(entry.id),
        entry.session_key,
        entry.channel_id,
        entry.group_id,
        entry.guild_id,
        entry.author_id,
        scrub(entry.name),
        scrub(entry.text),
        entry.sent_at,
        entry.by_us,
        entry.to_id,
    )


def indexed_values(indexed: Indexed) -> tuple[object, ...]:
    """Index data as the values of the columns terms, length, own and marks."""
    return (scrub(as_column(indexed.terms)), indexed.length, indexed.own, indexed.marks)


def indexed_of(row: Sequence[object]) -> Indexed:
    """The columns terms, length, own and marks as index data."""
    return Indexed(str(row[0]).split(" "), *row[1:])  # type: ignore[arg-type]
