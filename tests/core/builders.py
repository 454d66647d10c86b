"""Short ways to make items, origins and whole histories for the tests of core and recall."""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hypothesis import strategies as st

from discoclaw.core import merge as core
from discoclaw.core.draft import RESOLUTIONS, Draft, Origin
from discoclaw.core.draft_patch import Shown, ShownLine
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Record
from discoclaw.core.history import History
from discoclaw.core.item import Facets, Item, Source, item_from_json, new_item
from discoclaw.core.merge import MergeContext, MergeResult
from discoclaw.core.patch import Deprecation, Upsert
from discoclaw.core.titles import ShortIds
from discoclaw.core.view import EMPTY, Conflict, View

MINUTE = 60_000
DAY = 86_400_000
NOW = 1_770_000_000_000  # 2026-02-02

ANY_TEXT = st.text(st.characters(), max_size=60)
"""Every code point, lone surrogates too: what a hostile or broken client can send."""

PUBLIC_MESSAGE = Source("discord", "123", "456")


def item(
    text: str,
    kind: str = "fact",
    *,
    tags: Sequence[str] = (),
    updated_at: int = NOW,
    source: Source | None = None,
    **facets: Any,
) -> Item:
    """An active item, stated by its person unless said otherwise."""
    return new_item(
        kind,
        text,
        source=source or Source(),
        now_ms=updated_at,
        tags=list(tags),
        facets=Facets(**{"author": "stated", **facets}),
    )


def stated(**given: Any) -> Origin:
    return Origin("stated", **given)


def inferred(**given: Any) -> Origin:
    """What a small model concluded from words said long after everything else, unless told otherwise."""
    return Origin("inferred", **{"source": PUBLIC_MESSAGE, "said_at": NOW + 1000 * DAY, **given})


class Diary:
    """One subject's memory, in RAM: drafts become commits, commits become the view."""

    def __init__(self, *, max_items: int = 200) -> None:
        self.view: View = EMPTY
        self.commits: list[Commit] = []
        self.now = NOW
        self.max_items = max_items

    def draft(self) -> Draft:
        """A draft on today's view, one minute after the one before."""
        self.now += MINUTE
        return Draft(self.view, now_ms=self.now, max_items=self.max_items)

    def keep(self, draft: Draft) -> Commit | None:
        """Commit a draft, the way the store does."""
        commit = draft.commit("a test")
        if commit is not None:
            self.commits.append(commit)
            self.view = self.view.after(commit)
        return commit

    def remember(self, text: str, kind: str = "fact", origin: Origin | None = None, **given: Any) -> Item:
        """Upsert and commit in one step; the item as the view has it then."""
        draft = self.draft()
        held, _ = draft.upsert(kind, text, origin or stated(), **given)
        self.keep(draft)
        return self.view.items[held.id]

    def deprecate(self, held: Item, origin: Origin | None = None) -> None:
        draft = self.draft()
        draft.deprecate(held, origin or stated())
        self.keep(draft)

    def texts(self) -> list[str]:
        return [held.text for held in self.view.active()]


def as_file(items: Sequence[Item], **changes: dict[str, Any]) -> list[Item]:
    """What reading back the durable file of `items` gives. `changes`: id -> fields the person edited."""
    entries = [{**held.to_json(), **changes.get(held.id, {})} for held in items]
    facets = Facets(author="stated")
    return [
        item_from_json(entry, now_ms=NOW + 500 * DAY, facets=facets)
        for entry in json.loads(json.dumps(entries))
    ]


