"""Quoting: text by people and models is data, and cannot imitate the structure of a prompt.

Everything structural starts in the first column: separators, section titles, days, `[Name]: ` and `- [kind]`.
A quoted line that begins like one of these is therefore indented. It is compared without what only dresses
it: white space, invisible characters, accents, width, case, letters of other scripts that look Latin, and the
marks of headings, quotations, lists and emphasis in front. A section title also counts when it is shortened,
or a few letters off before a colon. All other text stays exactly as it is, since people paste code. In
entries of one line, continuation lines are indented too.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import tzinfo
from difflib import get_close_matches
from typing import NamedTuple

from discoclaw.core import titles
from discoclaw.core.item import KINDS, Item
from discoclaw.core.message import Me, Said
from discoclaw.core.own_words import split_added
from discoclaw.core.text import clip, scrub, speaker, utf16_length, visible
from discoclaw.core.titles import ShortIds
from discoclaw.core.zones import day, minute

INDENT = "  "

_TITLES = tuple(text for name, text in vars(titles).items() if name.isupper() and text != titles.SEPARATOR)

# Letters that look like Latin ones, digits that look like letters, and what looks like a colon or a dash.
_LOOKS = str.maketrans(
    "авеігјкмнорѕтухсһԁԛԝαβεικνοπρτυχηɑɡıƽ01꞉∶ː׃‐‑‒–—―−",
    "abeirjkmhopstyxchdqwabeikvonptuxnagisol::::-------",
)
_DRESS = re.compile(r"(?:[^\w\[(<]|_|\(?(?:\d{1,4}|[a-z])[.)])*")
"""Marks that don't hide the structure behind them: those of headings, quotations, lists and emphasis."""
_KINDS = "|".join(KINDS)
_FORGERY = re.compile(
    rf"""
      \[[^\]]{{0,200}}\]?\s*(?:\([^)]{{0,40}}\))?[^\w\s:]*\s*:   # a speaker
    | \[?\s*(?:{_KINDS})\s*\]                  # an item of memory
    | \((?:discord:|manual)                    # an item's source
    | (?:human|assistant|system)\s*:           # a turn, in the format some models were trained on
    | \[\s*/?\s*memory\s+context               # blocks and tags with a meaning, here or to a model
    | (?:mon|tue|wed|thu|fri|sat|sun)\w*\W{{0,3}}[\dol]{{4}}-[\dol]{{2}}-[\dol]{{2}}  # a day, folded
    | </?(?:soul|system|memory|instruction|tool|function|discord-action|continuation-capsule)
    """,
    re.VERBOSE,
)
_SEPARATOR = re.compile(r"(?:[-_*=~#─━═]\s*){3,}$")
# In a list: an item of memory, or a line about the sender.
_LISTED = re.compile(
    r"(?:(?:[-*+•◦▪‣·○●■□>]|\(?(?:\w{1,4})[.)])\s*)+"
    r"(?:\[|durable-|(?:name|owner|now|persona|other\spersonas)\s*:)"
)
_ALIKE = 0.8
"""How alike two heads of a line are if they count as one title, by difflib: two letters in ten may differ."""
_LONGEST = 200
"""How much of a line is compared, in characters. Every title is much shorter."""


def _letters(text: str) -> str:
    """The letters and digits of a folded text, without anything between them."""
    return "".join(filter(str.isalnum, text))


def as_seen(text: str) -> str:
    """The text as a reader sees it who ignores what only dresses it."""
    if not (text.isascii() and text.isprintable()):
        text = unicodedata.normalize("NFKD", visible(text))
        text = "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Cc", "Mn", "Me"))
    return text.strip().casefold().translate(_LOOKS)


_WORDS = [re.findall(r"[^\W_]+", as_seen(title.partition("(")[0])) for title in _TITLES]
_WHOLE = {"".join(words) for words in _WORDS}
_LONG = tuple("".join(words) for words in _WORDS if len(words) > 1)
_SHORTENED = {"".join(words[:count]) for words in _WORDS for count in range(1, len(words) + 1)}


def quote(text: str) -> str:
    """The text with every line indented that imitates structure. Other lines stay as they are."""
    lines = scrub(text).splitlines()
    return "\n".join(INDENT + line if _imitates(line) else line for line in lines)


def quote_entry(text: str) -> str:
    """The text as the rest of an entry's line. Further lines are indented, so that none starts an entry."""
    return text if text.isprintable() else f"\n{INDENT}".join(scrub(text).splitlines())


def one_line(text: str) -> str:
    """Text to put between “ and ”: without line breaks, and without those quotation marks inside."""
    return " ".join(scrub(text).splitlines()).replace("“", '"').replace("”", '"')


