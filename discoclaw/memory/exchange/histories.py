"""A history as files that come from elsewhere: a ledger's lines, a list of records, or a folder of objects.

Every id is verified, and every hash, before anything is written; what verifies and would do harm is refused,
naming the record. A folder of objects is `events/<id>.json`, `commits/<id>.json`, which name their events by
id, `branches.json`, `HEAD`, and `refs.json` with the history of the branches. Of ours, the lists of branches
have to agree with the records, so that no missing file goes unnoticed.

Other programs write the same in the layout of the ledger design, without hashes over all of a record and
without `refs.json`. Their branches come from `branches.json` and `HEAD`; what is missing, there or of the
commits, is left out and reported. nanobot's own store has the objects in `ledger/`, and a file for each
branch in `branches/`. Independent of what an import does to a memory.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast, get_args

from discoclaw.core.errors import LedgerDamaged, NewerSchema, Refused
from discoclaw.core.event import Commit, Event, Record, Ref, record_of_json
from discoclaw.core.history import LONGEST_PERSONA, MAIN, History, branch_name, in_order
from discoclaw.core.item import Sensitivity
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import iso_ms, ms_of_iso, valid_ms
from discoclaw.core.view import Fold
from discoclaw.memory.exchange.files import MIB, MOST_UNPACKED, Tree, parse_json
from discoclaw.memory.subjects import ledger

OBJECTS_FORMAT, VERSION = "discoclaw-objects", 1
EVENTS, COMMITS = "events", "commits"
BRANCHES, HEAD, SUMMARY, REFS = "branches.json", "HEAD", "MEMORY.md", "refs.json"
LEDGER = "ledger/"
"""The folder in which nanobot's own store has its objects."""
_HEAD_START = "ref: refs/heads/"

MOST_RECORDS = 200_000
MOST_STEPS = 50_000_000
"""Most steps that reading a history may take; it is read anew at every start."""
DEEPEST = 40
"""Deepest nesting of what a record carries along; far below what Python's JSON can take."""


@dataclass(frozen=True, slots=True)
class Records:
    """A history: verified records in order. `notes` are sentences about what was skipped.

    `unmarked` are the ids of events, of other programs, that don't say how private they are. `gaps`: commits
    may be missing, of which these were withheld (their ids, with those of their parents); without it one that
    is missing shows that the file was cut.
    """

    records: tuple[Record, ...]
    notes: tuple[str, ...] = ()
    unmarked: frozenset[str] = frozenset()
    gaps: Mapping[str, str | None] | None = None


def read_ledger(name: str, content: bytes) -> Records:
    """The records in a ledger's lines. Raises Refused, naming the line."""
    loaded = ledger.decode(content)
    if loaded.damage:
        raise Refused(f"{name}, {loaded.damage[0]}; repair it where it comes from, or export it again")
    notes = [f"{name}: an unfinished last line was left out"] if loaded.torn else []
    entries = [(f"{name}, record {number}", one) for number, one in enumerate(loaded.records, start=1)]
    return records_of(entries, tuple(notes))


def read_list(name: str, values: list[Any], what: str) -> list[tuple[str, Record]]:
    """The records in a list of JSON values, each of which is called a `what`, with names. Raises Refused."""
    places = [(f"{name}, {what} {number}", one) for number, one in enumerate(values, start=1)]
    return [(where, _verified(where, one)) for where, one in places]


def records_of(
    entries: Sequence[tuple[str, Record]],
    notes: tuple[str, ...] = (),
    unmarked: frozenset[str] = frozenset(),
) -> Records:
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
    return Records(records, notes, unmarked)


def _verified(name: str, value: Any) -> Record:
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
    named = whole and record.branch == ""
    with suppress(Refused):
        named = named or branch_name(record.branch) == record.branch
    if not named:
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


# ---------------------------------------------------------------------- folders of objects


