"""Short ways to make items, origins and whole histories for the tests of core and recall."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit
from discoclaw.core.item import Facets, Item, Source, item_from_json, new_item
from discoclaw.core.view import EMPTY, View

MINUTE = 60_000
DAY = 86_400_000
NOW = 1_770_000_000_000  # 2026-02-02

MODEST = settings(max_examples=60, deadline=None)
FEW = settings(max_examples=25, deadline=None)

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
