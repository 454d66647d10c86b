"""Finding the items that a person or a model names, by id, by key or by a part of their text."""

from collections.abc import Collection

from discoclaw.core.item import Item
from discoclaw.core.text import collapse, normalise, utf16_length

MATCH_PERCENT = 60
"""A text names an item if it is at least this share of it, so that one common word does not forget a lot."""


def matches(text: str, needle: str) -> bool:
    """Whether `needle` is part of an item's text, in any case, and at least 60 % of its length."""
    text, needle = normalise(text), normalise(needle)
    return needle in text and utf16_length(needle) * 100 >= utf16_length(text) * MATCH_PERCENT


def find(items: Collection[Item], wanted: str) -> list[Item]:
    """The items somebody names: by id (with or without "durable-"), else active ones by key, else by text."""
    wanted = collapse(wanted)
    if not wanted:
        return []
    by_id = [item for item in items if wanted in (item.id, item.id.removeprefix("durable-"))]
    active = [item for item in items if item.active]
    by_key = [item for item in active if item.facets.key == wanted]
    return by_id or by_key or [item for item in active if matches(item.text, wanted)]


def find_one(items: Collection[Item], wanted: str) -> list[Item]:
    """The items that a person names who means one: a text that is exactly an item's names no longer one."""
    found = find(items, wanted)
    return [item for item in found if normalise(item.text) == normalise(wanted)] or found
