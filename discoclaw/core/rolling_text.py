"""The text of a rolling summary: four sections of dated lines, newest first. Reads, orders and fits it.

    Now:
    - 2026-11-19 Anna: moves the bot to Postgres 16
    Open:
    - 2026-11-19 Ben: asks in which region it is to run
    - 2026-11-18 Anna: who renews the certificate? (done)

A line marked "(done)" is settled, or no longer holds; it goes first when there is no room. A text without any
of these sections is prose, which a model without structured output writes. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import regex

from discoclaw.core.text import clip, collapse, utf16_length

HEADINGS = ("Now:", "Open:", "Decided:", "Who wants what:")
NOW, OPEN, DECIDED, WANTED = range(len(HEADINGS))
DONE = "(done)"

_NAMES = {
    "now": NOW,
    "right now": NOW,
    "open": OPEN,
    "open questions": OPEN,
    "decided": DECIDED,
    "decisions": DECIDED,
    "who wants what": WANTED,
}
_ONE_OF = "|".join(sorted(map(regex.escape, _NAMES), key=len, reverse=True))
_HEADING = regex.compile(rf"[#*_\s]*({_ONE_OF})[*_\s]*(?::[*_\s]*(.*)|$)", regex.IGNORECASE)
_BULLET = regex.compile(r"\s*[-*•–]\s+")
_DATE = regex.compile(r"(?:\p{L}{2,3}\.? )?\(?(\d{4}-\d\d-\d\d)\)?(?: \d\d:\d\d)?[,:]?(?: |$)")
_DONE = regex.compile(r"(?:\s*[(\[]done[)\]]\.?){1,9}$", regex.IGNORECASE)
_FIRST, _LAST = regex.compile(r"[^\p{P}\s]"), regex.compile(r"(?r)[^\p{P}\s]")
_NOTHING = frozenset({"none", "nothing", "nothing new", "n/a", "na", "null", "empty", "no summary"})
_SENTENCE_END = regex.compile(r"(?<=[.!?…。！？।؟][\"'”’)\]]{0,3})\s+|\n+|(?<=[。！？।])")
_NEWEST = "9999-99-99"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a section: the day of its message ("" if it has none), and the rest, on one line."""

    section: int
    date: str
    text: str
    done: bool = False

    def __str__(self) -> str:
        return " ".join(filter(None, ("-", self.date, self.text, DONE if self.done else "")))


@dataclass(frozen=True, slots=True)
class Notes:
    """A summary as it was read: prose, which stands first, and lines in the order of their sections."""

    prose: str = ""
    lines: tuple[Line, ...] = ()

    def __str__(self) -> str:
        parts = [self.prose] if self.prose else []
        for section, heading in enumerate(HEADINGS):
            under = [str(line) for line in self.lines if line.section == section]
            parts += [heading, *under] if under else []
        return "\n".join(parts)


def read(text: str) -> Notes:
    """The sections of a text. Lines that only say that there is nothing are left out."""
    prose, lines, section = list[str](), list[Line](), None
    for raw in text.splitlines():
        heading = _HEADING.fullmatch(raw)
        if heading is not None:
            section, raw = _NAMES[heading[1].lower()], heading[2] or ""
        if section is None:
            prose.append(raw)
        elif not _is_nothing(raw):
            if lines and _goes_on(raw) and heading is None and lines[-1].section == section:
                lines[-1] = line_of(section, f"{lines[-1]} {raw}")
            else:
                lines.append(line_of(section, raw))
    lines = [line for line in lines if line.text]
    before = "\n".join(prose).strip()
    while lines and before.endswith(":"):
        before = before.rpartition("\n")[0].strip()  # "Here is the summary:"
    return Notes(before, ordered(lines))


def renamed(text: str, earlier: Mapping[str, str], names: Mapping[str, str]) -> str:
    """A summary whose lines begin with people's present `names`. Both maps are by id."""
    new = {name: names[one] for one, name in earlier.items() if names.get(one, name) != name}
    if not new:
        return text
    one_of = "|".join(sorted(map(regex.escape, new), key=len, reverse=True))
    return regex.sub(
        rf"(?m)^(- \d{{4}}-\d\d-\d\d )({one_of})(?=:)", lambda line: line[1] + new[line[2]], text
    )


def _is_nothing(raw: str) -> bool:
    """Whether a line is blank, or only says that there is nothing."""
    first, last = _FIRST.search(raw), _LAST.search(raw)
    return first is None or last is None or raw[first.start() : last.end()].lower() in _NOTHING


