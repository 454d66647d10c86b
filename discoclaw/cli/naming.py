"""Finding the item that somebody names in a terminal, where a question can't have buttons."""

import difflib
import shlex
from collections.abc import Collection, Sequence

from discoclaw.core.errors import Refused
from discoclaw.core.item import Item
from discoclaw.core.matching import find_one
from discoclaw.core.text import normalise
from discoclaw.recall.named_items import find
from discoclaw.show.words import quoted, short

ITEM = "<item>"
"""Stands for an item's id in a command that is to be typed again."""
MOST_LISTED = 10


def item_named(items: Collection[Item], wanted: str, again: Sequence[str]) -> Item:
    """The item that a person names: by id, by the first digits of it, or by at least 60 % of its text.

    `again` is the command as words, with `ITEM` where it names the item. Raises Refused if there is not
    exactly one, with the candidates and the command to type for each.
    """
    found = find_one(items, wanted) or _begun(items, wanted)
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused(f"{quoted(wanted, 60)} matches {len(found)} items; type {_listed(found, again)}")
    near = _near(items, wanted)
    hint = (
        f"did you mean one of these? Type {_listed(near, again)}"
        if near
        else "`discoclaw memory show` lists them with their ids"
    )
    raise Refused(f"no item matches {quoted(wanted, 60)}, by its id or 60 % of its text; {hint}")


def _begun(items: Collection[Item], wanted: str) -> list[Item]:
    prefix = wanted.strip().casefold().removeprefix("durable-")
    return [item for item in items if prefix and short(item.id).startswith(prefix)]


def _near(items: Collection[Item], wanted: str) -> list[Item]:
    """Items that a person may mean by some of their words, by similar ones, or by a mistyped id."""
    there = list(items)
    found = find(there, wanted)
    if some := [*found.meant, *found.near]:
        return some
    by_id = {short(item.id): item for item in there}
    return [by_id[one] for one in difflib.get_close_matches(normalise(wanted), by_id, n=3)]


def _listed(items: Collection[Item], again: Sequence[str]) -> str:
    """The command for each item, with the item's text."""
    some = [f"`{_typed(item, again)}` for {quoted(item.text, 60)}" for item in items][:MOST_LISTED]
    more = len(items) - len(some)
    return "; ".join([*some, *([f"and {more} more"] if more else [])])


def _typed(item: Item, again: Sequence[str]) -> str:
    return shlex.join([short(item.id) if word is ITEM else word for word in again])
