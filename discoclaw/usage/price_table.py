"""Reads tables of prices: the one that comes with the program, and an admin's own."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from discoclaw.core.errors import SettingsError
from discoclaw.core.model import VENDOR
from discoclaw.core.usage import DOLLAR, Price, Prices

MILLION: Final = 1_000_000
_DOLLARS_FOR: Final = {
    "input": MILLION,
    "output": MILLION,
    "cache_read": MILLION,
    "cache_write": MILLION,
    "search": 1,
    "minute": 60,
}
"""The number of units for which the table has the price, by its field."""
_COUNTS: Final = ("long_from", "long_times")
_MOST: Final = MILLION


def prices(own: Path | None = None, *, free: bool = False, free_at: Iterable[str] = ()) -> Prices:
    """The prices that apply: those of the file `own` before ours. Raises SettingsError."""
    if own is None:
        return Prices(_ours(), free=free, free_at=frozenset(free_at))
    try:
        theirs = _read(own.read_bytes())
    except OSError as error:
        raise SettingsError(
            f"DISCOCLAW_PRICES={own}: can't be read ({error.strerror}); name a TOML file, "
            "or leave it empty for the prices that come with the program"
        ) from None
    except ValueError as error:
        raise SettingsError(f"DISCOCLAW_PRICES={own}: {error}") from None
    return Prices({**_ours(), **theirs}, frozenset(theirs), free, frozenset(free_at))


@cache
def _ours() -> Mapping[str, Price]:
    return _read((files("discoclaw.usage") / "prices.toml").read_bytes())


def _read(content: bytes) -> dict[str, Price]:
    """The prices in a file. Raises ValueError, which says what is wrong."""
    table = tomllib.loads(content.decode())
    return {name.removeprefix(f"{VENDOR}:"): _price(name, fields) for name, fields in table.items()}


def _price(name: str, given: object) -> Price:
    if not isinstance(given, dict):
        raise ValueError(f"“{name}” must be a table with prices, such as input = 2")
    found: dict[str, int] = {}
    for key, value in given.items():
        if key not in (*_DOLLARS_FOR, *_COUNTS):
            allowed = ", ".join((*_DOLLARS_FOR, *_COUNTS))
            raise ValueError(f"“{name}” has no “{key}”; there are {allowed}")
        if not _number(value):
            raise ValueError(f"{key} of “{name}” must be a number from 0 to {_MOST:,}, not {value}")
        if key in _COUNTS:
            found[key] = int(value)
        else:
            found["second" if key == "minute" else str(key)] = round(value * DOLLAR / _DOLLARS_FOR[key])
    return Price(**found)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
