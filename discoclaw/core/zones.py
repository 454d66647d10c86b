"""Times as people read them: the weekday and the clock of a time zone.

A person's zone is an item of their memory with the key "timezone", whose text names it. So it is shown,
corrected, forgotten, exported and learned like everything else. Names are those of the IANA database
(https://www.iana.org/time-zones). Knows nothing about where items are stored.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from discoclaw.core.item import Item
from discoclaw.core.privacy import may_show

KEY = "timezone"
"""The key of the item that names a person's zone."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)+|\bUTC\b|\bGMT\b")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo | None:
    """The zone that people mean: "Europe/Berlin" in any case, or "berlin" if just one zone is called so.

    None for anything else: short forms such as CST name several zones.
    """
    plain = "_".join(name.split()).casefold()
    if plain in ("utc", "gmt", "z"):
        return UTC
    found = _by_name().get(plain) or _by_city().get(plain)
    try:
        return ZoneInfo(found) if found else None
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


def zone_of(items: Iterable[Item], default: tzinfo, *, in_dm: bool) -> tzinfo:
    """The person's zone as far as it may be used where they speak, else `default`."""
    for item in items:
        if item.facets.key == KEY and item.active and may_show(item, in_dm=in_dm):
            named = (zone_named(name) for name in _NAME.findall(item.text))
            return next((zone for zone in named if zone is not None), default)
    return default


def local(ms: int, zone: tzinfo) -> datetime:
    """A time in ms since 1970 in a zone. The hour that comes twice in autumn is the earlier or later one."""
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone)


def day(ms: int, zone: tzinfo) -> str:
    """A day with its weekday: "Thu 2026-11-19"."""
    moment = local(ms, zone)
    return f"{_DAYS[moment.weekday()]} {moment.date().isoformat()}"


def minute(ms: int, zone: tzinfo) -> str:
    """A day and the time of it: "Thu 2026-11-19 18:06"."""
    return f"{day(ms, zone)} {local(ms, zone):%H:%M}"


def now(ms: int, zone: tzinfo) -> str:
    """The same with the difference from UTC, which says less about a person than the zone's name.

    For example "Thu 2026-11-19 18:06 (UTC+01:00)".
    """
    offset = f"{local(ms, zone):%z}"
    return f"{minute(ms, zone)} (UTC{offset[:3]}:{offset[3:5]})"


@lru_cache(maxsize=1)
def _by_name() -> dict[str, str]:
    return {name.casefold(): name for name in available_timezones()}


@lru_cache(maxsize=1)
def _by_city() -> dict[str, str | None]:
    """Zones by the last part of their name; None where zones of different time share it."""
    cities: dict[str, str | None] = {}
    for name in sorted(available_timezones()):
        if "/" not in name or name.startswith(("Etc/", "SystemV/", "US/", "posix/", "right/")):
            continue
        city = name.rpartition("/")[2].casefold()
        known = cities.setdefault(city, name)
        if known is not None and _offsets(known) != _offsets(name):
            cities[city] = None
    return cities


def _offsets(name: str) -> list[timedelta | None]:
    return [datetime(2025, month, 1, tzinfo=ZoneInfo(name)).utcoffset() for month in (1, 7)]
