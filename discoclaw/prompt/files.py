"""The section about attached files: what each is called, which message it came with, and what text files say.

    Files in this talk:
    - Picture 1: “cat.png”, with this message
    - Text 1: “build.log”, from Ann, 2 messages ago; its beginning and its end:
      > npm error code 1
      […]
      > npm error failed
    - “holiday.mov”, with this message: couldn't be read

Whatever a file says stands behind a mark and is indented, so no line of it can begin as structure does. A
file's name is its sender's text as well. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from discoclaw.core import titles
from discoclaw.core.text import clip, collapse, scrub, utf16_length
from discoclaw.prompt.quote import one_line

MARK = "  > "
GAP = "  […]"
WORTH_READING = 200
"""A text that has to be cut to fewer UTF-16 units is left out."""
_NAME_MAX = 80


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a prompt.

    `label` names it ("Picture 1"); it is "" for a file that was not read. `whence` says which message it came
    with, `about` more about it ("12 pages"). `text` is what a text file says; `cut` says that its middle is
    left out, and `end` is what comes behind that. `older`: it came with an earlier message, at which nobody
    points.
    """

    label: str
    name: str
    whence: str
    about: str = ""
    text: str = ""
    cut: bool = False
    older: bool = False
    end: str = ""


def lines(entries: Sequence[Entry]) -> list[str]:
    """The lines of the section below its title."""
    return [line for entry in entries for line in (_head(entry), *_body(entry))]


def section(entries: Sequence[Entry]) -> str:
    """The section; "" if there are no files."""
    return "\n".join([titles.FILES, *lines(entries)]) if entries else ""


def fitted(entries: Sequence[Entry], most: int) -> list[Entry]:
    """The entries, their texts cut so that all of them take at most so many UTF-16 units, the first first."""
    left, found = most, list[Entry]()
    for entry in entries:
        found.append(_within(entry, max(0, left)))
        left -= utf16_length("\n".join(_body(found[-1])))
    return found


def shorter(entries: Sequence[Entry], excess: int) -> list[Entry]:
    """The entries with texts that take at least `excess` units less, if they have so much."""
    has = utf16_length("\n".join(line for entry in entries for line in _body(entry)))
    return fitted(entries, max(0, has - excess))


def _within(entry: Entry, most: int) -> Entry:
    """The entry with the beginning and the end of its text, as far as that is worth reading."""
    if utf16_length("\n".join(_body(entry))) <= most:
        return entry
    half = (most - len(GAP) - 1) // 2
    text = _first(_quotable(entry.text), half)
    end = _first(_quotable(entry.end or entry.text)[::-1], half)[::-1]
    if utf16_length(text + end) < WORTH_READING:
        text = end = ""
    return replace(entry, text=text, cut=True, end=end)


def _first(text: str, most: int) -> str:
    """The beginning of a text that takes at most so many UTF-16 units with the marks of its lines."""
    kept, left = list[str](), most
    for line in text.split("\n"):
        left -= utf16_length(MARK) + 1
        kept.append(line if utf16_length(line) <= left else clip(line, max(0, left)))
        left -= utf16_length(kept[-1])
        if left <= 0 or kept[-1] != line:
            break
    return "\n".join(kept)


def _quotable(text: str) -> str:
    """A text with line feeds between its lines, whatever stood there."""
    return "\n".join(scrub(text).splitlines())


def _head(entry: Entry) -> str:
    name = clip(collapse(one_line(entry.name)), _NAME_MAX)
    if not entry.label:
        return f"- “{name}”, {entry.whence}: couldn't be read; the person is told why"
    about = f" ({entry.about})" if entry.about else ""
    line = f"- {entry.label}: “{name}”{about}, {entry.whence}"
    if entry.text:
        return f"{line}; its beginning and its end:" if entry.cut else f"{line}:"
    return f"{line}; no room for its text" if entry.cut else line


def _body(entry: Entry) -> list[str]:
    lines = [f"{MARK}{line}" for line in scrub(entry.text).splitlines()]
    return [*lines, GAP, *(f"{MARK}{line}" for line in scrub(entry.end).splitlines())] if entry.end else lines
