"""Texts about what a person took back: from where it was removed, and where it still is.

It says how many and where, and never the words, because it may stand where others read it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from discoclaw.core.personal import Report, Withdrawn
from discoclaw.show.words import count, short, word

WAITING = "Some of it couldn't be removed yet. I keep trying."
NOT_BACK = "Summaries and recent messages stay without it."

Name = Callable[[str], str | None]
"""The name of a conversation (session key) for the reader; None if it is only counted."""


def in_discord(persona: str, item: str) -> str:
    """How a person forgets an item of another persona."""
    return f"`!memory persona switch {word(persona)}`, then `!memory forget {item}`"


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader: which conversation they are in, what others are called, how they forget elsewhere."""

    here: str = ""
    name: Name = lambda session: None
    persona: str = "persona"
    forget: Callable[[str, str], str] = in_discord


def withdrawn(report: Report, reader: Reader = Reader()) -> str:
    """The lines below what a change answers; "" if nothing was taken back or brought back."""
    lines = []
    if parts := _parts(report.removed, reader):
        lines.append(f"{'What you said' if report.everything else 'It'} is also gone from {_listed(parts)}.")
    if report.waiting:
        lines.append(WAITING)
    if report.brought_back:
        lines.append(NOT_BACK)
    for name, ids in report.elsewhere.items():
        ways = _listed([reader.forget(name, short(one)) for one in ids[:3]])
        there = f"The {reader.persona} `{word(name)}` still remembers what you took back."
        lines.append(f"{there} To forget it there: {ways}.")
    return "\n".join(lines)


def _parts(removed: Withdrawn, reader: Reader) -> list[str]:
    parts = _summaries(sorted(removed.summaries), reader)
    if recent := len(removed.messages):
        parts.append(count(recent, "recent message"))
    if removed.archived:
        one = "archived one" if removed.messages else "archived message"
        parts.append(count(removed.archived, one))
    if removed.notes:
        parts.append(count(removed.notes, "note") + " about channels")
    if removed.answers:
        parts.append(count(removed.answers, "stored answer"))
    return parts


def _summaries(sessions: Sequence[str], reader: Reader) -> list[str]:
    """The summaries that were removed, as one part of the sentence."""
    if not sessions:
        return []
    named = ["this conversation"] if reader.here in sessions else []
    others = [session for session in sessions if session != reader.here]
    named += [name for session in others if (name := reader.name(session)) is not None]
    unnamed = len(sessions) - len(named)
    if unnamed:
        kind = "other conversation" if named else "conversation"
        named.append(count(unnamed, kind) if unnamed > 1 or named else f"a {kind}")
    if len(sessions) == 1:
        return [f"the summary of {named[0]} (it is written again)"]
    return [f"the summaries of {_listed(named)} (they are written again)"]


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
