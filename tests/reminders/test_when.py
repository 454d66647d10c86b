"""What people type as a time, the rules it makes, and which moments they are: against naive oracles."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import Refused
from discoclaw.core.reminder import Reminder
from discoclaw.reminders.when import due, later, moment, read, split, words_of_rule
from tests.reminders.world import fits, naive_moment, naive_next

BERLIN = ZoneInfo("Europe/Berlin")
NOW = naive_moment("2026-11-28T13:00", BERLIN)  # a Saturday
ZONES = sorted(one for one in available_timezones() if "/" in one and not one.startswith("System"))

ONCE = {
    "tomorrow at 9": "2026-11-29T09:00",
    "Tomorrow noon": "2026-11-29T12:00",
    "on Friday at 9": "2026-12-04T09:00",
    "friday 9:30 pm": "2026-12-04T21:30",
    "saturday at 14": "2026-11-28T14:00",
    "saturday at 12": "2026-12-05T12:00",
    "next saturday": "2026-12-05T09:00",
    "at 9": "2026-11-29T09:00",
    "9pm": "2026-11-28T21:00",
    "12am": "2026-11-29T00:00",
    "tonight at 8": "2026-11-28T20:00",
    "at 9 in the evening": "2026-11-28T21:00",
    "3 December": "2026-12-03T09:00",
    "December 3rd at 10:30": "2026-12-03T10:30",
    "the 3rd of december 2027": "2027-12-03T09:00",
    "29 February": "2028-02-29T09:00",
    "2026-12-03 14:00": "2026-12-03T14:00",
    "2026-12-03T14:00": "2026-12-03T14:00",
    "in 3 days": "2026-12-01T13:00",
    "in 2 weeks at 10": "2026-12-12T10:00",
    "next week": "2026-12-05T09:00",
    "am Freitag um 9": "2026-12-04T09:00",
    "am Freitag um 9 Uhr": "2026-12-04T09:00",
    "morgen Mittag": "2026-11-29T12:00",
    "übermorgen": "2026-11-30T09:00",
    "heute Abend um 8": "2026-11-28T20:00",
    "am 24. Dezember": "2026-12-24T09:00",
    "3.12. um 10": "2026-12-03T10:00",
    "3.12.": "2026-12-03T09:00",
    "tomorrow 7": "2026-11-29T07:00",
    "friday 9": "2026-12-04T09:00",
    "9": "2026-11-29T09:00",
    "tmr at seven": "2026-11-29T07:00",
    "tomorrow at 6 p.m.": "2026-11-29T18:00",
    "this evening": "2026-11-28T19:00",
    "the day after tomorrow at 9": "2026-11-30T09:00",
    "next week on Monday": "2026-11-30T09:00",
    "tomorrow at half past nine": "2026-11-29T09:30",
    "morgen um halb eins": "2026-11-29T12:30",
    "quarter to 9": "2026-11-29T08:45",
    "2026-12-03 14:00:00": "2026-12-03T14:00",
    "Thursday 3 December": "2026-12-03T09:00",
}
DELAYS = {
    "in 20 minutes": 20,
    "in 20 minutes here": 20,
    "in an hour": 60,
    "in half an hour": 30,
    "in 2 hours and 30 minutes": 150,
    "in 20 Minuten": 20,
    "in einer Stunde": 60,
    "in einer halben Stunde": 30,
    "in 2h": 120,
    "2h": 120,
    "in 90m": 90,
    "in 1h30": 90,
    "in 1h30m": 90,
    "20min": 20,
    "in fifteen minutes": 15,
    "in 1.5 hours": 90,
}
RULES = {
    "every last Monday of the month": "every last Monday of the month at 09:00",
    "jeden letzten Montag im Monat um 10": "every last Monday of the month at 10:00",
    "every day at 8am": "every day at 08:00",
    "täglich um 8": "every day at 08:00",
    "jeden Morgen um 7": "every day at 07:00",
    "every other day": "every 2 days at 09:00",
    "every weekday at 9": "every weekday at 09:00",
    "every monday, wednesday and friday at 18:00": "every Monday, Wednesday and Friday at 18:00",
    "every 2 weeks on friday": "every 2 weeks on Friday at 09:00",
    "every week": "every Saturday at 09:00",
    "every 1st monday": "every first Monday of the month at 09:00",
    "every first day of the month": "every month on day 1 at 09:00",
    "every last day of the month": "every month on the last day at 09:00",
    "every month on the 15th": "every month on day 15 at 09:00",
    "every 3 months on day 31": "every 3 months on day 31 at 09:00",
    "every year on 3 December": "every year on 3 December at 09:00",
    "every 2 hours": "every 2 hours",
    "every night at 22:30": "every day at 22:30",
    "every third day": "every 3 days at 09:00",
    "jeden zweiten Freitag im Monat": "every second Friday of the month at 09:00",
}


class TestWhatPeopleType:
    @pytest.mark.parametrize("typed", ONCE)
    def test_is_a_time_on_their_clock(self, typed: str) -> None:
        assert read(typed, NOW, BERLIN).wall == ONCE[typed]

    @pytest.mark.parametrize("typed", DELAYS)
    def test_is_so_long_after_now(self, typed: str) -> None:
        assert read(typed, NOW, BERLIN).at == NOW + DELAYS[typed] * 60_000

    @pytest.mark.parametrize("typed", RULES)
    def test_is_a_rule_whose_words_are_read_as_the_same_rule(self, typed: str) -> None:
        found = read(typed, NOW, BERLIN)
        assert words_of_rule(found) == RULES[typed]
        assert read(RULES[typed], NOW, BERLIN) == found
        assert due(Reminder("1", "x", found.wall, found.at, found.rule), BERLIN) > NOW

    @pytest.mark.parametrize(
        "typed",
        ["", "gibberish", "at 25", "13pm", "31 june", "at 9 at 10", "in 0 minutes", "friday every day",
         "2020-01-01", "yesterday", "every 30 minutes", "every 0 days", "tomorrow maybe", "in 99999 years",
         "Wednesday 3 December", "in 20 minutes on friday", "tomorrow 2026-12-01", "every day next week"],
    )  # fmt: skip
    def test_that_makes_no_sense_is_refused_with_a_way_out(self, typed: str) -> None:
        with pytest.raises(Refused, match=r"try `tomorrow at 9`|name an? |give me|longer time"):
            read(typed, NOW, BERLIN)

    @pytest.mark.parametrize("typed", ["every second Friday", "jeden zweiten Freitag"])
    def test_that_means_two_things_is_refused_with_both(self, typed: str) -> None:
        with pytest.raises(Refused, match="`every 2 weeks on Friday` or `every second Friday of the month`"):
            read(typed, NOW, BERLIN)

    def test_stands_at_either_end_of_a_request(self) -> None:
        for typed, what in (
            ("in 20 minutes to call Ann", "call Ann"),
            ("call Ann tomorrow at 9", "call Ann"),
            ("every last Monday of the month, pay rent", "pay rent"),
            ("to water the plants every day at 8", "water the plants"),
            ("tomorrow buy 3 apples", "buy 3 apples"),
            ("am Freitag um 9 an den Zahnarzt", "den Zahnarzt"),
            ("tomorrow: buy milk", "buy milk"),
            ("in 2h check the oven", "check the oven"),
        ):
            assert split(typed, NOW, BERLIN)[1] == what

    def test_may_have_its_day_at_one_end_and_its_hour_at_the_other(self) -> None:
        for typed, wall, what in (
            ("on Friday to call the dentist at 10", "2026-12-04T10:00", "call the dentist"),
            ("every monday take the trash out at 7", "2026-11-30T07:00", "take the trash out"),
        ):
            found, rest = split(typed, NOW, BERLIN)
            assert (found.wall, rest) == (wall, what)

    @pytest.mark.parametrize("typed", ["mon cheri tomorrow", "tomorrow 7 call mum", "tomorrow at 9"])
    def test_that_may_be_read_in_two_ways_is_asked_about(self, typed: str) -> None:
        with pytest.raises(Refused, match=r"two times|write `at 7`|what I should remind"):
            split(typed, NOW, BERLIN)

    @given(text=st.text(max_size=60))
    def test_whatever_it_is_is_read_or_refused(self, text: str) -> None:
        try:
            found = read(text, NOW, BERLIN)
        except Refused:
            return
        assert due(Reminder("1", "x", found.wall, found.at, found.rule), BERLIN) > NOW


class TestMoments:
    @given(
        zone=st.sampled_from(ZONES).map(ZoneInfo),
        wall=st.datetimes(datetime.fromisoformat("1990-01-01"), datetime.fromisoformat("2090-01-01")),
    )
    def test_are_those_of_pep_495_in_every_zone(self, zone: ZoneInfo, wall: datetime) -> None:
        typed = wall.isoformat(timespec="minutes")
        assert moment(typed, zone) == naive_moment(typed, zone)

    def test_in_the_hour_that_is_missing_and_in_the_one_that_comes_twice(self) -> None:
        missing, twice = moment("2026-03-29T02:30", BERLIN), moment("2026-10-25T02:30", BERLIN)
        assert datetime.fromtimestamp(missing / 1000, BERLIN).isoformat() == "2026-03-29T03:30:00+02:00"
        assert datetime.fromtimestamp(twice / 1000, BERLIN).isoformat() == "2026-10-25T02:30:00+02:00"

    @pytest.mark.parametrize("zones", [ZONES[::90], pytest.param(ZONES, marks=pytest.mark.long)])
    def test_around_each_change_of_each_clock_in_twenty_years(self, zones: list[str]) -> None:
        for name in zones:
            zone, day = ZoneInfo(name), datetime.fromisoformat("2026-01-01")
            before = None
            while day.year < 2046:
                now = day.replace(tzinfo=zone).utcoffset()
                if before is not None and now != before:
                    for minutes in range(-1440, 1441, 30):
                        wall = (day + timedelta(minutes=minutes)).isoformat(timespec="minutes")
                        assert moment(wall, zone) == naive_moment(wall, zone), (name, wall)
                before = now
                day += timedelta(days=1)


class TestRepeating:
    @given(
        begun=st.dates(date(2026, 1, 1), date(2045, 1, 1)),
        clock=st.times().map(lambda one: one.replace(second=0, microsecond=0)),
        every=st.integers(1, 5),
        kind=st.sampled_from(["DAILY", "WEEKLY", "MONTHDAY", "NTH", "LAST", "YEARLY"]),
        zone=st.sampled_from(ZONES).map(ZoneInfo),
        late=st.integers(0, 400 * 86_400_000),
    )
    def test_is_what_looking_at_each_day_finds(
        self, begun: date, clock: object, every: int, kind: str, zone: ZoneInfo, late: int
    ) -> None:
        weekday = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[begun.weekday()]
        rule = {
            "DAILY": f"FREQ=DAILY;INTERVAL={every}",
            "WEEKLY": f"FREQ=WEEKLY;INTERVAL={every};BYDAY={','.join(sorted({weekday, 'FR', 'MO'}))}",
            "MONTHDAY": f"FREQ=MONTHLY;INTERVAL={every};BYMONTHDAY={begun.day}",
            "NTH": f"FREQ=MONTHLY;INTERVAL={every};BYDAY={(begun.day - 1) // 7 + 1}{weekday}",
            "LAST": f"FREQ=MONTHLY;INTERVAL={every};BYDAY=-1{weekday}",
            "YEARLY": f"FREQ=YEARLY;INTERVAL={every};BYMONTH={begun.month};BYMONTHDAY={begun.day}",
        }[kind]
        if not fits(rule, begun, begun):
            return  # not the last one of its month
        one = Reminder("1", "x", f"{begun}T{clock}"[:16], rule=rule)
        now = due(one, zone) + late
        found, expected = later(one, now, zone), naive_next(one, now, zone)
        assert found is not None and expected is not None
        assert found.wall == expected.wall and due(found, zone) > now

    def test_ends_where_the_calendar_does(self) -> None:
        one = Reminder("1", "x", "9999-12-31T09:00", rule="FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31")
        assert later(one, due(one, BERLIN), BERLIN) is None
