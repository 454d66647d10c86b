"""Recognises what a file or folder is, and reads it: our exports, objects, files of other programs.

Everything is checked here, before anything is written. A file that cannot be trusted as a whole is Refused;
single bad memories are rejected by name. Blocking. Independent of the memory that they are imported into.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_of
from discoclaw.core.text import scrub
from discoclaw.memory.exchange.entries import is_snapshot, read_snapshot
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
    MOST_BYTES,
    REFS,
    Content,
    Imported,
    Records,
    parse_json,
)
from discoclaw.memory.exchange.memories import read_durable, read_memories, without_secrets
from discoclaw.memory.exchange.objects import check_version, read_objects, records_of, verified
from discoclaw.memory.exchange.tree import Folder, Tree, Zip, read_whole, too_large
from discoclaw.memory.subjects import ledger

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
    if len(content) > MOST_BYTES:
        raise Refused(too_large(name))
    if content.startswith(b"PK"):
        return _of_tree(Zip(name, content), redactor)
    if name.endswith(".jsonl"):
        return Imported(f"the ledger {name}", {user_of(PurePosixPath(name).stem): _ledger(name, content)})
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
                subjects[_user(said, of)] = _ledger(said, tree.read(full))
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


def _ledger(name: str, content: bytes) -> Records:
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
