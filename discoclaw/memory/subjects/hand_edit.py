"""Tells a person's edit of a durable file from an older state of it that a crash left. Pure.

The bot adopts what `edit_of` finds, and `verify` reports it, so both judge alike.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit, Record
from discoclaw.core.hand_edits import apply_edits
from discoclaw.core.history import Branches, History
from discoclaw.core.privacy import PRESUMED, DmPrivacy
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.memory.subjects import durable_file
from discoclaw.memory.subjects.durable_file import DurableFile


def pictured(records: Sequence[Record], file: DurableFile, content: bytes) -> tuple[View, str] | None:
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
        if durable_file.render(then.shown()) == content:
            return then.shown(), then.branches.current
        found = found or (then.shown(), then.branches.current)
    return found


def base_of(found: tuple[View, str] | None, branches: Branches) -> tuple[View, str]:
    """The view to compare a file with, and the branch that an edit of it belongs to.

    A file that shows no state we know may be damaged or somebody else's. What it lacks counts as unknown to
    its writer, so it forgets nothing.
    """
    view, name = found or (View(), branches.current)
    return view, name if name in branches.all else branches.current


def edit_of(
    file: DurableFile,
    base: View,
    current: View,
    *,
    branch: str,
    foreign: bool,
    now_ms: int,
    max_items: int,
    rule: DmPrivacy = "balanced",
) -> Commit | None:
    """The changes of a person between `base` and a file, as the next commit of a branch showing `current`.

    None if nothing: the file is merely an older state. A `foreign` one was not written here; `rule` is
    DISCOCLAW_DM_PRIVACY. A file with a mistake in it changes and adds, but forgets nothing.
    """
    here = {item.id for item in file.items}
    written = {key: item for key, item in base.items.items() if not file.rejected or key in here}
    origin = Origin(
        "inferred" if foreign else "stated", evidence="taken over" if foreign else "edited by hand"
    )
    draft = Draft(current, now_ms=now_ms, max_items=max_items)
    items = file.marked(rule, by_hand=not foreign)
    apply_edits(draft, written, items, origin)
    if not foreign:
        return draft.commit("edited by hand", branch=branch, by="file")
    new = [one for one in items if one.id not in current.items]
    secret = {one.id for one in new if one.facets.sensitivity == "private"}
    presumed = sorted(secret & file.unmarked)
    told: dict[str, Any] = {PRESUMED: presumed} if presumed else {}
    return draft.commit("take over the durable file", branch=branch, by="file", **told)


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
