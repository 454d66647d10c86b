"""Attribution: whose words a commit is based on, and a history without the commits of one person.

A group's ledger holds what several people said together, so the metadata of each of its commits names them:
{"people": [user ids, sorted]}. When one of them is erased, those commits go, and so does every later event
that continues one of theirs: changing or removing an item repeats what it said.
Pure; knows nothing about files, or about who is erased.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.history import in_order
from discoclaw.core.times import iso_ms, ms_of_iso

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
