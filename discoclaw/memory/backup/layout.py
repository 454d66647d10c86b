"""The layout of a backup: a tar file, compressed with gzip, of regular files in this order.

    backup.json        {format, version, program, data, store, at}: read first, so that a newer format is
                       refused before anything else of it is looked at
    memory/…, nostr/…  the files, named as below `data/` of a store of plain files
    members.json       [{name, size, sha256}] of all files between; a backup that was cut off has none

Values and checks only: pure.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from discoclaw import __version__
from discoclaw.core.errors import NewerSchema, Refused
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.memory.erasing.groups import INDEX, OF_PERSON
from discoclaw.memory.subjects import changed
from discoclaw.memory.upgrades import FILE as VERSION_FILE
from discoclaw.memory.upgrades import VERSION as DATA
from discoclaw.memory.upgrades import newer_text
from discoclaw.store.files import render_json
from discoclaw.store.port import (
    ANSWERS,
    CURSORS,
    GROUPS,
    INTENTS,
    LEDGERS,
    PROFILES,
    ROLLING,
    TOOLS,
    USAGE,
    subject_of,
)

FORMAT, VERSION = "discoclaw-backup", 1
ENDING = ".tar.gz"
HEAD, LIST = "backup.json", "members.json"
MEMORY, DURABLE = "memory/", "durable"
ARCHIVE, OUTBOX, KEY = "memory/archive.sqlite", "memory/outbox/outbox.sqlite", "nostr/key"
DATABASES: Final = (ARCHIVE, OUTBOX)
"""The SQLite files that lie beside every store."""

PROGRESS: Final = (
    *("follow-", "withdrawn-", "heartbeat", "hygiene", INDEX, OF_PERSON, changed.INDEX),
    *("inbox:", "inbox-"),
)
"""The beginnings of cursors that say what was done with this store, which means nothing in another one.

Also the inboxes of shards: where one process has everything, nobody would read them, or clear them of people.
"""

TABLES = "archive"
"""The folder of the archive's tables, if it lies in a database."""
FOLDERS = (LEDGERS, DURABLE, ROLLING, CURSORS, INTENTS, PROFILES, GROUPS, TOOLS, USAGE, ANSWERS, TABLES)
_FOLDERS = "|".join(FOLDERS)
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,250}"
_TOP = r"[a-z_-]{1,40}\.(json|jsonl|key)(\.[a-z]{1,20}-[0-9-]{1,40})?"
_NAME = re.compile(rf"memory/((({_FOLDERS})/{_PART})|{_TOP})|{'|'.join(map(re.escape, (*DATABASES, KEY)))}")


@dataclass(frozen=True, slots=True)
class Head:
    """The origin of a backup: the program's version, the version of its data, the store, and when (ms)."""

    program: str
    data: int
    store: str
    at: int

    def render(self) -> bytes:
        """The file `backup.json`."""
        about = {"format": FORMAT, "version": VERSION, **asdict(self), "at": iso_ms(self.at)}
        return render_json(about)


@dataclass(frozen=True, slots=True)
class Member:
    """One file: its name, its size in bytes, and the SHA-256 of its content in hex."""

    name: str
    size: int
    sha256: str

    @property
    def subject(self) -> str | None:
        """The subject whose ledger it is; None for anything else."""
        return subject_of(self.name.removeprefix(MEMORY)) if self.name.startswith(MEMORY) else None


def head_now(data: int, store: str, now_ms: int) -> Head:
    """The head of a backup that this program makes of data of a version."""
    return Head(__version__, data, store, now_ms)


def fits(name: str) -> bool:
    """Whether a file of this name may be in a backup: no other one is written, and none is read."""
    return _NAME.fullmatch(name) is not None and name != f"{MEMORY}{VERSION_FILE}"


def render_members(members: Iterable[Member]) -> bytes:
    """The file `members.json`."""
    return render_json([asdict(one) for one in members])


def head_of(content: bytes) -> Head:
    """The head in a file's content. Raises NewerSchema for a newer format or newer data, else Refused."""
    value = _json(content)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Refused("it is no backup of DiscoClaw")
    version, data, program = value.get("version"), value.get("data"), value.get("program")
    if type(version) is not int or type(data) is not int or not isinstance(program, str):
        raise Refused("it doesn't say which version it has")
    if version < 1 or data < 0:
        raise Refused("it doesn't say which version it has")
    made_by = f"it was made by DiscoClaw {program[:40]}, and"
    if version > VERSION:
        raise NewerSchema(
            f"{made_by} its format has version {version}, while DiscoClaw {__version__} knows only up to "
            f"version {VERSION}; upgrade the program to restore it"
        )
    if data > DATA:
        raise NewerSchema(f"{made_by} {newer_text('it', data)}")
    store, at = value.get("store"), value.get("at")
    try:
        return Head(program, data, str(store), ms_of_iso(str(at)))
    except ValueError:
        raise Refused("it doesn't say when it was made") from None


def members_of(content: bytes) -> list[Member]:
    """The list of members in a file's content. Raises Refused."""
    value = _json(content)
    try:
        return [Member(str(one["name"]), one["size"], one["sha256"]) for one in value]
    except (TypeError, KeyError):
        raise Refused(f"{LIST} in it makes no sense") from None


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise Refused("its list of contents makes no sense") from None
