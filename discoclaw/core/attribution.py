"""Whose words a commit rests on, and a history without what rests on somebody's.

The ledger of a group holds what several people said together. So each of its commits names the people whose
words it rests on, in its metadata: {"people": [user ids, sorted]}. Who has their memory erased takes those
commits along, and what continues them: a later change, or the removal, of an item says again what it said.
Pure; knows nothing about files or about who is erased.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.history import in_order
from discoclaw.core.times import iso_ms, ms_of_iso

PEOPLE = "people"
"""In the metadata of a group's commit: the user ids of everybody whose words it rests on."""


def contributors(commit: Commit) -> frozenset[str]:
    """The user ids a commit names; none where it names nobody."""
    named = commit.metadata.get(PEOPLE)
    return frozenset(one for one in named if isinstance(one, str)) if isinstance(named, list) else frozenset()


def contributors_by_item(commits: Iterable[Commit]) -> dict[str, frozenset[str]]:
    """Whose words each item rests on, by item id, given the commits of a branch in their order."""
    found: dict[str, frozenset[str]] = {}
    for commit in commits:
        named = contributors(commit)
        for event in commit.events:
            target = _item(event)
            if target is not None:
                found[target] = found.get(target, frozenset()) | named
    return found


def without(records: Sequence[Record], gone: Callable[[Commit], bool]) -> list[Record]:
    """Records without the commits that are `gone` and those that continue one of them.

    The others stay as they are, in the order in which they came. Behind them stand refs which say that what
    they followed is lost; a branch that began at a lost commit begins at the newest one before it.
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
    """The commits that go, by id."""
    lost: dict[str, Commit] = {}
    events: set[str] = set()
    words: dict[str, bool] = {}  # by item: whether what it says now goes
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
    """Whether an event says again what one that goes has said."""
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
