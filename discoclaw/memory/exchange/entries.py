"""Snapshots: the current branch's active memories as a plain list of entries, for other programs.

An entry is {id, key, content, category, timestamp, last_accessed, session_id, links}. Times are in seconds;
`last_accessed` is left out if unknown; `key` is the item's key, or its id if it has none; `links` are keys of
other entries; `session_id` is where it was learned ("discord:<channel>/<message>", or "" by hand). A kind
other than "fact" is added, since it would be lost otherwise, and the sensitivity: an entry without one may
have been said in private. Vectors are not written, and ignored when read: they are computed again.
A file of the wrong shape is refused as a whole; single entries that cannot become items are rejected.
Independent of what is stored already; `take` skips that.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from discoclaw.core.decay import CONVERSATION, CORE, KNOWLEDGE
from discoclaw.core.errors import Refused
from discoclaw.core.history import History
from discoclaw.core.item import MANUAL, Facets, Item, Source, new_item
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.exchange.layout import MOST_ITEMS, Items, sensitivity_of
from discoclaw.store.files import render_json

_CATEGORIES = (CORE, KNOWLEDGE, CONVERSATION)
_LONGEST_NAME = 200
_MILLISECONDS = 10**11
"""A time beyond this is in milliseconds: in seconds it would be in the year 5138."""
_SAID_IN = re.compile(r"discord:([0-9A-Za-z_-]{1,40})/([0-9A-Za-z_-]{1,40})")
_TEXTS = ("id", "key", "category", "session_id", "kind", "sensitivity")


def export_snapshot(history: History, accessed: Mapping[str, int]) -> tuple[bytes, int]:
    """Return a JSON list (UTF-8) of the entries, and their number. `accessed`: last uses (ms) by item id."""
    items = history.shown().active()
    names = {item.id: item.facets.key or item.id for item in items}
    return render_json([_entry(item, names, accessed.get(item.id, 0)) for item in items]), len(items)


def _entry(item: Item, names: Mapping[str, str], accessed: int) -> dict[str, Any]:
    facets = item.facets
    return {
        "id": item.id,
        "key": names[item.id],
        "content": item.text,
        "category": facets.category,
        "timestamp": item.updated_at // 1000,
        **({"last_accessed": accessed // 1000} if accessed >= 1000 else {}),
        "session_id": "" if item.source == MANUAL else str(item.source),
        "links": sorted(names[one] for one in facets.links if one in names),
        **({"kind": item.kind} if item.kind != "fact" else {}),
        "sensitivity": facets.sensitivity,
    }


def is_snapshot(value: object) -> bool:
    """Whether decoded JSON is a snapshot: a list that is not empty, or an object with a list of "entries"."""
    if isinstance(value, list):
        return bool(value)
    return isinstance(value, Mapping) and isinstance(value.get("entries"), list)


def read_snapshot(name: str, value: Any) -> Items:
    """Return the memories of a snapshot, with secrets still in them.

    Raises Refused, naming the entry, if anything has the wrong shape."""
    entries = value if isinstance(value, list) else value["entries"]
    if len(entries) > MOST_ITEMS:
        raise Refused(
            f"{name} holds {len(entries):,} entries, and {MOST_ITEMS:,} are the most; nothing is imported"
        )
    for number, entry in enumerate(entries, start=1):
        _check(f"{name}, entry {number}", entry)
    ids: dict[str, str] = {}
    items: list[Item] = []
    unmarked: set[str] = set()
    accessed: dict[str, int] = {}
    rejected: list[str] = []
    for number, entry in enumerate(entries, start=1):
        try:
            item = _item(entry)
        except Refused as refusal:
            rejected.append(f"{name}, entry {number}: {refusal}")
            continue
        ids.setdefault(_word(entry, "key") or item.id, item.id)
        items.append(item)
        accessed[item.id] = _ms(entry.get("last_accessed", 0))
        if not _word(entry, "sensitivity"):
            unmarked.add(item.id)
    linked = (_linked(item, ids) for item in items)
    found = Items(tuple(linked), tuple(rejected), skips_known=True, accessed=accessed)
    return replace(found, unmarked=frozenset(unmarked))


def _check(where: str, entry: Any) -> None:
    """Raise Refused if this does not have the shape of an entry."""
    if not isinstance(entry, dict):
        raise Refused(f"{where} is not a JSON object; nothing is imported, correct it or leave it out")
    if not isinstance(entry.get("content"), str):
        raise Refused(f'{where} has no text as "content"; nothing is imported, correct it or leave it out')
    wrong = [name for name in _TEXTS if not isinstance(entry.get(name), str | None)]
    wrong += [name for name in ("timestamp", "last_accessed") if not _is_number(entry.get(name, 0))]
    links = entry.get("links", [])
    if not isinstance(links, list) or not all(isinstance(one, str) for one in links):
        wrong.append("links")
    if wrong:
        raise Refused(
            f"{where} has a wrong type of {wrong[0]!r}; nothing is imported, correct it or leave it out"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _item(entry: Mapping[str, Any]) -> Item:
    """Return an entry as an item. Raises Refused if that is impossible.

    An entry doesn't say who stated it, so it counts as inferred.
    """
    category = _word(entry, "category").lower()
    found = _SAID_IN.fullmatch(_word(entry, "session_id"))
    source = Source("discord", *found.groups()) if found is not None else MANUAL
    item = new_item(
        _word(entry, "kind") or "fact",
        entry["content"],
        source=source,
        now_ms=_ms(entry.get("timestamp", 0)),
        facets=Facets(category=category if category in _CATEGORIES else KNOWLEDGE),
    )
    given, key = _word(entry, "id") or item.id, _word(entry, "key")
    if max(len(given), len(key)) > _LONGEST_NAME:
        raise Refused(f"its id or key is longer than {_LONGEST_NAME} characters")
    facets = replace(
        item.facets,
        key=key if key not in ("", given) else None,
        links=frozenset(collapse(scrub(one)) for one in entry.get("links", ())),
        sensitivity=sensitivity_of(_word(entry, "sensitivity") or "normal"),
    )
    return replace(item, id=given, facets=facets)


def _word(entry: Mapping[str, Any], name: str) -> str:
    """A text of an entry, on one line; "" if it is missing."""
    return collapse(scrub(entry.get(name) or ""))


def _ms(time: float) -> int:
    """A time of an entry in ms; 0 if it is missing."""
    when = int(time if time >= _MILLISECONDS else time * 1000)
    return when if valid_ms(when) else 0


def _linked(item: Item, ids: Mapping[str, str]) -> Item:
    """The item with its links as ids; entries name them by key."""
    links = frozenset(ids.get(one, one) for one in item.facets.links)
    return replace(item, facets=replace(item.facets, links=links))
