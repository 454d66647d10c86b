"""A snapshot of a long ledger's view, so that a start need not fold ten thousand commits. Safe to delete.

It stores the SHA-256 of the verified part of the ledger that it was made from: the same bytes give the same
view. If anything about it does not fit, it is ignored and the whole ledger is read. A hash of its own
protects it against bit rot; like the ledger's hashes, that is no signature.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from discoclaw.core.history import Branch, Branches
from discoclaw.core.item import Facets, Item, Source
from discoclaw.core.pending import Pending
from discoclaw.core.taken_back import TakenBack
from discoclaw.core.text import normalise
from discoclaw.core.view import Conflict, View
from discoclaw.memory.disk.files import write_atomic

log = logging.getLogger(__name__)

VERSION = 6


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The branches and HEAD's view after the first `size` bytes of a ledger, whose SHA-256 is `digest`."""

    size: int
    digest: str
    branches: Branches
    view: View


def save(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot. A failing disk is only a warning: nothing is lost without a snapshot."""
    body = {
        "version": VERSION,
        "size": snapshot.size,
        "digest": snapshot.digest,
        "branches": asdict(snapshot.branches),
        "view": _view_to_json(snapshot.view),
    }
    text = json.dumps(body, ensure_ascii=False)
    try:
        write_atomic(path, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n".encode())
    except OSError as error:
        log.warning("%s could not be written: %s", path, error)


def load(path: Path) -> Snapshot | None:
    """The snapshot in a file, or None if there is no usable one."""
    try:
        seal, _, text = path.read_bytes().rstrip(b"\n").partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != seal:
            return None
        body = json.loads(text)
        if body["version"] != VERSION:
            return None
        branches, view = _branches(body["branches"]), _view_from_json(body["view"])
        return Snapshot(int(body["size"]), str(body["digest"]), branches, view)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _branches(value: Mapping[str, Any]) -> Branches:
    made = Branches(**value)
    return replace(
        made,
        all={name: Branch(**branch) for name, branch in value["all"].items()},
        moves=tuple((ms, name) for ms, name in value["moves"]),
    )


def _view_to_json(view: View) -> dict[str, Any]:
    return {
        **{name: getattr(view, name) for name in (*_PLAIN, "sources")},
        "items": [_item_to_json(item) for item in view.items.values()],
        "conflicts": [asdict(conflict) for conflict in view.conflicts],
        "taken_back": [asdict(one) for one in view.taken_back.values()],
        "pending": [[one.event_id, one.at, one.question, *_item_to_json(one.item)] for one in view.pending],
    }


_PLAIN = ("last_event", "triples", "forgotten", "head", "updated_at", "commits")


def _view_from_json(value: Mapping[str, Any]) -> View:
    items = [_item(body, facets) for body, facets in value["items"]]
    taken = [TakenBack(**{**one, "messages": tuple(one["messages"])}) for one in value["taken_back"]]
    return View(
        items={item.id: item for item in items},
        conflicts=tuple(Conflict(**conflict) for conflict in value["conflicts"]),
        sources={key: tuple(messages) for key, messages in value["sources"].items()},
        taken_back={(one.item_id, normalise(one.text)): one for one in taken},
        pending=tuple(Pending(key, _item(*item), at, asked) for key, at, asked, *item in value["pending"]),
        **{name: value[name] for name in _PLAIN},
    )


def _item_to_json(item: Item) -> list[dict[str, Any]]:
    return [item.to_json(), _facets_to_json(item.facets)]


def _facets_to_json(facets: Facets) -> dict[str, Any]:
    return {**asdict(facets), "links": sorted(facets.links)}


def _item(body: Mapping[str, Any], facets: Mapping[str, Any]) -> Item:
    triple = facets["triple"]
    return Item(
        id=body["id"],
        kind=body["kind"],
        text=body["text"],
        tags=tuple(body["tags"]),
        status=body["status"],
        source=Source.from_json(body["source"]),
        created_at=body["createdAt"],
        updated_at=body["updatedAt"],
        facets=Facets(
            **{**facets, "links": frozenset(facets["links"]), "triple": tuple(triple) if triple else None}
        ),
    )
