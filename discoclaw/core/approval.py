"""A person's answer to what waits for it: their yes remembers it, their no ends it.

A yes counts as stated, as does every decision of a person; what is remembered keeps the message it was
inferred from as its source. A no to forgetting something confirms it. Pure.
"""

from dataclasses import replace

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.item import Item
from discoclaw.core.pending import Pending


class AlreadySettled(Refused):
    """The proposal that is answered is not pending any more."""

    def __init__(self) -> None:
        super().__init__("that is settled already, or has lapsed")


def open_now(draft: Draft, pending: Pending) -> Pending:
    """A proposal as the draft has it now. Raises AlreadySettled if it is settled."""
    for one in draft.view.pending:
        if one.key == pending.key:
            return one
    raise AlreadySettled


def keep(draft: Draft, pending: Pending, origin: Origin) -> Item:
    """The person agrees: do what is proposed. Returns the item. Raises AlreadySettled if that was settled."""
    item = open_now(draft, pending).item
    draft.note_proposal(item, origin, "kept", parent=pending.event_id)
    # Where it was said decided how private it is, not where the person answers.
    agreed = replace(origin, author="stated", source=item.source, private=False)
    current = draft.items.get(item.id)
    if not item.active:
        if current is not None:
            draft.deprecate(current, agreed)
        return item
    return draft.upsert(
        item.kind,
        item.text,
        agreed,
        tags=item.tags,
        given_id=item.id if current is not None else None,
        marked=item.facets.sensitivity,
        facets=item.facets,
    )[0]


def drop(draft: Draft, pending: Pending, origin: Origin) -> Item:
    """The person disagrees. Returns what was proposed. Raises AlreadySettled if that was settled."""
    item = open_now(draft, pending).item
    draft.note_proposal(item, origin, "dropped", parent=pending.event_id)
    current = draft.items.get(item.id)
    if not item.active and current is not None and current.active:
        said = replace(origin, author="stated", source=current.source, private=False)
        draft.upsert(current.kind, current.text, said, given_id=current.id)
    return item
