"""Proposals at two points of a history brought together: none is lost, and none is accepted by the way.

They are merged as conflicts are: what is new in theirs waits here too, and what theirs no longer has (it was
answered, or taken back) waits no longer. What was answered here since the fork is not asked again.
Pure. Knows nothing about branches and commits; that is `merge`.
"""

from collections.abc import Collection, Iterable

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Event
from discoclaw.core.pending import Key, Pending, is_proposal, key_of_event, settled_as
from discoclaw.core.text import normalise
from discoclaw.core.view import View


def answered(events: Iterable[Event]) -> set[Key]:
    """What the person said yes or no to in these events."""
    return {
        key_of_event(event)
        for event in events
        if is_proposal(event) and settled_as(event) in ("kept", "dropped")
    }


def bring_pending(
    draft: Draft, base: View, ours: View, theirs: View, origin: Origin, answered: Collection[Key]
) -> None:
    """Merge what is pending into a draft that holds the merged items already."""
    before, after, here = _keyed(base), _keyed(theirs), _keyed(draft.view)
    gone = before.keys() - _keyed(ours).keys()
    for key, one in after.items():
        if key not in here and key not in gone and key not in answered and not _held(draft, one):
            draft.note_proposal(one.item, origin, parent=one.event_id)
    for key, one in before.items():
        if key not in after and key in here:
            draft.note_proposal(one.item, origin, "undone", parent=one.event_id)


def _held(draft: Draft, pending: Pending) -> bool:
    """Whether what is proposed holds already: it is remembered, or there is nothing left to forget."""
    if not pending.item.active:
        held = draft.items.get(pending.item.id)
        return held is None or not held.active
    plain = normalise(pending.text)
    return any(item.active and normalise(item.text) == plain for item in draft.items.values())


def _keyed(view: View) -> dict[Key, Pending]:
    return {one.key: one for one in view.pending}