def _imitates(line: str) -> bool:
    """Whether a line begins as structure does, without what dresses it."""
    plain = as_seen(line)
    if _SEPARATOR.match(plain) or _LISTED.match(plain):
        return True
    dress = _DRESS.match(plain)
    bare = (plain[dress.end() :] if dress else plain)[:_LONGEST]
    return _FORGERY.match(bare) is not None or _is_title(bare)


def _is_title(bare: str) -> bool:
    """Whether a folded line begins with a title: whole, or before a colon shortened or nearly right."""
    letters = _letters(bare)
    if letters in _WHOLE or letters.startswith(_LONG):
        return True
    head, colon, _ = bare.partition(":")
    before = _letters(head)
    return bool(colon) and (before in _SHORTENED or bool(get_close_matches(before, _WHOLE, 1, _ALIKE)))


# ----------------------------------------------------------------------
# The memory block: found items in a form that a model recognises as memory and that can be removed again.
#
#     [Memory context]
#     - key: content [links: a, b]
#     [/Memory context]
#
# The key is the item's key, or else its short id. Stored text cannot close the block or open another one.
# Somebody who pastes a block into the chat did not say what is in it, so blocks are removed before the bot
# learns from a message. Knows nothing about who asks.

OPEN = "[Memory context]"
CLOSE = "[/Memory context]"

_GAP = r"[^\S\n]*"
_OPENED = rf"\[{_GAP}memory{_GAP}context{_GAP}\]"
_CLOSED = rf"\[{_GAP}/{_GAP}memory{_GAP}context{_GAP}\]"
_MARK = re.compile(rf"\[({_GAP}/?{_GAP}memory{_GAP}context{_GAP})\]", re.IGNORECASE)
_BLOCK = re.compile(rf"{_OPENED}.*?{_CLOSED}", re.IGNORECASE | re.DOTALL)
# An unclosed block ends with its last entry; the text after that is what somebody said.
_UNCLOSED = re.compile(rf"{_OPENED}{_GAP}(?:-[^\n]*)?(?:\n{_GAP}-[^\n]*|\n[^\S\n]+\S[^\n]*)*", re.IGNORECASE)
_STRAY = re.compile(_CLOSED, re.IGNORECASE)


def memory_block(items: Iterable[Item], named: Mapping[str, str]) -> str:
    """The block for these items, "" if there are none.

    `named` has what the items are called, and those of their links that may be shown, by id; other links are
    left out.
    """
    lines = [_line(item, named) for item in items]
    return "\n".join([OPEN, *lines, CLOSE]) if lines else ""


def strip_memory_context(text: str) -> str:
    """The text without memory blocks, including unclosed ones and stray marks.

    A text without any is returned unchanged. In others, blank lines left behind are collapsed too. A block
    ends before a forward at the latest: what is forwarded must not become the person's own words.
    """
    if _MARK.search(text) is None:
        return text
    return "\n".join(filter(None, map(_stripped, split_added(text))))


def _stripped(text: str) -> str:
    # Whole blocks before unclosed ones, which would end a block at its first line without a dash.
    without = _BLOCK.sub("\n", text)
    without = _STRAY.sub("\n", _UNCLOSED.sub("\n", without))
    return re.sub(r"\n{3,}", "\n\n", without).strip()


def _line(item: Item, named: Mapping[str, str]) -> str:
    linked = sorted(named[one] for one in item.facets.links if one in named)
    links = f" [links: {', '.join(linked)}]" if linked else ""
    return quote_entry(f"- {_unmarked(named[item.id])}: {_unmarked(item.text)}{_unmarked(links)}")


def _unmarked(text: str) -> str:
    """Text with every mark of a block turned into parentheses."""
    return _MARK.sub(r"(\1)", text)


# ----------------------------------------------------------------------
# The recent conversation as a model reads it: `[Name]: text`, below the day on which it was said.
#
#     Thu 2026-11-19:
#     [Ann]: I have the dentist tomorrow
#     [Bob (guest)]: good luck
#     Fri 2026-11-20:
#     [DiscoClaw]: How was it?
#
# A line that names a day begins in the first column, and no entry does so without its brackets: what a
# message says stands behind its speaker or is indented.

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
    return f"[{names[said.author_id]}{_mark(said)}]: {quote_entry(said.text)}"


def display_names(talk: Iterable[Said], me: Me, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """A name for everybody in a talk and in `known`, by id: the newest one. Namesakes are numbered: "Sam #2".

    `known` are the names that people had in this conversation before, by id. Whoever still has the same name
    keeps its number, whoever else leaves or comes. The bot's own name is taken first, so that nobody else can
    appear under it, and so are `ROLES`.
    """
    talk, earlier = tuple(talk), known or {}
    last = {said.author_id: said.name for said in sorted(talk, key=lambda said: int(said.id))}
    newest = {one: speaker(name) for one, name in last.items()}
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
