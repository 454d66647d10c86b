"""The history of one subject: its records in order, the branches they form, and the view at any point.

Records are a grow-only set. The same set gives the same history, whatever order the records are stored in or
arrived in from other replicas. In that history a record follows those it depends on (a commit its parents, a
ref its head); apart from that, records are ordered by (time, id). Everything here is a fold over that order.

A branch starts as the chain of another one at the moment of its creation, without copying a commit, and grows
by the commits that name it. A branch whose first commit was lost starts at the newest one before it, if a
"mend" says which that is.

Pure; knows nothing about files. Bringing two points together is `merge`. First here are the branches and the
order of records, then `History`, which is made of both.
"""

import difflib
import heapq
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import regex

from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.item import Item
from discoclaw.core.reminder import Reminder, folded, id_in
from discoclaw.core.text import clip, collapse, scrub, visible
from discoclaw.core.times import iso_ms, ms_of_iso, valid_ms
from discoclaw.core.view import EMPTY, View, fold

# ----------------------------------------------------------------------
# The branches of one subject's memory, which people know as personas, and which of them is current (HEAD).
#
# Branches are a fold over the refs and commits of a history. Changes to them are refs, which this module
# makes and somebody else records.


MAIN = "main"
"""The branch that every memory starts with. It cannot be deleted."""
MOST_BRANCHES = 50
LONGEST_PERSONA = 500
"""Longest description of a branch, in characters."""
_NAME = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]{0,31}")


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch, which people know as a persona.

    `head` is its newest commit, `persona` its description. `created_at` (ms) is for `main` the time of its
    first commit, 0 before that. `base` is the commit it was created at, None for `main` and for a branch that
    was created empty. `metadata` is that of the ref that created it.
    """

    name: str
    head: str | None = None
    persona: str = ""
    created_at: int = 0
    base: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Whether the description was given in private, so that it is only shown there."""
        return self.metadata.get("private") is True