def is_objects(names: set[str]) -> bool:
    """Whether files, by their names in a folder, are a history as objects."""
    folders = {name.rpartition("/")[0] for name in names}
    return bool({REFS, BRANCHES} & names or {EVENTS, COMMITS, LEDGER + EVENTS} & folders)


def read_objects(tree: Tree, base: str) -> Records:
    """The records of a folder of objects whose files lie below `base` ("" or ending in "/").

    Of another program's, the notes say what is missing. Raises Refused, naming the file, for what does not
    verify.
    """
    below = base + LEDGER if any(name.startswith(base + LEDGER) for name in tree.names) else base
    foreign = False
    if base + REFS not in tree.names:  # another program's has none, and its commits have no hashes
        _, name, content = next(_objects(tree, below, COMMITS), ("", "", b""))
        first = parse_json(name, content) if content else None
        foreign = isinstance(first, dict) and "hash" not in first
    if not foreign and (missing := [one for one in (REFS, BRANCHES, HEAD) if base + one not in tree.names]):
        raise Refused(
            f"{tree.name}: {base}{missing[0]} is missing, which tells of the branches; export it again"
        )
    values: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    unmarked: set[str] = set()
    renamed: Counter[tuple[str, str]] = Counter()
    for key, name, content in _objects(tree, below, EVENTS):
        values[key], sizes[key] = parse_json(name, content), len(content)
        if foreign:
            said = values[key]
            level = said.get("sensitivity") if isinstance(said, Mapping) else None
            values[key] = _event(name, key, said)
            if level is None:
                unmarked.add(key)
            elif level != values[key].sensitivity:
                renamed[level, values[key].sensitivity] += 1
    left = MOST_UNPACKED  # a small event in a million commits is a large history
    entries: list[tuple[str, Record]] = []
    used: set[str] = set()
    lost = 0
    for key, name, content in _objects(tree, below, COMMITS):
        value = parse_json(name, content)
        if foreign:
            value = _fields(name, value, ("branch", "timestamp"))
        keys = value.get("events") if isinstance(value, dict) else None
        if not isinstance(keys, list) or not all(isinstance(one, str) for one in keys):
            way = "correct it at its source" if foreign else "export it again"
            raise Refused(f"{name} has no list of events' ids; {way}")
        if gone := [one for one in keys if one not in values]:
            if not foreign:
                raise Refused(f"{name} names the event {gone[0][:60]!r}, which is not there; export it again")
            lost += 1
            continue
        left -= sum(sizes[one] for one in keys)
        if left < 0:
            raise Refused(f"{tree.name} holds a history of more than {MOST_UNPACKED // MIB} MiB; import less")
        events = [values[one] for one in keys]
        made = _commit(name, key, value, events) if foreign else _verified(name, {**value, "events": events})
        entries.append((name, made))
        used.update(keys)
    notes = [f"there is no {REFS}, so earlier moves between branches are not known"] if foreign else []
    notes += [
        f"what is {level!r} there is {ours!r} here: {number}" for (level, ours), number in renamed.items()
    ]
    if lost:
        notes.append(f"commits of which an event is missing were left out: {lost}")
    if unused := len(values.keys() - used):
        notes.append(f"events that are in no commit were left out: {unused}")
    if foreign:
        commits = [one for one in records_of(entries).records if isinstance(one, Commit)]
        followers: dict[str, str] = {}
        for follower, parent in History(commits).orphans().items():
            followers.setdefault(parent, follower)
        times = {commit.id: commit.timestamp for commit in commits}
        refs = [
            Ref(action="mend", branch="", head=parent, timestamp=times[follower])
            for parent, follower in sorted(followers.items())
        ]
        if refs:
            notes.append(f"commits that others follow are missing: {len(refs)}")
        refs += _branches(tree, base, commits, notes)
        entries += [(f"{tree.name}: {base}{BRANCHES}", ref) for ref in refs]
    else:
        name = f"{tree.name}: {base}{REFS}"
        value = parse_json(name, tree.read(base + REFS))
        if not isinstance(value, dict) or value.get("format") != OBJECTS_FORMAT:
            raise Refused(f"{name} is not of the format {OBJECTS_FORMAT!r}; export it again")
        check_version(name, value.get("version"))
        if not isinstance(value.get("refs"), list):
            raise Refused(f'{name} has no list of "refs"; export it again')
        entries += read_list(name, value["refs"], "ref")
    found = records_of(entries, tuple(notes), frozenset(unmarked))
    if foreign:
        return found
    # Lists that disagree with the records: files are missing then, and nothing else would show it.
    said, history = f"{tree.name}: {base}", History(found.records)
    for commit, parent in history.orphans().items():
        raise Refused(
            f"{said}{COMMITS}/{parent[:60]}.json is missing, which {commit} follows; export it again"
        )
    listed = parse_json(said + BRANCHES, tree.read(base + BRANCHES))
    heads = {name: branch.head for name, branch in history.branches.all.items()}
    if not isinstance(listed, dict) or heads != {
        name: one.get("head") if isinstance(one, dict) else "" for name, one in listed.items()
    }:
        raise Refused(
            f"{said}{BRANCHES} and the records disagree: files were changed or are missing; export it again"
        )
    if tree.read(base + HEAD).strip() != history.branches.current.encode():
        raise Refused(f"{said}{HEAD} and {REFS} disagree about the current branch; export it again")
    return found


