"""Budgets: what their text may say, who may answer, and that nothing exceeds them by more than one call."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.budgets import (
    BACK_MS,
    Book,
    Less,
    Limit,
    Span,
    Wish,
    less_text,
    limits_of,
    refusal_text,
)
from discoclaw.core.usage import DOLLAR, NOBODY, Payer
from tests.tables import each_row

DAY_MS = 86_400_000
NOON = 1_763_985_600_000  # 2025-11-24 12:00 UTC
ANN, BOB = Payer("1", "10", "100"), Payer("2", "10", "100")
USUAL, SMALL = Wish("usual", "big", 100, below=80), Wish("small", "little", 10)


def book(text: str, spent: int = 0) -> Book:
    """A book with limits in nanodollars, in which Ann has spent something today."""
    limits = tuple(Limit(one.scope, one.period, one.nano // DOLLAR) for one in limits_of(text))
    made = Book(limits)
    made.spend("before", NOON, spent, ANN)
    return made


class TestTheText:
    def test_has_amounts_for_everything_and_for_each_of_a_kind_or_none(self) -> None:
        text = "5/day, $60/month,person 0.50/DAY , channel 1.25/day, server 20 / month"
        assert limits_of(text) == (
            Limit("all", "day", 5 * DOLLAR),
            Limit("all", "month", 60 * DOLLAR),
            Limit("person", "day", DOLLAR // 2),
            Limit("channel", "day", DOLLAR * 5 // 4),
            Limit("server", "month", 20 * DOLLAR),
        )
        assert limits_of("") == limits_of("  ") == limits_of(",") == ()

    @each_row("text", ["5", "5/week", "-1/day", "people 1/day", "1,000/day", "five/day", "1e3/day"])
    def test_that_is_wrong_is_answered_with_the_form(self, text: str) -> None:
        with pytest.raises(
            ValueError, match=r"isn't a budget; write for example 5/day, 60/month, person 0\.50/day"
        ):
            limits_of(text)

    def test_names_no_budget_twice(self) -> None:
        with pytest.raises(ValueError, match="“6/day”: there is another budget for the same"):
            limits_of("5/day, 6/day")


class TestAPeriod:
    def test_is_a_day_or_month_of_its_time_zone_also_when_the_clock_changes(self) -> None:
        berlin = ZoneInfo("Europe/Berlin")
        at = int(datetime(2026, 3, 29, 12, tzinfo=berlin).timestamp() * 1000)
        day, month = Span.at(at, "day", berlin), Span.at(at, "month", berlin)
        assert (day.name, (day.end - day.begin) / 3_600_000) == ("2026-03-29", 23)
        assert (month.name, (month.end - month.begin) / 3_600_000) == ("2026-03", 31 * 24 - 1)

    @given(st.integers(0, 4_000_000_000_000), st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia"]))
    def test_has_its_time_and_ends_where_the_next_one_begins(self, at: int, zone: str) -> None:
        for period in ("day", "month"):
            span = Span.at(at, period, ZoneInfo(zone))  # type: ignore[arg-type]
            assert span.begin <= at < span.end
            assert Span.at(span.end, period, ZoneInfo(zone)).begin == span.end  # type: ignore[arg-type]


class TestWhoAnswers:
    @each_row(
        ("budget", "spent", "wishes", "at", "level"),
        [
            ("1000/day", 0, [USUAL, SMALL], NOON, "usual"),
            ("1000/day", 799, [USUAL, SMALL], NOON, "usual"),
            ("1000/day", 800, [USUAL, SMALL], NOON, "small"),
            ("1000/day", 999, [USUAL, SMALL], NOON, "small"),
            ("1000/day", 1000, [USUAL, SMALL], NOON, None),
            ("1000/day", 5000, [USUAL], NOON + DAY_MS, "usual"),  # the next day
            ("0/day", 0, [USUAL, SMALL], NOON, None),
            ("1/day", 500, [USUAL, SMALL], NOON, None),  # a limit that was lowered since
            ("1000/day", 999, [Wish("usual", "big", 100)], NOON, "usual"),  # there is no smaller one
            ("1000/day", 1000, [Wish("usual", "big", 100)], NOON, None),
        ],
    )
    def test_depends_on_what_is_spent(
        self, budget: str, spent: int, wishes: list[Wish], at: int, level: str | None
    ) -> None:
        choice = book(budget, spent).choose(wishes, ANN, at)
        assert (choice.wish.level if choice.wish else None) == level
        assert (choice.less.level if choice.less else None) == {"small": "small", None: "offline"}.get(level)

    def test_is_always_a_model_that_is_free(self) -> None:
        free = Wish("usual", "here", 0)
        assert book("1000/day", 5000).choose([free], ANN, NOON).wish == free
        assert book("0/day").choose([free], ANN, NOON).wish == free

    def test_is_decided_by_each_persons_own_budget(self) -> None:
        made = book("person 1000/day", 1000)
        assert made.choose([USUAL], ANN, NOON).less == Less(
            "offline", "person", "day", Span.at(NOON, "day").end
        )
        assert made.choose([USUAL], BOB, NOON).less is None
        assert made.choose([USUAL], NOBODY, NOON).less is None

    def test_comes_back_when_the_last_of_the_budgets_is_renewed(self) -> None:
        less = book("1000/day, 1000/month", 850).choose([USUAL, SMALL], ANN, NOON).less
        assert less == Less("small", "all", "month", Span.at(NOON, "month").end)


class TestBackgroundWork:
    def test_goes_on_without_a_pause_up_to_60_percent(self) -> None:
        midnight = Span.at(NOON, "day").begin
        made = Book((Limit("all", "day", 1000),))
        made.spend("1", midnight, 599, NOBODY)
        assert made.background(USUAL, NOBODY, midnight).wish == USUAL

    def test_then_waits_until_time_has_come_as_far_as_spending(self) -> None:
        span = Span.at(NOON, "day")
        made = Book((Limit("all", "day", 1000),))
        made.spend("1", span.begin, 750, NOBODY)
        waits = made.background(USUAL, NOBODY, NOON).less
        assert waits is not None and waits.until == span.begin + DAY_MS * 3 // 4
        assert made.background(USUAL, NOBODY, waits.until - 1).less == waits
        assert made.background(USUAL, NOBODY, waits.until).wish == USUAL

    def test_and_for_the_next_period_once_all_is_spent(self) -> None:
        less = book("1000/day", 1000).background(USUAL, ANN, NOON).less
        assert less is not None and less.until == Span.at(NOON, "day").end


class TestTheClock:
    def test_set_back_over_midnight_opens_no_day_again(self) -> None:
        made = book("1000/day", 1000)
        yesterday = NOON - DAY_MS
        assert made.choose([USUAL], ANN, yesterday).wish is None

    def test_that_was_far_ahead_leaves_no_mark(self) -> None:
        made = Book((Limit("all", "day", 1000),))
        made.spend("ahead", NOON + 10 * BACK_MS, 5000, NOBODY)
        assert made.choose([USUAL], NOBODY, NOON).wish == USUAL
        made.spend("now", NOON, 1000, NOBODY)
        assert made.choose([USUAL], NOBODY, NOON).wish is None


class TestSomebodyErased:
    def test_is_in_no_sum_while_everything_else_still_counts(self) -> None:
        made = book("1000/day, person 1000/day, channel 1000/day")
        made.hold("under way", NOON, 600, ANN)
        made.spend("over", NOON, 100, ANN)
        made.forget("1")
        made.spend("under way", NOON, 50, ANN.without("1"))
        assert {(one.limit.scope, one.whose, one.nano) for one in made.all_spent(NOON)} == {
            ("all", "", 150),
            ("channel", "10", 150),
        }

    def test_has_a_sum_of_what_they_ask_for_afterwards(self) -> None:
        made = book("person 1000/day")
        made.hold("under way", NOON, 600, ANN)
        made.forget("1")
        made.hold("new", NOON, 300, ANN)
        made.spend("under way", NOON, 50, ANN.without("1"))
        assert [one.nano for one in made.all_spent(NOON)] == [300]


class TestTheSentences:
    def test_say_what_answered_why_and_until_when(self) -> None:
        assert less_text(Less("small", "all", "day", 1_000_500)) == (
            "A smaller model answered: my budget for today is nearly spent. Back to normal <t:1001:R>."
        )
        assert less_text(Less("offline", "person", "month", 1_000_000)) == (
            "Answered from memory alone: your budget for this month is spent. Back to normal <t:1000:R>."
        )
        assert refusal_text(Less("offline", "channel", "day", 1_000_000)) == (
            "I can't do that now: this channel's budget for today doesn't allow it. "
            "Please try again <t:1000:R>."
        )


@dataclass
class Running:
    id: str
    nano: int
    payer: Payer


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "begin", "end", "kill", "restart", "erase", "later", "back"]),
        st.integers(0, 3),
        st.integers(1, 400),
        st.integers(0, 100),
    ),
    max_size=60,
)
PEOPLE = (ANN, BOB, Payer("1", "11", "100"), NOBODY)


class TestNothingGoesOver:
    """Calls begin side by side, end, are killed, and the program is restarted, in any order."""

    @given(STEPS, st.integers(1, 2000), st.integers(1, 500))
    def test_a_limit_by_more_than_one_calls_reserve(
        self, steps: list[tuple[str, int, int, int]], everything: int, each: int
    ) -> None:
        limits = (
            Limit("all", "day", everything),
            Limit("person", "day", each),
            Limit("channel", "month", 900),
        )
        made, now = Book(limits), NOON
        log: dict[str, tuple[int, int, Payer]] = {}  # what is on disk: the last word about each call
        running: list[Running] = []
        erased: set[str] = set()
        most = 0
        for number, (what, which, nano, share) in enumerate(steps):
            match what:
                case "begin":
                    payer, id = PEOPLE[which], str(number)
                    if made.choose([Wish("usual", "m", nano)], payer, now).wish is not None:
                        at, most = made.time(now), max(most, nano)
                        made.hold(id, at, nano, payer)
                        log[id] = at, nano, payer
                        running.append(Running(id, nano, payer))
                case "end" if running:
                    call = running.pop(which % len(running))
                    cost = call.nano * share // 100
                    payer = call.payer.without("1") if "1" in erased else call.payer
                    at = log[call.id][0]
                    made.spend(call.id, at, cost, payer)
                    log[call.id] = at, cost, payer
                case "kill" if running:
                    running.pop(which % len(running))
                case "restart":
                    running.clear()
                    made = Book(limits)
                    for id, (at, one, payer) in log.items():
                        made.hold(id, at, one, payer)
                case "erase":
                    erased.add("1")
                    made.forget("1")
                    log = {id: (at, one, payer.without("1")) for id, (at, one, payer) in log.items()}
                case "later":
                    now += share * 3_600_000
                case "back":
                    now -= share * 100_000
            at = made.time(now)
            for spent in made.all_spent(now):
                assert spent.nano < spent.limit.nano + most
                if spent.limit.scope == "all":
                    span = Span.at(at, "day")
                    assert spent.nano == sum(
                        one for when, one, _ in log.values() if span.begin <= when < span.end
                    )
