"""Recognises what a file or folder is, and reads it: our exports, objects, files of other programs.

Everything is checked here, before anything is written. A file that cannot be trusted as a whole is Refused;
single bad memories, in a `memories.json` or a durable file, are rejected by name. Blocking. Independent of
the memory that they are imported into.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from discoclaw.core.errors import MemoryFault, NewerSchema, Refused
from discoclaw.core.item import Author, Facets, Item, check_text, item_from_json, tidy_tags
from discoclaw.core.privacy import said_in_the_open
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_of
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.memory.exchange.entries import is_snapshot, read_snapshot
from discoclaw.memory.exchange.files import Folder, Tree, kind_of, opened, read_whole
from discoclaw.memory.exchange.foreign import (
    LEDGER,
    NO_SOURCES,
    are_triples,
    as_ours,
    is_foreign,
    read_foreign,
)
from discoclaw.memory.exchange.layout import (
    BRANCHES,
    COMMITS,
    EVENTS,
    FORMAT,
    MOST_ITEMS,
    REFS,
    Content,
    Imported,
    Items,
    Records,
    parse_json,
    sensitivity_of,
)
from discoclaw.memory.exchange.objects import check_version, read_objects, records_of, verified
from discoclaw.memory.subjects import durable_file, ledger

_KNOWN = "a memories.json, a snapshot, a folder or zip of objects, a durable file, a data folder or nanobot's"
_FOLDERS = (EVENTS, COMMITS, "durable", "rolling", "ledger")
_ABOVE = ("", "memory/", "data/memory/", "workspace/memory/")
_SESSION = re.compile(r"[A-Za-z0-9:_-]{1,200}")
_USER = re.compile(r"[A-Za-z0-9_-]{1,58}")
_LONGEST_SUMMARY = 20_000


def load_file(path: Path, redactor: Redactor = PLAIN) -> Imported:
    """Return the content of a file or folder. Secrets are removed, but not from a history: it cannot change.

    Raises Refused, naming what is wrong, and MemoryFault.
    """
    try:
        if path.is_dir():
            return _of_tree(Folder(path, {*_FOLDERS, "branches", "memory", "data", "workspace"}), redactor)
        content = read_whole(path, path.name)
    except FileNotFoundError as error:
        raise Refused(f"there is no file or folder {path}; look at the name") from error
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error}") from error
    return load_bytes(path.name, content, redactor)


def load_bytes(name: str, content: bytes, redactor: Redactor = PLAIN) -> Imported:
    """Return the content of a file given by its name and bytes, like `load_file`. Raises Refused."""
    if (packed := opened(name, content)) is not None:
        return _of_tree(packed, redactor)
    if name.endswith(".jsonl"):
        return Imported(f"the ledger {name}", {user_of(PurePosixPath(name).stem): read_ledger(name, content)})
    if (kind := kind_of(content)) not in ("", "empty", "JSON"):
        raise Refused(f"{name} is {kind}, and can't be imported here; import {_KNOWN}")
    value = parse_json(name, content)
    if is_snapshot(value):
        return Imported(
            f"the snapshot {name}", {None: without_secrets(name, read_snapshot(name, value), redactor)}
        )
    if isinstance(value, Mapping) and ("format" in value or "memories" in value):
        return _ours(name, value, redactor)
    if isinstance(value, Mapping) and "items" in value:
        stem = PurePosixPath(name).stem
        user = stem if stem.isascii() and stem.isdigit() else None
        return Imported(f"the durable file {name}", {user: read_durable(name, content, value, redactor)})
    raise Refused(f"{name} cannot be imported; import {_KNOWN}")


# ---------------------------------------------------------------------- folders and zip files


def _of_tree(tree: Tree, redactor: Redactor) -> Imported:
    base = _base(tree)
    names = {name.removeprefix(base) for name in tree.names if name.startswith(base)}
    folders = {name.rpartition("/")[0] for name in names}
    if {REFS, BRANCHES} & names or {EVENTS, COMMITS, LEDGER + EVENTS} & folders:
        read = read_foreign if is_foreign(tree, base) else read_objects
        return Imported(f"the history in {tree.name}", {None: read(tree, base)})
    subjects: dict[str | None, Content] = {}
    summaries: dict[str, str] = {}
    for name in sorted(names):
        path, said, full = PurePosixPath(name), f"{tree.name}: {base}{name}", base + name
        if path.name.startswith("."):
            continue
        if str(path.parent) == "durable" and path.suffix == ".json":
            content = tree.read(full)
            user = _user(said, path.stem)
            subjects.setdefault(user, read_durable(said, content, parse_json(said, content), redactor))
        elif str(path.parent) == "ledger" and path.suffix == ".jsonl":
            # A ledger knows more than the durable file, which is a picture of it.
            if (of := user_of(path.stem)) is not None:
                subjects[_user(said, of)] = read_ledger(said, tree.read(full))
        elif str(path.parent) == "rolling" and path.suffix == ".json":
            if not _SESSION.fullmatch(path.stem):
                raise Refused(f"{said} is not named after a conversation; move it out of the folder")
            summaries[path.stem] = _summary(said, tree.read(full), redactor)
    if not subjects and not summaries:
        raise Refused(f"{tree.name} holds nothing to import; import {_KNOWN}")
    return Imported(f"the data folder {tree.name}", subjects, summaries)


def _base(tree: Tree) -> str:
    """The folder in a tree that has the known folders and files: the top, or its only folder."""
    tops = {name.partition("/")[0] for name in tree.names}
    roots = ["", *(f"{top}/" for top in tops if len(tops) == 1 and top not in _FOLDERS)]
    for root in roots:
        for above in _ABOVE:
            base = root + above
            marks = tuple(f"{base}{folder}/" for folder in _FOLDERS)
            if f"{base}{REFS}" in tree.names or any(name.startswith(marks) for name in tree.names):
                return base
    raise Refused(f"{tree.name} holds nothing to import; import {_KNOWN}")


def _user(name: str, user: str) -> str:
    if not _USER.fullmatch(user):
        raise Refused(f"{name} is not named after a person; rename it to their Discord id")
    return user


def read_ledger(name: str, content: bytes) -> Records:
    loaded = ledger.decode(content)
    if loaded.damage:
        raise Refused(f"{name}, {loaded.damage[0]}; repair it where it comes from, or export it again")
    notes = [f"{name}: an unfinished last line was left out"] if loaded.torn else []
    entries = [(f"{name}, record {number}", one) for number, one in enumerate(loaded.records, start=1)]
    return records_of(entries, tuple(notes))


def _summary(name: str, content: bytes, redactor: Redactor) -> str:
    value = parse_json(name, content)
    text = value.get("summary") if isinstance(value, Mapping) else None
    if not isinstance(text, str) or len(text) > _LONGEST_SUMMARY:
        raise Refused(f"{name} is not a rolling summary; correct it, or move it out of the folder")
    return redactor.clean(scrub(text))


# ---------------------------------------------------------------------- files


def _ours(name: str, value: Mapping[str, Any], redactor: Redactor) -> Imported:
    if are_triples(value):
        found = read_memories(
            name, [as_ours(one) for one in value["memories"]], _current(name, value), redactor
        )
        return Imported(f"the memories in {name}", {None: replace(found, notes=(NO_SOURCES,))})
    if value.get("format") != FORMAT:
        raise Refused(f'{name} has another "format" than {FORMAT!r}; export it with discoclaw')
    check_version(name, value.get("version"))
    subject = value.get("subject")
    if subject is not None and not isinstance(subject, str):
        raise Refused(f'{name} has a "subject" that is not a text; export it again')
    user = _user(name, told) if (told := user_of(subject or "")) is not None else None
    if "history" in value:
        history = value["history"]
        if not isinstance(history, list):
            raise Refused(f'{name} has a "history" that is not a list; export it again')
        places = [(f"{name}, history record {number}", one) for number, one in enumerate(history, start=1)]
        return Imported(
            f"the history in {name}",
            {user: records_of([(where, verified(where, one)) for where, one in places])},
        )
    memories = value.get("memories")
    if not isinstance(memories, list):
        raise Refused(f'{name} has no list of "memories"; export it again')
    found = read_memories(name, memories, _current(name, value), redactor)
    return Imported(f"the memories in {name}", {user: found})


def _current(name: str, value: Mapping[str, Any]) -> str | None:
    """The person's current branch, which decides where branches differ."""
    branches = value.get("branches", [])
    if not isinstance(branches, list) or not all(isinstance(one, Mapping) for one in branches):
        raise Refused(f'{name} has "branches" that are not a list of objects; export it again')
    return next((str(one.get("name")) for one in branches if one.get("current") is True), None)


