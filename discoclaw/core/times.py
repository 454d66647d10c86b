"""Times in the forms that the ledger and the files use.

The ledger has ISO 8601 in UTC with milliseconds ("2026-02-03T16:29:35.000Z"); files have integer milliseconds
since 1970. Pure: the current time is always an argument.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeGuard

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DISCORD_EPOCH_MS = 1_420_070_400_000  # 2015-01-01; the upper 42 bits of a snowflake count ms since then


def iso_ms(ms: int) -> str:
    """Milliseconds since 1970 as "YYYY-MM-DDTHH:MM:SS.mmmZ"."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment.isoformat(timespec='milliseconds')[:23]}Z"


@lru_cache(maxsize=4_096)  # a record's time is asked for a dozen times on its way in, its events' likewise
def ms_of_iso(text: str) -> int:
    """The inverse of `iso_ms`. Accepts other ISO 8601 forms too, and assumes UTC if the zone is missing.

    Raises ValueError if the text is not a time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def date_of(ms: int) -> str:
    """The UTC date "YYYY-MM-DD" of a time in milliseconds since 1970."""
    return (_EPOCH + timedelta(milliseconds=ms)).date().isoformat()


def span(ms: int) -> str:
    """A duration in the largest unit of which there are at least two: "90 s", "2 min"."""
    seconds = max(0, ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def time_of_snowflake(snowflake: int) -> int:
    """When (ms since 1970) something with a Discord id (snowflake) was created; 0 for the id 0."""
    return (snowflake >> 22) + _DISCORD_EPOCH_MS if snowflake else 0


def snowflake_at(ms: int) -> int:
    """The highest Discord id (snowflake) that something created at `ms` since 1970 can have."""
    return ((max(ms, _DISCORD_EPOCH_MS) - _DISCORD_EPOCH_MS + 1) << 22) - 1


def valid_ms(value: object) -> TypeGuard[int]:
    """Whether an outside value is a time in ms since 1970, before the year 10000 (where `datetime` ends)."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 253_402_300_800_000
