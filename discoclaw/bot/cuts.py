"""Chooses where a text is cut: paragraph, line, sentence, word, any character; the best that fits.

Knows nothing about messages, files or Discord's limit: it looks at one window of text and the fences in it.

Whatever is chosen, the fences of the piece are then read line by line as they will be sent, and room is
kept to close them. So a bad choice is ugly but never unbalanced. A next line that is not indented is
preferred: Discord trims the ends of a message.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from discoclaw.bot import fences
from discoclaw.bot.fences import Fence, FenceChange
from discoclaw.core.text import utf16_length

AHEAD = 64
"""How far a cut looks beyond its window; more than the start of any fence line."""

_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_SENTENCE = re.compile(r"""[.!?…]["')\]*_]*\s+|[。！？]""")


@dataclass(frozen=True, slots=True)
class Window:
    """What may go into one piece: `text` from `start` to `end`, and the fences in it."""

    text: str
    start: int
    end: int
    fence: Fence | None
    changes: tuple[FenceChange, ...]

    def line_of(self, cut: int) -> int:
        return max(self.start, self.text.rfind("\n", self.start, cut) + 1)

    def open_at(self, cut: int) -> Fence | None:
        """The fence that is open at the end of a piece that ends at `cut`."""
        line = self.line_of(cut)
        fence = self.fence
        for change in self.changes:
            if change.start >= line:
                break
            fence = change.after
        return fence if line == cut else fences.after(fence, self.text[line:cut])

    def fitting_cut(self, room: int, low: int) -> tuple[int, Fence | None]:
        """Where to cut so that the piece fits, fence closed, into `room`; and the fence open there."""
        end = self.end
        while True:
            cut = self._cut(end, low)
            inside = self.open_at(cut)
            body = self.text[self.start : cut]
            missing = units(body) + len(fences.closed(body, inside)) - room
            if missing <= 0:
                return cut, inside
            end -= missing

    def _cut(self, end: int, low: int) -> int:
        tidy = (cut for cut in self._cuts(end) if low <= cut <= end and self._is_tidy(cut, end))
        return next(tidy, None) or max(low, _between_letters(self.text, self.start, end))

    def _cuts(self, end: int) -> Iterator[int]:
        """Places to cut, best first. A better place is not worth a piece of less than a third."""
        third = self.start + (end - self.start) // 3
        half = self.start + (end - self.start) // 2
        yield from islice(merge(self._blank_lines(third, end), self._blocks(third, end), reverse=True), 8)
        lines = [*_backwards(self.text, "\n", third, end, 24)]
        yield from (cut for cut in lines if not self.text.startswith((" ", "\t"), cut))
        yield from lines
        yield from [m.end() for m in _SENTENCE.finditer(self.text, half, end)][:-5:-1]
        words = [*_backwards(self.text, " ", third, end, 8)]
        yield from words
        line = self.line_of(end)
        if span := _open_span(self.text[line:end]):
            yield line + span[0]
        yield from (_between_letters(self.text, self.start, end - back) for back in (0, 1, 2, 4, 8, 16, 32))
        yield from words

    def _blank_lines(self, low: int, end: int) -> Iterator[int]:
        for blank in [*_PARAGRAPH.finditer(self.text, low, end)][::-1]:
            if not self.open_at(blank.end()):
                yield blank.end()

    def _blocks(self, low: int, end: int) -> Iterator[int]:
        """Before and behind code blocks."""
        for change in self.changes[::-1]:
            cut = change.start if change.after else change.end
            if low <= cut <= end:
                yield cut

    def _is_tidy(self, cut: int, end: int) -> bool:
        """Whether a cut makes no fence line that was none, no empty code block, and cuts no `code`."""
        line = self.line_of(cut)
        fence_follows = fences.START.match(self.text, cut, cut + AHEAD) is not None
        inside = self.open_at(cut)
        if line == cut:
            just_opened = any(change.end == cut and change.after for change in self.changes)
            return not (inside and (fence_follows or just_opened))
        if fence_follows or inside is not fences.going_on(self.open_at(line), self.text, line):
            return False
        span = None if inside else _open_span(self.text[line:cut])
        return span is None or self.text.find(span[1], cut, end + AHEAD) < 0


def _backwards(text: str, mark: str, low: int, end: int, most: int) -> Iterator[int]:
    """The last places behind a `mark`, last first."""
    for _ in range(most):
        end = text.rfind(mark, low, end)
        if end < 0:
            return
        yield end + 1


def _open_span(line: str) -> tuple[int, str] | None:
    """Where an inline code span begins that `line` does not end, and its marks."""
    opened: tuple[int, str] | None = None
    for ticks in re.finditer("`+", line):
        if opened is None:
            opened = ticks.start(), ticks[0]
        elif opened[1] == ticks[0]:
            opened = None
    return opened


def _between_letters(text: str, start: int, cut: int) -> int:
    """`cut`, or a little before it where it would part what is seen as one letter."""
    for at in range(cut, max(start, cut - 64), -1):
        if not _belongs(text, start, at):
            return at
    return cut


def _belongs(text: str, start: int, at: int) -> bool:
    """Whether the characters before and at `at` are seen as one (an approximation of UAX 29)."""
    if not start < at < len(text):
        return False
    before, char = text[at - 1], text[at]
    if char < "\u0300":
        return (before == "\r" and char == "\n") or before == "\u200d"
    if char in _FLAGS:  # flags are pairs of letters
        piece = text[start:at]
        return (len(piece) - len(piece.rstrip(_FLAGS))) % 2 == 1
    return (
        "\u200d" in (before, char)
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags
        or "\u1160" <= char <= "\u11ff"  # Hangul vowels and finals
        or unicodedata.category(char).startswith("M")
    )


def units(text: str) -> int:
    """Length in UTF-16 units; quick where it is the number of characters."""
    return len(text) if text.isascii() else utf16_length(text)