class Chronicle:
    """One subject's whole history, in RAM: branches, and everything that brings points together.

    Every record is made by the real functions, the way the store makes them, a minute after the one before.
    """

    def __init__(self, records: Iterable[Record] = (), *, now: int = NOW) -> None:
        self.records: list[Record] = list(records)
        self.now = now
        self._history: History | None = None

    @property
    def history(self) -> History:
        if self._history is None:
            self._history = History(self.records)
        return self._history

    def replica(self, *, later: int = 0) -> "Chronicle":
        """The same history somewhere else, by a clock that is some ms ahead."""
        return Chronicle(self.records, now=self.now + later)

    def keep(self, record: Record | None) -> None:
        if record is not None:
            self.records.append(record)
            self._history = None

    def tick(self) -> int:
        self.now += MINUTE
        return self.now

    def head(self, branch: str = "main") -> str | None:
        return self.history.branch(branch).head

    def view(self, branch: str = "main") -> View:
        return self.history.view(self.head(branch))

    def texts(self, branch: str = "main") -> list[str]:
        return [held.text for held in self.view(branch).active()]

    def change(self, wish: Callable[[Draft], Any], *, on: str = "main") -> Commit | None:
        """Let `wish` draft on a branch, and commit."""
        draft = Draft(self.view(on), now_ms=self.history.branches.next_ms(self.tick()))
        wish(draft)
        commit = draft.commit("a test", branch=on)
        self.keep(commit)
        return commit

    def remember(
        self, text: str, *, on: str = "main", kind: str = "fact", origin: Origin | None = None, **given: Any
    ) -> Item:
        """Upsert and commit in one step; the item as the view has it then."""
        told: list[Item] = []
        self.change(
            lambda draft: told.append(draft.upsert(kind, text, origin or stated(), **given)[0]), on=on
        )
        return self.view(on).items[told[0].id]

    def fork(self, name: str, *, start: str = "main", persona: str = "") -> str:
        branches = self.history.branches
        self.keep(branches.create(name, persona, now_ms=self.tick(), start=self.head(start)))
        return name

    def switch(self, name: str) -> None:
        self.keep(self.history.branches.switch(name, now_ms=self.tick()))

    def delete(self, name: str) -> None:
        self.keep(self.history.branches.delete(name, now_ms=self.tick()))

    def act(self, on: str) -> MergeContext:
        return MergeContext(on, stated(), self.tick())

    def merge(self, source: str, into: str = "main") -> MergeResult:
        return self._brought(core.merge(self.history, source, self.act(into)))

    def pick(self, commit: str, onto: str = "main") -> MergeResult:
        return self._brought(core.cherry_pick(self.history, commit, self.act(onto)))

    def revert(self, commit: str, on: str = "main") -> MergeResult:
        return self._brought(core.revert(self.history, commit, self.act(on)))

    def undo(self, on: str = "main") -> MergeResult:
        return self.revert(core.last_change(self.history, on).id, on)

    def restore(self, commit: str, on: str = "main") -> MergeResult:
        return self._brought(core.restore(self.history, commit, self.act(on)))

    def _brought(self, brought: MergeResult) -> MergeResult:
        self.keep(brought.commit)
        return brought


WORDS = ["likes tea", "Likes  TEA", "likes coffee", "works at Acme", "lives in Oslo", "plays chess"]
_BRANCH_NAMES = ["coding", "küche", "日本語"]
_WISHES = ["add", "add", "reword", "reword", "tag", "deprecate", "remove", "mark", "link", "part"]
_WISHES += ["key", "triple", "contradict", "settle", "settle", "again", "nothing"]
_VERBS = ["fork", "fork", "switch", "delete", *["merge"] * 5, *["pick"] * 3, "undo", "restore"]

Deed = tuple[str, int, int, bool]


def _deeds(verbs: Sequence[str]) -> st.SearchStrategy[list[Deed]]:
    """Short lives that shrink well, and long ones by dice."""
    deed = st.tuples(st.sampled_from(verbs), st.integers(0, 5), st.integers(0, 5), st.booleans())
    short = st.builds(
        lambda start, then: [*start, *then], st.sampled_from(_STARTS), st.lists(deed, max_size=12)
    )
    long = st.integers(0, 2**32).map(lambda seed: by_dice(random.Random(seed), 25, verbs))
    return st.one_of(short, long, long)


def by_dice(dice: random.Random, count: int, verbs: Sequence[str] = _WISHES + _VERBS) -> list[Deed]:
    """A random life on two branches."""
    return [
        *_TWO_SIDES,
        *(
            (dice.choice(verbs), dice.randrange(6), dice.randrange(6), dice.random() < 0.5)
            for _ in range(count)
        ),
    ]


_TWO_SIDES: list[Deed] = [
    ("add", 0, 0, True),
    ("add", 0, 3, False),
    ("add", 0, 4, True),
    ("link", 0, 1, True),
    ("fork", 0, 0, True),
    ("reword", 0, 2, True),
    ("reword", 1, 5, True),
    ("contradict", 0, 1, True),
]
_STARTS: list[list[Deed]] = [[], _TWO_SIDES, [*_TWO_SIDES, ("mark", 1, 1, False), ("fork", 1, 1, True)]]
DEEDS = _deeds(_WISHES + _VERBS)
"""A random life: what is done to a Chronicle, one after the other, by `live`."""
DEEDS_AND_REVERTS = _deeds([*_WISHES, *_VERBS, "revert", "revert"])
"""The same, with reverts of older commits in it."""
MORE_DEEDS = st.lists(
    st.tuples(st.sampled_from(_WISHES + _VERBS), st.integers(0, 5), st.integers(0, 5), st.booleans()),
    max_size=8,
)
"""How a life goes on."""


