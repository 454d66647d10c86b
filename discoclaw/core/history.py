"""The history of one subject: its records in order, the branches they form, and the view at any point.

Records are a grow-only set. The same set gives the same history, whatever order the records are stored in or
arrived in from other replicas. In that history a record follows those it depends on (a commit its parents, a
ref its head); apart from that, records are ordered by (time, id). Everything here is a fold over that order.

A branch starts as the chain of another one at the moment of its creation, without copying a commit, and grows
by the commits that name it. A branch whose first commit was lost starts at the newest one before it, if a
"mend" says which that is.

Pure; knows nothing about files. Bringing two points together is `merge`.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

# Branches are part of this module's interface: a history without them is of no use.
from discoclaw.core.branches import LONGEST_PERSONA as LONGEST_PERSONA
from discoclaw.core.branches import MAIN as MAIN
from discoclaw.core.branches import MOST_BRANCHES as MOST_BRANCHES
from discoclaw.core.branches import Branch as Branch
from discoclaw.core.branches import Branches as Branches
from discoclaw.core.branches import branch_name as branch_name
from discoclaw.core.branches import folded_name
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.item import Item
from discoclaw.core.order import in_order
from discoclaw.core.text import clip
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import EMPTY, View, fold

_SHORTEST_PREFIX = 4
"""Fewer digits of a commit's id are too easily the start of another one."""


