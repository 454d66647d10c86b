"""The recent conversation as a model reads it: `[Name]: text`, below the day on which it was said.

    Thu 2026-11-19:
    [Ann]: I have the dentist tomorrow
    [Bob (guest)]: good luck
    Fri 2026-11-20:
    [DiscoClaw]: How was it?

A line that names a day begins in the first column, and no entry does so without its brackets: what a message
says stands behind its speaker or is indented. Pure.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import NamedTuple

from discoclaw.core.message import Me, Said
from discoclaw.core.text import clip, speaker, utf16_length
from discoclaw.core.titles import ShortIds
from discoclaw.core.zones import day, minute
from discoclaw.prompt.quote import as_seen, quote_entry, strip_memory_context

ROLES = frozenset({"assistant", "system", "user", "human", "developer", "model", "tool", "bot", "you", "me"})
"""Names that stand for somebody else to a model. Nobody appears under one of them alone."""
WORTH_READING = 80
"""A message that has to be cut to fewer UTF-16 units is left out."""
_NUMBER = re.compile(r" #\d+$")


class Line(NamedTuple):
    """A message as the model reads it, and the day on which it was said."""

    day: str
    text: str


def recent_lines(
    window: Sequence[Said], names: Mapping[str, str], zone: tzinfo, max_chars: int
) -> list[Line]:
    """The newest messages that fit with the lines that name their days, oldest first.

    If not even the newest one fits, it is cut rather than left out.
    """
    lines: list[Line] = []
    left = max_chars
    for said in reversed(window):
        line = Line(day(said.as_of, zone), entry(said, names))
        cost = _cost(line, lines[-1] if lines else None)
        if cost > left:
            room = left - cost + utf16_length(line.text)
            if not lines and room >= WORTH_READING:
                lines.append(line._replace(text=clip(line.text, room)))
            break
        lines.append(line)
        left -= cost
    return lines[::-1]


def without_oldest(lines: Sequence[Line], excess: int) -> list[Line]:
    """The lines without the oldest ones that together take at least `excess`."""
    for index, line in enumerate(lines):
        if excess <= 0:
            return list(lines[index:])
        excess -= _cost(line, lines[index + 1] if index + 1 < len(lines) else None)
    return []


def fewer_lines(text: str, excess: int) -> str:
    """A text without the last lines that together take at least `excess`; no line is cut."""
    lines = text.splitlines()
    while lines and excess > 0:
        excess -= utf16_length(lines.pop()) + 1
    return "\n".join(lines)


def dated(lines: Iterable[Line]) -> list[str]:
    """The lines, and above the first of each day a line that names the day."""
    found: list[str] = []
    last = ""
    for line in lines:
        if line.day != last:
            found.append(header(line.day))
        found.append(line.text)
        last = line.day
    return found


def header(day: str) -> str:
    """The line above what was said on a day."""
    return f"{day}:"


def entry(said: Said, names: Mapping[str, str]) -> str:
    """One message as `[Name]: text`, with a mark for owners and guests."""
    mark = " (owner)" if said.is_owner else " (guest)" if said.guest else ""
    return f"[{names[said.author_id]}{mark}]: {quote_entry(said.text)}"


def display_names(talk: Iterable[Said], me: Me, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """A name for everybody in a talk and in `known`, by id: the newest one. Namesakes are numbered: "Sam #2".

    `known` are the names that people had in this conversation before, by id. Whoever still has the same name
    keeps its number, whoever else leaves or comes. The bot's own name is taken first, so that nobody else can
    appear under it, and so are `ROLES`.
    """
    talk, earlier = tuple(talk), known or {}
    newest = {said.author_id: speaker(said.name) for said in sorted(talk, key=lambda said: int(said.id))}
    kept = {one: name for one, name in earlier.items() if same_name(newest.get(one, name), name)}
    names = {me.id: speaker(me.name)}
    taken = {as_seen(names[me.id]), *ROLES}
    for one in (*kept, *(said.author_id for said in talk)):
        if one not in names:
            names[one] = apart(kept.get(one) or newest[one], taken)
            taken.add(as_seen(names[one]))
    return names


def same_name(name: str, numbered: str) -> bool:
    """Whether a name is that of a person who is numbered among namesakes: "Sam" and "Sam #2"."""
    return name in (numbered, _NUMBER.sub("", numbered))


def apart(name: str, taken: Collection[str] = ROLES) -> str:
    """A person's name, numbered if it looks like one of those that are taken (as `as_seen` has them)."""
    name = wanted = speaker(name)
    count = 1
    while as_seen(name) in taken:
        count += 1
        name = f"{wanted} #{count}"
    return name


def _cost(line: Line, after: Line | None) -> int:
    """A line's cost above the one that follows it: its length, and a line for its day if that differs."""
    heading = 0 if after is not None and after.day == line.day else len(header(line.day)) + 1
    return utf16_length(line.text) + 1 + heading


# ----------------------------------------------------------------------
# Talk as the loops' models read it: in order, each line with a short id, its time and its speaker.
#
#     m1 Thu 2026-11-19 18:06 »[Anna]: I have the dentist tomorrow
#     m2 Thu 2026-11-19 18:07 [Ben (guest)]: good luck
#
# `»` marks the lines of the person it is about. Whatever a message says stands behind its speaker or is
# indented, so that it cannot imitate a line. Pure.

OWN = "»"


def transcript(
    talk: Iterable[Said],
    names: Mapping[str, str],
    zone: tzinfo,
    lines: ShortIds,
    own: Iterable[str] = (),
) -> list[str]:
    """The lines of a talk. `names` has each author's by id, `own` are the ids of the marked messages."""
    marked = set(own)
    return [
        f"{lines.of(said.id)} {minute(said.as_of, zone)} {OWN if said.id in marked else ''}"
        f"[{names[said.author_id]}{_mark(said)}]: {quote_entry(strip_memory_context(said.text))}"
        for said in talk
    ]


def _mark(said: Said) -> str:
    return " (owner)" if said.is_owner else " (guest)" if said.guest else ""
