"""Applies a hand-edited durable file to a draft: what a person changes in their file becomes events.

The file has only DNAM's schema. What that lacks (author, key, links, sensitivity) stays as the ledger has it.
Pure. Knows nothing about files; both versions come as items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Item, Sensitivity
from discoclaw.core.privacy import stricter


def apply_edits(draft: Draft, base: Mapping[str, Item], edited: Sequence[Item], origin: Origin) -> None:
    """Apply the differences between `base`, the file as it was written, and `edited`, the file as it is.

    What others changed in the meantime stays, unless the person changed the same field.
    """
    kept = {item.id for item in edited}
    gone = [item for item in base.values() if item.id not in kept and item.id in draft.items]
    # If an item's id was deleted in the file, the item returns as a new one. It must not become less private.
    floor: Sensitivity = "normal"
    for item in gone:
        floor = stricter(floor, draft.items[item.id].facets.sensitivity)
    for item in edited:
        before, current = base.get(item.id), draft.items.get(item.id)
        if current is None:
            level = stricter(item.facets.sensitivity, floor)
            if before is not None:  # it was removed since the file was written
                level = stricter(level, before.facets.sensitivity)
            item = replace(item, facets=replace(item.facets, sensitivity=level))
        changed = _edits(item, before)
        if current is None:
            if before is None or changed:  # an item removed since comes back only if the person edited it
                draft.emit("add", item, item.to_json(), origin)
            continue
        # What the person wrote may be what the item says by now, learned in the meantime.
        now = current.to_json()
        if changed := {name: value for name, value in changed.items() if value != now[name]}:
            draft.emit("modify", current, {"updatedAt": draft.now_ms, **changed}, origin)
    for item in gone:
        draft.remove(item, origin)


def _edits(item: Item, before: Item | None) -> dict[str, Any]:
    """The fields that a person changed, except times. For an item that is new in the file, only its claim."""
    fields = {
        name: value for name, value in item.to_json().items() if name not in ("id", "createdAt", "updatedAt")
    }
    if before is None:
        return {name: value for name, value in fields.items() if name in ("kind", "text", "status")}
    written = before.to_json()
    return {name: value for name, value in fields.items() if value != written[name]}
