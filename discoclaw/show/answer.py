"""What a command answers, once: a heading, rows, buttons, files. Cards, texts, tables and JSON render it.

    answer = Answer(
        "What I remember about you",
        small=("3 memories",),
        rows=[Row("I like tea", f"preference · {ago(item.updated_at)}", Button(custom_id, "⋯"))],
        turn=Turn(call.user_id, "show", values=()),
        page=call.page,
    )

`bot.layout` makes a card of it, a page at a time, for slash commands; `as_text` is what text commands say,
and what stands in for a card that Discord doesn't take. Every text in it is markup, so what people or models
wrote goes through `markup` first: `opening` at the start of a line, `words` and `said` elsewhere. With a
`turn`, ◀ and ▶ give the command again: its values stand in the custom ids of these buttons if they fit there,
and else in the card itself, which only we can edit. On the command line an answer is `typed`, in git's words,
or else its text; programs get its `data` as JSON. Knows Discord's limits, but nothing about discord.py.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from discoclaw.core.text import clip, utf16_length, utf16_prefix
from discoclaw.show.markup import plain, unmarked
from discoclaw.show.words import count, line

Style = Literal["grey", "blue", "green", "red"]
MOST_TEXT = 4000
"""Discord's limit for all texts of a card together, in UTF-16 units."""
MOST_PARTS = 40
"""Discord's limit for the components of a message, those inside of others included."""
BLURPLE, GREEN, YELLOW, RED, GREY = 0x5865F2, 0x57A55A, 0xE0A823, 0xD8484B, 0x80848E

_HEADING, _NOTE, _SMALL, _ASKED = 150, 500, 450, 1010
_ROW = 1000
"""The longest text that one row holds; a longer one is continued in the next."""
_ROW_SMALL = 300
_SHORT = 8
"""A value of a command that surely fits into a button, in characters."""
_BUTTONS = 5
"""Buttons in a row, by Discord's limit."""
MOST_BUTTONS, MOST_MENUS = 10, 2
"""Below the rows of a card, so that a row still fits beside them."""


@dataclass(frozen=True, slots=True)
class Button:
    """A button: its custom id, by which `bot.buttons` knows it, and what it says; or a link.

    In the custom id of a row's control, `{page}` stands for the page that the row is on.
    """

    custom_id: str
    label: str
    style: Style = "grey"
    disabled: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True)
