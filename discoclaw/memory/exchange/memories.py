"""Reads single memories: the entries of a `memories.json`, and durable files. Each is checked by itself.

A file that cannot be trusted as a whole is Refused; single bad memories are rejected by name. Secrets are
removed. Independent of where a file comes from.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from discoclaw.core.errors import NewerSchema, Refused
from discoclaw.core.item import (
    Author,
    Facets,
    Item,
    check_text,
    item_from_json,
    tidy_tags,
)
from discoclaw.core.privacy import said_in_the_open
from discoclaw.core.redact import Redactor
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.memory.exchange.layout import MOST_ITEMS, Items, sensitivity_of
from discoclaw.memory.subjects import durable_file

_LONGEST_WORD = 200


def read_memories(name: str, memories: list[Any], current: str | None, redactor: Redactor) -> Items:
    """The memories of all branches as one: where branches differ about an item, `current` counts first."""
    _check_count(name, len(memories))
    mine: dict[str, Item] = {}
    others: dict[str, Item] = {}
    seen: set[tuple[str, str]] = set()
    unmarked: set[str] = set()
    rejected: list[str] = []
    redacted = 0
    for number, entry in enumerate(memories, start=1):
        where = f"{name}, memory {number}"
        _check_types(where, entry)
        try:
            item, clean = _redacted(_item(entry), redactor)
        except Refused as refusal:
            rejected.append(f"{_named(where, entry, redactor)}: {refusal}")
            continue
        branch = entry.get("branch", "")
        if (branch, item.id) in seen:
            rejected.append(f"{_named(where, entry, redactor)}: its id {item.id} is there twice")
            continue
        seen.add((branch, item.id))
        redacted += not clean
        (mine if branch == current else others).setdefault(item.id, item)
        if entry.get("sensitivity") is None and not said_in_the_open(entry.get("source")):
            unmarked.add(item.id)
    items = tuple({**others, **mine}.values())
    return Items(items, tuple(rejected), redacted, unmarked=frozenset(unmarked))


def read_durable(name: str, content: bytes, value: Any, redactor: Redactor) -> Items:
    if isinstance(value, Mapping) and isinstance(value.get("items"), list):
        _check_count(name, len(value["items"]))
    try:
        file = durable_file.parse(content, now_ms=0)
    except NewerSchema as error:
        raise Refused(f"{name} is of a newer version ({error}); import it with a newer discoclaw") from error
    except Refused as error:
        raise Refused(f"{name} is not a durable file: {error}; correct it, or move it away") from error
    rejected = tuple(f"{name}, {why}" for why in file.rejected)
    found = Items(file.items, rejected, unmarked=file.unmarked)
    return without_secrets(name, found, redactor)


def without_secrets(name: str, found: Items, redactor: Redactor) -> Items:
    """The same memories without secrets."""
    items: list[Item] = []
    rejected, redacted = list(found.rejected), 0
    for one in found.items:
        try:
            item, clean = _redacted(one, redactor)
        except Refused as refusal:
            rejected.append(f"{name}, item {one.id[:_LONGEST_WORD]}: {refusal}")
            continue
        redacted += not clean
        items.append(item)
    return replace(found, items=tuple(items), rejected=tuple(rejected), redacted=redacted)


def _check_count(name: str, count: int) -> None:
    if count > MOST_ITEMS:
        raise Refused(
            f"{name} holds {count:,} memories, and {MOST_ITEMS:,} are the most; import less at once"
        )


_TEXTS = (
    *("id", "branch", "subject", "predicate", "object", "timestamp"),
    *("status", "sensitivity", "author", "category"),
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, (str,)),
    **dict.fromkeys(("scope", "key"), (str, type(None))),
    **dict.fromkeys(("createdAt", "updatedAt"), (int,)),
    **dict.fromkeys(("tags", "links"), (list,)),
    "confidence": (int, float),
    "source": (dict,),
}


def _check_types(where: str, entry: Any) -> None:
    """Raise Refused if an entry doesn't have the shape we write: other things may be wrong, too."""
    if not isinstance(entry, dict):
        raise Refused(f"{where} is not a JSON object; correct it or leave it out")
    for name, types in _TYPES.items():
        if name in entry and (isinstance(entry[name], bool) or not isinstance(entry[name], types)):
            raise Refused(f"{where} has a wrong type of {name!r}; correct it or leave it out")
    for name in ("tags", "links"):
        if not all(isinstance(one, str) for one in entry.get(name, ())):
            raise Refused(f"{where} has {name!r} that are not texts; correct them or leave them out")


def _named(where: str, entry: Mapping[str, Any], redactor: Redactor) -> str:
    text = entry.get("text")
    return f"{where} (“{redactor.clean(collapse(scrub(text)))[:60]}”)" if isinstance(text, str) else where


def _item(entry: Mapping[str, Any]) -> Item:
    """Return an entry as an item. Raises Refused if that is impossible."""
    author, confidence = entry.get("author", "stated"), entry.get("confidence", 1.0)
    if author not in get_args(Author):
        raise Refused(f'"author" is "stated" or "inferred", not {author[:60]!r}')
    if not 0 <= confidence <= 1:
        raise Refused(f'"confidence" is between 0 and 1, not {confidence}')
    facets = Facets(
        author=author,
        sensitivity=sensitivity_of(entry.get("sensitivity", "normal")),
        scope=_word("scope", entry.get("scope", "permanent")),
        confidence=confidence,
        key=_word("key", entry.get("key")),
        category=_word("category", entry.get("category")) or Facets().category,
        links=frozenset(entry.get("links", ())),
        triple=_triple(entry),
    )
    return item_from_json(entry, now_ms=_time(entry.get("timestamp")), facets=facets)


def _time(timestamp: str | None) -> int:
    """The time (ms) of an item that names no other one; 0 if unknown."""
    try:
        when = ms_of_iso(timestamp) if timestamp is not None else 0
    except ValueError as error:
        raise Refused(f'"timestamp" is not a time: {timestamp!r:.60}') from error
    return when if valid_ms(when) else 0


def _word(name: str, value: str | None) -> str | None:
    tidy = collapse(scrub(value)) if value is not None else None
    if tidy is not None and len(tidy) > _LONGEST_WORD:
        raise Refused(f'"{name}" has at most {_LONGEST_WORD} characters')
    return tidy


def _triple(entry: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The triple of an item that was stored as one; other items are exported with their kind as predicate."""
    given = [entry.get(name) for name in ("subject", "predicate", "object")]
    if given == ["user", entry.get("kind"), entry.get("text")] or not all(given):
        return None
    subject, predicate, object_ = (check_text(part) for part in given if part is not None)
    return subject, predicate, object_


def _redacted(item: Item, redactor: Redactor) -> tuple[Item, bool]:
    """The item without secrets, and whether there were none. Raises Refused if nothing valid is left."""
    if len(item.id) > _LONGEST_WORD:
        raise Refused(f"its id is longer than {_LONGEST_WORD} characters")
    facets, clean = item.facets, redactor.clean
    beside = "\n".join((facets.scope or "", facets.key or "", facets.category))
    if clean(beside) != beside:
        raise Refused("its scope, key or category looks like a secret key")
    words = "\n".join((item.text, *item.tags, *(facets.triple or ())))
    if clean(words) == words:  # nearly always, and far sooner than one by one
        return item, True
    text, tags = check_text(clean(item.text)), tidy_tags(list(map(clean, item.tags)))
    return replace(item, text=text, tags=tags, facets=replace(facets, triple=None)), False
