"""Rules and values of the archive of talk, independent of files and Discord."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from discoclaw.core.consent import Consent
from discoclaw.core.message import Entry, Place, Said
from discoclaw.core.purge import Purge
from discoclaw.core.redact import redact
from discoclaw.core.subject import person_of
from discoclaw.recall.document import of_entry
from discoclaw.search.archive import Amend, Change, Drop, Indexed, Only, Put, Visible


class Saved(Protocol):
    """Says which places the archive keeps messages from; it may change while the bot runs."""

    def covers(self, place: Place) -> bool:
        """Whether messages from a place are archived."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the archive: where, for how long (ms; 0 for ever), and from which people."""

    saved: Saved
    max_age_ms: int
    consent: Consent


def visible_at(place: Place, author_id: str) -> Visible:
    """The places somebody may see from where they speak: their DM, or the channel with its open threads."""
    if place.kind == "dm":
        return Visible(dm_of=author_id)
    return Visible(frozenset(filter(None, [place.group_id, place.channel_id if place.closed else None])))


def entry_of(said: Said, place: Place, session_key: str) -> Entry:
    """A message as an archive entry. A private thread counts as its own channel: others must not find it."""
    in_dm = place.kind == "dm"
    return Entry(
        id=said.id,
        session_key=session_key,
        channel_id=place.channel_id,
        group_id=None if in_dm else place.channel_id if place.closed else place.group_id,
        guild_id=place.guild_id,
        author_id=said.author_id,
        name=said.name,
        text=redact(said.text).text if said.by_us else said.text,
        sent_at=said.sent_at,
        by_us=said.by_us,
        to_id=((person_of(session_key) or "") if in_dm else said.to_id) if said.by_us else "",
    )


def said_of(entry: Entry) -> Said:
    """The message that an entry was made from."""
    return Said(
        entry.id, entry.author_id, entry.name, entry.text, entry.sent_at, by_us=entry.by_us, to_id=entry.to_id
    )


def is_private(entry: Entry) -> bool:
    """Whether a message was said where nobody else reads along: in a DM or a private thread."""
    is_closed = entry.session_key.startswith("discord:thread:") and entry.group_id == entry.channel_id
    return entry.group_id is None or is_closed


def words_of(entry: Entry) -> Indexed:
    """An entry as the full-text index stores it."""
    document = of_entry(entry)
    own, dates = sum(document.bag.values()), len(document.dates)
    tokens = [term for term, count in document.bag.items() for _ in range(count)]
    names = (document.marks | document.parts) - document.bag.keys()
    terms = [*tokens, *sorted(names), *sorted(document.dates)]
    return Indexed(terms, document.length, own, len(terms) - own - dates)


def people_of(entry: Entry) -> set[str | None]:
    """Ids of the people an entry concerns: its author, its addressee, and the person whose DM it was in."""
    return {entry.author_id, entry.to_id, person_of(entry.session_key)}


def id_of(change: Change) -> str:
    """The id of the message, or of the conversation, that changes."""
    if isinstance(change, Only):
        return change.session_key
    return change.entry.id if isinstance(change, Put) else change.id


def joined(before: Change, after: Change) -> Change:
    """Two changes of one message merged into one. A deletion is final."""
    if isinstance(before, Drop):
        return before
    if isinstance(before, Put) and isinstance(after, Amend):
        mine = before.entry.author_id == after.author_id
        return replace(before, entry=replace(before.entry, text=after.text)) if mine else before
    if isinstance(before, Put) and isinstance(after, Put) and after.fresh:
        return before
    return after


def cleaned(waiting: Mapping[str, Change], purge: Purge) -> dict[str, Change]:
    """The changes that wait, without what a person took back."""
    return {key: _amended(change, purge) for key, change in waiting.items()}


def _amended(change: Change, purge: Purge) -> Change:
    """A change, or the deletion of its message if a person took back what it would store."""
    if isinstance(change, Put):
        entry = change.entry
        covered = purge.covers(said_of(entry), in_private=is_private(entry))
        return Drop(entry.id) if covered else change
    if isinstance(change, Amend) and change.author_id == purge.user_id:
        covered = purge.everything or purge.words.hold(change.text)
        return Drop(change.id) if covered else change
    return change