# ---------------------------------------------------------------------- single memories

_LONGEST_WORD = 200


def read_memories(name: str, memories: list[Any], current: str | None, redactor: Redactor) -> Items:
    """The memories of all branches as one: where branches differ about an item, `current` counts first."""
    _check_count(name, len(memories))
    mine: dict[str, Item] = {}
    others: dict[str, Item] = {}
    seen: set[tuple[str, str]] = set()
    unmarked: set[str] = set()
    rejected: list[str] = []
    redacted = 0
    for number, entry in enumerate(memories, start=1):
        where = f"{name}, memory {number}"
        _check_types(where, entry)
        try:
            item, clean = _redacted(_item(entry), redactor)
        except Refused as refusal:
            rejected.append(f"{_named(where, entry, redactor)}: {refusal}")
            continue
        branch = entry.get("branch", "")
        if (branch, item.id) in seen:
            rejected.append(f"{_named(where, entry, redactor)}: its id {item.id} is there twice")
            continue
        seen.add((branch, item.id))
        redacted += not clean
        (mine if branch == current else others).setdefault(item.id, item)
        if entry.get("sensitivity") is None and not said_in_the_open(entry.get("source")):
            unmarked.add(item.id)
    items = tuple({**others, **mine}.values())
    return Items(items, tuple(rejected), redacted, unmarked=frozenset(unmarked))