def _objects(tree: Tree, base: str, part: str) -> Iterator[tuple[str, str, bytes]]:
    """The files in events/ or commits/: key, name for errors, and content."""
    prefix = f"{base}{part}/"
    for full in sorted(tree.names):
        if full.startswith(prefix) and full.endswith(".json"):
            key = full.removeprefix(prefix).removesuffix(".json")
            yield key, f"{tree.name}: {full}", tree.read(full)


# ---------------------------------------------------------------------- of other programs

_TEXTS = ("event_type", "subject", "predicate", "object", "timestamp")
_OPTIONAL = {"source": "manual", "evidence": "", "sensitivity": "normal"}
_LEVELS = {"public": "normal", "ephemeral": "private"}  # nanobot's words; "public" is all that nobody marked


def sensitivity_of(level: str) -> Sensitivity:
    """The level of privacy that a file names. Raises Refused for an unknown one."""
    ours = _LEVELS.get(level, level)
    if ours not in get_args(Sensitivity):
        raise Refused(f'"sensitivity" is one of {", ".join(get_args(Sensitivity))}, not {level[:60]!r}')
    return cast(Sensitivity, ours)


def _event(name: str, key: str, value: Any) -> Event:
    fields = _fields(name, value, _TEXTS)
    try:
        given: dict[str, Any] = {one: fields[one] for one in _TEXTS}
        given |= {one: _text(fields, one, default) for one, default in _OPTIONAL.items()}
        given["sensitivity"] = sensitivity_of(given["sensitivity"])
        confidence = fields.get("confidence", 1.0)
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            raise TypeError("'confidence' is not a number")
        event = Event(
            **given,
            scope=_text_or_none(fields, "scope", "permanent"),
            parent_id=_text_or_none(fields, "parent_id", None),
            confidence=confidence,
        )
        _valid_time(event.timestamp)
    except (TypeError, ValueError, Refused) as error:
        raise Refused(f"{name} is not an event: {error}; correct it at its source") from error
    _verify(name, key, fields, event.id)
    return event


def _commit(name: str, key: str, fields: Mapping[str, Any], events: Sequence[Event]) -> Commit:
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Refused(f'{name} has "metadata" that is not a JSON object; correct it at its source')
    if "merge_source" in metadata:  # nanobot writes a merge's events in no order
        events = sorted(events, key=lambda event: event.timestamp)
    try:
        commit = Commit(
            branch=fields["branch"],
            events=tuple(events),
            message=_text(fields, "message", ""),
            parent_id=_text_or_none(fields, "parent_id", None),
            timestamp=fields["timestamp"],
            metadata=metadata,
        )
        _valid_time(commit.timestamp)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"{name} is not a commit: {error}; correct it at its source") from error
    _verify(name, key, fields, commit.id)
    return commit