def live(chronicle: Chronicle, deeds: Iterable[Deed]) -> Chronicle:
    """Go through a random life; what a rule refuses is a deed too."""
    for deed in deeds:
        try:
            _do(chronicle, *deed)
        except Refused:
            continue
    return chronicle


def _do(chronicle: Chronicle, verb: str, one: int, other: int, flag: bool) -> None:
    names = sorted(chronicle.history.branches.all)
    on, far = names[one % len(names)], names[other % len(names)]
    commits = list(chronicle.history.commits)
    point = commits[-1 - (one + other) % len(commits)] if commits else "HEAD"
    acts: dict[str, Callable[[], object]] = {
        "fork": lambda: chronicle.fork(_BRANCH_NAMES[other % 3], start=on),
        "switch": lambda: chronicle.switch(far),
        "delete": lambda: chronicle.delete(far),
        "merge": lambda: chronicle.merge(far, on),
        "pick": lambda: chronicle.pick(point, on),
        "undo": lambda: chronicle.undo(on),
        "restore": lambda: chronicle.restore(point, on),
        "revert": lambda: chronicle.revert(point, on),
    }
    if verb in acts:
        acts[verb]()
    else:
        chronicle.change(lambda draft: _wish(draft, verb, one, other, flag), on=on)


def _wish(draft: Draft, verb: str, one: int, other: int, flag: bool) -> None:
    origin = stated() if flag else inferred()
    word = WORDS[other]
    if verb == "add":
        draft.upsert("fact", word, origin, tags=["new"] if flag else [])
    elif verb == "key":
        draft.upsert("fact", word, origin, facets=Facets(key=f"key {one % 2}", category="taste"))
    elif verb == "triple":
        triple = ("user", "likes", word)
        draft.upsert("fact", f"User likes {word}", origin, facets=Facets(triple=triple, confidence=0.5))
    elif verb == "settle" and draft.view.conflicts:
        open_ = draft.view.conflicts
        draft.settle(open_[one % len(open_)], RESOLUTIONS[other % 3], stated())
    elif draft.items:
        held = list(draft.items.values())
        _touch(draft, verb, held[one % len(held)], held[other % len(held)], word, origin)


def _touch(draft: Draft, verb: str, held: Item, second: Item, word: str, origin: Origin) -> None:
    if verb == "reword":
        draft.upsert(held.kind, word, origin, given_id=held.id)
    elif verb == "tag":
        draft.upsert(held.kind, held.text, origin, given_id=held.id, tags=[*held.tags, word[:5]])
    elif verb == "deprecate":
        draft.deprecate(held, origin)
    elif verb == "remove":
        draft.remove(held, origin)
    elif verb == "mark":
        draft.mark(held, "private" if origin.author == "inferred" else "normal", stated())
    elif verb in ("link", "part"):
        draft.link(held, second, origin, on=verb == "link")
    elif verb == "contradict" and held.id != second.id:
        draft.contradict(held, second, "both cannot be", origin)
    elif verb == "again":  # gone and back in one commit
        draft.remove(held, origin)
        draft.upsert(held.kind, held.text, stated())
    elif verb == "nothing":  # a commit that changes nothing
        draft.upsert("fact", "for a moment", stated())
        draft.remove(new_item("fact", "for a moment", source=Source(), now_ms=0, facets=Facets()), inferred())


def told(view: View) -> dict[str, Any]:
    """Everything a person can see of a view, as JSON: items in their order, facets, and open questions."""
    return {
        "items": [
            {**held.to_json(), **asdict(held.facets), "links": sorted(held.facets.links)}
            for held in view.items.values()
        ],
        "conflicts": [list(map(str, question(one))) for one in view.conflicts],
    }


def question(conflict: Conflict) -> tuple[str, str, str, str, str]:
    """A conflict without the event that noted it."""
    return conflict.item_id, conflict.text, conflict.reason, conflict.sensitivity, conflict.other_id


WORDS = "what they have said"
"""The words of every line that `shown` shows."""


def shown(*origins: Origin, items: Iterable[str] = ()) -> Shown:
    """What a model was shown: a line m1, m2, … for each origin, and items i1, i2, … with these ids."""
    own = {f"message {number}": ShownLine(origin, (WORDS,)) for number, origin in enumerate(origins)}
    return Shown(own, ShortIds("m", own), ShortIds("i", items))


def proposed(
    text: str, *, kind: Any = "fact", source: str = "m1", quote: str = WORDS, **given: Any
) -> Upsert:
    """An upsert as a model proposes it, resting on one of the lines that `shown` shows."""
    return Upsert(kind=kind, text=text, source=source, quote=quote, **given)


def outdated(**given: Any) -> Deprecation:
    """A deprecation as a model proposes it."""
    return Deprecation(**{"source": "m1", "quote": WORDS, **given})
