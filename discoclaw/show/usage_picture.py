"""The use of models as a picture: a PNG with a bar for each day, stacked by purpose.

Bars show what was paid, or the tokens if everything was free. Text is large enough for a phone, where Discord
shows the picture at less than half its size. On one machine, the same report gives the same bytes.
Takes about fifty milliseconds, so callers run it in a thread. Knows nothing about files.
"""

import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from PIL import Image

from discoclaw.core.usage import DOLLAR, PURPOSES, Days, Report, Total, amount, money
from discoclaw.show.picture import BACKGROUND, COLOURS, DIM, TEXT, Colour, Pen
from discoclaw.show.words import count, line, month_day

WIDTH: Final = 960
_LINE: Colour = (58, 60, 66)
_MARGIN, _LEFT, _TOP = 36, 132, 150
_PLOT = 300
_WIDEST = 64
"""A bar's most pixels: that of a single day would fill the picture."""
_LEGEND = 44
_TITLE, _TOTAL, _SMALL = 34, 44, 26
_MOST_DECIMALS = 5
NOTHING_YET: Final = "no calls in these days"


def png(report: Report, days: Days, *, title: str) -> bytes:
    """Draw the use of some days, as a PNG of 960 pixels' width. Calls of other days are left out."""
    out = io.BytesIO()
    _Page(report.within(days), days).draw(line(title, 100)).save(out, "PNG", optimize=True)
    return out.getvalue()


def colour_of(purpose: str) -> Colour:
    """The colour of a purpose, the same in all pictures."""
    return COLOURS[_ORDER.get(purpose, len(_ORDER)) % len(COLOURS)]


_ORDER: Final = {purpose: number for number, purpose in enumerate(PURPOSES)}