def _goes_on(raw: str) -> bool:
    """Whether a line is the rest of the one above: indented, without a mark or a date of its own."""
    return raw[:1].isspace() and _BULLET.match(raw) is None and _DATE.match(raw.strip()) is None


def line_of(section: int, raw: str) -> Line:
    """A line as it stands under a heading, with or without a bullet, a day and a mark."""
    bullet = _BULLET.match(raw)
    text = collapse(raw[bullet.end() :] if bullet else raw)
    plain = _DONE.sub("", text)
    dated = _DATE.match(plain)
    rest = plain[dated.end() :].strip() if dated else plain
    return Line(section, dated[1] if dated and rest else "", rest or plain, done=plain != text)


def ordered(lines: Collection[Line]) -> tuple[Line, ...]:
    """The lines by section, and newest first in each; what has no day stays below what it followed."""
    found: list[Line] = []
    for section in range(len(HEADINGS)):
        under = [line for line in lines if line.section == section]
        found += [line for _, line in sorted(_days(under), key=lambda pair: pair[0], reverse=True)]
    return tuple(found)


def _days(lines: Sequence[Line]) -> list[tuple[str, Line]]:
    """Lines of one section with the days that they count as."""
    found, day = [], _NEWEST
    for line in lines:
        day = line.date or day
        found.append((day, line))
    return found


def says_nothing(text: str) -> bool:
    """Whether a summary is blank, or has nothing but headings or words such as "none"."""
    notes = read(text)
    return not notes.lines and all(map(_is_nothing, notes.prose.splitlines()))


def beginning(text: str, chars: int) -> str:
    """The first lines of a text, in about so many characters: a model may write without end."""
    if len(text) <= chars:
        return text
    end = text.rfind("\n", 0, chars)
    return text[:end] if 2 * end >= chars else text[:chars]


def sentences(text: str) -> list[str]:
    """The sentences of a prose text, and the lines of a section, which count as one each."""
    found: list[str] = []
    for line in text.splitlines():
        whole = _BULLET.match(line) or _HEADING.fullmatch(line)
        found += [line] if whole else [one.strip() for one in _SENTENCE_END.split(line) if one]
    return [one for one in found if one.strip()]


def fitted(text: str, units: int) -> str:
    """The text in at most `units` UTF-16 units. Whole lines go: those that are done, then the oldest.

    Of prose, the first sentences go. Only a single line or sentence that is too long by itself is cut.
    """
    notes = read(text)
    if utf16_length(whole := str(notes)) <= units:
        return whole
    if not notes.lines:
        return _end_of(notes.prose, units)
    prose = _end_of(notes.prose, units // 2)
    left, sections, kept = units - utf16_length(prose), set[int](), list[Line]()
    for line in _most_needed_first(notes.lines):
        heading = 0 if line.section in sections else utf16_length(HEADINGS[line.section]) + 1
        cost = utf16_length(str(line)) + 1 + heading
        if cost > units:
            continue  # it can stand nowhere as a whole
        left -= cost
        if left < 0:
            break
        sections.add(line.section)
        kept.append(line)
    if not kept and not prose:
        return clip(str(_most_needed_first(notes.lines)[0]), units)
    chosen = set(map(id, kept))
    return str(replace(notes, prose=prose, lines=tuple(one for one in notes.lines if id(one) in chosen)))


def _most_needed_first(lines: Sequence[Line]) -> list[Line]:
    """Lines in the reverse order of their leaving: of one day, the lowest in its section leaves first."""
    ranked = []
    for section in range(len(HEADINGS)):
        under = _days([line for line in lines if line.section == section])
        ranked += [(not line.done, day, -place, line) for place, (day, line) in enumerate(under)]
    return [line for *_, line in sorted(ranked, key=lambda one: one[:3], reverse=True)]


def _end_of(prose: str, units: int) -> str:
    """The last sentences of a prose text that fit; the last one cut if it does not fit by itself."""
    if utf16_length(prose) <= units:
        return prose
    begins = [end.end() for end in _SENTENCE_END.finditer(prose) if end.end() < len(prose)]
    fit = (prose[at:] for at in begins if len(prose) - at <= units and utf16_length(prose[at:]) <= units)
    return next(fit, None) or clip(prose[begins[-1] :] if begins else prose, units)
