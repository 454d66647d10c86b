"""Time zones: the clock of golden instants, names as people type them, and whose zone counts where."""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core import zones
from discoclaw.core.item import Item
from discoclaw.core.times import valid_ms
from discoclaw.core.zones import day, local, minute, names_like, now, own_zone, text_of, zone_named, zone_of
from tests.core.builders import ANY_TEXT, DAY, NOW, item
from tests.tables import each_row

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999
"""The last time that `valid_ms` takes."""

ZONES = st.sampled_from(sorted(available_timezones() - {"localtime"})).map(ZoneInfo)

# Computed by hand from the IANA database's rules: an instant in UTC, a zone, and what its clock shows.
GOLDEN = [
    # Summer time begins at 01:00 UTC on the last Sunday of March and ends so on the last Sunday of October.
    ("2026-03-29T00:59:59.999Z", "Europe/Berlin", "Sun 2026-03-29 01:59 (UTC+01:00)"),
    ("2026-03-29T01:00:00.000Z", "Europe/Berlin", "Sun 2026-03-29 03:00 (UTC+02:00)"),
    ("2026-10-25T00:59:59.999Z", "Europe/Berlin", "Sun 2026-10-25 02:59 (UTC+02:00)"),
    ("2026-10-25T01:00:00.000Z", "Europe/Berlin", "Sun 2026-10-25 02:00 (UTC+01:00)"),
    ("2026-10-25T01:59:59.999Z", "Europe/Berlin", "Sun 2026-10-25 02:59 (UTC+01:00)"),
    ("2026-07-01T12:00:00.000Z", "Europe/Dublin", "Wed 2026-07-01 13:00 (UTC+01:00)"),
    # At 02:00 local time on the second Sunday of March and on the first of November.
    ("2026-03-08T06:59:59.999Z", "America/New_York", "Sun 2026-03-08 01:59 (UTC-05:00)"),
    ("2026-03-08T07:00:00.000Z", "America/New_York", "Sun 2026-03-08 03:00 (UTC-04:00)"),
    ("2026-11-01T05:59:59.999Z", "America/New_York", "Sun 2026-11-01 01:59 (UTC-04:00)"),
    ("2026-11-01T06:00:00.000Z", "America/New_York", "Sun 2026-11-01 01:00 (UTC-05:00)"),
    # South of the equator it is summer in January. Lord Howe's summer time is half an hour.
    ("2026-04-04T15:59:59.999Z", "Australia/Sydney", "Sun 2026-04-05 02:59 (UTC+11:00)"),
    ("2026-04-04T16:00:00.000Z", "Australia/Sydney", "Sun 2026-04-05 02:00 (UTC+10:00)"),
    ("2026-04-04T14:59:59.999Z", "Australia/Lord_Howe", "Sun 2026-04-05 01:59 (UTC+11:00)"),
    ("2026-04-04T15:00:00.000Z", "Australia/Lord_Howe", "Sun 2026-04-05 01:30 (UTC+10:30)"),
    # Parts of an hour.
    ("2026-11-19T18:45:00.000Z", "Asia/Kolkata", "Fri 2026-11-20 00:15 (UTC+05:30)"),
    ("2026-11-19T18:14:59.999Z", "Asia/Kathmandu", "Thu 2026-11-19 23:59 (UTC+05:45)"),
    ("2026-04-04T13:59:59.999Z", "Pacific/Chatham", "Sun 2026-04-05 03:44 (UTC+13:45)"),
    ("2026-04-04T14:00:00.000Z", "Pacific/Chatham", "Sun 2026-04-05 02:45 (UTC+12:45)"),
    ("2026-07-01T12:00:00.000Z", "America/St_Johns", "Wed 2026-07-01 09:30 (UTC-02:30)"),
    ("2026-01-01T03:29:59.999Z", "America/St_Johns", "Wed 2025-12-31 23:59 (UTC-03:30)"),
    ("2018-05-04T14:59:59.999Z", "Asia/Pyongyang", "Fri 2018-05-04 23:29 (UTC+08:30)"),
    ("2018-05-04T15:00:00.000Z", "Asia/Pyongyang", "Sat 2018-05-05 00:00 (UTC+09:00)"),
    # A midnight that does not exist, an hour before midnight that comes twice, and a day that was left out.
    ("2018-11-04T02:59:59.999Z", "America/Sao_Paulo", "Sat 2018-11-03 23:59 (UTC-03:00)"),
    ("2018-11-04T03:00:00.000Z", "America/Sao_Paulo", "Sun 2018-11-04 01:00 (UTC-02:00)"),
    ("2019-02-17T01:59:59.999Z", "America/Sao_Paulo", "Sat 2019-02-16 23:59 (UTC-02:00)"),
    ("2019-02-17T02:00:00.000Z", "America/Sao_Paulo", "Sat 2019-02-16 23:00 (UTC-03:00)"),
    ("2011-12-30T09:59:59.999Z", "Pacific/Apia", "Thu 2011-12-29 23:59 (UTC-10:00)"),
    ("2011-12-30T10:00:00.000Z", "Pacific/Apia", "Sat 2011-12-31 00:00 (UTC+14:00)"),
    # Both sides of the date line.
    ("2026-11-19T10:00:00.000Z", "Pacific/Kiritimati", "Fri 2026-11-20 00:00 (UTC+14:00)"),
    ("2026-11-19T10:00:00.000Z", "Pacific/Pago_Pago", "Wed 2026-11-18 23:00 (UTC-11:00)"),
    # A leap day, the years before 1970, and years long after.
    ("2028-02-29T23:59:59.999Z", "UTC", "Tue 2028-02-29 23:59 (UTC+00:00)"),
    ("1970-01-01T00:00:00.000Z", "Europe/London", "Thu 1970-01-01 01:00 (UTC+01:00)"),
    ("1969-07-20T20:17:40.000Z", "America/Chicago", "Sun 1969-07-20 15:17 (UTC-05:00)"),
    ("2100-07-01T12:00:00.000Z", "Europe/Berlin", "Thu 2100-07-01 14:00 (UTC+02:00)"),
    ("9999-12-31T23:59:59.999Z", "America/New_York", "Fri 9999-12-31 18:59 (UTC-05:00)"),
]


