"""Time as the ledger and the files write it. Pure: the present is always an argument.

Ledger: UTC, ISO 8601, milliseconds ("2026-02-03T16:29:35.000Z"). Files: integer milliseconds since 1970.
"""

from datetime import UTC, datetime, timedelta
from typing import TypeGuard

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DISCORD_EPOCH_MS = 1_420_070_400_000  # 2015; the upper 42 bits of an id count milliseconds from it


def iso_ms(ms: int) -> str:
    """Milliseconds since 1970 as "YYYY-MM-DDTHH:MM:SS.mmmZ"."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment.isoformat(timespec='milliseconds')[:23]}Z"


def ms_of_iso(text: str) -> int:
    """The inverse of `iso_ms`; also takes other ISO 8601 forms, a missing zone being UTC.

    Raises ValueError when the text is no such time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def date_of(ms: int) -> str:
    """The UTC date "YYYY-MM-DD" of a time in milliseconds since 1970."""
    return (_EPOCH + timedelta(milliseconds=ms)).date().isoformat()


def snowflake_at(ms: int) -> int:
    """The Discord id (snowflake) that something made at a time (ms since 1970) has at most."""
    return ((max(ms, _DISCORD_EPOCH_MS) - _DISCORD_EPOCH_MS + 1) << 22) - 1


def valid_ms(value: object) -> TypeGuard[int]:
    """Whether a value read from outside is a time in milliseconds that a date can be made of."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 253_402_300_800_000
