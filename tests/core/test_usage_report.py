"""What calls add up to: exactly the same however they are divided."""

from collections.abc import Sequence
from datetime import date
from itertools import accumulate
from typing import get_args
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.model import Usage
from discoclaw.core.usage import (
    DOLLAR,
    NOTHING,
    By,
    Call,
    Days,
    Report,
    Total,
    amount,
    last_days,
    money,
    this_month,
)
from tests.core.calls import NOW, call, calls
from tests.tables import each_row

BERLIN, APIA = ZoneInfo("Europe/Berlin"), ZoneInfo("Pacific/Apia")
CALLS = calls()
ZONES = st.sampled_from([BERLIN, APIA, ZoneInfo("UTC")])


def plain_sum(calls: Sequence[Call]) -> Total:
    """The sum by a second way: each number by itself."""
    usage = Usage(*(sum(getattr(call.usage, name) for call in calls) for name in Usage.__slots__))
    return Total(
        len(calls),
        usage,
        sum(call.nano for call in calls),
        sum(not call.counted for call in calls),
        sum(not call.priced for call in calls),
    )


@given(CALLS, ZONES)
def test_groups_of_any_kind_add_up_to_the_total_exactly(calls: list[Call], zone: ZoneInfo) -> None:
    report = Report.of(calls, zone)
    assert report.total == plain_sum(calls)
    daily = report.daily(Days(date(2025, 1, 1), date(2027, 1, 1))).values()
    assert sum((total for day in daily for total in day.values()), NOTHING) == report.total
    for kind in get_args(By):
        for days in (None, last_days(NOW, zone)):
            groups = report.by(kind, days)
            assert sum((one.total for one in groups), NOTHING) == report.total
            assert len({one.key for one in groups}) == len(groups)


@given(CALLS, ZONES)
def test_the_dearest_come_first_and_days_in_their_order(calls: list[Call], zone: ZoneInfo) -> None:
    report, days = Report.of(calls, zone), last_days(NOW, zone)
    for kind in get_args(By):
        groups = report.by(kind)
        costs = [one.total.nano for one in groups]
        assert kind == "day" or costs == sorted(costs, reverse=True)
    listed = [one.key for one in report.by("day", days)]
    assert listed == sorted(listed, key=str)
    assert set(days) <= set(listed)


@given(CALLS, ZONES, st.integers(1, 40))
def test_a_part_of_a_report_is_the_report_of_those_calls(
    calls: list[Call], zone: ZoneInfo, number: int
) -> None:
    begin = last_days(NOW, zone, number).begin(zone)
    since = [one for one in calls if one.at >= begin]
    found = Report.of(calls, zone)
    days = Days(last_days(NOW, zone, number).first, date(9999, 12, 31))
    assert found.within(days).total == Report.of(since, zone).total == plain_sum(since)


def test_thirty_days_are_there_also_without_a_call() -> None:
    days = last_days(NOW)
    groups = Report().by("day", days)
    assert [one.key for one in groups][::29] == ["2026-01-05", "2026-02-03"]
    assert len(groups) == 30
    assert not any(one.total for one in groups)


def test_a_day_is_the_one_of_the_clock_on_the_wall() -> None:
    late = 1_770_161_400_000  # 2026-02-03T23:30Z, which is the 4th in Berlin
    assert [one.key for one in Report.of([call(late)], BERLIN).by("day")] == ["2026-02-04"]
    assert Days(date(2026, 2, 4), date(2026, 2, 4)).begin(BERLIN) == 1_770_159_600_000
    assert this_month(late, BERLIN) == Days(date(2026, 2, 1), date(2026, 2, 4))


def test_a_call_that_was_allowed_and_not_made_is_no_call() -> None:
    unused = Call("a", NOW, "answer", "", Usage(), requests=0)
    assert Report.of([unused]) == Report()


@each_row(
    ("nano", "text"),
    [
        (0, "free"),
        (1, "under $0.00001"),
        (10_000, "$0.00001"),
        (43_000, "$0.000043"),
        (1_234_000, "$0.0012"),
        (50_000_000, "$0.05"),
        (99_600_000, "$0.10"),
        (996_000_000, "$1.00"),
        (3_400_000_000, "$3.40"),
        (1_234_567 * DOLLAR, "$1,234,567.00"),
    ],
)
def test_money_as_people_read_it(nano: int, text: str) -> None:
    assert money(nano) == text


@given(st.integers(10_000, 10**15))
def test_money_is_rounded_by_less_than_a_twentieth_or_half_a_cent(nano: int) -> None:
    shown = float(money(nano)[1:].replace(",", "")) * DOLLAR
    assert abs(shown - nano) <= max(nano / 20, 5) and abs(shown - nano) <= 5_000_001


@each_row(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (12_400, "12.4k"),
        (310_000, "310k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (310_000_000, "310M"),
        (5_000_000_000, "5.0B"),
        (7_000_000_000_000, "7,000B"),
    ],
)
def test_tokens_as_people_read_them(number: int, text: str) -> None:
    assert amount(number) == text


@given(st.lists(st.integers(0, 10**14), min_size=2, max_size=2))
def test_more_tokens_never_look_like_fewer(pair: list[int]) -> None:
    sizes = {"k": 10**3, "M": 10**6, "B": 10**9}

    def read(text: str) -> float:
        return float(text.rstrip("kMB").replace(",", "")) * sizes.get(text[-1], 1)

    low, high = accumulate(pair)
    assert read(amount(low)) <= read(amount(high))
