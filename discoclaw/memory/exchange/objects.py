"""Verifies records from untrusted sources, and reads a folder of objects as records.

Every id and every hash is verified. A folder yields the identical records, or is refused: its lists of
branches have to agree with its records, so that no missing file goes unnoticed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discoclaw.core.errors import LedgerDamaged, NewerSchema, Refused
from discoclaw.core.event import Commit, Record, Ref, record_of_json
from discoclaw.core.history import LONGEST_PERSONA, History, branch_name
from discoclaw.core.order import in_order
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import Fold
from discoclaw.memory.exchange.files import MIB, MOST_UNPACKED, Tree
from discoclaw.memory.exchange.layout import (
    BRANCHES,
    COMMITS,
    DEEPEST,
    EVENTS,
    HEAD,
    MOST_RECORDS,
    MOST_STEPS,
    OBJECTS_FORMAT,
    REFS,
    VERSION,
    Records,
    parse_json,
)

# ---------------------------------------------------------------------- records


def records_of(entries: Sequence[tuple[str, Record]], notes: tuple[str, ...] = ()) -> Records:
    """Return named records in order, after checking that a ledger may have them.

    Raises Refused, naming the record.
    """
    if len(entries) > MOST_RECORDS:
        raise Refused(f"there are {len(entries):,} records, and {MOST_RECORDS:,} are the most; import less")
    known: dict[str, tuple[str, Record]] = {}
    for name, record in entries:
        _check(name, record)
        other, held = known.setdefault(record.id, (name, record))
        if held.hash != record.hash:
            raise Refused(
                f"{name} and {other} claim the id {record.id} with different content; remove the wrong one"
            )
    records = in_order(record for _, record in known.values())
    _check_cost(records)
    _check_changes(records, {key: name for key, (name, _) in known.items()})
    return Records(records, notes)


def verified(name: str, value: Any) -> Record:
    """Return a JSON value as a record. Raises Refused if it does not verify."""
    try:
        return record_of_json(value)
    except NewerSchema as error:
        raise Refused(f"{name} is of a newer version ({error}); import it with a newer discoclaw") from error
    except LedgerDamaged as error:
        raise Refused(f"{name} does not verify: {error}; it was changed or cut; export it again") from error


def check_version(name: str, version: object) -> None:
    """Raise Refused for a file of another version."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise Refused(f'{name} has no numeric "version"; export it again')
    if version > VERSION:
        raise Refused(
            f"{name} is of version {version}, and this discoclaw knows up to {VERSION}; "
            "import it with a newer discoclaw"
        )


def _check(name: str, record: Record) -> None:
    """Refuse records that verify but would do harm; none of our ledgers has such."""
    whole = isinstance(record, Ref) and record.action in ("union", "mend")
    if not (whole and record.branch == "") and not _names_branch(record.branch):
        raise Refused(
            f"{name} is on a branch named {record.branch[:60]!r}, which cannot be a name here; "
            "rename the branch where it comes from"
        )
    _check_time(name, record.timestamp)
    _check_depth(name, record.metadata)
    if isinstance(record, Ref):
        if len(record.persona) > LONGEST_PERSONA or record.persona != collapse(scrub(record.persona)):
            raise Refused(f"{name} has a persona that is too long or not one line; shorten it")
        return
    for event in record.events:
        where = f"{name}, event {event.id}"
        _check_time(where, event.timestamp)
        _check_depth(where, event.ext)
        given = event.ext.get("item", {}).get("id", "-")
        if not given or given != collapse(scrub(given)):
            raise Refused(f"{where} names its item {given[:60]!r}, which is not an id; export it again")


def _names_branch(name: str) -> bool:
    try:
        return branch_name(name) == name
    except Refused:
        return False


def _check_time(name: str, timestamp: str) -> None:
    if ms_of_iso(timestamp) < 0:
        raise Refused(f"{name} is dated {timestamp[:40]!r}, which is before 1970; correct it at its source")


def _check_depth(name: str, value: object) -> None:
    """Refuse JSON that is nested too deeply. Not recursive, since the depth is what may be too large."""
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        if depth > DEEPEST:
            raise Refused(f"{name} is nested more than {DEEPEST} deep; export it again")
        if isinstance(one, Mapping):
            waiting += [(part, depth + 1) for part in one.values()]
        elif isinstance(one, list):
            waiting += [(part, depth + 1) for part in one]


def _check_cost(records: Sequence[Record]) -> None:
    """Refuse histories that would take hours to read, now and at every start; no real memory comes near.

    A branch copies what it starts from, a ref the refs before it; an event may look at every open question,
    and one that forgets, or is a changed triple, at every memory.
    """
    branches: set[str] = set()
    live: set[str] = set()
    questions: set[tuple[str, str]] = set()
    refs = steps = 0
    for record in records:
        if record.branch not in branches or (isinstance(record, Ref) and record.action == "create"):
            branches.add(record.branch)
            steps += len(records)
        if isinstance(record, Ref):
            refs += 1
            steps += refs + len(branches)
            continue
        steps += len(branches)
        for event in record.events:
            target = event.ext.get("item", {}).get("id", event.id)
            steps += len(questions)
            if event.verb == "forget":
                steps += len(live)
                live.discard(target)
            elif event.verb != "observe":
                steps += len(live) if event.verb == "modify" and not event.ext else 0
                live.add(target)
            elif (noted := event.ext.get("conflict")) is not None:
                question = target, str(noted.get("text", ""))
                (questions.discard if "settled" in noted else questions.add)(question)
    if steps > MOST_STEPS:
        raise Refused(
            "its branches were turned, or its memories disputed or forgotten, too often to be imported; "
            "import less of it"
        )


