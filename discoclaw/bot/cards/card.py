"""A card as a value: a heading, small print, rows with a control each, pages. Knows nothing about discord.py.

    card = Card(
        "What I remember about you",
        small=("3 memories",),
        entries=[Entry("I like tea", f"preference · {ago(item.updated_at)}", Button(custom_id, "⋯"))],
        turn=Turn(call.user_id, "show", values=()),
        page=call.page,
    )
    return Carded(card, text)

`text` is what the command answers as a text command, and where Discord takes no card. Every text in a card
is markup, so what people or models wrote goes through `texts.markup` first: `opening` at the start of a line,
`words` and `said` elsewhere. `layout.rendered` makes a message of it; what does not fit on a page comes on
the next ones, so nothing is lost. With a `turn`, ◀ and ▶ give the command again (see `turning`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from discoclaw.core.text import clip, utf16_length, utf16_prefix

Style = Literal["grey", "blue", "green", "red"]
MOST_TEXT = 4000
"""Discord's limit for all texts of a message together, in UTF-16 units."""
MOST_PARTS = 40
"""Discord's limit for the components of a message, those inside of others included."""
BLURPLE, GREEN, YELLOW, RED, GREY = 0x5865F2, 0x57A55A, 0xE0A823, 0xD8484B, 0x80848E

_HEADING, _NOTE, _SMALL, _ASKED = 150, 500, 450, 1010
_ENTRY = 1000
"""The longest text that one row holds; a longer one is continued in the next."""
_ENTRY_SMALL = 300
_SHORT = 8
"""A value of a command that surely fits into a button, in characters."""
_ROW = 5
"""Buttons in a row, by Discord's limit."""
MOST_BUTTONS, MOST_MENUS = 10, 2
"""Below a card's rows, so that a row still fits beside them."""


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
    """A menu. `options` are (label, what stands below it, value); with `channels` they are the server's."""

    custom_id: str
    hint: str
    options: Sequence[tuple[str, str, str]]
    most: int = 1
    channels: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: its text, small print below it, a control beside it. `apart`: below a line of its own."""

    text: str
    small: str = ""
    control: Button | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as bytes; `name` ends in its format."""

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
class Card:
    """A card. `note` says what has just been done, `small` what it is about, `foot` what else is to be said.

    `most` is how many rows a page has at most, and `page` begins with 1; past the end it is the last one.
    Without a `colour` the card has no frame: it stands in the chat as quietly as small print.
    """

    heading: str
    entries: Sequence[Entry] = ()
    small: Sequence[str] = ()
    note: Entry | None = None
    foot: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    controls: Sequence[Button] = ()
    menus: Sequence[Menu] = ()
    turn: Turn | None = None
    page: int = 1
    most: int = 5
    colour: int | None = field(default=BLURPLE, kw_only=True)

    def __post_init__(self) -> None:
        assert len(self.controls) <= MOST_BUTTONS and len(self.menus) <= MOST_MENUS

    def pages(self) -> list[tuple[Entry, ...]]:
        """The rows of each page; at least one page."""
        room = MOST_TEXT - sum(map(utf16_length, (*self.top(), self.bottom()))) - _asked_room(self.turn)
        parts = MOST_PARTS - _frame(self)
        pages: list[list[Entry]] = [[]]
        left, free = room, parts
        for entry in _split(self.entries):
            size, cost = utf16_length(body(entry)), _cost(entry)
            if pages[-1] and (size > left or cost > free or len(pages[-1]) >= self.most):
                pages.append([])
                left, free = room, parts
            pages[-1].append(entry)
            left, free = left - size, free - cost
        return [tuple(page) for page in pages]

    def shown(self) -> tuple[int, int, tuple[Entry, ...]]:
        """The page that is shown, how many there are, and its rows."""
        pages = self.pages()
        page = max(1, min(self.page, len(pages)))
        return page, len(pages), pages[page - 1]

    def free(self) -> int:
        """How many more components the page that is shown has room for."""
        return MOST_PARTS - _frame(self) - sum(map(_cost, self.shown()[2]))

    def top(self) -> tuple[str, ...]:
        """The lines above the rows: what was done, and the heading with its small print."""
        noted = body(self.note) if self.note is not None else ""
        return tuple(part for part in (noted, self.titled()) if part)

    def titled(self) -> str:
        """The heading with its small print."""
        small = "\n".join(f"-# {line}" for line in self.small)
        heading = f"### {clip(self.heading, _HEADING)}" if self.heading else ""
        return "\n".join(part for part in (heading, clip(small, _SMALL)) if part)

    def bottom(self) -> str:
        """The small print below the rows."""
        return clip("\n".join(f"-# {line}" for line in self.foot), _SMALL)

    def rest(self) -> str:
        """The text for which the card has neither room nor a page to turn to; mostly ""."""
        page, pages, _ = self.shown()
        if self.turn is not None or page == pages:
            return ""
        return "\n".join(body(entry) for some in self.pages()[page:] for entry in some)

    def as_text(self) -> str:
        """The whole card as a text, without its controls."""
        rows = (body(entry) for entry in self.entries)
        return "\n".join(part for part in (*self.top(), *rows, self.bottom()) if part)

    def said(self, note: str, undo: Button | None = None) -> "Card":
        """The card with a note on top that says what has just been done, and a way to take it back."""
        return replace(self, note=Entry(clip(note, _NOTE), control=undo) if note else None)


def body(entry: Entry) -> str:
    """A row as one text."""
    return f"{entry.text}\n-# {clip(entry.small, _ENTRY_SMALL)}" if entry.small else entry.text


def _frame(card: Card) -> int:
    """How many components a card has around its rows: at most, as its page row may not be needed."""
    rows = -(-len(card.controls) // _ROW)
    # The container, above the rows the note (with a button) and the heading, each with a separator; below
    # them a separator with the last text.
    parts = 1 + (4 if card.note else 0) + 2 + (2 if card.bottom() else 0) + (2 if card.pictures else 0)
    parts += rows + len(card.controls) + 2 * len(card.menus)
    # What was asked, and the row of pages with its three buttons.
    return parts + (5 if card.turn is not None else 0)


def _cost(entry: Entry) -> int:
    """The components of a row, with the line above it."""
    return (3 if entry.control is not None else 1) + (1 if entry.apart else 0)


def _asked_room(turn: Turn | None) -> int:
    """Room for what was asked, which stands in the card if it is too long for a button (see `turning`)."""
    return _ASKED if turn is not None and any(len(str(one)) > _SHORT for one in turn.values) else 0


def _split(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The rows, those that are too long in several: the first has the control, the last the small print."""
    for entry in entries:
        *whole, last = _pieces(entry.text)
        control, apart = entry.control, entry.apart
        for piece in whole:
            yield Entry(piece, "", control, apart)
            control, apart = None, False
        yield Entry(last, entry.small, control, apart)


def _pieces(text: str) -> list[str]:
    """A text in pieces that a row holds, cut at the end of a line or of a word where there is one."""
    pieces: list[str] = []
    while utf16_length(text) > _ENTRY:
        head = utf16_prefix(text, _ENTRY)
        cut = next((at for at in (head.rfind("\n"), head.rfind(" ")) if at > len(head) // 2), len(head))
        while cut > 1 and text[cut - 1] == "\\":  # what it escapes is markup without it
            cut -= 1
        pieces.append(text[:cut].rstrip() or "\u200b")
        text = text[cut:].lstrip()
    return [*pieces, text.strip() or "\u200b"]
