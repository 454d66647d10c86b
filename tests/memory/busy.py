"""A long history of one busy person: every kind of change, on branches that come, go and are merged."""

import random
from collections.abc import Callable, Iterator

from discoclaw.core import merge
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.history import MAIN, History
from discoclaw.core.item import KINDS, Facets
from discoclaw.core.merge import MergeContext
from discoclaw.core.times import iso_ms
from discoclaw.core.view import EMPTY, View
from tests.memory.kit import NOW, heard

STATED = Origin("stated")
NAMES = ("coding", "games", "work-2")


def busy(count: int, *, seed: int = 1, max_items: int = 30) -> list[Record]:
    """At least `count` records in their order, whose views hold what a view can hold."""
    return [record for _, record in zip(range(count), _records(random.Random(seed), max_items), strict=False)]


def _records(dice: random.Random, max_items: int) -> Iterator[Record]:
    branches = History().branches
    views: dict[str, View] = {MAIN: EMPTY}
    known: list[Record] = []
    for number in range(1_000_000):
        now_ms = branches.next_ms(NOW + number * 1000)
        for record in _next(dice, number, now_ms, max_items, known, views):
            if isinstance(record, Commit):
                views[record.branch] = views[record.branch].after(record)
            elif record.action == "create":
                views[record.branch] = views[branches.current]
            branches = branches.after(record)
            known.append(record)
            yield record


def _next(
    dice: random.Random,
    number: int,
    now_ms: int,
    max_items: int,
    known: list[Record],
    views: dict[str, View],
) -> list[Record]:
    """What happens next."""
    if number % 20:
        name = dice.choice(sorted(views))
        draft = Draft(views[name], now_ms=now_ms, max_items=max_items)
        dice.choice(CHANGES)(draft, dice, number)
        commit = draft.commit(f"change {number}", branch=name)
        return [commit] if commit is not None else [_triple(name, views[name], number, now_ms)]
    return _turn(dice, History(known), now_ms, max_items, views)


def _turn(
    dice: random.Random, history: History, now_ms: int, max_items: int, views: dict[str, View]
) -> list[Record]:
    """A branch is created, becomes HEAD, is deleted, or is merged into main."""
    branches, name = history.branches, dice.choice(NAMES)
    if name not in branches.all:
        head = branches.all[branches.current].head
        return [branches.create(name, f"as {name}", now_ms=now_ms, start=head)]
    what = dice.choice(["switch", "merge", "delete", "back"])
    if what == "merge":
        brought = merge.merge(history, name, MergeContext(MAIN, STATED, now_ms, max_items)).commit
        return [brought] if brought is not None else []
    if what == "delete" and name != branches.current:
        del views[name]
        return [branches.delete(name, now_ms=now_ms)]
    ref = branches.switch(MAIN if what == "back" else name, now_ms=now_ms)
    return [ref] if isinstance(ref, Ref) else []


def _triple(branch: str, view: View, number: int, now_ms: int) -> Commit:
    """A bare triple, as other programs write them."""
    event = Event(
        event_type="add",
        subject="user",
        predicate="owns",
        object=f"bike {number}",
        timestamp=iso_ms(now_ms),
        confidence=0.25,
    )
    return Commit(
        branch=branch, events=(event,), message="bare", parent_id=view.head, timestamp=event.timestamp
    )


def _add(draft: Draft, dice: random.Random, number: int) -> None:
    key = f"key-{number % 7}" if number % 3 == 0 else None
    triple = ("user", "likes", f"thing {number}") if number % 4 == 0 else None
    wished = Facets(scope=dice.choice([None, "session"]), confidence=0.5, key=key, triple=triple)
    origin = dice.choice([STATED, heard(private=True), heard(evidence="“so” she said\u2028é🎻")])
    marked = dice.choice(["normal", "normal", "private", "confidential"])
    draft.upsert(
        dice.choice(KINDS),
        f"item {number} “é🎻”",
        origin,
        tags=["a", f"t{number}"],
        marked=marked,
        facets=wished,
    )


def _contradict(draft: Draft, dice: random.Random, number: int) -> None:
    if len(draft.items) > 1:
        one, other = dice.sample(sorted(draft.items), 2)
        draft.contradict(draft.items[one], draft.items[other], "both cannot be", heard())


def _link(draft: Draft, dice: random.Random, number: int) -> None:
    if len(draft.items) > 1:
        one, other = dice.sample(sorted(draft.items), 2)
        draft.link(draft.items[one], draft.items[other], STATED)


def _remove(draft: Draft, dice: random.Random, number: int) -> None:
    if len(draft.items) > 8:
        draft.remove(draft.items[dice.choice(sorted(draft.items))], dice.choice([STATED, heard()]))


def _deprecate(draft: Draft, dice: random.Random, number: int) -> None:
    if draft.items:
        draft.deprecate(draft.items[dice.choice(sorted(draft.items))], STATED)


CHANGES: tuple[Callable[[Draft, random.Random, int], None], ...] = (
    _add,
    _add,
    _add,
    _contradict,
    _link,
    _remove,
    _deprecate,
)
