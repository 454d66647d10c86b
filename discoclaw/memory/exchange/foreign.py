"""Histories and memories in the layout of the ledger design, as programs other than ours write them.

A folder has events and commits with the fields of the design, but no hashes over all of a record and no
`refs.json`. Every id is verified. Branches come from `branches.json` and `HEAD`; what is missing, there or of
the commits, is left out and reported. nanobot's own store has the same in `ledger/events`, `ledger/commits`
and a file for each branch in `branches/`. A `memories.json` has triples without a kind or a source.
Independent of what an import does to a memory.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.history import MAIN, History
from discoclaw.core.item import triple_text
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import iso_ms, ms_of_iso, valid_ms
from discoclaw.memory.exchange.files import MOST_UNPACKED, Tree
from discoclaw.memory.exchange.layout import (
    BRANCHES,
    COMMITS,
    EVENTS,
    HEAD,
    REFS,
    Records,
    parse_json,
    sensitivity_of,
)
from discoclaw.memory.exchange.objects import objects, records_of, too_long

_TEXTS = ("event_type", "subject", "predicate", "object", "timestamp")
_OPTIONAL = {"source": "manual", "evidence": "", "sensitivity": "normal"}
NO_SOURCES = "the file has no kinds and no sources, so each memory comes in as a fact that was stated"
LEDGER = "ledger/"
"""The folder in which nanobot's own store has its objects."""
_HEAD_START = "ref: refs/heads/"


# ---------------------------------------------------------------------- folders


def is_foreign(tree: Tree, base: str) -> bool:
    """Whether a folder of objects is of another program: it has no `refs.json`, and its commits no hashes."""
    if base + REFS in tree.names:
        return False
    _, name, content = next(objects(tree, _below(tree, base), COMMITS), ("", "", b""))
    value = parse_json(name, content) if content else None
    return isinstance(value, dict) and "hash" not in value


def _below(tree: Tree, base: str) -> str:
    """The folder that has the folders of objects."""
    return base + LEDGER if any(name.startswith(base + LEDGER) for name in tree.names) else base


def read_foreign(tree: Tree, base: str) -> Records:
    """The records of a folder of another program; the notes say what is missing.

    Raises Refused, naming the file, for what does not verify.
    """
    notes = [f"there is no {REFS}, so earlier moves between branches are not known"]
    sizes: dict[str, int] = {}
    events: dict[str, Event] = {}
    unmarked: set[str] = set()
    renamed: Counter[tuple[str, str]] = Counter()
    below = _below(tree, base)
    for key, name, content in objects(tree, below, EVENTS):
        value = parse_json(name, content)
        events[key], sizes[key] = _event(name, key, value), len(content)
        if (level := value.get("sensitivity")) is None:
            unmarked.add(key)
        elif level != events[key].sensitivity:
            renamed[level, events[key].sensitivity] += 1
    left = MOST_UNPACKED
    entries: list[tuple[str, Record]] = []
    lost = 0
    for key, name, content in objects(tree, below, COMMITS):
        fields = _fields(name, parse_json(name, content), ("branch", "timestamp"))
        keys = _keys(name, fields)
        if any(one not in events for one in keys):
            lost += 1
            continue
        left -= sum(sizes[one] for one in keys)
        if left < 0:
            raise Refused(too_long(tree))
        entries.append((name, _commit(name, key, fields, tuple(events[one] for one in keys))))
    for (level, ours), number in renamed.items():
        notes.append(f"what is {level!r} there is {ours!r} here: {number}")
    if lost:
        notes.append(f"commits of which an event is missing were left out: {lost}")
    commits = [one for one in records_of(entries).records if isinstance(one, Commit)]
    used = {event.id for commit in commits for event in commit.events}
    if unused := len(events.keys() - used):
        notes.append(f"events that are in no commit were left out: {unused}")
    refs = _mends(commits)
    if refs:
        notes.append(f"commits that others follow are missing: {len(refs)}")
    refs += _branches(tree, base, commits, notes)
    entries += [(f"{tree.name}: {base}{BRANCHES}", ref) for ref in refs]
    return replace(records_of(entries, tuple(notes)), unmarked=frozenset(unmarked))