@dataclass(frozen=True, slots=True)
class Branches:
    """All branches, and which of them is the current one (HEAD).

    `moves` are the times (ms) at which HEAD moved, with the branch it moved to, oldest first. For a move that
    a message asked for it is the message's time, since moves are compared with times of messages. `last_ms`
    is the time of the newest record, `turned_ms` that of the newest ref that changed what HEAD shows.
    `reminders` are the person's, by id, whichever persona they were set in.
    """

    all: Mapping[str, Branch] = field(default_factory=lambda: {MAIN: Branch(MAIN)})
    current: str = MAIN
    moves: tuple[tuple[int, str], ...] = ()
    last_ms: int = 0
    turned_ms: int = 0
    reminders: Mapping[str, Reminder] = field(default_factory=dict)

    def after(self, record: Record) -> "Branches":
        """The branches after one more record, which has to be the next one in order."""
        now = ms_of_iso(record.timestamp)
        last = max(self.last_ms, now)
        name = record.branch
        if isinstance(record, Commit):
            # A commit may come for a branch whose creation another replica has not sent yet.
            before = self.all.get(name) or Branch(name, record.parent_id, "", now, record.parent_id)
            after = replace(before, head=record.id, created_at=before.created_at or now)
            reminders = folded(self.reminders, record.events)
            return replace(self, all={**self.all, name: after}, last_ms=last, reminders=reminders)
        if record.action == "create":
            if name in self.all:  # another replica created it too; the first one stays as it is
                return replace(self, last_ms=last)
            made = Branch(name, record.head, record.persona, now, record.head, record.metadata)
            return replace(self, all={**self.all, name: made}, last_ms=last)
        if record.action == "switch" and name in self.all:
            moves = (*self.moves, (_asked_at(record, now), name))
            return replace(self, current=name, moves=moves, last_ms=last, turned_ms=max(self.turned_ms, now))
        if record.action == "delete" and name != MAIN:
            rest = {key: branch for key, branch in self.all.items() if key != name}
            if self.current == name:  # another replica deleted the branch that was current here
                moves = (*self.moves, (now, MAIN))
                return replace(self, all=rest, current=MAIN, moves=moves, last_ms=last, turned_ms=last)
            return replace(self, all=rest, last_ms=last)
        return replace(self, last_ms=last, turned_ms=max(self.turned_ms, now))

    def head_at(self, ms: int) -> str:
        """The name of the branch that was HEAD at a time (ms)."""
        name = MAIN
        for moved, to in self.moves:
            if moved > ms:
                break
            name = to
        return name

    def named(self, name: str) -> Branch:
        """The branch of this name, in any case, or the current one for "head".

        Raises Refused if there is none, with the most similar name.
        """
        wanted = folded_name(name)
        if wanted == "head":
            return self.all[self.current]
        for known in (name.strip(), wanted):
            if known in self.all:
                return self.all[known]
        near = difflib.get_close_matches(wanted, self.all, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise Refused(f"there is no branch {name[:60]!r}; {hint}there are: {', '.join(self.all)}")

    # ------------------------------------------------------------------ refs for changes

    def create(self, name: str, persona: str, *, now_ms: int, start: str | None, **metadata: Any) -> Ref:
        """The ref that creates a branch at a commit (None: empty), with a description.

        Raises Refused if the name cannot be used or is taken, or if a limit is reached.
        """
        tidy, persona = branch_name(name), collapse(scrub(persona))
        if tidy in self.all:
            raise Refused(f"the branch {tidy!r} already exists; choose another name")
        if len(self.all) >= MOST_BRANCHES:
            raise Refused(f"there can be at most {MOST_BRANCHES} branches; delete one first")
        if len(persona) > LONGEST_PERSONA:
            raise Refused(
                f"a persona's description can have at most {LONGEST_PERSONA} characters; please shorten it"
            )
        when = iso_ms(self.next_ms(now_ms))
        return Ref(
            action="create", branch=tidy, head=start, persona=persona, timestamp=when, metadata=metadata
        )

    def switch(self, name: str, *, now_ms: int, **metadata: Any) -> Ref | None:
        """The ref that moves HEAD to a branch; None if it is there. Raises Refused for an unknown branch."""
        to = self.named(name).name
        if to == self.current:
            return None
        return Ref(action="switch", branch=to, timestamp=iso_ms(self.next_ms(now_ms)), metadata=metadata)

    def delete(self, name: str, *, now_ms: int, **metadata: Any) -> Ref:
        """The ref that deletes a branch; its commits stay. Raises Refused for main and the current branch."""
        gone = self.named(name)
        if gone.name == MAIN:
            raise Refused(f"{MAIN!r} can't be deleted")
        if gone.name == self.current:
            raise Refused(f"{gone.name!r} is the current branch; switch to another one first")
        when = iso_ms(self.next_ms(now_ms))
        return Ref(action="delete", branch=gone.name, head=gone.head, timestamp=when, metadata=metadata)

    def next_ms(self, now_ms: int) -> int:
        """The time (ms) for the next record. Times rise strictly in a ledger, even if the clock does not."""
        return max(now_ms, self.last_ms + 1)


def _asked_at(ref: Ref, now: int) -> int:
    """When (ms) a switch was asked for: the time of the message, if there was one, but never after `now`."""
    said_at = ref.metadata.get("said_at")
    return min(said_at, now) if valid_ms(said_at) else now  # clocks differ, and a record may be forged


def branch_name(name: str) -> str:
    """The name for a new branch, case-folded. Raises Refused if it cannot be one."""
    tidy = folded_name(name)
    if tidy == "head" or not _NAME.fullmatch(tidy) or visible(tidy) != tidy:
        raise Refused(
            f"{name[:60]!r} can't be the name of a branch; use up to 32 letters, digits, '-' and '_', "
            "for example coding"
        )
    if re.fullmatch(r"[0-9a-f]{4,16}", tidy) or tidy.isdigit():  # commands take both in the same place
        raise Refused(f"{name[:60]!r} looks like a commit's id; choose another name")
    return tidy


def folded_name(name: str) -> str:
    """A name in the form in which names are compared, however a keyboard composes its letters."""
    # NFKC twice: folding the case can leave letters decomposed again.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


# ----------------------------------------------------------------------
# The order of a set of records, which is the same on every replica that has the same records.
#
# A record comes after those it depends on: a commit after its parents, a ref after its head. Apart from that,
# records are ordered by (time, id). Two replicas are thus united by putting their lines together and sorting.


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Records in the order of their set, each once."""
    unique: dict[str, Record] = {}
    for record in records:
        first = unique.setdefault(record.id, record)
        if record.hash < first.hash:  # ids don't cover messages: of two such records always pick the same one
            unique[record.id] = record
    if _is_ordered(unique.values()):  # nearly always; sorting ten thousand records takes a while
        return tuple(unique.values())
    ordered = _by_rest(unique, _rests_on)
    # A merge's second parent is not part of its id, so a forged one could close a cycle. It is ignored then.
    circle = {key: record for key, record in unique.items() if key not in ordered}
    return (*ordered.values(), *_by_rest(circle, _follows).values())


def _by_rest(unique: Mapping[str, Record], rests_on: Callable[[Record], Iterable[str]]) -> dict[str, Record]:
    """Records by (time, id), each after those it depends on; without those that depend on themselves."""
    keys = {key: (ms_of_iso(record.timestamp), key) for key, record in unique.items()}
    before = {
        key: {one for one in rests_on(record) if one in unique and one != key}
        for key, record in unique.items()
    }
    behind: dict[str, list[str]] = {}
    for key, needed in before.items():
        for one in needed:
            behind.setdefault(one, []).append(key)
    ready = [keys[key] for key, needed in before.items() if not needed]
    heapq.heapify(ready)
    ordered: dict[str, Record] = {}
    while ready:
        _, key = heapq.heappop(ready)
        ordered[key] = unique[key]
        for other in behind.get(key, ()):
            before[other].discard(key)
            if not before[other]:
                heapq.heappush(ready, keys[other])
    return ordered


def union(one: Iterable[Record], other: Iterable[Record]) -> tuple[Record, ...]:
    """The records of two replicas together. The order of the arguments makes no difference."""
    return in_order([*one, *other])


def _rests_on(record: Record) -> list[str]:
    merged = record.metadata.get("merged") if isinstance(record, Commit) else None
    return [*_follows(record), merged] if isinstance(merged, str) else _follows(record)


def _follows(record: Record) -> list[str]:
    one = record.head if isinstance(record, Ref) else record.parent_id
    return [one] if one is not None else []


def _is_ordered(records: Iterable[Record]) -> bool:
    """Whether records are in order already, as those of one replica are. Saves sorting in the usual case."""
    last, seen = -1, set()
    for record in records:
        now = ms_of_iso(record.timestamp)
        if now <= last:
            return False
        last = now
        seen.add(record.id)
        if any(one not in seen for one in _rests_on(record)):
            return False
    return True


# ----------------------------------------------------------------------
# All records of one subject.


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
        self._of_reminders: dict[str, list[Event]] | None = None
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

    def of_reminder(self, reminder_id: str) -> list[Event]:
        """The events about a reminder, oldest first."""
        if self._of_reminders is None:
            self._of_reminders = {}
            for commit in self.commits.values():
                for event in commit.events:
                    if key := id_in(event):
                        self._of_reminders.setdefault(key, []).append(event)
        return self._of_reminders.get(reminder_id, [])

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


# ----------------------------------------------------------------------
# Attribution: whose words a commit is based on, and a history without the commits of one person.
#
# A group's ledger holds what several people said together, so the metadata of each of its commits names them:
# {"people": [user ids, sorted]}. When one of them is erased, those commits go, and so does every later event
# that continues one of theirs: changing or removing an item repeats what it said.


PEOPLE = "people"
"""Key in the metadata of a group's commit: the user ids of everybody whose words it is based on."""


def contributors(commit: Commit) -> frozenset[str]:
    """The user ids that a commit names; empty if it names nobody."""
    named = commit.metadata.get(PEOPLE)
    return frozenset(one for one in named if isinstance(one, str)) if isinstance(named, list) else frozenset()


def contributors_by_item(commits: Iterable[Commit]) -> dict[str, frozenset[str]]:
    """The user ids whose words each item is based on, by item id. Takes a branch's commits in order."""
    found: dict[str, frozenset[str]] = {}
    for commit in commits:
        named = contributors(commit)
        for event in commit.events:
            target = _item(event)
            if target is not None:
                found[target] = found.get(target, frozenset()) | named
    return found


def without(records: Sequence[Record], gone: Callable[[Commit], bool]) -> list[Record]:
    """The records without the commits for which `gone` is true, and without those that continue them.

    The other records keep their bytes and their order. New "mend" refs at the end accept that the parents
    of some of them are lost; without those, a later check would report the history as damaged. A branch that
    began at a removed commit now begins at the newest one before it.
    """
    lost = _lost(records, gone)
    if not lost:
        return list(records)
    kept = [_begun_before(record, lost) for record in records if record.id not in lost]
    known = {one.head for one in kept if isinstance(one, Ref) and one.action == "mend"}
    followed = {one.parent_id for one in kept if isinstance(one, Commit) and one.parent_id in lost}
    last = max((ms_of_iso(one.timestamp) for one in kept), default=0)
    mends = [
        Ref(action="mend", branch="", head=head, timestamp=iso_ms(last + number), metadata={"by": "erase"})
        for number, head in enumerate(sorted(followed - known, key=str), start=1)
    ]
    return [*kept, *mends]


def _lost(records: Iterable[Record], gone: Callable[[Commit], bool]) -> dict[str, Commit]:
    """The commits to remove, by id."""
    lost: dict[str, Commit] = {}
    events: set[str] = set()
    words: dict[str, bool] = {}  # by item id: whether its present text comes from a removed commit
    for commit in in_order(records):
        if not isinstance(commit, Commit):
            continue
        goes = gone(commit) or any(_continues(event, events, words) for event in commit.events)
        if goes:
            lost[commit.id] = commit
            events.update(event.id for event in commit.events)
        for event in commit.events:
            target = _item(event)
            if target is not None and event.event_type in ("add", "modify"):
                words[target] = goes
    return lost


def _continues(event: Event, events: set[str], words: Mapping[str, bool]) -> bool:
    """Whether an event repeats what a removed event said, as its successor or in a conflict with it."""
    other = event.ext.get("conflict", {}).get("other")
    return event.parent_id in events or (isinstance(other, str) and words.get(other, False))


def _item(event: Event) -> str | None:
    given = event.ext.get("item", {}).get("id")
    return given if isinstance(given, str) else None


def _begun_before(record: Record, lost: Mapping[str, Commit]) -> Record:
    if isinstance(record, Commit) or record.action == "mend" or record.head not in lost:
        return record
    head = record.head
    while head is not None and head in lost:
        head = lost[head].parent_id
    return replace(record, head=head)