def ms_at(iso: str) -> int:
    return (datetime.fromisoformat(iso) - EPOCH) // timedelta(milliseconds=1)


def zone(name: str) -> tzinfo:
    found = zone_named(name)
    assert found is not None, name
    return found


def named(text: str, **facets: Any) -> Sequence[Item]:
    """The items of somebody whose time zone is remembered with this text."""
    return item("User prefers tabs."), item(text, key="timezone", **facets)


def python(code: str, **environment: str) -> str:
    """What a new Python says that runs this code."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


class TestTheClock:
    @each_row(("instant", "name", "shown"), GOLDEN)
    def test_of_golden_instants(self, instant: str, name: str, shown: str) -> None:
        ms = ms_at(instant)
        assert now(ms, zone(name)) == shown
        assert minute(ms, zone(name)) == shown[:20]
        assert day(ms, zone(name)) == shown[:14]

    @given(st.integers(0, LAST_MS - DAY), ZONES)
    def test_shows_no_time_that_does_not_exist_and_loses_none(self, ms: int, somewhere: ZoneInfo) -> None:
        assert local(ms, somewhere) - EPOCH == timedelta(milliseconds=ms)

    @given(st.one_of(st.integers(), st.integers(-(10**14), 10**15)), ZONES)
    def test_shows_something_for_every_number(self, ms: int, somewhere: ZoneInfo) -> None:
        assert now(ms, somewhere).startswith(minute(ms, somewhere))
        assert 1 <= local(ms, somewhere).year <= 9999

    def test_of_the_last_hours_of_the_year_9999_stands_still_at_their_end(self) -> None:
        assert valid_ms(LAST_MS) and not valid_ms(LAST_MS + 1)
        assert now(LAST_MS, zone("Pacific/Kiritimati")) == "Fri 9999-12-31 23:59 (UTC+14:00)"
        assert now(10**30, UTC) == "Fri 9999-12-31 23:59 (UTC+00:00)"
        assert now(-(10**30), UTC) == "Mon 0001-01-01 00:00 (UTC+00:00)"

    @given(st.integers(-1, LAST_MS), ZONES)
    def test_never_goes_back_to_an_earlier_day_by_itself(self, ms: int, somewhere: ZoneInfo) -> None:
        before, after = local(ms, somewhere), local(ms + 1, somewhere)
        if before.utcoffset() == after.utcoffset():
            assert day(ms, somewhere)[4:] <= day(ms + 1, somewhere)[4:]

    def test_never_goes_back_to_an_earlier_day_by_a_change_of_its_zone_since_discord_began(self) -> None:
        # Newfoundland did so each autumn until 2010: at 00:01 it was 23:01 again.
        changes = 0
        for name in available_timezones():
            for ms in changes_of(ZoneInfo(name), ms_at("2015-01-01T00:00Z"), ms_at("2030-01-01T00:00Z")):
                changes += 1
                assert day(ms - 1, ZoneInfo(name))[4:] <= day(ms, ZoneInfo(name))[4:], (name, ms)
        assert changes > 5000


def changes_of(somewhere: tzinfo, start: int, end: int) -> list[int]:
    """The first ms after each change of a zone's difference from UTC. Morocco's last for a month."""

    def offset(ms: int) -> timedelta | None:
        return local(ms, somewhere).utcoffset()

    found, before = [], offset(start)
    for ms in range(start, end, 20 * DAY):
        later = offset(ms + 20 * DAY)
        if later != before:
            low, high = ms, ms + 20 * DAY
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            found.append(high)
        before = later
    return found


class TestNames:
    @each_row(
        ("typed", "name"),
        [
            ("Europe/Berlin", "Europe/Berlin"),
            (" europe/BERLIN\n", "Europe/Berlin"),
            ("Europe / Berlin", "Europe/Berlin"),
            ("berlin", "Europe/Berlin"),
            ("new york", "America/New_York"),
            ("New\u00a0York", "America/New_York"),
            ("são paulo", "America/Sao_Paulo"),
            ("ZÜRICH", "Europe/Zurich"),
            ("St. John's", "America/St_Johns"),
            ("port-au-prince", "America/Port-au-Prince"),
            ("port au prince", "America/Port-au-Prince"),
            ("buenos aires", "America/Argentina/Buenos_Aires"),
            ("Singapore", "Asia/Singapore"),
            ("Japan", "Japan"),
            ("eastern", "US/Eastern"),
            ("arizona", "US/Arizona"),
            ("utc", "UTC"),
            ("GMT", "UTC"),
            ("Z", "UTC"),
            ("Etc/GMT+5", "Etc/GMT+5"),
            ("UTC+2", "UTC+02:00"),
            ("GMT-3", "UTC-03:00"),
            ("gmt \N{MINUS SIGN} 3", "UTC-03:00"),
            ("+05:30", "UTC+05:30"),
            ("-0330", "UTC-03:30"),
            ("UTC+14", "UTC+14:00"),
            ("UTC+0", "UTC"),
            ("utc-0", "UTC"),
            ("UTC-12", "UTC-12:00"),
            ("GMT+5:45", "UTC+05:45"),
            ("JST", "Asia/Tokyo"),
            ("cest", "Europe/Berlin"),
            ("NYC", "America/New_York"),
            ("new york city", "America/New_York"),
            ("LA", "America/Los_Angeles"),
            ("SF", "America/Los_Angeles"),
            ("Washington, D.C.", "America/New_York"),
            ("Köln", "Europe/Berlin"),
            ("koeln", "Europe/Berlin"),
            ("München", "Europe/Berlin"),
            ("Milan", "Europe/Rome"),
            ("delhi", "Asia/Kolkata"),
            ("東京", "Asia/Tokyo"),
            ("서울", "Asia/Seoul"),
            ("Москва", "Europe/Moscow"),
            ("Αθήνα", "Europe/Athens"),
            ("القاهرة", "Africa/Cairo"),
            ("मुंबई", "Asia/Kolkata"),
            ("Germany", "Europe/Berlin"),
        ],
    )
    def test_as_people_type_them(self, typed: str, name: str) -> None:
        assert str(zone(typed)) == name

    @each_row(
        "typed",
        [
            "",
            " ",
            ".",
            "/",
            "west",  # Australia's and Brazil's
            "CST",
            "EST",
            "cet",
            "EST",
            "UTC+15",
            "UTC-13",
            "UTC+25",
            "UTC 2",
            "0",
            "in",
            "GMT+2:75",
            "2",
            "+",
            "+2 pm",
            "Europe",
            "Europe/",
            "Europe/Nowhere",
            "localtime",
            "Factory",
            "posixrules",
            "tzdata.zi",
            "../etc/passwd",
            "../../etc/localtime",
            "/etc/localtime",
            "/usr/share/zoneinfo/Europe/Berlin",
            "Europe/../Europe/Berlin",
            "..\\Europe\\Berlin",
            "C:\\Windows",
            "Europe\x00/Berlin",
            "\ud800",
            "Europe/Berlin" + " " * 100,
            "Europe/" + "Berlin/" * 1000,
        ],
    )
    def test_that_are_none(self, typed: str) -> None:
        assert zone_named(typed) is None

    @given(ANY_TEXT)
    def test_of_any_characters_are_looked_up_and_not_opened(self, typed: str) -> None:
        found = zone_named(typed)
        assert found is None or str(found) in available_timezones() or isinstance(found, timezone)
        assert all(zone_named(name) is not None for name in names_like(typed, 25))

    def test_that_are_unknown_are_not_kept(self) -> None:
        kept = zones._opened.cache_info()
        for number in range(100):
            assert zone_named(f"nowhere {number}") is None
            assert zone_named(f"{number}" * 10_000) is None
            assert names_like(f"{number}" * 10_000, 3) == []
        assert zones._opened.cache_info() == kept

    @each_row(
        ("typed", "near"),
        [
            ("berln", ["Europe/Berlin"]),
            ("new yrok", ["America/New_York"]),
            ("new y", ["America/New_York"]),
            ("münch", ["Europe/Berlin"]),
            ("port au", ["America/Port-au-Prince"]),
            ("Europe/Brelin", ["Europe/Berlin"]),
            ("london, uk", ["Europe/London"]),
            ("west", ["Australia/West", "Brazil/West"]),
            ("EST", ["America/New_York", "America/Jamaica"]),
            ("cet", ["Europe/Berlin", "Africa/Algiers"]),
            ("PST", ["America/Los_Angeles", "Asia/Manila"]),
            ("IST", ["Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"]),
            ("Valencia", ["Europe/Madrid", "America/Caracas"]),
            ("XYZ", []),
            ("UTC+2", []),
            ("wonderland", []),
            ("", []),
            (".", []),
            ("../etc/passwd", []),
        ],
    )
    def test_that_are_near(self, typed: str, near: list[str]) -> None:
        assert names_like(typed, 25) == near

    def test_that_begin_so_come_first_and_no_more_than_asked_for(self) -> None:
        assert names_like("berm", 3) == ["Atlantic/Bermuda"]
        assert names_like("europe/b", 25)[:2] == ["Europe/Belfast", "Europe/Belgrade"]
        assert len(names_like("a", 25)) == 25


class TestWhoseZone:
    def test_counts_is_found_in_the_text_that_names_it(self) -> None:
        found = [meant for name in available_timezones() if (meant := zone_named(name)) is not None]
        assert len(found) > 500
        for meant in found:
            own = own_zone(named(text_of(meant)), in_dm=False)
            assert own is not None and str(own[1]) == str(meant)

    @each_row(
        ("text", "name"),
        [
            ("User lives in the time zone europe/berlin, since 2024.", "Europe/Berlin"),
            ("GMT in winter (Europe/London)", "Europe/London"),
            ("User is on GMT.", "UTC"),
            ("User's time zone is Japan.", "Japan"),
            ("User's time zone is UTC+05:30.", "UTC+05:30"),
            ("User's time zone is UTC-03:00 (America/Sao_Paulo).", "America/Sao_Paulo"),
        ],
    )
    def test_is_read_from_other_texts_too(self, text: str, name: str) -> None:
        assert str(zone_of(named(text), ZoneInfo("Asia/Tokyo"), in_dm=False)) == name

    @each_row(
        "text",
        [
            "User's time zone is UTC+2.",
            "User's time zone is GMT-05:00.",
            "User is on EST.",
            "User is somewhere / anywhere.",
            "User's time zone is Europe/Nowhere.",
            "User's time zone is ../etc/passwd.",
            "User is in Berlin.",
            "/" * 1000,
            "a/" * 500,
        ],
    )
    def test_is_the_servers_if_the_text_names_none(self, text: str) -> None:
        assert own_zone(named(text), in_dm=True) is None
        assert zone_of(named(text), UTC, in_dm=True) is UTC

    def test_is_the_newest_that_is_in_use_and_names_one(self) -> None:
        older = item("User's time zone is Europe/Berlin.", key="timezone", updated_at=NOW)
        newer = item("User's time zone is Asia/Tokyo.", key="timezone", updated_at=NOW + 1)
        newest = item("User's time zone is unknown.", key="timezone", updated_at=NOW + 2)
        for items in ((older, newer, newest), (newest, newer, older)):
            assert own_zone(items, in_dm=False) == (newer, ZoneInfo("Asia/Tokyo"))
        other = item("User's time zone is Europe/Berlin.", key="employer")
        assert own_zone([other], in_dm=True) is None

    def test_is_used_only_where_it_may_be(self) -> None:
        private = named("User's time zone is Europe/Berlin.", sensitivity="private")
        assert str(zone_of(private, UTC, in_dm=True)) == "Europe/Berlin"
        assert zone_of(private, UTC, in_dm=False) is UTC
        confidential = named("User's time zone is Europe/Berlin.", sensitivity="confidential")
        assert zone_of(confidential, UTC, in_dm=True) is UTC


class TestTheMachine:
    LOOK = (
        "from discoclaw.core.zones import *; from datetime import UTC; "
        "names = 'Europe/Berlin', 'Europe/Paris', 'Europe/Rome', 'utc'; "
        "print(*map(zone_named, names), names_like('utc', 9), now(0, UTC))"
    )
    ONLY_UTC = "None None None UTC ['UTC'] Thu 1970-01-01 00:00 (UTC+00:00)"

    def test_needs_no_database_of_its_own(self) -> None:
        said = "Europe/Berlin Europe/Paris Europe/Rome UTC ['UTC'] Thu 1970-01-01 00:00 (UTC+00:00)"
        assert python(self.LOOK, PYTHONTZPATH="") == said

    def test_without_any_database_knows_utc(self) -> None:
        without = "import sys; sys.modules['tzdata'] = None; "
        assert python(without + self.LOOK, PYTHONTZPATH="") == self.ONLY_UTC

    def test_with_broken_files_does_not_know_these_zones(self, tmp_path: Path) -> None:
        (tmp_path / "Europe").mkdir()
        (tmp_path / "Europe" / "Berlin").write_bytes(b"TZif")
        (tmp_path / "Europe" / "Paris").write_bytes(b"TZif2" + b"\x00" * 39)
        (tmp_path / "Europe" / "Rome").write_bytes(b"TZif2" + b"\xff" * 39)
        assert python(self.LOOK, PYTHONTZPATH=str(tmp_path)) == self.ONLY_UTC


class TestAsPeopleTypeThem:
    @each_row(
        ("typed", "zone"),
        [
            ("Mumbai", "Asia/Kolkata"),
            ("beijing", "Asia/Shanghai"),
            ("San Francisco", "America/Los_Angeles"),
            ("Munich", "Europe/Berlin"),
        ],
    )
    def test_large_cities_that_the_database_does_not_name_are_known(self, typed: str, zone: str) -> None:
        assert str(zone_named(typed)) == zone

    def test_what_stands_behind_a_comma_is_not_needed(self) -> None:
        assert "Europe/Paris" in names_like("Paris, France", 3)

    @each_row("typed", ["IST", "CST", "AEST"])
    def test_a_short_form_of_several_clocks_is_none_of_them(self, typed: str) -> None:
        assert zone_named(typed) is None
        assert (
            len({now(ms, zone(name)) for name in names_like(typed, 3) for ms in (NOW, NOW + DAY * 180)}) > 2
        )

    def test_no_city_goes_by_a_name_that_nobody_could_look_up(self) -> None:
        lines, there = [line.decode() for line in zones._cities()], available_timezones()
        assert len(lines) > 200
        for name, *called, end in (line.split("|") for line in lines):
            assert end == "" and name in there
            assert [zones.as_city(one) for one in called] == called