class History:
    """All records of one subject, in order. A point in it is a commit's id; None is the empty start."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: tuple[Record, ...] = in_order(records)
        self.branches = Branches()
        self.commits: dict[str, Commit] = {}
        self.accepted: set[str] = set()
        """Ids of commits that are lost, and whose loss a "mend" has accepted."""
        self._follows = _kept_before(self.records)
        self._rank: dict[str, int] = {}
        # A commit's chain is the first `length` commits of its branch's list, so that no chain is copied
        # before somebody asks for it.
        self._chains: dict[str, list[Commit]] = {MAIN: []}
        self._home: dict[str, tuple[list[Commit], int]] = {}
        self._views: dict[str, View] = {}
        self._ancestors: dict[str | None, frozenset[str]] = {}
        self._events: dict[str, Event] = {}
        for record in self.records:
            self._add(record)

    def _add(self, record: Record) -> None:
        before = self.branches
        if isinstance(record, Ref) and record.action == "create":
            there = self._there(record.head)
            record = record if there == record.head else replace(record, head=there)
        self.branches = before.after(record)
        if isinstance(record, Commit):
            if record.branch not in self._chains:
                self._chains[record.branch] = self._chain_at(record.parent_id)
            chain = self._chains[record.branch]
            chain.append(record)
            self.commits[record.id] = record
            self._rank[record.id] = len(self._rank)
            self._home[record.id] = (chain, len(chain))
        elif record.action == "create" and record.branch not in before.all:
            self._chains[record.branch] = self._chain_at(record.head)
        elif record.action == "delete" and record.branch not in self.branches.all:
            self._chains.pop(record.branch, None)
        elif record.action == "mend" and record.head is not None:
            self.accepted.add(record.head)

    def _there(self, commit_id: str | None) -> str | None:
        """The commit itself or, if it is lost and a mend names the one before it, that one."""
        if commit_id is None or commit_id in self._home:
            return commit_id
        return self._follows.get(commit_id, commit_id)

    def _chain_at(self, commit_id: str | None) -> list[Commit]:
        commit_id = self._there(commit_id)
        if commit_id is None or commit_id not in self._home:
            return []
        chain, length = self._home[commit_id]
        return chain[:length]

    # ------------------------------------------------------------------ reading

    def chain(self, commit_id: str | None) -> Sequence[Commit]:
        """The commits that lead to a point, oldest first, ending with it."""
        return self._chain_at(commit_id)

    def branch(self, name: str) -> Branch:
        """The branch of this name. Raises Refused if there is none."""
        return self.branches.named(name)

    def items(self) -> dict[str, Item]:
        """The items of all branches, each once: as the current branch has it, unless only others use it."""
        found: dict[str, Item] = {}
        for name in {self.branches.current: None, **self.branches.all}:
            for item in self.view(self.branches.all[name].head).items.values():
                if not found.setdefault(item.id, item).active:
                    found[item.id] = item
        return found

    def parents(self, commit_id: str) -> list[str]:
        """A commit's parents: the one before it and, for a merge, the merged one. Lost ones are left out."""
        chain, length = self._home[commit_id]
        found = [chain[length - 2].id] if length > 1 else []
        merged = self.commits[commit_id].metadata.get("merged")
        return [*found, merged] if isinstance(merged, str) and merged in self.commits else found

    def ancestors(self, commit_id: str | None) -> frozenset[str]:
        """A commit and all its ancestors, as far as they are here."""
        if commit_id not in self._ancestors:
            self._ancestors[commit_id] = self._walk(commit_id)
        return self._ancestors[commit_id]

    def _walk(self, commit_id: str | None) -> frozenset[str]:
        found: set[str] = set()
        waiting = [commit_id] if commit_id is not None else []
        while waiting:
            one = waiting.pop()
            if one in self._home and one not in found:
                found.add(one)
                waiting += self.parents(one)
        return frozenset(found)

    def base(self, one: str | None, other: str | None) -> str | None:
        """The newest common ancestor of two points (git's merge base); None if they share no commit."""
        shared = self.ancestors(one) & self.ancestors(other)
        return max(shared, key=self._rank.__getitem__, default=None)

    def view(self, commit_id: str | None) -> View:
        """The view at a point."""
        if commit_id is None:
            return EMPTY
        if commit_id not in self._views:
            chain = self._chain_at(commit_id)
            # Continue from the nearest view that is known, instead of folding everything again.
            done = next((n for n in range(len(chain), 0, -1) if chain[n - 1].id in self._views), 0)
            start = self._views[chain[done - 1].id] if done else EMPTY
            self._views[commit_id] = fold(chain[done:], start)
        return self._views[commit_id]

    def shown(self) -> View:
        """The view of the current branch, as the durable file shows it (see `as_shown`)."""
        return as_shown(self.view(self.branches.all[self.branches.current].head), self.branches)

    def event(self, event_id: str) -> Event | None:
        """The event with this id, or None."""
        if not self._events:
            self._events = {event.id: event for one in self.commits.values() for event in one.events}
        return self._events.get(event_id)

    def until(self, ms: int) -> "History":
        """The history as it was at a time (ms): without later records."""
        return History(record for record in self.records if ms_of_iso(record.timestamp) <= ms)

    # ------------------------------------------------------------------ finding commits

    def commit(self, wanted: str, *, on: str | None = None) -> Commit:
        """The commit that a person names: HEAD, a branch, an id or its first digits, optionally with `~n`.

        `on` is the branch that HEAD refers to, if not the current one. Raises Refused, with a suggestion.
        """
        name, _, back = wanted.strip().partition("~")
        start = self._start(name, on)
        if not back and "~" not in wanted:
            return start
        if back and not (back.isascii() and back.isdigit()):
            raise Refused(f"{wanted[:60]!r}: ~ must be followed by a number, for example HEAD~2")
        # Cut to nine digits: somebody may type ten thousand, and Python limits such conversions.
        chain, steps = self.chain(start.id), int(back.lstrip("0")[:9] or "0") if back else 1
        if steps >= len(chain):
            raise Refused(f"{wanted[:60]!r} goes back beyond the first commit; there are only {len(chain)}")
        return chain[-1 - steps]

    def _start(self, name: str, on: str | None) -> Commit:
        if folded_name(name) == "head":
            name = on or self.branches.current
        if {name, folded_name(name)} & self.branches.all.keys():
            head = self.branches.named(name).head
            if head is None or head not in self.commits:
                raise Refused(f"the branch {name!r} has no commits yet")
            return self.commits[head]
        prefix = name.lower()
        found = [commit for key, commit in self.commits.items() if key.startswith(prefix)]
        if len(prefix) < _SHORTEST_PREFIX or not found:
            raise Refused(self._unknown(name))
        if len(found) > 1 and prefix not in self.commits:
            some = "; ".join(f"{commit.id} {clip(commit.message, 60)}" for commit in found[:10])
            raise Refused(f"{len(found)} commits begin with {name!r}; give more digits of the id: {some}")
        return self.commits.get(prefix, found[0])

    def _unknown(self, name: str) -> str:
        known = [*self.branches.all, *(key[: len(name)] for key in self.commits)]
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"there is no commit or branch {name[:60]!r}{hint}"

    # ------------------------------------------------------------------ health

    def orphans(self) -> dict[str, str]:
        """Commits whose parent is missing without a "mend" that accepts it: parent id by commit id."""
        return {
            one.id: one.parent_id
            for one in self.commits.values()
            if one.parent_id is not None
            and one.parent_id not in self.commits
            and one.parent_id not in self.accepted
        }


def as_shown(view: View, branches: Branches) -> View:
    """A branch's view as the durable file shows it: its `updated_at` counts moves of HEAD too.

    The file's time thus names the record whose state it shows, which is how a hand edit is recognised.
    """
    if branches.turned_ms <= view.updated_at:
        return view
    return replace(view, updated_at=branches.turned_ms)


def _kept_before(records: Iterable[Record]) -> dict[str, str]:
    """The newest commit that was kept before each lost one, by the lost one's id, where a mend names it."""
    found: dict[str, str] = {}
    for record in records:
        if isinstance(record, Ref) and record.action == "mend" and record.head is not None:
            kept = record.metadata.get("follows")
            if isinstance(kept, str):
                found.setdefault(record.head, kept)
    return found
