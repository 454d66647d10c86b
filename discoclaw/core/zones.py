"""Times as people read them: the weekday and the clock of a time zone.

A person's zone is an item of their memory with the key "timezone", whose text names it. So it is shown,
corrected, forgotten, exported and learned like everything else. Names are those of the IANA database
(https://www.iana.org/time-zones), and differences from UTC such as UTC+05:30. `cities.xz` has the zones of
large cities, and what these are called in any language (`make cities`; © GeoNames, CC BY 4.0).
Knows nothing about where items are stored.
"""

import difflib
import lzma
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from discoclaw.core.item import Item, by_newest
from discoclaw.core.privacy import may_show
from discoclaw.core.visible import VisibleItems
from discoclaw.core.words import fold

KEY = "timezone"
"""The key of the item that names a person's zone."""
LONGEST = 64
"""Longest name that is looked up. The database's longest has 32."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_OFFSET = re.compile(r"(?:utc|gmt)?_?([+-])_?(\d{1,2})(?::?([0-5]\d))?", re.ASCII)
_FULL_OFFSET = re.compile(r"\bUTC[+-]\d\d:\d\d\b")
_WEST, _EAST = timedelta(hours=-12), timedelta(hours=14)
_SAYS_ZONE = re.compile(r"(?:user['’]s|my) time\s?zone is (\S+?)\.?", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_OURS = ("Factory", "localtime", "posixrules")
_NO_CITY = ("Etc/", "SystemV/", "posix/", "right/")
_SHORT_FORM = re.compile(r"[A-Z]{3,4}")
_NOT_AT_ALL = 3
_A_WORD = 4
"""Letters of what is looked for inside names. Fewer are often a short form: EST is not in Bucharest."""


def zone_named(name: str) -> tzinfo | None:
    """The zone that people mean: "Europe/Berlin", in any case, "berlin" if that is one clock, or "UTC+2".

    None for anything else: short forms such as CST, and some cities, name several clocks.
    """
    plain = _plain(name) if len(name) <= LONGEST else ""
    if plain in ("utc", "gmt", "z"):
        return UTC
    if (fixed := _fixed(plain)) is not None:
        return fixed
    named = _by_name().get(plain)
    names = _by_city().get(as_city(plain)) or ([named] if named else _with_city(as_city(plain)))
    found = [zone for name in names if (zone := _load(name)) is not None]
    if not found or any(_year(zone) != _year(found[0]) for zone in found[1:]):
        return None
    return found[0]


def names_like(typed: str, most: int) -> list[str]:
    """The names that begin with what somebody typed, contain it or nearly are it, the best first.

    Zones come before these if a city of theirs, or their clock (CST), is called so, the largest city's first.
    """
    if len(typed) > LONGEST:
        return []
    plain = as_city(typed.partition(",")[0])
    found = list(_by_city().get(plain) or _with_city(plain))
    if not _SHORT_FORM.fullmatch(typed.strip()):
        ranked = sorted((_rank(name, plain), name) for name in _offered()) if plain else []
        found += [name for rank, name in ranked if rank < _NOT_AT_ALL]
        city = plain.rpartition("/")[2]
        if len(city) >= _A_WORD and city not in _by_city():
            nearly = difflib.get_close_matches(city, _by_city(), n=3, cutoff=0.75)
            found += [name for one in nearly for name in _by_city()[one]]
        found += _with_city(plain, begins=True) if not found else []
    return list(dict.fromkeys(found))[:most]


def zone_of(items: Iterable[Item], default: tzinfo, *, in_dm: bool) -> tzinfo:
    """The person's zone as far as it may be used where they speak, else `default`."""
    own = own_zone(items, in_dm=in_dm)
    return own[1] if own is not None else default


def own_zone(items: Iterable[Item], *, in_dm: bool) -> tuple[Item, tzinfo] | None:
    """The newest item that names the person's zone and may be used where they speak, with that zone."""
    keyed = [item for item in VisibleItems.of(items).keyed if item.facets.key == KEY and item.active]
    for item in sorted(keyed, key=by_newest):
        if may_show(item, in_dm=in_dm) and (zone := _zone_in(item.text)) is not None:
            return item, zone
    return None


def names_own_zone(text: str) -> bool:
    """Whether a text of an item says no more than which zone its person is in."""
    said = _SAYS_ZONE.fullmatch(text.strip())
    return said is not None and _zone_in(said[1]) is not None


def text_of(zone: tzinfo) -> str:
    """The text of an item that names a zone."""
    return f"User's time zone is {zone}."


def local(ms: int, zone: tzinfo) -> datetime:
    """A time in ms since 1970 in a zone. The hour that comes twice in autumn is the earlier or later one.

    A time outside the years 1 to 9999 is the first or last moment of them, which `datetime` can still hold.
    """
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone)
    except OverflowError:
        return datetime.max.replace(tzinfo=zone) if ms > 0 else datetime.min.replace(tzinfo=zone)


@lru_cache(maxsize=4_096)  # each turn says the days of the same window again
def day(ms: int, zone: tzinfo) -> str:
    """A day with its weekday: "Thu 2026-11-19"."""
    return _day(local(ms, zone))


