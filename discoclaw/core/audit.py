"""Finds what could still be read, although a person took it back, made it private, opted out, or was erased.

Every part with personal data lists what it stores in the clear (`PersonalData.readable`); this decides, with
the predicates by which the same parts remove things, what of it should not be there.
Pure. Knows nothing about where things are kept.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from discoclaw.core.message import Said
from discoclaw.core.purge import Withdrawal
from discoclaw.core.subject import person_of, user_of, user_subject

Why = Literal["taken back", "private", "opted out", "erased"]


@dataclass(frozen=True, slots=True)
class Readable:
    """One text that a part stores.

    `place` is the file, or the row, as an admin finds it. `author` and `to` (user ids) belong to a message,
    `message` is its id. `owner` is the subject whose own file it is; with their DM as `session`, nobody else
    is shown it. Anything else was made of the talk of a `session` (key). `at` (ms) is from when it is; 0 if
    that is unknown. `digest` stands for a text that is stored only as its SHA-256.
    """

    place: str
    text: str = ""
    session: str = ""
    owner: str = ""
    author: str = ""
    to: str = ""
    message: str = ""
    at: int = 0
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about a person: what they took back, whether they opted out, when (ms) they were erased.

    `sessions` are the conversations (keys) with their words. `texts` are what they still have remembered, on
    any persona, and `terms` are the terms of these.
    """

    subject: str
    withdrawals: tuple[Withdrawal, ...] = ()
    sessions: frozenset[str] = frozenset()
    opted_out: bool = False
    erased_at: int = -1
    texts: frozenset[str] = frozenset()
    terms: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be readable: in which part, where, about whom, why, and how often."""

    part: str
    place: str
    subject: str
    why: Why
    count: int = 1


def findings(part: str, texts: Iterable[Readable], people: Iterable[Known]) -> list[Finding]:
    """Findings about texts of a part that should not be there, one for each place, person and reason."""
    counts: dict[tuple[str, str, Why], int] = {}
    known = list(people)
    for text in texts:
        for person in known:
            if (why := _why(text, person)) is not None:
                key = (text.place, person.subject, why)
                counts[key] = counts.get(key, 0) + 1
    return [Finding(part, place, subject, why, count) for (place, subject, why), count in counts.items()]


def _why(text: Readable, person: Known) -> Why | None:
    theirs = text.owner == person.subject or person.subject in (
        user_subject(text.author) if text.author else "",
        user_subject(text.to) if text.to else "",
    )
    if theirs and text.at and text.at <= person.erased_at:
        return "erased"
    if person.opted_out and theirs and text.author:
        return "opted out"
    for one in person.withdrawals:
        if _covers(one, text, person):
            return "private" if one.open_only else "taken back"
    return None


def _covers(one: Withdrawal, text: Readable, person: Known) -> bool:
    """Whether a withdrawal is about a text."""
    if text.digest:
        return not one.open_only and text.digest in map(_digest, set(one.texts) - person.texts)
    in_private = person_of(text.session) is not None
    if text.author:
        said = Said(
            id=text.message,
            author_id=text.author,
            name="",
            text=text.text,
            sent_at=text.at,
            by_us=bool(text.to),
            to_id=text.to,
        )
        return one.covers(said, in_private=in_private)
    if (one.open_only and in_private) or text.at > one.at:
        return False
    if text.owner:
        return text.owner == one.subject and one.words.hold(text.text, person.terms)
    return _may_have_words(text.session, one, person) and one.words.hold(text.text)


def _may_have_words(session: str, one: Withdrawal, person: Known) -> bool:
    """Whether a conversation has words of a person; one that is not known may have anybody's."""
    if not session:
        return True
    there = session.rpartition(":")[2]
    user_id = user_of(person.subject)
    return session in person.sessions or there in one.messages.values() or person_of(session) == user_id


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
