"""Days in words, as facts and as questions have them. English; pure."""

import random
from datetime import UTC, date, datetime, timedelta

NOW = 1_770_000_000_000
"""The present of the made-up world, ms since 1970: 2 February 2026."""
DAY = 86_400_000
TODAY = datetime.fromtimestamp(NOW / 1000, UTC).date()


def ms_of(day: date, hour: int = 12) -> int:
    """A day's time in ms since 1970, UTC."""
    return int(datetime(day.year, day.month, day.day, hour, tzinfo=UTC).timestamp() * 1000)


def some_day(dice: random.Random, years: float = 3.0) -> date:
    """A day in the years before the present, at least three weeks ago."""
    return TODAY - timedelta(days=dice.randrange(21, int(365 * years)))


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st …"""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def whole(day: date, dice: random.Random) -> str:
    """A day in full, as an item has it: "8 May 2023", "May 8, 2023" or "2023-05-08"."""
    return dice.choice((f"{day.day} {day:%B %Y}", f"{day:%B} {day.day}, {day.year}", day.isoformat()))


def asked(day: date, dice: random.Random) -> str:
    """A day in full, as a person asks for it."""
    of = f"the {ordinal(day.day)} of {day:%B %Y}"
    return dice.choice((f"{day.day} {day:%B %Y}", f"{day:%B} {ordinal(day.day)}, {day.year}", of))


def yearly(dice: random.Random) -> str:
    """A day without its year: "14 May", "May 14" or "14th of May"."""
    day = TODAY - timedelta(days=dice.randrange(365))
    return dice.choice((f"{day.day} {day:%B}", f"{day:%B} {day.day}", f"{ordinal(day.day)} of {day:%B}"))
