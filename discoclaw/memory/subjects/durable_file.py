"""`durable/<user-id>.json`: HEAD's items in DNAM's schema, version 1. Rendered, read, and compared. Pure.

{version: 1, updatedAt: ms, items: [{id, kind, text, tags, status, source, createdAt, updatedAt}]}

`updatedAt` is the time of the last commit, so it tells which commit a file shows. Files of the TypeScript
DiscoClaw can be read too: version 2 with hit counters, version 1 with version 2's fields, and files with
duplicate ids, where the newest active item wins. The schema has no sensitivity, so a file that is taken over
cannot say what is private; what may have been said in private counts as private.

`edit_of` tells a person's edit from an older state that a crash left. The bot adopts what it finds, and
`verify` reports it, so both judge alike.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import NewerSchema, Refused
from discoclaw.core.event import Commit, Record
from discoclaw.core.history import Branches, History
from discoclaw.core.item import MANUAL, Author, Facets, Item, Sensitivity, item_from_json
from discoclaw.core.privacy import PRESUMED, DmPrivacy, said_in_the_open, sensitivity, stricter
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.core.view import View

VERSION = 1
FOREIGN_VERSIONS = (2,)


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
        marked = []
        for item in self.items:
            typed = by_hand and item.facets.author == "stated"
            secret = sensitivity(
                item.kind,
                item.text,
                inferred=item.facets.author == "inferred",
                learned_privately=item.id in self.unmarked and not typed,
                marked="normal",
                rule=rule,
            )
            marked.append(replace(item, facets=replace(item.facets, sensitivity=secret)))
        return tuple(marked)


class Renderer:
    """Renders views as files. Keeps the bytes of each item, since most do not change between two commits."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Item, bytes]] = {}
        """By the identity of an item, which stays alive here."""

    def render(self, view: View) -> bytes:
        """Return the same bytes as `render(view)`, but faster."""
        before, self._known = self._known, {}
        for item in view.items.values():
            if (known := before.get(id(item))) is None:
                text = json.dumps(item.to_json(), ensure_ascii=False, indent=2)
                known = item, text.replace("\n", "\n    ").encode()
            self._known[id(item)] = known
        texts = [text for _, text in self._known.values()]
        body = b"[\n    " + b",\n    ".join(texts) + b"\n  ]" if texts else b"[]"
        head = f'{{\n  "version": {VERSION},\n  "updatedAt": {view.updated_at},\n  "items": '
        return head.encode() + body + b"\n}\n"


def render(view: View) -> bytes:
    """Return the file's bytes for a view. A pure function, so that a lost file comes back byte for byte."""
    return Renderer().render(view)


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


# ----------------------------------------------------------------------
# What a person changed in a file.


def shown_by(records: Sequence[Record], file: DurableFile, content: bytes) -> tuple[View, str] | None:
    """The view that a file shows, or showed before it was edited, and HEAD's branch then.

    `updatedAt` identifies it: it is the time of the newest record the writer knew. Records stand in the
    ledger in the order in which they became known, which may differ from the order of their times, because
    another replica's come late. If several views have that time, the one that gives this very file is taken,
    else the first, so that what a writer did not know is not mistaken for forgotten. None if no view has it.
    """
    found: tuple[View, str] | None = None
    for count, one in enumerate(records, start=1):
        if ms_of_iso(one.timestamp) != file.updated_at:
            continue
        then = History(records[:count])
        if render(then.shown()) == content:
            return then.shown(), then.branches.current
        found = found or (then.shown(), then.branches.current)
    return found


def edit_of(
    file: DurableFile,
    shown: tuple[View, str] | None,
    branches: Branches,
    view_of: Callable[[str], View],
    *,
    foreign: bool,
    now_ms: int,
    max_items: int,
    rule: DmPrivacy = "balanced",
) -> Commit | None:
    """What a person changed in a file, as the next commit; None if nothing: it is merely an older state.

    `shown` is what it showed before (see `shown_by`). A file that shows no state we know may be damaged or
    somebody else's: what it lacks counts as unknown to its writer, so it forgets nothing. Nor does one with a
    mistake in it, which changes and adds. `view_of` returns the current view of a branch. A `foreign` file
    was not written here; `rule` is DISCOCLAW_DM_PRIVACY.
    """
    base, branch = shown or (View(), branches.current)
    branch = branch if branch in branches.all else branches.current
    current, here = view_of(branch), {item.id for item in file.items}
    written = {key: item for key, item in base.items.items() if not file.rejected or key in here}
    origin = Origin(
        "inferred" if foreign else "stated", evidence="taken over" if foreign else "edited by hand"
    )
    draft = Draft(current, now_ms=branches.next_ms(now_ms), max_items=max_items)
    items = file.marked(rule, by_hand=not foreign)
    apply_edits(draft, written, items, origin)
    if not foreign:
        return draft.commit("edited by hand", branch=branch, by="file")
    new = [one for one in items if one.id not in current.items]
    secret = {one.id for one in new if one.facets.sensitivity == "private"}
    presumed = sorted(secret & file.unmarked)
    told: dict[str, Any] = {PRESUMED: presumed} if presumed else {}
    return draft.commit("take over the durable file", branch=branch, by="file", **told)


# What a person changes in their file becomes events. What DNAM's schema lacks (author, key, links,
# sensitivity) stays as the ledger has it.


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


def file_alone(file: DurableFile, known: View) -> View:
    """The view of a file whose ledger is damaged, so that only `known` is left of it.

    The file does not mark privacy, so items that are not known are private.
    """
    items = {}
    for item in file.items:
        old = known.items.get(item.id)
        facets = old.facets if old is not None else replace(item.facets, sensitivity="private")
        items[item.id] = replace(item, facets=facets)
    return View(items, updated_at=file.updated_at)