class Menu:
    """A menu. `options` are (label, what stands below it, value); with `channels` they are the server's.

    Those whose values are `ticked` are chosen already.
    """

    custom_id: str
    hint: str
    options: Sequence[tuple[str, str, str]]
    most: int = 1
    channels: bool = False
    ticked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its text, small print below it, a control beside it. With a `title`, it begins a section.

    `apart`: below a line of its own, as a section is. `as_text` says `line` instead, if there is one: with
    the id, say, by which a text command can name what a card has a button for. `private`: a text that others
    read counts it only.
    """

    text: str
    small: str = ""
    control: Button | None = None
    title: str = ""
    apart: bool = False
    line: str = ""
    private: bool = False

    def body(self) -> str:
        """The row as one text of a card."""
        text = f"**{self.title}**\n{self.text}" if self.title else self.text
        return f"{text}\n-# {clip(self.small, _ROW_SMALL)}" if self.small else text

    def as_text(self) -> str:
        """The row in a text: one with small print is one of a list, any other stands as it is."""
        first, *rest = self.text.splitlines() or [""]
        small = f" ({self.small.replace(' · ', ', ')})" if self.small else ""
        if self.line:
            text = self.line
        elif self.title and self.small:
            return f"\n**{self.title}**{small}\n{self.text}"
        else:
            text = "\n".join([f"- {first}{small}", *(f"  - {one}" for one in rest)]) if small else self.text
        title = f"\n**{self.title}**\n" if self.title else "\n" if self.apart else ""
        return title + text


@dataclass(frozen=True, slots=True)
class File:
    """A file as bytes, whose `name` ends in its format. A card shows it as a picture."""

    name: str
    data: bytes
    description: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """How a press gets a card anew: for whom, by which command of `/memory`, with which values."""

    user_id: str
    verb: str
    values: Sequence[object] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """A table on the command line. Its cells are outside text, of which each becomes one line.

    Columns whose names are `whole` are never wrapped, those in `right` are numbers; rows whose numbers are
    `faint` are dimmed.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    whole: Collection[str] = ()
    right: Collection[str] = ()
    faint: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `note` says what has just been done, `small` are facts about all of it (`3 memories`).

    `above` are sentences to be read first, `foot` what else is to be said. `most` is how many rows a page has
    at most, and `page` begins with 1; past the end it is the last one. Without a `colour` the card has no
    frame: it stands in the chat as quietly as small print. A `plain` answer is never a card. `typed` is what
    the command line prints, with `foot` below it; `data` is its JSON. If it `failed`, the program's exit code
    there says so. In the `typed` text of an answer with a file, `{path}` stands for where that was written.
    """

    heading: str = ""
    rows: Sequence[Row] = ()
    small: Sequence[str] = ()
    above: Sequence[str] = ()
    note: Row | None = None
    foot: Sequence[str] = ()
    files: Sequence[File] = ()
    controls: Sequence[Button] = ()
    menus: Sequence[Menu] = ()
    turn: Turn | None = None
    page: int = 1
    most: int = 5
    colour: int | None = BLURPLE
    plain: bool = False
    typed: str | Grid = ""
    data: object = None
    failed: bool = False

    def __post_init__(self) -> None:
        assert len(self.controls) <= MOST_BUTTONS and len(self.menus) <= MOST_MENUS

    # ------------------------------------------------------------------ as a text

    def as_text(self, *, in_private: bool) -> str:
        """All of it as a text, without its controls. Unless `in_private`, private rows are only counted."""
        small = f" ({', '.join(self.small)})" if self.small else ""
        head = [f"**{self.heading}**{small}"] if self.heading else []
        note = [self.note.text] if self.note is not None else []
        shown = [row for row in self.rows if in_private or not row.private]
        sections = next((at for at, row in enumerate(shown) if row.title or row.apart), len(shown))
        lines = [row.as_text() for row in shown]
        if hidden := len(self.rows) - len(shown):
            verb = self.turn.verb if self.turn is not None else "show"
            secret = count(hidden, "private memory")
            lines.insert(sections, f"({secret}: use `/memory {verb}`, or ask me in a DM)")
        return "\n".join([*note, *self.above, *head, *lines, *self.foot]).lstrip("\n")

    def said(self, note: str, undo: Button | None = None) -> "Answer":
        """The answer with a note on top that says what has just been done, and a way to take it back."""
        return replace(self, note=Row(clip(note, _NOTE), control=undo) if note else None)

    # ------------------------------------------------------------------ as a card

    def pages(self) -> list[tuple[Row, ...]]:
        """The rows of each page; at least one page."""
        room = MOST_TEXT - sum(map(utf16_length, (*self.top(), self.bottom()))) - _asked_room(self.turn)
        parts = MOST_PARTS - self._frame()
        pages: list[list[Row]] = [[]]
        left, free = room, parts
        for row in _split(self.rows):
            size, cost = utf16_length(row.body()), _cost(row)
            if pages[-1] and (size > left or cost > free or len(pages[-1]) >= self.most):
                pages.append([])
                left, free = room, parts
            pages[-1].append(row)
            left, free = left - size, free - cost
        return [tuple(page) for page in pages]

    def shown(self) -> tuple[int, int, tuple[Row, ...]]:
        """The page that is shown, how many there are, and its rows."""
        pages = self.pages()
        page = max(1, min(self.page, len(pages)))
        return page, len(pages), pages[page - 1]

    def free(self) -> int:
        """How many more components the page that is shown has room for."""
        return MOST_PARTS - self._frame() - sum(map(_cost, self.shown()[2]))

    def top(self) -> tuple[str, ...]:
        """The lines above the rows: what was done, and the heading with its small print."""
        noted = self.note.body() if self.note is not None else ""
        return tuple(part for part in (noted, self.titled()) if part)

    def titled(self) -> str:
        """The heading with its small print."""
        lines = [*self.above, *([" · ".join(self.small)] if self.small else [])]
        heading = f"### {clip(self.heading, _HEADING)}" if self.heading else ""
        small = clip("\n".join(f"-# {one}" for one in lines), _SMALL)
        return "\n".join(part for part in (heading, small) if part)

    def bottom(self) -> str:
        """The small print below the rows."""
        return clip("\n".join(f"-# {line}" for line in self.foot), _SMALL)

    def rest(self) -> str:
        """The text for which the card has neither room nor a page to turn to; mostly ""."""
        page, pages, _ = self.shown()
        if self.turn is not None or page == pages:
            return ""
        return "\n".join(row.body() for some in self.pages()[page:] for row in some)

    def _frame(self) -> int:
        """How many components a card has around its rows: at most, as its page row may not be needed."""
        # The container, above the rows the note (with a button) and the heading, each with a separator; below
        # them a separator with the last text.
        parts = 1 + (4 if self.note else 0) + 2 + (2 if self.bottom() else 0) + (2 if self.files else 0)
        parts += -(-len(self.controls) // _BUTTONS) + len(self.controls) + 2 * len(self.menus)
        # What was asked, and the row of pages with its three buttons.
        return parts + (5 if self.turn is not None else 0)


Reply = str | Answer | Sequence[Answer]
"""What a command returns: an answer, several messages, or no more than a sentence."""


def message(
    text: str,
    controls: Sequence[Button] = (),
    menus: Sequence[Menu] = (),
    files: Sequence[File] = (),
    *,
    data: object = None,
) -> Answer:
    """A text with its buttons and files, which is no card in any place; `data` is its JSON."""
    return Answer(rows=[Row(text)], controls=controls, menus=menus, files=files, plain=True, data=data)


def below(reply: Reply, lines: Sequence[str]) -> Reply:
    """An answer with more lines at its end."""
    if not lines:
        return reply
    if isinstance(reply, str):
        return "\n".join([reply, *lines])
    if isinstance(reply, Answer):
        return replace(reply, foot=(*reply.foot, *lines))
    return [*reply, message("\n".join(lines))]


def _cost(row: Row) -> int:
    """The components of a row, with the line above it."""
    return (3 if row.control is not None else 1) + (1 if row.apart or row.title else 0)


def _asked_room(turn: Turn | None) -> int:
    """Room for what was asked, which stands in the card if it is too long for a button."""
    return _ASKED if turn is not None and any(len(str(one)) > _SHORT for one in turn.values) else 0


def _split(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows, those that are too long in several: the first has the control, the last the small print."""
    for row in rows:
        *whole, last = _pieces(row.text)
        first = row
        for piece in whole:
            yield replace(first, text=piece, small="")
            first = Row("")
        yield replace(first, text=last, small=row.small)