def read_durable(name: str, content: bytes, value: Any, redactor: Redactor) -> Items:
    if isinstance(value, Mapping) and isinstance(value.get("items"), list):
        _check_count(name, len(value["items"]))
    try:
        file = durable_file.parse(content, now_ms=0)
    except NewerSchema as error:
        raise Refused(f"{name} is of a newer version ({error}); import it with a newer discoclaw") from error
    except Refused as error:
        raise Refused(f"{name} is not a durable file: {error}; correct it, or move it away") from error
    rejected = tuple(f"{name}, {why}" for why in file.rejected)
    found = Items(file.items, rejected, unmarked=file.unmarked)
    return without_secrets(name, found, redactor)


def without_secrets(name: str, found: Items, redactor: Redactor) -> Items:
    """The memories of a file, with secrets redacted; those that become invalid by that are rejected."""
    items: list[Item] = []
    rejected, redacted = list(found.rejected), 0
    for one in found.items:
        try:
            item, clean = _redacted(one, redactor)
        except Refused as refusal:
            rejected.append(f"{name}, item {one.id[:_LONGEST_WORD]}: {refusal}")
            continue
        redacted += not clean
        items.append(item)
    return replace(found, items=tuple(items), rejected=tuple(rejected), redacted=redacted)


def _check_count(name: str, count: int) -> None:
    if count > MOST_ITEMS:
        raise Refused(
            f"{name} holds {count:,} memories, and {MOST_ITEMS:,} are the most; import less at once"
        )


