"""The operations of people and models on a history: the same for the chat, the command line and the tools.

Each reads the history, lets core decide, and records the result. They return values; the caller words the
reply. All raise Refused with a way out, and MemoryFault when the disk fails.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from discoclaw.core import merge as core
from discoclaw.core.draft import Draft, Origin, Resolution
from discoclaw.core.errors import Refused
from discoclaw.core.event import Record
from discoclaw.core.history import Branches, History
from discoclaw.core.item import Item, Sensitivity
from discoclaw.core.merge import MergeContext, MergeResult
from discoclaw.core.pending import Key, Pending
from discoclaw.core.privacy import stricter
from discoclaw.core.view import Conflict
from discoclaw.memory.subjects.store import AnyMemory

Rule: TypeAlias = Callable[[History, str, MergeContext], MergeResult]


async def _bring(
    rule: Rule,
    memory: AnyMemory,
    subject: str,
    point: str,
    origin: Origin,
    *,
    branch: str | None = None,
    **metadata: Any,
) -> MergeResult:
    """Bring a point of the history (a branch or a commit) to HEAD's branch, or to `branch`, by a rule."""

    def work(history: History, now_ms: int, max_items: int) -> tuple[Sequence[Record], MergeResult]:
        name = history.branch(branch).name if branch is not None else history.branches.current
        context = MergeContext(name, origin, now_ms, max_items, tuple(metadata.items()))
        brought = rule(history, point, context)
        return ([brought.commit] if brought.commit is not None else []), brought

    return await memory.act(subject, work)


merge = partial(_bring, core.merge)
"""Bring another branch's changes over."""
cherry_pick = partial(_bring, core.cherry_pick)
"""Apply one commit's changes."""
revert = partial(_bring, core.revert)
"""Revert one commit's changes."""
restore = partial(_bring, core.restore)
"""Set the branch back to its state at an earlier commit."""


async def undo(
    memory: AnyMemory, subject: str, origin: Origin, *, branch: str | None = None, **metadata: Any
) -> MergeResult:
    """Revert the last change that has not been undone."""

    def last(history: History, _: str, context: MergeContext) -> MergeResult:
        return core.revert(history, core.last_change(history, context.branch).id, context)

    return await _bring(last, memory, subject, "", origin, branch=branch, **metadata)


async def create_branch(
    memory: AnyMemory,
    subject: str,
    name: str,
    persona: str = "",
    *,
    start: str | None = None,
    **metadata: Any,
) -> Branches:
    """Create a branch at HEAD, or at the branch `start`."""

    def create(branches: Branches, now_ms: int) -> Any:
        head = branches.named(start or branches.current).head
        return branches.create(name, persona, now_ms=now_ms, start=head, **metadata)

    return await memory.turn(subject, create)


async def switch(memory: AnyMemory, subject: str, name: str, **metadata: Any) -> Branches:
    """Move HEAD to another branch."""
    return await memory.turn(
        subject, lambda branches, now_ms: branches.switch(name, now_ms=now_ms, **metadata)
    )


async def delete_branch(memory: AnyMemory, subject: str, name: str, **metadata: Any) -> Branches:
    """Delete a branch; its commits stay in the history."""
    return await memory.turn(
        subject, lambda branches, now_ms: branches.delete(name, now_ms=now_ms, **metadata)
    )


async def settle(
    memory: AnyMemory,
    subject: str,
    event_id: str,
    how: Resolution,
    origin: Origin,
    *,
    branch: str | None = None,
    **metadata: Any,
) -> Conflict:
    """Record the person's decision about the event's conflict, on HEAD's branch or where it is still open."""
    branches = await memory.branches(subject)
    for name in [branch] if branch is not None else [branches.current, *branches.all]:
        for conflict in (await memory.view(subject, name)).conflicts:
            if conflict.event_id == event_id:
                wish = partial(Draft.settle, conflict=conflict, how=how, origin=origin)
                await memory.change(subject, f"settled: {how}", wish, branch=name, **metadata)
                return conflict
    raise Refused("that is already settled")


async def answer(
    memory: AnyMemory,
    subject: str,
    asked: Collection[Key],
    origin: Origin,
    *,
    yes: bool,
    branch: str,
    **metadata: Any,
) -> list[Item]:
    """Record the person's yes or no to what is pending under these keys. Returns the items it was about.

    A yes to one of two that contradict each other settles both. Raises AlreadySettled if none is pending.
    """

    def wish(draft: Draft) -> list[Item]:
        done: list[Item] = []
        for one in draft.view.pending:
            if one.key in asked and any(one.key == still.key for still in draft.view.pending):
                done.append((keep_proposed if yes else drop_proposed)(draft, one, origin))
        if not done:
            raise AlreadySettled
        return done

    why = "agreed to remember" if yes else "declined to remember"
    return await memory.change(subject, why, wish, branch=branch, begin=False, **metadata)


async def edit(
    memory: AnyMemory,
    subject: str,
    item: Callable[[Draft], Item],
    text: str,
    origin: Origin,
    *,
    branch: str | None = None,
    marked: Sensitivity = "normal",
    **metadata: Any,
) -> tuple[Item, Item]:
    """Change the text of an item. `item` finds it, or raises Refused. Returns it before and after.

    `marked` is how private the person says the new text is; it never makes an item less private.
    """

    def wish(draft: Draft) -> tuple[Item, Item]:
        held = item(draft)
        secret = stricter(held.facets.sensitivity, marked)
        return held, draft.upsert(held.kind, text, origin, given_id=held.id, marked=secret, tags=held.tags)[0]

    return await memory.change(subject, "edited", wish, branch=branch, **metadata)


# ---------------------------------------------------------------------- answers to proposals
# A yes counts as stated, as does every decision of a person; what is remembered keeps the message it was
# inferred from as its source. A no to forgetting something confirms it.


class AlreadySettled(Refused):
    """The proposal that is answered is not pending any more."""

    def __init__(self) -> None:
        super().__init__("that is settled already, or has lapsed")


def _open_now(draft: Draft, pending: Pending) -> Pending:
    """A proposal as the draft has it now. Raises AlreadySettled if it is settled."""
    for one in draft.view.pending:
        if one.key == pending.key:
            return one
    raise AlreadySettled


def keep_proposed(draft: Draft, pending: Pending, origin: Origin) -> Item:
    """The person agrees: do what is proposed. Returns the item. Raises AlreadySettled if that was settled."""
    item = _open_now(draft, pending).item
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


def drop_proposed(draft: Draft, pending: Pending, origin: Origin) -> Item:
    """The person disagrees. Returns what was proposed. Raises AlreadySettled if that was settled."""
    item = _open_now(draft, pending).item
    draft.note_proposal(item, origin, "dropped", parent=pending.event_id)
    current = draft.items.get(item.id)
    if not item.active and current is not None and current.active:
        said = replace(origin, author="stated", source=current.source, private=False)
        draft.upsert(current.kind, current.text, said, given_id=current.id)
    return item