def _pieces(text: str) -> list[str]:
    """A text in pieces that a row holds, cut at the end of a line or of a word where there is one."""
    pieces: list[str] = []
    while utf16_length(text) > _ROW:
        head = utf16_prefix(text, _ROW)
        cut = next((at for at in (head.rfind("\n"), head.rfind(" ")) if at > len(head) // 2), len(head))
        while cut > 1 and text[cut - 1] == "\\":  # what it escapes is markup without it
            cut -= 1
        pieces.append(text[:cut].rstrip() or "\u200b")
        text = text[cut:].lstrip()
    return [*pieces, text.strip() or "\u200b"]


# ---------------------------------------------------------------------- ◀ and ▶

ASKED_ID = 1000
"""The component that holds what was asked."""
MOST_ID = 100
"""The longest custom id, by Discord's limit."""
LONGEST_PAGE = 9999
IN_CARD = "*"
"""Stands in a custom id for values that are in the card."""
SEPARATOR = "|"


def written(values: Sequence[object]) -> str:
    """The values of a command as one text; only the last may contain the separator."""
    texts = ["1" if one is True else "" if one is None or one is False else str(one) for one in values]
    return SEPARATOR.join(texts)


def asked_in(turn: Turn | None) -> str:
    """The values that stand in the card because they don't fit into a custom id; "" if they fit."""
    text = written(turn.values) if turn is not None else ""
    fits = turn is None or (len(_id(turn, LONGEST_PAGE, text)) <= MOST_ID and text != IN_CARD)
    return "" if fits else plain(line(text))


def read(text: str) -> str:
    """The values that were asked for, from the text of the card."""
    return unmarked(text.removeprefix("-# "))


def turn_buttons(turn: Turn, page: int, pages: int) -> tuple[Button, ...]:
    """The buttons of a page: back, which one it is, on."""
    values = IN_CARD if asked_in(turn) else written(turn.values)
    return (
        Button(_id(turn, page - 1, values), "◀", disabled=page <= 1),
        Button(_id(turn, page, values), f"{page} of {pages}", disabled=True),
        Button(_id(turn, page + 1, values), "▶", disabled=page >= pages),
    )


def back(turn: Turn, page: int, label: str = "Back") -> Button:
    """The way back to a page of a card. Only for a turn whose values fit into a custom id."""
    return Button(_id(turn, page, written(turn.values)), label)


def _id(turn: Turn, page: int, values: str) -> str:
    return f"turn:{turn.user_id}:{min(page, LONGEST_PAGE)}:{turn.verb}:{values}"