def minute(ms: int, zone: tzinfo) -> str:
    """A day and the time of it: "Thu 2026-11-19 18:06"."""
    moment = local(ms, zone)
    return f"{_day(moment)} {moment:%H:%M}"


def now(ms: int, zone: tzinfo) -> str:
    """A time with its difference from UTC, which says less about a person than the zone's name.

    For example "Thu 2026-11-19 18:06 (UTC+01:00)".
    """
    moment = local(ms, zone)
    clock, offset = f"{moment:%H:%M %z}".split()
    return f"{_day(moment)} {clock} (UTC{offset[:3]}:{offset[3:5]})"


def _day(moment: datetime) -> str:
    return f"{_DAYS[moment.weekday()]} {moment.date()}"


# ---------------------------------------------------------------------- names


def _plain(name: str) -> str:
    """A name as it is looked up: "São Paulo" is "sao_paulo"."""
    plain = "_".join(re.sub(r"[.,'’]", "", fold(name)).split())
    return re.sub(r"_?/_?", "/", plain).replace("\N{MINUS SIGN}", "-")


def as_city(name: str) -> str:
    """A city's name as it is looked up: "Port-au-Prince" is "port_au_prince"."""
    return _plain(name).replace("-", "_")


def _fixed(plain: str) -> tzinfo | None:
    """The clock that always differs from UTC by what was typed: "utc+2", "+05:30"; None if that is none."""
    if (typed := _OFFSET.fullmatch(plain)) is None:
        return None
    by = timedelta(hours=int(typed[2]), minutes=int(typed[3] or 0)) * (1 if typed[1] == "+" else -1)
    return timezone(by) if _WEST <= by <= _EAST else None


def _with_city(plain: str, *, begins: bool = False) -> list[str]:
    """The zones with a city that is called so (or begins so), that with the largest city first."""
    if not plain or "/" in plain:  # an item's text may name a zone that there isn't, before each answer
        return []
    wanted = f"|{plain}{'' if begins else '|'}".encode(errors="replace")
    found = [line.partition(b"|")[0].decode() for line in _cities() if wanted in line]
    return [name for name in found if _load(name) is not None]


@lru_cache(maxsize=1)
def _cities() -> Sequence[bytes]:
    """A line for each zone: its name and those of its cities. Takes 50 ms and 1.3 MB when first needed."""
    return lzma.decompress((files("discoclaw.core") / "cities.xz").read_bytes()).splitlines()


def _zone_in(text: str) -> tzinfo | None:
    """The first zone that a text names. "UTC+2" names none: it doesn't say when summer time begins.

    A name of one word, such as Japan, has to be written as in the database, since texts have other words too,
    and a difference from UTC as a command writes it: UTC+02:00.
    """
    words = sorted(_NAME.findall(text), key=lambda word: "/" not in word)
    names = [word for word in words if "/" in word or _by_name().get(word.casefold(), "UTC") == word]
    names += _FULL_OFFSET.findall(text)
    return next((zone for name in names if (zone := zone_named(name)) is not None), None)


def _load(name: str) -> tzinfo | None:
    try:
        return _opened(name) if name else None
    except (ZoneInfoNotFoundError, OSError, ValueError, struct.error):
        return None  # this machine lists it and has no usable file of it


@lru_cache(maxsize=256)  # `ZoneInfo` itself keeps eight, and reads the file of any other again
def _opened(name: str) -> tzinfo:
    return ZoneInfo(name)


def _year(zone: tzinfo) -> list[timedelta | None]:
    """The values that tell two clocks apart: their differences from UTC in winter and in summer."""
    return [datetime(2025, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)]


@lru_cache(maxsize=1)
def _by_name() -> Mapping[str, str]:
    """All names, by how they are looked up. Without short forms: New York doesn't have EST in summer."""
    return {
        name.casefold(): name
        for name in available_timezones()
        if name not in _NOT_OURS and not (len(name) == 3 and name.isupper() and name not in ("UTC", "GMT"))
    }


@lru_cache(maxsize=1)
def _by_city() -> Mapping[str, Sequence[str]]:
    """The names by their last part. Those of the US come first: "eastern" isn't called Canada/Eastern."""
    cities: dict[str, list[str]] = {}
    for name in sorted(_by_name().values(), key=lambda name: (not name.startswith("US/"), name)):
        if "/" in name and not name.startswith(_NO_CITY):
            cities.setdefault(name.rpartition("/")[2].casefold().replace("-", "_"), []).append(name)
    return cities


@lru_cache(maxsize=1)
def _offered() -> Sequence[str]:
    return sorted({"UTC"}.union(*_by_city().values()))


def _rank(name: str, plain: str) -> int:
    """How well a name fits what was typed: from 0 for the beginning of its city to `_NOT_AT_ALL`."""
    whole = name.casefold().replace("-", "_")
    if whole.rpartition("/")[2].startswith(plain):
        return 0
    if any(whole.startswith(plain, found.end()) for found in re.finditer(r"^|[/_]", whole)):
        return 1
    return 2 if len(plain) >= _A_WORD and plain in whole else _NOT_AT_ALL