def _verify(name: str, key: str, fields: Mapping[str, Any], made: str) -> None:
    if {made} != {key, fields.get("id", key)}:
        raise Refused(f"{name} does not verify: its content has the id {made}; it was changed or renamed")


def _fields(name: str, value: Any, texts: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Refused(f"{name} is not a JSON object; correct it at its source")
    if "hash" in value or "ext" in value:
        raise Refused(f"{name} was written by DiscoClaw, but {REFS} is missing; export it again")
    if wrong := [one for one in texts if not isinstance(value.get(one), str)]:
        raise Refused(f"{name} has no text as {wrong[0]!r}; correct it at its source")
    return value


def _text(fields: Mapping[str, Any], name: str, default: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name!r} is not a text")
    return default if value is None else value


def _text_or_none(fields: Mapping[str, Any], name: str, default: str | None) -> str | None:
    return _text(fields, name, "") if fields.get(name) is not None else (None if name in fields else default)


def _valid_time(timestamp: str) -> None:
    if not valid_ms(ms_of_iso(timestamp)):
        raise ValueError(f"{timestamp[:40]!r} is not a time")


def _branches(tree: Tree, base: str, commits: Sequence[Commit], notes: list[str]) -> list[Ref]:
    """The refs that create the listed branches and make one of them current."""
    made, listed = History(commits).branches, _listed(tree, base, notes)
    last = max((ms_of_iso(commit.timestamp) for commit in commits), default=0)
    begun = {commit.branch: commit for commit in reversed(commits)}
    refs = []
    for name, one in listed.items():
        first = begun.get(name)
        if name in made.all and one.get("head") not in (None, made.all[name].head):
            notes.append(f"{BRANCHES} has another head of {name[:60]!r} than its newest commit, which counts")
        if name != MAIN:
            at = ms_of_iso(first.timestamp) - 1 if first is not None else last
            head = first.parent_id if first is not None else one.get("head")
            persona, created, metadata = one.get("persona"), one.get("created_at"), one.get("metadata")
            with suppress(ValueError):  # else the first commit says about when it was
                at = min(at, ms_of_iso(created)) if isinstance(created, str) else at
            refs.append(
                Ref(
                    action="create",
                    branch=name,
                    head=head if isinstance(head, str) else None,
                    persona=collapse(scrub(persona)) if isinstance(persona, str) else "",
                    timestamp=iso_ms(max(0, at)),
                    metadata=metadata if isinstance(metadata, dict) else {},
                )
            )
    current = MAIN
    if base + HEAD in tree.names:
        current = tree.read(base + HEAD).decode("utf-8", "replace").strip().removeprefix(_HEAD_START)
    else:
        notes.append(f"there is no {HEAD}, so {MAIN} is current")
    if current != MAIN and current in {*listed, *made.all}:
        refs.append(Ref(action="switch", branch=current, timestamp=iso_ms(last + 1)))
    elif current != MAIN:
        notes.append(f"{HEAD} names a branch that is not there, {current[:60]!r}; {MAIN} is current instead")
    return refs


def _listed(tree: Tree, base: str, notes: list[str]) -> dict[str, Mapping[str, Any]]:
    """The branches in `branches.json`, by name: an object of objects, or a list, or a file for each."""
    each = [parse_json(name, content) for _, name, content in _objects(tree, base, "branches")]
    if base + BRANCHES not in tree.names and not each:
        notes.append(f"there is no {BRANCHES}, so branches have no descriptions")
        return {}
    name = f"{tree.name}: {base}{BRANCHES}"
    value = each or parse_json(name, tree.read(base + BRANCHES))
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        value = {str(one.get("name")): one for one in value}
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
        raise Refused(f"{name} is not an object of branches by name; correct it at its source")
    return value
