"""`durable/<user-id>.json`: HEAD's current items in DNAM's schema, version 1. Rendering and reading only.

{version: 1, updatedAt: ms, items: [{id, kind, text, tags, status, source, createdAt, updatedAt}]}

`updatedAt` is the time of the last commit, so it tells which commit a file shows. Files of the TypeScript
DiscoClaw can be read too: version 2 with hit counters, version 1 with version 2's fields, and files with
duplicate ids, where the newest active item wins. The schema has no sensitivity, so a file that is taken over
cannot say what is private; what may have been said in private counts as private.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from discoclaw.core.errors import NewerSchema, Refused
from discoclaw.core.item import MANUAL, Author, Facets, Item, item_from_json
from discoclaw.core.privacy import DmPrivacy, said_in_the_open, sensitivity
from discoclaw.core.times import valid_ms
from discoclaw.core.view import View

VERSION = 1
FOREIGN_VERSIONS = (2,)
MOST_CHANGED = 16
"""If more items than this differ from those in the same positions before, they are looked up one by one."""


class Unreadable(Refused):
    """The file is not a durable file at all; the text says why."""


@dataclass(frozen=True, slots=True)
class DurableFile:
    """A file's content. `rejected` are items that cannot be adopted, and why.

    `unmarked` are the ids of items whose source doesn't say that they were said in the open.
    """

    version: int
    updated_at: int
    items: tuple[Item, ...]
    rejected: tuple[str, ...] = field(default=())
    unmarked: frozenset[str] = frozenset()

    def marked(self, rule: DmPrivacy, *, by_hand: bool) -> tuple[Item, ...]:
        """The items, private where they may have been said in private. `rule` is DISCOCLAW_DM_PRIVACY.

        `by_hand`: the file was written here and edited, so what a person added to it is open.
        """
        return tuple(self._marked(item, rule, by_hand) for item in self.items)

    def _marked(self, item: Item, rule: DmPrivacy, by_hand: bool) -> Item:
        typed = by_hand and item.facets.author == "stated"
        secret = sensitivity(
            item.kind,
            item.text,
            inferred=item.facets.author == "inferred",
            learned_privately=item.id in self.unmarked and not typed,
            marked="normal",
            rule=rule,
        )
        return replace(item, facets=replace(item.facets, sensitivity=secret))


class Renderer:
    """Renders views as files. Caches the bytes of each item, since most do not change between two commits."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._written: list[bytes] = []

    def render(self, view: View) -> bytes:
        """Return the same bytes as `render(view)`, but faster."""
        items, before, written = list(view.items.values()), self._items, list(self._written)
        changed = [
            place for place, (new, old) in enumerate(zip(items, before, strict=False)) if new is not old
        ]
        if len(items) < len(before) or len(changed) > MOST_CHANGED:  # an item left, so others moved up
            known = {id(item): text for item, text in zip(before, written, strict=True)}
            written = [known.get(id(item)) or _item_text(item) for item in items]
        else:
            for place in changed:
                written[place] = _item_text(items[place])
            written += map(_item_text, items[len(before) :])
        self._items, self._written = items, written
        return _file_text(view.updated_at, written)


def render(view: View) -> bytes:
    """Return the file's bytes for a view. A pure function, so that a lost file comes back byte for byte."""
    return _file_text(view.updated_at, [_item_text(item) for item in view.items.values()])


def _item_text(item: Item) -> bytes:
    """The text that `json.dumps` writes with an indent of two, in half its time: it does not indent in C."""
    lines = [f'"{name}": {_value_text(value)}' for name, value in item.to_json().items()]
    return _block("{", lines, "}", "    ").encode("utf-8")


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        return _block("{", [f'"{name}": {_plain(part)}' for name, part in value.items()], "}", "      ")
    if isinstance(value, list) and value:
        return _block("[", list(map(_plain, value)), "]", "      ")
    return _plain(value)


def _block(opened: str, lines: list[str], closed: str, indent: str) -> str:
    return f"{opened}\n{indent}  " + f",\n{indent}  ".join(lines) + f"\n{indent}{closed}"


_plain = json.JSONEncoder(ensure_ascii=False).encode


def _file_text(updated_at: int, items: list[bytes]) -> bytes:
    """The output of `json.dumps` with an indent of two, put together from the items' texts."""
    body = b"[\n    " + b",\n    ".join(items) + b"\n  ]" if items else b"[]"
    head = f'{{\n  "version": {VERSION},\n  "updatedAt": {updated_at},\n  "items": '
    return head.encode() + body + b"\n}\n"


def parse(content: bytes, *, now_ms: int) -> DurableFile:
    """Read a durable file. Raises Unreadable, or NewerSchema for an unknown version."""
    try:
        value = json.loads(content, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not JSON ({error})") from error
    if not isinstance(value, Mapping) or not isinstance(value.get("items"), list):
        raise Unreadable('it has no "items" list')
    version = value.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise Unreadable('it has no numeric "version"')
    if version != VERSION and version not in FOREIGN_VERSIONS:
        raise NewerSchema(f"it has version {version}; this program knows 1 and 2")
    updated_at = value.get("updatedAt")
    items: dict[str, Item] = {}
    unmarked: set[str] = set()
    rejected: list[str] = []
    for number, entry in enumerate(value["items"], start=1):
        try:
            item = item_from_json(entry, now_ms=now_ms, facets=Facets())
        except Refused as refusal:
            rejected.append(f"item {number}: {refusal}")
            continue
        source = entry.get("source")
        item = replace(item, facets=Facets(author=_author(item, source)))
        other = items.get(item.id)
        if other is None or (item.active, item.updated_at) > (other.active, other.updated_at):
            items[item.id] = item
            (unmarked.discard if said_in_the_open(source) else unmarked.add)(item.id)
    return DurableFile(
        version,
        updated_at if valid_ms(updated_at) else 0,
        tuple(items.values()),
        tuple(rejected),
        frozenset(unmarked),
    )


def _finite(text: str) -> float:
    """A number with a fraction or an exponent. Raises ValueError for one that is too large, like 1e999."""
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _no_number(text: str) -> float:
    """Raise ValueError: Python's JSON takes NaN and Infinity, but no program writes them into these files."""
    raise ValueError(f"{text} is not a number")


def _author(item: Item, source: object) -> Author:
    """The author of an item: the person, if they typed it, or a model that concluded it."""
    told = source if isinstance(source, Mapping) else {"type": "manual"}
    return "stated" if item.source == MANUAL and told.get("type", "manual") == "manual" else "inferred"
