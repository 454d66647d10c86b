"""A history as a picture: a PNG with a lane for each branch, in the words and the dark theme of Discord.

Drawn from the same rows as the timeline. On one machine, the same history gives the same bytes. Width, rows
and bytes are bounded, whatever a history contains.
Takes a few hundred milliseconds, so callers run it in a thread. Knows nothing about files.
"""

import io
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

from discoclaw.core.history import History
from discoclaw.show.graph import Graph, Row
from discoclaw.show.words import PEOPLE, acts, count, line, when

# ----------------------------------------------------------------------
# Draws what all pictures share: their colours, and text in any script.

Colour: TypeAlias = tuple[int, int, int]
_Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont

BACKGROUND: Colour = (30, 31, 34)
COLOURS: tuple[Colour, ...] = (
    (88, 166, 255),
    (240, 136, 62),
    (63, 185, 80),
    (214, 120, 230),
    (227, 200, 60),
    (57, 197, 207),
    (248, 105, 120),
    (160, 150, 255),
    (150, 190, 90),
    (230, 150, 180),
)
"""The colours of lanes and parts in their order."""
TEXT: Colour = (222, 224, 228)
DIM: Colour = (148, 155, 164)
BAND: Colour = (35, 37, 41)

_OTHER_FONTS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial.ttf", "Helvetica.ttc")
"""Common fonts with more scripts than Pillow's own, in case the machine has one of them."""


class Pen:
    """Writes text on a picture, in Pillow's font or, if that lacks a letter, in another one."""

    def __init__(self, image: Image.Image) -> None:
        self.draw = ImageDraw.Draw(image)
        self._width = image.width
        self._fonts: dict[tuple[int, bool], _Font] = {}

    def write(
        self, at: float, middle: int, text: str, colour: Colour, size: int = 20, anchor: str = "lm",
        *, room: float | None = None,
    ) -> float:  # fmt: skip
        """Write a line of text, cut to `room` pixels. Returns its width in pixels."""
        font = self._font_for(text, size)
        fitting = _fit(text, font, self._width if room is None else room)
        self.draw.text((at, middle), fitting, colour, font, anchor)
        return font.getlength(fitting)

    def length(self, text: str, size: int) -> float:
        """The width of a line of text, in pixels."""
        return self._font_for(text, size).getlength(text)

    def label(self, at: float, middle: int, text: str, colour: Colour) -> float:
        """Write a name in a filled box. Returns the box's width in pixels."""
        font = self._font_for(text, 16)
        fitting = _fit(text, font, 220)
        wide = font.getlength(fitting) + 16
        self.draw.rounded_rectangle((at, middle - 13, at + wide, middle + 13), 7, colour)
        self.draw.text((at + 8, middle), fitting, BACKGROUND, font, "lm")
        return wide

    def _font_for(self, text: str, size: int) -> _Font:
        own = self._font(size, own=True)
        # A text is written in one font as a whole: letters of two fonts in one word look broken.
        if all(char.isascii() or char in "…·" or _has(own, char) for char in text):
            return own
        return self._font(size, own=False)

    def _font(self, size: int, *, own: bool) -> _Font:
        if (size, own) not in self._fonts:
            self._fonts[size, own] = ImageFont.load_default(size) if own else other_font(size)
        return self._fonts[size, own]