def _event(name: str, key: str, value: Any) -> Event:
    fields = _fields(name, value, _TEXTS)
    try:
        given: dict[str, Any] = {one: fields[one] for one in _TEXTS}
        given |= {one: _text(fields, one, default) for one, default in _OPTIONAL.items()}
        given["sensitivity"] = sensitivity_of(given["sensitivity"])
        event = Event(
            **given,
            scope=_text_or_none(fields, "scope", "permanent"),
            parent_id=_text_or_none(fields, "parent_id", None),
            confidence=_number(fields),
        )
        _check_time(event.timestamp)
    except (TypeError, ValueError, Refused) as error:
        raise Refused(f"{name} is not an event: {error}; correct it at its source") from error
    _verify(name, key, fields, event.id)
    return event


def _keys(name: str, fields: Mapping[str, Any]) -> list[str]:
    keys = fields.get("events")
    if not isinstance(keys, list) or not all(isinstance(one, str) for one in keys):
        raise Refused(f"{name} has no list of events' ids; correct it at its source")
    return keys


def _commit(name: str, key: str, fields: Mapping[str, Any], events: tuple[Event, ...]) -> Commit:
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Refused(f'{name} has "metadata" that is not a JSON object; correct it at its source')
    if "merge_source" in metadata:  # nanobot writes a merge's events in no order
        events = tuple(sorted(events, key=lambda event: event.timestamp))
    try:
        commit = Commit(
            branch=fields["branch"],
            events=events,
            message=_text(fields, "message", ""),
            parent_id=_text_or_none(fields, "parent_id", None),
            timestamp=fields["timestamp"],
            metadata=metadata,
        )
        _check_time(commit.timestamp)
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


def _number(fields: Mapping[str, Any]) -> float:
    value = fields.get("confidence", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("'confidence' is not a number")
    return value


def _check_time(timestamp: str) -> None:
    if not valid_ms(ms_of_iso(timestamp)):
        raise ValueError(f"{timestamp[:40]!r} is not a time")


def _mends(commits: Sequence[Commit]) -> list[Ref]:
    """The refs that accept that commits are missing."""
    first: dict[str, str] = {}
    for commit, parent in History(commits).orphans().items():
        first.setdefault(parent, commit)
    times = {commit.id: commit.timestamp for commit in commits}
    return [
        Ref(action="mend", branch="", head=parent, timestamp=times[commit])
        for parent, commit in sorted(first.items())
    ]


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
            refs.append(_create(name, one, head, at))
    current = _current(tree, base, notes)
    if current != MAIN and current in {*listed, *made.all}:
        refs.append(Ref(action="switch", branch=current, timestamp=iso_ms(last + 1)))
    elif current != MAIN:
        notes.append(f"{HEAD} names a branch that is not there, {current[:60]!r}; {MAIN} is current instead")
    return refs


def _listed(tree: Tree, base: str, notes: list[str]) -> dict[str, Mapping[str, Any]]:
    """The branches in `branches.json`, by name: an object of objects, or a list, or a file for each."""
    each = [parse_json(name, content) for _, name, content in objects(tree, base, "branches")]
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


def _create(name: str, one: Mapping[str, Any], head: Any, at: int) -> Ref:
    persona, created, metadata = one.get("persona"), one.get("created_at"), one.get("metadata")
    with suppress(ValueError):  # else the first commit says about when it was
        at = min(at, ms_of_iso(created)) if isinstance(created, str) else at
    return Ref(
        action="create",
        branch=name,
        head=head if isinstance(head, str) else None,
        persona=collapse(scrub(persona)) if isinstance(persona, str) else "",
        timestamp=iso_ms(max(0, at)),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def _current(tree: Tree, base: str, notes: list[str]) -> str:
    if base + HEAD not in tree.names:
        notes.append(f"there is no {HEAD}, so {MAIN} is current")
        return MAIN
    return tree.read(base + HEAD).decode("utf-8", "replace").strip().removeprefix(_HEAD_START)


# ---------------------------------------------------------------------- memories.json


def are_triples(value: Mapping[str, Any]) -> bool:
    """Whether a `memories.json` is of another program: it names no format, and has only triples."""
    entries = value.get("memories")
    return "format" not in value and isinstance(entries, list) and any(_is_triple(one) for one in entries)


def as_ours(entry: Any) -> Any:
    """The entry of another program with what ours have besides; anything but a triple as it is."""
    if not _is_triple(entry) or "text" in entry:
        return entry
    text = triple_text(entry["subject"], entry["predicate"], entry["object"])
    return {"kind": "fact", **{key: one for key, one in entry.items() if key != "source"}, "text": text}


def _is_triple(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(name), str) for name in ("subject", "predicate", "object")
    )