def _check_changes(records: Sequence[Record], names: Mapping[str, str]) -> None:
    """Refuse a changed triple without a memory: the history would tell of it, and no view have it."""
    if all(event.ext for record in records if isinstance(record, Commit) for event in record.events):
        return
    history = History(records)
    for branch in history.branches.all.values():
        fold = Fold()
        for commit in history.chain(branch.head):
            for event in commit.events:
                if fold.unplaced(event):
                    raise Refused(
                        f"{names[commit.id]} has a {event.event_type} ({event.id}) without a parent_id, and "
                        "not one memory has its subject and predicate; name the event that it changes"
                    )
                fold.apply(event)


# ---------------------------------------------------------------------- folders


def read_objects(tree: Tree, base: str) -> Records:
    """The records of a folder of objects whose files lie below `base` ("" or ending in "/")."""
    said = f"{tree.name}: {base}"
    if missing := [name for name in (REFS, BRANCHES, HEAD) if base + name not in tree.names]:
        raise Refused(f"{said}{missing[0]} is missing, which tells of the branches; export it again")
    events: dict[str, tuple[Any, int]] = {}
    for key, _, content in objects(tree, base, EVENTS):
        events[key] = parse_json(f"{said}{EVENTS}/{key}.json", content), len(content)
    used: set[str] = set()
    left = MOST_UNPACKED  # a small event in a million commits is a large history
    entries: list[tuple[str, Record]] = []
    for _, name, content in objects(tree, base, COMMITS):
        value = parse_json(name, content)
        keys = value.get("events") if isinstance(value, dict) else None
        if not isinstance(keys, list) or not all(isinstance(one, str) for one in keys):
            raise Refused(f"{name} has no list of events' ids; export it again")
        if lost := [one for one in keys if one not in events]:
            raise Refused(f"{name} names the event {lost[0][:60]!r}, which is not there; export it again")
        left -= sum(events[one][1] for one in keys)
        if left < 0:
            raise Refused(too_long(tree))
        entries.append((name, verified(name, {**value, "events": [events[one][0] for one in keys]})))
        used.update(keys)
    unused = len(events.keys() - used)
    notes = (f"events that are in no commit were left out: {unused}",) if unused else ()
    entries += _refs(said + REFS, parse_json(said + REFS, tree.read(base + REFS)))
    records = records_of(entries, notes)
    history = History(records.records)
    for commit, parent in history.orphans().items():
        raise Refused(
            f"{said}{COMMITS}/{parent[:60]}.json is missing, which {commit} follows; export it again"
        )
    _check_branches(tree, base, history)
    return records


def too_long(tree: Tree) -> str:
    """The error for a history that is too large."""
    return f"{tree.name} holds a history of more than {MOST_UNPACKED // MIB} MiB; import less"


def objects(tree: Tree, base: str, part: str) -> Iterator[tuple[str, str, bytes]]:
    """The files in events/ or commits/: key, name for errors, and content."""
    prefix = f"{base}{part}/"
    for full in sorted(tree.names):
        if full.startswith(prefix) and full.endswith(".json"):
            key = full.removeprefix(prefix).removesuffix(".json")
            yield key, f"{tree.name}: {full}", tree.read(full)


def _refs(name: str, value: Any) -> list[tuple[str, Record]]:
    if not isinstance(value, dict) or value.get("format") != OBJECTS_FORMAT:
        raise Refused(f"{name} is not of the format {OBJECTS_FORMAT!r}; export it again")
    check_version(name, value.get("version"))
    refs = value.get("refs")
    if not isinstance(refs, list):
        raise Refused(f'{name} has no list of "refs"; export it again')
    places = [(f"{name}, ref {number}", ref) for number, ref in enumerate(refs, start=1)]
    return [(where, verified(where, ref)) for where, ref in places]


def _check_branches(tree: Tree, base: str, history: History) -> None:
    """Refuse lists that disagree with the records: files are missing then, and nothing else would show it."""
    said, branches = f"{tree.name}: {base}", history.branches
    listed = parse_json(said + BRANCHES, tree.read(base + BRANCHES))
    made = {name: branch.head for name, branch in branches.all.items()}
    if not isinstance(listed, dict) or made != {
        name: one.get("head") if isinstance(one, dict) else "" for name, one in listed.items()
    }:
        raise Refused(
            f"{said}{BRANCHES} and the records disagree: files were changed or are missing; export it again"
        )
    if tree.read(base + HEAD).strip() != branches.current.encode():
        raise Refused(f"{said}{HEAD} and {REFS} disagree about the current branch; export it again")
