"""Whole histories for the tests of export and import: a memory in RAM, and acts drawn at random."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from discoclaw.core import merge
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Record
from discoclaw.core.history import History
from discoclaw.core.item import KINDS, Facets, Source
from discoclaw.core.merge import MergeContext
from discoclaw.memory.exchange.load import Imported
from discoclaw.memory.exchange.take import Report, records_for
from tests.memory.kit import NOW

STATED = Origin("stated")
TEXTS = (
    "likes tea",
    "Pythön 🐍 & “quotes”",
    "works at Acme",
    "# no heading",
    "likes tea very much",
    "ja\u2028nein",
)

Step = tuple[str, int, str]

_ACTS = (
    *("add", "add", "add", "heard", "edit", "deprecate", "remove", "mark", "link", "contradict"),
    *("create", "switch", "switch", "delete", "merge", "undo"),
)
_ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)

STEPS = st.lists(
    st.tuples(st.sampled_from(_ACTS), st.integers(0, 5), st.sampled_from(TEXTS) | _ANY_TEXT), max_size=14
)


class Replica:
    """A history that grows as the store lets it grow."""

    def __init__(self, start: int = NOW, records: Sequence[Record] = ()) -> None:
        self.now = start
        self.history = History(records)

    def append(self, *records: Record) -> None:
        self.history = History([*self.history.records, *records])

    def draft(self) -> Draft:
        self.now = self.history.branches.next_ms(self.now + 60_000)
        head = self.history.branch(self.history.branches.current).head
        return Draft(self.history.view(head), now_ms=self.now)

    def keep(self, draft: Draft, why: str = "a test") -> None:
        commit = draft.commit(why, branch=self.history.branches.current, by="test")
        if commit is not None:
            self.append(commit)

    def remember(self, text: str, kind: str = "fact", origin: Origin = STATED, **given: Any) -> None:
        draft = self.draft()
        draft.upsert(kind, text, origin, **given)
        self.keep(draft)

    def branch(self, name: str, persona: str = "", *, switch: bool = True) -> None:
        self.now = self.history.branches.next_ms(self.now + 60_000)
        branches = self.history.branches
        head = branches.all[branches.current].head
        self.append(branches.create(name, persona, now_ms=self.now, start=head))
        if switch:
            self.switch(name)

    def switch(self, name: str) -> None:
        ref = self.history.branches.switch(name, now_ms=self.now)
        if ref is not None:
            self.append(ref)

    def take_in(self, imported: Imported, **given: Any) -> Report:
        """Import, the way the store does."""
        self.now += 60_000
        options = {"now_ms": self.now, "max_items": 200, "origin": STATED, **given}
        records, report = records_for(imported, self.history, **options)
        known = {record.id for record in self.history.records}
        assert not any(record.id in known for record in records)
        self.append(*records)
        return report

    def act(self, steps: Sequence[Step]) -> "Replica":
        """Do what was drawn; what a rule refuses is left out."""
        for step in steps:
            try:
                self._act(*step)
            except Refused:
                continue
        return self

    def _act(self, what: str, number: int, text: str) -> None:
        branches = self.history.branches
        name = f"persona-{number}"
        act = MergeContext(branches.current, STATED, self.now + 60_000)
        if what == "create":
            self.branch(name, text[:3].strip())
        elif what == "switch":
            self.switch(list(branches.all)[number % len(branches.all)])
        elif what == "delete":
            self.append(branches.delete(name, now_ms=self.now))
        elif what in ("merge", "undo"):
            if what == "merge":
                brought = merge.merge(self.history, list(branches.all)[number % len(branches.all)], act)
            else:
                brought = merge.revert(self.history, "HEAD", act)
            if brought.commit is not None:
                self.append(brought.commit)
        else:
            self._change(what, number, text)

    def _change(self, what: str, number: int, text: str) -> None:
        draft = self.draft()
        kind = KINDS[number]
        held = list(draft.items.values())
        item = held[number % len(held)] if held else None
        if what == "add":
            secret = ("normal", "private", "confidential")[number % 3]
            facets = Facets(
                key=text if number == 1 else None, category="people" if number == 2 else "knowledge"
            )
            draft.upsert(kind, text, STATED, marked=secret, tags=[text], facets=facets)  # type: ignore[arg-type]
        elif what == "heard":
            source = Source("discord", "7", str(1000 + number))
            draft.upsert(kind, text, Origin("inferred", source, self.now, evidence=text))
        elif item is not None and what == "edit":
            draft.upsert(item.kind, text, STATED, given_id=item.id)
        elif item is not None and what == "deprecate":
            draft.deprecate(item, STATED)
        elif item is not None and what == "remove":
            draft.remove(item, STATED)
        elif item is not None and what == "mark":
            # Twice at one time: two events that differ in nothing that is part of their id.
            draft.mark(item, "confidential", STATED)
            draft.mark(item, "normal", STATED)
        elif item is not None and what == "link":
            draft.link(item, held[-1], STATED)
        elif item is not None and what == "contradict":
            draft.contradict(item, held[-1], text, STATED)
        self.keep(draft, why=text)


HISTORIES = STEPS.map(lambda steps: Replica().act(steps).history)


def pictures(history: History) -> dict[str, Any]:
    """What every branch says, and which is HEAD."""
    said: dict[str, Any] = {"HEAD": history.branches.current}
    for name, branch in history.branches.all.items():
        view = history.view(branch.head)
        said[f"branch {name}"] = (branch.persona, list(view.items.values()), view.conflicts, view.forgotten)
    return said
