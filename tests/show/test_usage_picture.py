"""What models were used for as a picture: decoded again, and looked at for size, bars and colours."""

import io
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from discoclaw.core.usage import DOLLAR, Call, Report, last_days
from discoclaw.show.picture import BACKGROUND, COLOURS
from discoclaw.show.usage_picture import WIDTH, colour_of, png, tick
from tests.core.calls import DAY, NOW, PURPOSES, call, calls
from tests.examples import FEW
from tests.show.histories import NASTY
from tests.tables import each_row

BARS = (132, 140, WIDTH - 36, 452)
"""Where the bars are."""


def decoded(calls: Sequence[Call], *, days: int = 30, title: str = "Model calls") -> Image.Image:
    """The picture, within the bounds that every picture keeps."""
    content = png(Report.of(calls), last_days(NOW, number=days), title=title)
    assert len(content) < 200_000
    picture = Image.open(io.BytesIO(content))
    picture.load()
    assert (picture.format, picture.mode, picture.width) == ("PNG", "RGB", WIDTH)
    assert 400 < picture.height < 800
    return picture


def area(picture: Image.Image, purpose: str) -> int:
    """How many pixels of the bars have a purpose's colour."""
    bars = picture.crop(BARS)
    found = {colour: number for number, colour in bars.getcolors(bars.width * bars.height) or ()}
    return found.get(colour_of(purpose), 0)


def test_bars_are_as_high_as_what_was_paid() -> None:
    picture = decoded(
        [call(nano=30), call(NOW - DAY, 10), call(NOW - DAY, 20, purpose="summary"), call(NOW - 9 * DAY, 15)]
    )
    answers, summaries = area(picture, "answer"), area(picture, "summary")
    assert 2.6 < answers / summaries < 2.9  # 55 to 20


def test_where_everything_is_free_bars_are_as_high_as_the_tokens() -> None:
    picture = decoded([call(nano=0, tokens=(3000, 0)), call(nano=0, tokens=(500, 500), purpose="extraction")])
    assert 2.9 < area(picture, "answer") / area(picture, "extraction") < 3.1


def test_the_smallest_day_beside_a_huge_one_is_still_seen() -> None:
    picture = decoded([call(nano=10**12), call(NOW - 3 * DAY, 1, purpose="title")])
    assert area(picture, "title") > 20


def test_every_purpose_has_a_colour_of_its_own_and_no_other_is_there() -> None:
    assert len(set(map(colour_of, PURPOSES))) == len(PURPOSES)
    whole = decoded([call(purpose=one) for one in PURPOSES])
    assert all(area(whole, one) > 100 for one in PURPOSES)
    one = decoded([call()])
    found = {colour for _, colour in one.getcolors(one.width * one.height) or ()}
    assert found.isdisjoint(set(COLOURS) - {colour_of("answer")})


def test_a_single_day_and_a_whole_year_have_room() -> None:
    assert area(decoded([call()], days=1), "answer") > 1000
    assert area(decoded([call(NOW - n * DAY) for n in range(400)], days=400), "answer") > 1000


def test_no_calls_is_a_picture_too_and_calls_of_other_days_are_left_out() -> None:
    empty = decoded([])
    assert empty.getpixel((5, 5)) == BACKGROUND
    assert decoded([call(NOW - 30 * DAY)]).tobytes() == empty.tobytes()


def test_the_same_calls_give_the_same_bytes_in_any_order() -> None:
    some = [call(NOW - n * DAY, n, purpose=one) for n, one in enumerate(PURPOSES)]
    assert decoded(some).tobytes() == decoded(some[::-1]).tobytes()
    assert decoded(some).tobytes() != decoded(some, title="Others").tobytes()


@each_row(
    ("step", "labels"),
    [
        (DOLLAR // 4, ["$0", "$0.25", "$0.50", "$0.75", "$1.00"]),
        (DOLLAR, ["$0", "$1", "$2", "$3", "$4"]),
        (DOLLAR // 40, ["$0", "$0.025", "$0.050", "$0.075", "$0.100"]),
        (250 * DOLLAR, ["$0", "$250", "$500", "$750", "$1,000"]),
        (2, ["$0", *["under $0.00001"] * 4]),
    ],
)
def test_amounts_beside_the_lines_have_the_same_decimals(step: int, labels: list[str]) -> None:
    assert [tick(number * step, step) for number in range(5)] == labels


@each_row("nasty", [*NASTY, "W" * 5000, "雪" * 500])
def test_any_title_can_be_drawn(nasty: str) -> None:
    decoded([call()], title=nasty)


@FEW
@given(calls(), st.integers(1, 60))
def test_any_calls_can_be_drawn(some: list[Call], days: int) -> None:
    decoded(some, days=days)
