"""Reads code fences: which lines open and close them, what is open where, and how one is closed and reopened.

Knows nothing about messages, their limits or where a text is cut. Text in, positions and fences out.

Fences are CommonMark's with Discord's eyes: any indentation counts, as does "text: ```json" and "code```";
a run of more than 16 marks or a prefix of more than 24 characters is not a fence but somebody's art.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PREFIX = r"(?P<prefix>[ \t]*+(?:(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])[ \t]*+)*+)"
START = re.compile(_PREFIX + r"(?P<run>`{3,16}+(?!`)|~{3,16}+(?!~))")
"""How a line begins that opens a fence, unless what follows forbids it."""

_MIDLINE = re.compile(r"(?<!`)(?P<run>`{3,16})(?P<language>[A-Za-z][\w+#.-]{0,23})[ \t\r]*$", re.ASCII)
_LANGUAGE = re.compile(r"\s*([\w+#.-]{1,24})(?!\S)", re.ASCII)
_PREFIX_MAX = 24
_MARKS = re.compile(r"`{3}|~{3}")
_TICKS = re.compile(r"`{3,}")
_QUOTES = re.compile(r"[ \t>]*")
_QUOTE = re.compile(r"[ \t]*>")
_UNQUOTED_LINE = re.compile(r"(?<=\n)(?![ \t]*>)")


@dataclass(frozen=True, slots=True)
class Fence:
    """An open code fence, as it is closed at a cut and opened again behind it."""

    prefix: str
    run: str
    language: str = ""

    @property
    def quoted(self) -> bool:
        return ">" in self.prefix


@dataclass(frozen=True, slots=True)
class FenceChange:
    """A line at which a fence opens or closes; an empty one where a quote, and the fence in it, ends."""

    start: int
    end: int
    after: Fence | None


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: fence line, `body`, fence line at `tail`. Its end is not `known` while it is written."""

    fence: Fence
    start: int
    body: int
    tail: int
    end: int
    known: bool = True


def _fence_of(line: str) -> tuple[Fence, int] | None:
    """The fence a line opens, and where in the line."""
    start = START.match(line)
    if start and len(start["prefix"]) <= _PREFIX_MAX:
        info = line[start.end() :]
        if start["run"][0] == "~" or "`" not in info:
            language = _LANGUAGE.match(info)
            return Fence(_indent(start["prefix"]), start["run"], language[1] if language else ""), 0
    middle = _MIDLINE.search(line.rstrip("\n"))
    if middle and len(_TICKS.findall(line)) % 2:
        quotes = _QUOTES.match(line)
        return Fence(quotes[0] if quotes else "", middle["run"], middle["language"]), middle.start()
    return None


def _indent(prefix: str) -> str:
    """`prefix` as it stands before the following lines: a list's marker is not repeated."""
    return re.sub(r"[^>\s]", " ", prefix) if prefix else ""


def _closer(fence: Fence, line: str) -> int | None:
    """The position in `line` of the marks that close `fence`; None if there are none."""
    bare = line.lstrip(" \t>" if fence.quoted else " \t").rstrip()
    if len(bare) >= len(fence.run) and bare == fence.run[0] * len(bare):
        return 0
    runs = _TICKS.findall(bare) if fence.run[0] == "`" and bare.endswith(fence.run) else []
    return line.rindex(runs[-1]) if len(runs) % 2 else None


def after(fence: Fence | None, line: str) -> Fence | None:
    """The fence that is open behind `line`."""
    if fence and (not fence.quoted or _QUOTE.match(line)):
        return fence if _closer(fence, line) is None else None
    opened = _fence_of(line)
    return opened[0] if opened else None


def changes(fence: Fence | None, window: str, base: int) -> Iterator[FenceChange]:
    """The lines of `window` (which stands at `base` in the text) that matter to fences."""
    at = 0
    while marks := _MARKS.search(window, at):
        start = max(at, window.rfind("\n", at, marks.start()) + 1)
        end = window.find("\n", marks.end()) + 1 or len(window)
        left = _UNQUOTED_LINE.search(window, at, marks.end()) if fence and fence.quoted else None
        if left:
            fence = None
            yield FenceChange(base + left.start(), base + left.start(), None)
        behind = after(fence, window[start:end])
        if behind is not fence:
            fence = behind
            yield FenceChange(base + start, base + end, behind)
        at = end
    left = _UNQUOTED_LINE.search(window, at) if fence and fence.quoted else None
    if left and left.start() < len(window):
        yield FenceChange(base + left.start(), base + left.start(), None)


def block(text: str, line: int, longest: int, final: bool) -> Block | None:
    """The code block opened in the line at `line`; None when there is none that could become a file.

    A line that does not end within `longest` characters opens none.
    """
    body = text.find("\n", line, line + longest) + 1
    if not body:
        unread = not final and len(text) < line + longest
        return Block(Fence("", "```"), line, line, line, line, known=False) if unread else None
    opened = _fence_of(text[line:body])
    if opened is None or opened[0].quoted:  # a file would hold the quote's marks
        return None
    fence, column = opened
    at = body
    while marks := _MARKS.search(text, at):
        start = max(at, text.rfind("\n", at, marks.start()) + 1)
        end = text.find("\n", marks.end()) + 1 or len(text)
        if not final and text[end - 1] != "\n":
            break
        tail = _closer(fence, text[start:end])
        if tail is not None:
            return Block(fence, line + column, body, start + tail, end)
        at = end
    end = len(text) if final else text.rfind("\n", 0) + 1
    return Block(fence, line + column, body, max(body, end), len(text), known=final)


def going_on(fence: Fence | None, text: str, at: int) -> Fence | None:
    """`fence`, unless its quote ends where the line at `at` begins."""
    ended = fence and fence.quoted and text.endswith("\n", 0, at) and not _QUOTE.match(text, at)
    return None if ended else fence


def reopened(text: str, start: int, fence: Fence | None) -> str:
    """The text to put before that at `start` so that it stands in `fence` again."""
    if fence is None:
        return ""
    inside_line = start > 0 and text[start - 1] != "\n"
    return f"{fence.prefix}{fence.run}{fence.language}\n" + (
        fence.prefix if inside_line and fence.quoted else ""
    )


def closed(body: str, fence: Fence | None) -> str:
    """The text to put behind `body` to close `fence`."""
    if fence is None:
        return ""
    return ("" if body.endswith("\n") else "\n") + fence.prefix + fence.run