@dataclass(frozen=True, slots=True)
class _Scale:
    """The scale of the bars: the highest line, the distance of lines, and how they are labelled."""

    top: int
    step: int
    text: Callable[[int, int], str]

    @classmethod
    def up_to(cls, most: int, unit: int, text: Callable[[int, int], str]) -> "_Scale":
        """At most five lines at round numbers, the highest not below `most`."""
        least = max(most / 4, 1)
        power = 10 ** math.floor(math.log10(least / unit)) * unit
        step = next(math.ceil(times * power) for times in (1, 2, 2.5, 5, 10) if times * power >= least)
        return cls(-(-max(most, 1) // step) * step, step, text)


class _Page:
    """One picture while it is drawn."""

    def __init__(self, report: Report, days: Days) -> None:
        self._total = report.total
        self._daily = report.daily(days)
        self._purposes = sorted(report.by("purpose"), key=lambda one: _ORDER.get(one.key or "", 99))
        self._free = not self._total.nano
        most = max((sum(map(self._height_of, one.values())) for one in self._daily.values()), default=0)
        unit, text = (1, _tokens) if self._free else (DOLLAR, tick)
        self._scale = _Scale.up_to(most, unit, text)

    def draw(self, title: str) -> Image.Image:
        """The whole picture."""
        rows = list(self._rows(Pen(Image.new("RGB", (WIDTH, 1)))))
        below = _TOP + _PLOT + 60
        image = Image.new("RGB", (WIDTH, below + len(rows) * _LEGEND + 20), BACKGROUND)
        pen = Pen(image)
        self._head(pen, title)
        if self._total:
            self._lines(pen)
            self._bars(pen)
        else:
            pen.write(WIDTH / 2, _TOP + _PLOT // 2, NOTHING_YET, DIM, 32, "mm")
        self._dates(pen)
        for number, row in enumerate(rows):
            at, middle = float(_MARGIN), below + number * _LEGEND + _LEGEND // 2
            for purpose, text, width in row:
                pen.draw.rounded_rectangle((at, middle - 11, at + 22, middle + 11), 5, colour_of(purpose))
                pen.write(at + 34, middle, text, TEXT, _SMALL)
                at += width
        return image

    def _height_of(self, total: Total) -> int:
        return total.tokens if self._free else total.nano

    def _worth(self, total: Total) -> str:
        return amount(total.tokens) if self._free else money(total.nano)

    # ------------------------------------------------------------------ words

    def _head(self, pen: Pen, title: str) -> None:
        text = money(self._total.nano) if self._total else ""
        wide = pen.write(WIDTH - _MARGIN, 52, text, TEXT, _TOTAL, "rm")
        pen.write(_MARGIN, 52, title, TEXT, _TITLE, room=WIDTH - 2 * _MARGIN - wide - 24)
        if self._total:
            tokens = f"{amount(self._total.tokens)} tokens"
            pen.write(_MARGIN, 100, f"{count(self._total.calls, 'call')} · {tokens}", DIM, _SMALL)

    def _rows(self, pen: Pen) -> Iterator[Sequence[tuple[str, str, float]]]:
        """Yield the rows of the legend: of each part its purpose, its text and the pixels it takes."""
        row, left = list[tuple[str, str, float]](), float(WIDTH - 2 * _MARGIN)
        for one in self._purposes:
            text = f"{PURPOSES.get(one.key or '', one.key)}  {self._worth(one.total)}"
            width = 34 + pen.length(text, _SMALL) + 40
            if row and width - 40 > left:
                yield row
                row, left = [], float(WIDTH - 2 * _MARGIN)
            row.append((one.key or "", text, width))
            left -= width
        if row:
            yield row

    def _dates(self, pen: Pen) -> None:
        """The first day, the last, and some between."""
        days = list(self._daily)
        every = max(1, math.ceil(len(days) / 5))
        for number in range(len(days) - 1, -1, -every):
            at = self._middle(number)
            anchor = "rm" if at > WIDTH - _MARGIN - 50 else "mm"
            at = min(at, WIDTH - _MARGIN - 50) if anchor == "mm" else WIDTH - _MARGIN
            pen.write(at, _TOP + _PLOT + 28, month_day(date.fromisoformat(days[number])), DIM, _SMALL, anchor)

    # ------------------------------------------------------------------ bars

    def _lines(self, pen: Pen) -> None:
        for value in range(0, self._scale.top + 1, self._scale.step):
            y = self._y(value)
            pen.draw.line((_LEFT, y, WIDTH - _MARGIN, y), _LINE, 2)
            pen.write(_LEFT - 14, y, self._scale.text(value, self._scale.step), DIM, _SMALL, "rm")

    def _bars(self, pen: Pen) -> None:
        wide = min(_WIDEST, max(1, round(self._step * 0.74)))
        for number, parts in enumerate(self._daily.values()):
            left = round(self._middle(number) - wide / 2)
            below = 0
            for purpose in sorted(parts, key=lambda one: _ORDER.get(one, 99)):
                above = below + self._height_of(parts[purpose])
                bottom, top = self._y(below), self._y(above)
                if below == 0 and above and top == bottom:
                    top -= 2  # the smallest day is still seen
                if top < bottom:
                    pen.draw.rectangle((left, top, left + wide - 1, bottom - 1), colour_of(purpose))
                below = above

    @property
    def _step(self) -> float:
        return (WIDTH - _MARGIN - _LEFT) / max(1, len(self._daily))

    def _middle(self, number: int) -> float:
        return _LEFT + (number + 0.5) * self._step

    def _y(self, value: int) -> int:
        return _TOP + _PLOT - value * _PLOT // self._scale.top


def _tokens(number: int, _step: int) -> str:
    return amount(number)


def tick(nano: int, step: int) -> str:
    """The money beside a line, with as many decimals as the others: `$0.50`, `$1.00`, or `$1`, `$2`.

    `step` is the distance of the lines, in nanodollars as `nano`.
    """
    if not nano:
        return "$0"
    exponent = (Decimal(step) / DOLLAR).normalize().as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_MOST_DECIMALS:
        return money(nano)
    return f"${Decimal(nano) / DOLLAR:,.{0 if exponent >= 0 else max(2, -exponent)}f}"
