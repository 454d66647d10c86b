"""A snapshot of a long ledger, so that a start reads only the lines after it: a cache in plain files.

It names the SHA-256 of the ledger's bytes and, in its first line, that of its own. Blocking.
"""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from discoclaw.core.history import Branch, Branches
from discoclaw.core.item import Item
from discoclaw.core.pending import Pending
from discoclaw.core.purge import TakenBack
from discoclaw.core.text import normalise
from discoclaw.core.view import Conflict, View
from discoclaw.store.files import write_atomic

log = logging.getLogger(__name__)

VERSION: Final = 7
"""The version of a snapshot's format."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The branches and their views after the first `size` bytes of a ledger, whose SHA-256 is `digest`."""

    size: int
    digest: str
    branches: Branches
    views: Mapping[str, View]


@dataclass(frozen=True, slots=True)
class _View:
    """A view's fields, where those that can be computed from their values have no keys."""

    items: tuple[Item, ...]
    last_event: Mapping[str, str]
    triples: Mapping[str, str]
    conflicts: tuple[Conflict, ...]
    forgotten: Mapping[str, int]
    sources: Mapping[str, tuple[str, ...]]
    taken_back: tuple[TakenBack, ...]
    head: str | None
    updated_at: int
    commits: int
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True)
class _File:
    version: int
    size: int
    digest: str
    branches: tuple[Mapping[str, Branch], str, tuple[tuple[int, str], ...], int, int]
    views: Mapping[str, _View]


@cache
def _json() -> TypeAdapter[_File]:
    return TypeAdapter(_File)  # takes 0.1 s, for which nobody waits who has only short ledgers


def save(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot. A failing disk is only a warning: nothing is lost without a snapshot."""
    at, views = snapshot.branches, {name: _packed(view) for name, view in snapshot.views.items()}
    branches = at.all, at.current, at.moves, at.last_ms, at.turned_ms
    text = _json().dump_json(_File(VERSION, snapshot.size, snapshot.digest, branches, views))
    try:
        write_atomic(path, b"%s\n%s\n" % (_seal(text), text))
    except OSError as error:
        log.warning("%s could not be written: %s", path, error)


def load(path: Path) -> Snapshot | None:
    """The snapshot in a file, or None if there is no usable one."""
    try:
        seal, _, text = path.read_bytes().rstrip(b"\n").partition(b"\n")
        if seal != _seal(text):
            return None
        file = _json().validate_json(text)
        if file.version != VERSION or file.views.keys() != file.branches[0].keys():
            return None
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    views = {name: _unpacked(view) for name, view in file.views.items()}
    return Snapshot(file.size, file.digest, Branches(*file.branches), views)


def _packed(view: View) -> _View:
    given = {field.name: getattr(view, field.name) for field in fields(_View)}
    items, taken = tuple(view.items.values()), tuple(view.taken_back.values())
    return _View(**{**given, "items": items, "taken_back": taken})


def _unpacked(view: _View) -> View:
    given = {field.name: getattr(view, field.name) for field in fields(_View)}
    items = {item.id: item for item in view.items}
    taken = {(one.item_id, normalise(one.text)): one for one in view.taken_back}
    return View(**{**given, "items": items, "taken_back": taken})


def _seal(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