_TEXTS = (
    *("id", "branch", "subject", "predicate", "object", "timestamp"),
    *("status", "sensitivity", "author", "category"),
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, (str,)),
    **dict.fromkeys(("scope", "key"), (str, type(None))),
    **dict.fromkeys(("createdAt", "updatedAt"), (int,)),
    **dict.fromkeys(("tags", "links"), (list,)),
    "confidence": (int, float),
    "source": (dict,),
}


def _check_types(where: str, entry: Any) -> None:
    """Raise Refused if an entry doesn't have the shape we write: other things may be wrong, too."""
    if not isinstance(entry, dict):
        raise Refused(f"{where} is not a JSON object; correct it or leave it out")
    for name, types in _TYPES.items():
        if name in entry and (isinstance(entry[name], bool) or not isinstance(entry[name], types)):
            raise Refused(f"{where} has a wrong type of {name!r}; correct it or leave it out")
    for name in ("tags", "links"):
        if not all(isinstance(one, str) for one in entry.get(name, ())):
            raise Refused(f"{where} has {name!r} that are not texts; correct them or leave them out")


def _named(where: str, entry: Mapping[str, Any], redactor: Redactor) -> str:
    text = entry.get("text")
    return f"{where} (“{redactor.clean(collapse(scrub(text)))[:60]}”)" if isinstance(text, str) else where


def _item(entry: Mapping[str, Any]) -> Item:
    """Return an entry as an item. Raises Refused if that is impossible."""
    author, confidence = entry.get("author", "stated"), entry.get("confidence", 1.0)
    if author not in get_args(Author):
        raise Refused(f'"author" is "stated" or "inferred", not {author[:60]!r}')
    if not 0 <= confidence <= 1:
        raise Refused(f'"confidence" is between 0 and 1, not {confidence}')
    facets = Facets(
        author=author,
        sensitivity=sensitivity_of(entry.get("sensitivity", "normal")),
        scope=_word("scope", entry.get("scope", "permanent")),
        confidence=confidence,
        key=_word("key", entry.get("key")),
        category=_word("category", entry.get("category")) or Facets().category,
        links=frozenset(entry.get("links", ())),
        triple=_triple(entry),
    )
    return item_from_json(entry, now_ms=_time(entry.get("timestamp")), facets=facets)


def _time(timestamp: str | None) -> int:
    """The time (ms) of an item that names no other one; 0 if unknown."""
    try:
        when = ms_of_iso(timestamp) if timestamp is not None else 0
    except ValueError as error:
        raise Refused(f'"timestamp" is not a time: {timestamp!r:.60}') from error
    return when if valid_ms(when) else 0


def _word(name: str, value: str | None) -> str | None:
    tidy = collapse(scrub(value)) if value is not None else None
    if tidy is not None and len(tidy) > _LONGEST_WORD:
        raise Refused(f'"{name}" has at most {_LONGEST_WORD} characters')
    return tidy


def _triple(entry: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The triple of an item that was stored as one; other items are exported with their kind as predicate."""
    given = [entry.get(name) for name in ("subject", "predicate", "object")]
    if given == ["user", entry.get("kind"), entry.get("text")] or not all(given):
        return None
    subject, predicate, object_ = (check_text(part) for part in given if part is not None)
    return subject, predicate, object_


def _redacted(item: Item, redactor: Redactor) -> tuple[Item, bool]:
    """The item without secrets, and whether there were none. Raises Refused if nothing valid is left."""
    if len(item.id) > _LONGEST_WORD:
        raise Refused(f"its id is longer than {_LONGEST_WORD} characters")
    facets, clean = item.facets, redactor.clean
    beside = "\n".join((facets.scope or "", facets.key or "", facets.category))
    if clean(beside) != beside:
        raise Refused("its scope, key or category looks like a secret key")
    words = "\n".join((item.text, *item.tags, *(facets.triple or ())))
    if clean(words) == words:  # nearly always, and far sooner than one by one
        return item, True
    text, tags = check_text(clean(item.text)), tidy_tags(list(map(clean, item.tags)))
    return replace(item, text=text, tags=tags, facets=replace(facets, triple=None)), False
