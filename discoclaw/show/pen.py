"""Draws what all pictures share: their colours, and text in any script.

Pictures have the dark theme of Discord, with a ground of their own, so they look the same on a light page.
Text is in the font that comes with Pillow. Letters that it lacks are drawn with a font of the machine if
there is a suitable one, else as boxes. Knows nothing about what a picture shows.
"""

from collections.abc import Sequence
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

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
