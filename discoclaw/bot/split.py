"""Cuts a text into messages Discord takes: at most 2,000 UTF-16 units each, no code fence cut open.

Knows nothing about Discord's objects, about sending or about time. Text in, frozen pieces out. `fences`
reads the code fences, `Window` chooses the places.

Nothing is lost, and `join` proves it: a piece carries what was added to it (`opened`, `closed`: the fence
lines at a cut) and which white space was left out (`lead`, `trail`). Left out is only white space that
does not fit; Discord trims the ends of a message, so it would not have been seen. For the same reason a
cut leaves the white space before it on the earlier piece.

Cutting looks only a little ahead; therefore the same code serves a text still being written:
`Splitter.settled` gives the pieces no later word can change.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import islice

from discoclaw.core.text import ends_blank, utf16_length, utf16_prefix

# ----------------------------------------------------------------------
# Reads code fences: which lines open and close them, what is open where, and how one is closed and reopened.
#
# Knows nothing about messages, their limits or where a text is cut. Text in, positions and fences out.
#
# Fences are CommonMark's with Discord's eyes: any indentation counts, as does "text: ```json" and "code```";
# a run of more than 16 marks or a prefix of more than 24 characters is not a fence but somebody's art.

_PREFIX = r"(?P<prefix>[ \t]*+(?:(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])[ \t]*+)*+)"
FENCE_START = re.compile(_PREFIX + r"(?P<run>`{3,16}+(?!`)|~{3,16}+(?!~))")
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
    start = FENCE_START.match(line)
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


def fence_after(fence: Fence | None, line: str) -> Fence | None:
    """The fence that is open behind `line`."""
    if fence and (not fence.quoted or _QUOTE.match(line)):
        return fence if _closer(fence, line) is None else None
    opened = _fence_of(line)
    return opened[0] if opened else None


def fence_changes(fence: Fence | None, window: str, base: int) -> Iterator[FenceChange]:
    """The lines of `window` (which stands at `base` in the text) that matter to fences."""
    at = 0
    while marks := _MARKS.search(window, at):
        start = max(at, window.rfind("\n", at, marks.start()) + 1)
        end = window.find("\n", marks.end()) + 1 or len(window)
        left = _UNQUOTED_LINE.search(window, at, marks.end()) if fence and fence.quoted else None
        if left:
            fence = None
            yield FenceChange(base + left.start(), base + left.start(), None)
        behind = fence_after(fence, window[start:end])
        if behind is not fence:
            fence = behind
            yield FenceChange(base + start, base + end, behind)
        at = end
    left = _UNQUOTED_LINE.search(window, at) if fence and fence.quoted else None
    if left and left.start() < len(window):
        yield FenceChange(base + left.start(), base + left.start(), None)


def code_block(text: str, line: int, longest: int, final: bool) -> Block | None:
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


def reopening(text: str, start: int, fence: Fence | None) -> str:
    """The text to put before that at `start` so that it stands in `fence` again."""
    if fence is None:
        return ""
    inside_line = start > 0 and text[start - 1] != "\n"
    return f"{fence.prefix}{fence.run}{fence.language}\n" + (
        fence.prefix if inside_line and fence.quoted else ""
    )


def closing(body: str, fence: Fence | None) -> str:
    """The text to put behind `body` to close `fence`."""
    if fence is None:
        return ""
    return ("" if body.endswith("\n") else "\n") + fence.prefix + fence.run


# ----------------------------------------------------------------------


__all__ = [
    "LIMIT",
    "FILE_OVER",
    "Fence",
    "Message",
    "Attachment",
    "Piece",
    "split",
    "join",
    "Splitter",
]

LIMIT = 2000
FILE_OVER = 3900
"""A code block with a longer body (in UTF-16 units: two messages' worth) is sent as a file."""

FILE_CHARACTERS = 2 * 1024 * 1024
"""The most in one file: at most 8 MiB as UTF-8, below the 10 MiB that Discord takes everywhere."""

_ENOUGH = 80  # characters worth a first message at once
_SENTENCE_END = re.compile(r"[.!?…:]\s|\n|[。！？]")
_SMALLEST = 200  # a limit below this has no room for the fences of a cut
_BLANK = re.compile(r"[\s\x00-\x1f\x7f\u200b\ufeff]*")
_HALF_LINE = re.compile(r"(?:(?<=\n)|\A)[ \t>]*[`~][^\n]*\Z")
_EXTENSIONS = {
    "python": "py", "javascript": "js", "typescript": "ts", "markdown": "md", "bash": "sh", "shell": "sh",
    "zsh": "sh", "rust": "rs", "ruby": "rb", "kotlin": "kt", "csharp": "cs", "c#": "cs", "c++": "cpp",
    "haskell": "hs", "perl": "pl", "powershell": "ps1", "yml": "yaml", "golang": "go", "swift": "swift",
}  # fmt: skip
_PLAIN = re.compile(
    r"c|h|cc|cpp|hpp|cs|css|csv|diff|go|hs|html|ini|java|js|json|jsx|kt|lua|md|php|pl|ps1|py|r|rb|rs|scala|sh|sql"
    r"|swift|tex|toml|ts|tsx|vue|xml|yaml"
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message's text: `opened` and `closed` were added by the cuts, `lead` and `trail` are not sent."""

    text: str
    opened: str = ""
    closed: str = ""
    lead: str = ""
    trail: str = ""
    after: Fence | None = None
    """The fence in which the text goes on."""

    @property
    def source(self) -> str:
        """The characters of the original this piece stands for."""
        return self.lead + self.text[len(self.opened) : len(self.text) - len(self.closed)] + self.trail


@dataclass(frozen=True, slots=True)
class Attachment:
    """A long code block as a file; `text` stands in its place, `head` and `tail` were its fence lines."""

    name: str
    content: str
    text: str
    opened: str = ""
    """A fence line before a content that begins inside a code block."""
    head: str = ""
    tail: str = ""
    lead: str = ""
    trail: str = ""
    after: None = None

    @property
    def source(self) -> str:
        """The characters of the original this piece stands for."""
        return self.lead + self.head + self.content[len(self.opened) :] + self.tail + self.trail


Piece = Message | Attachment


def split(text: str, limit: int = LIMIT, *, file_over: int = FILE_OVER) -> list[Piece]:
    """All pieces of `text`, in order; none when it shows nothing."""
    splitter = Splitter(limit, file_over=file_over)
    splitter.add(text)
    pieces: list[Piece] = []
    while piece := splitter.rest():
        pieces.append(piece)
        splitter.accept(piece)
    return pieces


def join(pieces: Iterable[Piece]) -> str:
    """The text the pieces were cut from."""
    return "".join(piece.source for piece in pieces)


class Splitter:
    """Splits a text that is still growing. `settled` and `rest` look; `accept` takes what they gave."""

    def __init__(self, limit: int = LIMIT, *, file_over: int = FILE_OVER) -> None:
        if limit < _SMALLEST:
            raise ValueError(f"limit is {limit}; at least {_SMALLEST} is needed")
        self._limit = limit
        self._next = partial(_next_piece, limit=limit, file_over=file_over)
        self._text = ""
        self._at = 0
        self._fence: Fence | None = None

    @property
    def left(self) -> str:
        """The text that has not been accepted yet."""
        return self._text[self._at :]

    @property
    def opened(self) -> str:
        """The line that opens the code block again in which the text goes on; "" outside of one."""
        return reopening(self._text, self._at, self._fence)

    def add(self, text: str) -> None:
        self._text += text

    def settled(self) -> Piece | None:
        """The next piece if no further text can change it."""
        return self._next(self._text, self._at, self._fence, final=False)

    def rest(self) -> Piece | None:
        """The next piece if no further text comes; None when nothing visible is left."""
        return self._next(self._text, self._at, self._fence, final=True)

    def draft(self) -> Piece | None:
        """The rest as it is shown while more is coming: a half-written fence line is held back."""
        half = _HALF_LINE.search(self._text, max(self._at, self._text.rfind("\n") + 1))
        shown = self._text[: half.start()] if half else self._text
        return self._next(shown, self._at, self._fence, final=True)

    def without_files(self) -> None:
        """From now on long code blocks are cut into messages like everything else."""
        self._next = partial(_next_piece, limit=self._limit, file_over=sys.maxsize)

    def remainder(self, name: str) -> Attachment:
        """All that is left, as a file."""
        content = self.opened + self.left[:FILE_CHARACTERS]
        text = f"The rest of my answer is in `{name}` ({_lines(content)})."
        return Attachment(name, content, text, self.opened)

    def accept(self, piece: Piece) -> None:
        """Go on behind `piece`, whose source must be how `left` begins."""
        self._at += len(piece.source)
        self._fence = piece.after


# --- one piece ---


def _next_piece(
    text: str, at: int, fence: Fence | None, *, limit: int, file_over: int, final: bool
) -> Piece | None:
    """The piece at `at`; None if nothing visible follows, or if (unless `final`) it may still change."""
    if ends_blank(text, at):
        return None
    blank = _blank_to(text, at) - at
    blank = 0 if fence else blank
    lead = text[at : at + blank] if blank >= limit // 2 else ""
    start = at + len(lead)
    opened = reopening(text, start, fence)
    room = limit - len(opened)
    window = _fitting(text[start : start + room], room)
    if not final and len(text) < start + len(window) + AHEAD:
        return None
    changes = tuple(fence_changes(fence, window, start))
    view = Window(text, start, start + len(window), fence, changes)
    # A block that ends in the window can be too long only if a file may be shorter than a message.
    for change in changes if file_over < limit else changes[-2:]:
        block = code_block(text, change.start, LIMIT, final) if change.after else None
        if block and units(text[block.body : block.tail]) > file_over:
            if not fence and _blank_to(text, start) >= block.start:
                trail = _absorbed(text, block.end)
                if not final and (not block.known or block.end + len(trail) == len(text)):
                    return None
                content = text[block.body : block.tail]
                language = block.fence.language.lower()
                extension = _EXTENSIONS.get(language, language if _PLAIN.fullmatch(language) else "txt")
                name = f"code.{extension}"
                return Attachment(
                    name=name,
                    content=content,
                    text=f"`{name}` ({_lines(content)})",
                    head=text[block.start : block.body],
                    tail=text[block.tail : block.end],
                    lead=text[at : block.start],
                    trail=trail,
                )
            before = text[start : block.start]
            closed = closing(before, view.open_at(block.start))  # an unclosed one in a quote
            if len(closed) <= room - units(before):
                return Message(opened + before + closed, opened, closed, lead)
        elif block and not block.known:
            return None
    inside = changes[-1].after if changes else fence
    if start + len(window) == len(text):
        closed = closing(window, inside)
        if len(closed) <= room - units(window):
            return Message(opened + window + closed, opened, closed, lead, after=inside)
    low = 1 if lead else blank + 1
    cut, inside = view.fitting_cut(room, start + low)
    return _message(text, start, cut, inside, opened, room, lead, final)


def _message(
    text: str, start: int, cut: int, inside: Fence | None, opened: str, room: int, lead: str, final: bool
) -> Message | None:
    body = text[start:cut]
    closed = closing(body, inside)
    after = going_on(inside, text, cut)
    behind = _absorbed(text, cut)
    at_end = cut + len(behind) == len(text)
    if at_end and not final:
        return None
    if after and not at_end:
        return Message(opened + body + closed, opened, closed, lead, after=after)
    kept = "" if inside else behind[: room - units(body)]
    return Message(opened + body + kept + closed, opened, closed, lead, behind[len(kept) :])


def _lines(content: str) -> str:
    lines = content.count("\n") + (not content.endswith("\n"))
    return f"{lines:,} {'line' if lines == 1 else 'lines'}"


def _fitting(text: str, room: int) -> str:
    return text[:room] if text.isascii() else utf16_prefix(text, room)


def _blank_to(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _absorbed(text: str, cut: int) -> str:
    """White space behind a cut that stays with the piece before it: not the next line's indentation."""
    blank = text[cut : _blank_to(text, cut)]
    if cut + len(blank) == len(text) or "\n" not in blank:
        return blank
    return blank[: blank.rfind("\n") + 1]


def is_enough(text: str) -> bool:
    """Whether a first message says something: some words, or a whole sentence or line."""
    return len(text) >= _ENOUGH or _SENTENCE_END.search(text.lstrip()) is not None


# ---------------------------------------------------------------------- where to cut

AHEAD = 64
"""How far a cut looks beyond its window; more than the start of any fence line."""

_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_SENTENCE = re.compile(r"""[.!?…]["')\]*_]*\s+|[。！？]""")


@dataclass(frozen=True, slots=True)
class Window:
    """The text that may go into one piece: `text` from `start` to `end`, and the fences in it."""

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
        return fence if line == cut else fence_after(fence, self.text[line:cut])

    def fitting_cut(self, room: int, low: int) -> tuple[int, Fence | None]:
        """The place to cut so that the piece fits, fence closed, into `room`; and the fence open there."""
        end = self.end
        while True:
            tidy = (cut for cut in self._cuts(end) if low <= cut <= end and self._is_tidy(cut, end))
            cut = next(tidy, None) or max(low, _between_letters(self.text, self.start, end))
            inside = self.open_at(cut)
            body = self.text[self.start : cut]
            missing = units(body) + len(closing(body, inside)) - room
            if missing <= 0:
                return cut, inside
            end -= missing

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
        fence_follows = FENCE_START.match(self.text, cut, cut + AHEAD) is not None
        inside = self.open_at(cut)
        if line == cut:
            just_opened = any(change.end == cut and change.after for change in self.changes)
            return not (inside and (fence_follows or just_opened))
        if fence_follows or inside is not going_on(self.open_at(line), self.text, line):
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
    """The start and the marks of an inline code span that `line` does not end; None if there is none."""
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
