"""The use of models as a picture: a PNG with a bar for each day, stacked by purpose.

Bars show what was paid, or the tokens if everything was free. Text is large enough for a phone, where Discord
shows the picture at less than half its size. On one machine, the same report gives the same bytes.
Takes about fifty milliseconds, so callers run it in a thread. Knows nothing about files.
"""

import io
import math
from collections.abc import Callable, Mapping
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


def colour_of(purpose: str) -> Colour:
    """The colour of a purpose, the same in all pictures."""
    return COLOURS[_ORDER.get(purpose, len(_ORDER)) % len(COLOURS)]


_ORDER: Final = {purpose: number for number, purpose in enumerate(PURPOSES)}


def png(report: Report, days: Days, *, title: str) -> bytes:
    """Draw the use of some days, as a PNG of 960 pixels' width. Calls of other days are left out."""
    report = report.within(days)
    total, daily, free = report.total, report.daily(days), not report.total.nano

    def height(one: Total) -> int:
        return one.tokens if free else one.nano

    # The legend comes first, because the picture's height depends on its rows: of each part its purpose, its
    # text, and the pixels it takes.
    measure = Pen(Image.new("RGB", (WIDTH, 1)))
    legend, left = list[list[tuple[str, str, float]]](), 0.0
    for one in sorted(report.by("purpose"), key=lambda one: _ORDER.get(one.key or "", 99)):
        worth = amount(one.total.tokens) if free else money(one.total.nano)
        text = f"{PURPOSES.get(one.key or '', one.key)}  {worth}"
        width = 34 + measure.length(text, _SMALL) + 40
        if not legend or width - 40 > left:
            legend.append([])
            left = float(WIDTH - 2 * _MARGIN)
        legend[-1].append((one.key or "", text, width))
        left -= width
    below = _TOP + _PLOT + 60
    image = Image.new("RGB", (WIDTH, below + len(legend) * _LEGEND + 20), BACKGROUND)
    pen, step = Pen(image), (WIDTH - _MARGIN - _LEFT) / max(1, len(daily))

    wide = pen.write(WIDTH - _MARGIN, 52, money(total.nano) if total else "", TEXT, _TOTAL, "rm")
    pen.write(_MARGIN, 52, line(title, 100), TEXT, _TITLE, room=WIDTH - 2 * _MARGIN - wide - 24)
    if total:
        calls = f"{count(total.calls, 'call')} · {amount(total.tokens)} tokens"
        pen.write(_MARGIN, 100, calls, DIM, _SMALL)
        _bars(pen, daily, step, height, free=free)
    else:
        pen.write(WIDTH / 2, _TOP + _PLOT // 2, NOTHING_YET, DIM, 32, "mm")

    named = list(daily)  # the first day, the last, and some between
    for number in range(len(named) - 1, -1, -max(1, math.ceil(len(named) / 5))):
        at = _LEFT + (number + 0.5) * step
        anchor = "rm" if at > WIDTH - _MARGIN - 50 else "mm"
        at = min(at, WIDTH - _MARGIN - 50) if anchor == "mm" else WIDTH - _MARGIN
        pen.write(at, _TOP + _PLOT + 28, month_day(date.fromisoformat(named[number])), DIM, _SMALL, anchor)
    for number, row in enumerate(legend):
        at, middle = float(_MARGIN), below + number * _LEGEND + _LEGEND // 2
        for purpose, text, width in row:
            pen.draw.rounded_rectangle((at, middle - 11, at + 22, middle + 11), 5, colour_of(purpose))
            pen.write(at + 34, middle, text, TEXT, _SMALL)
            at += width
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _bars(
    pen: Pen,
    daily: Mapping[str, Mapping[str, Total]],
    step: float,
    height: Callable[[Total], int],
    *,
    free: bool,
) -> None:
    """Draw a bar for each day, over at most five lines at round numbers, the highest not below any bar."""
    most = max((sum(map(height, parts.values())) for parts in daily.values()), default=0)
    unit, least = 1 if free else DOLLAR, max(most / 4, 1)
    power = 10 ** math.floor(math.log10(least / unit)) * unit
    apart: int = next(math.ceil(times * power) for times in (1, 2, 2.5, 5, 10) if times * power >= least)
    highest = -(-max(most, 1) // apart) * apart

    def y(value: int) -> int:
        return _TOP + _PLOT - value * _PLOT // highest

    for value in range(0, highest + 1, apart):
        pen.draw.line((_LEFT, y(value), WIDTH - _MARGIN, y(value)), _LINE, 2)
        pen.write(_LEFT - 14, y(value), amount(value) if free else tick(value, apart), DIM, _SMALL, "rm")
    wide = min(_WIDEST, max(1, round(step * 0.74)))
    for number, parts in enumerate(daily.values()):
        left, below = round(_LEFT + (number + 0.5) * step - wide / 2), 0
        for purpose in sorted(parts, key=lambda one: _ORDER.get(one, 99)):
            above = below + height(parts[purpose])
            bottom, top = y(below), y(above)
            if below == 0 and above and top == bottom:
                top -= 2  # the smallest day is still seen
            if top < bottom:
                pen.draw.rectangle((left, top, left + wide - 1, bottom - 1), colour_of(purpose))
            below = above


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