def _fit(text: str, font: _Font, room: float) -> str:
    """The text, cut to a width in pixels. A cut text ends in "…"."""
    if font.getlength(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        half = (low + high + 1) // 2
        low, high = (half, high) if font.getlength(text[:half] + "…") <= room else (low, half - 1)
    return text[:low].rstrip() + "…" if low else ""


def _has(font: _Font, char: str) -> bool:
    """Whether a font has a letter, that is, whether it draws it differently from one that no font has."""
    return bytes(font.getmask(char)) != bytes(font.getmask("\uffff"))


def other_font(size: int, names: Sequence[str] = _OTHER_FONTS) -> _Font:
    """The first of these fonts that the machine has, else Pillow's own."""
    for name in names:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


MOST_ROWS = 30
WIDTH = 1200

_ROW = 44
_TOP = 116
_BOTTOM = 24
_MARGIN = 36
_COLUMN = 34
_LANES_WIDTH = 420
_FINE = 3
"""Lines are drawn this many times larger and then scaled down, since Pillow does not smooth lines itself."""
_DOT = 8
_LINE = 4
_BEND = 16


def png(history: History, *, title: str) -> bytes:
    """The newest commits of a history as a PNG of at most 1200 × 1600 pixels."""
    graph = Graph(history)
    rows = list(graph.rows(MOST_ROWS))
    left = len(graph.commits) - len(rows)
    widest = max((max(len(row.above), len(row.below)) for row in rows), default=1)
    step = min(_COLUMN, _LANES_WIDTH // widest)
    text_at = _MARGIN + widest * step + 8
    lines = max(1, len(rows) + (1 if left else 0))
    image = Image.new("RGB", (WIDTH, _TOP + lines * _ROW + _BOTTOM), BACKGROUND)
    pen = Pen(image)
    for number in range(0, len(rows), 2):
        pen.draw.rectangle((0, _TOP + number * _ROW, WIDTH, _TOP + (number + 1) * _ROW - 1), BAND)
    _draw_lanes(image, graph, rows, step, text_at)

    pen.write(_MARGIN, 42, line(title, 200), TEXT, 30, room=WIDTH - 2 * _MARGIN)
    branches = history.branches
    summary = (
        f"{count(len(graph.commits), PEOPLE.commit)} · {count(len(branches.all), PEOPLE.branch)} · "
        f"{PEOPLE.head}: "
    )
    at = _MARGIN + pen.write(_MARGIN, 84, summary, DIM)
    lane = graph.lane_named(branches.current)
    pen.write(at, 84, graph.lanes[lane].name, colour_of(lane), room=WIDTH - _MARGIN - at)

    for number, row in enumerate(rows):
        commit, middle = row.commit, _TOP + number * _ROW + _ROW // 2
        edge = WIDTH - _MARGIN
        right = edge - pen.write(edge, middle, when(commit.timestamp), DIM, 16, "rm") - 20
        colour = colour_of(graph.lane_of[commit.id])
        at = text_at + pen.write(text_at, middle, graph.short(commit.id), colour) + 12
        at = max(at, text_at + 112)
        if commit.id == graph.head():
            at += pen.label(at, middle, PEOPLE.head, TEXT) + 10
        for tip in graph.tips(commit.id):
            if at < WIDTH * 0.7:
                named = graph.lanes[tip]
                label = named.name if named.alive else f"{named.name}, deleted"
                at += pen.label(at, middle, label, colour_of(tip)) + 10
        pen.write(at, middle, line(commit.message, 200), TEXT, room=right - at)
    below = _TOP + len(rows) * _ROW + _ROW // 2
    if not rows:
        pen.write(_MARGIN, below, f"there are no {PEOPLE.commit}s yet", DIM)
    if left:
        pen.write(text_at, below, f"… {left} earlier", DIM)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def colour_of(lane: int) -> Colour:
    """The colour of a lane: `main` has the first, and they are repeated after the last."""
    return COLOURS[lane % len(COLOURS)]


def _draw_lanes(image: Image.Image, graph: Graph, rows: Sequence[Row], step: int, width: int) -> None:
    """Draw lines, then dots on them, on an enlarged copy that is then scaled down."""
    box = (0, _TOP, width, image.height)
    large = image.crop(box).resize(((box[2] - box[0]) * _FINE, (box[3] - box[1]) * _FINE), 0)
    pen = ImageDraw.Draw(large)
    places = {row.commit.id: (row.column, number) for number, row in enumerate(rows)}

    def point(column: int, row: int) -> tuple[int, int]:
        return _MARGIN + column * step, row * _ROW + _ROW // 2

    for number, row in enumerate(rows):
        for order, edge in enumerate(row.edges):
            # Out of the commit, down a column, into the parent. It bends only within the row after its start
            # and the row before its end.
            lane = graph.lane_of[row.commit.id if order == 0 else edge.parent]
            start = point(row.column, number)
            end = point(*places.get(edge.parent, (edge.column, len(rows))))
            x, _ = point(edge.column, 0)
            bends = [start[0] != x, end[0] != x]
            room = min(_ROW, (end[1] - start[1]) // max(1, sum(bends)))
            points = [*_curve(start, (x, start[1] + room * bends[0]))]
            points += _curve((x, end[1] - room * bends[1]), end)
            large_points = [(x * _FINE, y * _FINE) for x, y in points]
            pen.line(large_points, colour_of(lane), _LINE * _FINE, joint="curve")
    dot = min(_DOT, max(3, step // 2 - 1))
    for number, row in enumerate(rows):
        x, y = point(row.column, number)
        if row.commit.id == graph.head():
            _disc(pen, x, y, dot + 5, TEXT)
            _disc(pen, x, y, dot + 2, BACKGROUND)
        _disc(pen, x, y, dot, colour_of(graph.lane_of[row.commit.id]))
        if any(name == "merge" for name, _ in acts(row.commit)):
            _disc(pen, x, y, dot // 2, BACKGROUND)
    image.paste(large.reduce(_FINE), box[:2])


def _disc(pen: ImageDraw.ImageDraw, x: int, y: int, radius: int, colour: Colour) -> None:
    box = tuple(part * _FINE for part in (x - radius, y - radius, x + radius, y + radius))
    pen.ellipse(box, colour)


def _curve(start: tuple[float, float], end: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """The points of a curve to a lower point, vertical at both ends (a smoothstep)."""
    if start[0] == end[0]:
        yield from (start, end)
        return
    for step in range(_BEND + 1):
        part = step / _BEND
        smooth = part * part * (3 - 2 * part)
        yield start[0] + (end[0] - start[0]) * smooth, start[1] + (end[1] - start[1]) * part
