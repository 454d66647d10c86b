"""The desired state: everything that should be published, computed from the files on disk alone.

    user-<id>      a person's ledger, profile, preferences and tool calls
    group-<id>     a channel's ledger, group memory and topics
    bot            the ledger of the bot's personality
    session:<key>  a conversation's summary, and when it was cleared
    choices        what people have chosen about being remembered

These are the *units*. The same files always give the same digests. A file that can't be read is left out
with a line in the log, and never counts as removed: `DesiredState.complete` names the kinds that were read
completely, and only their other published events are removed. Opting out changes nothing here: what is
remembered about somebody stays on disk, so it stays mirrored. Blocking. Knows nothing about relays,
signatures, or what was published before.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault, NostrError
from discoclaw.core.history import History
from discoclaw.core.profile import Group, Profile
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import group_of, group_subject, user_of, user_subject
from discoclaw.core.text import scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations import clears
from discoclaw.memory.cursors import people_of
from discoclaw.memory.kept import Lines
from discoclaw.memory.people import choices, tool_log
from discoclaw.nostr import ledgers
from discoclaw.nostr.documents import CHOSEN, DocumentCodec, Summary
from discoclaw.nostr.ledgers import CONFIDENTIAL_MARK, NOTHING_CONFIDENTIAL, Confidential
from discoclaw.nostr.schemas import (
    CLEAR,
    PREFERENCE,
    SUMMARY,
    TOOL,
    TOPICS,
    EventTemplate,
    Names,
)
from discoclaw.store.files import session_name
from discoclaw.store.port import (
    CHOICES,
    CURSORS,
    GROUPS,
    INTENTS,
    LEDGERS,
    PROFILES,
    ROLLING,
    TOOLS,
    Disk,
    Documents,
    Log,
)

log = logging.getLogger(__name__)
T = TypeVar("T")

_SUBJECT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE = re.compile(r"([A-Za-z0-9_-]{1,64})\.jsonl?")
_SUBJECT_OF: Mapping[str, Callable[[str], str]] = {
    LEDGERS: str,
    TOOLS: str,
    INTENTS: str,
    PROFILES: user_subject,
    GROUPS: group_subject,
}
"""Makes the subject from the name of a file, for each folder."""
_KEY = re.compile(r"discord:(?:dm|thread|channel):[A-Za-z0-9_-]+")
_CONVERSATION = re.compile(r"(?:summary-)?discord[:-](dm|thread|channel)[:-]([A-Za-z0-9_-]+)\.json")


@dataclass(frozen=True, slots=True)
class LedgerCursor:
    """How much of a unit's ledger is published: its first `size` bytes, and a keyed hash of these.

    The hash shows when a ledger was rewritten, by an erasure or from a backup: a size alone would not. It
    also depends on the rules of what is withheld, which an update of the program may have changed.
    """

    size: int = 0
    digest: str = ""


NOTHING_PUBLISHED = LedgerCursor()


@dataclass(frozen=True, slots=True)
class DesiredState:
    """Everything that should be published of one unit.

    `records` are those of the ledger: all if `full`, otherwise those that changed since a cursor.
    `complete` has the kinds whose `views` are everything there should be. `ledger` is the cursor at the
    ledger's end.
    """

    records: tuple[EventTemplate, ...] = ()
    views: tuple[EventTemplate, ...] = ()
    complete: frozenset[int] = frozenset()
    full: bool = False
    ledger: LedgerCursor = NOTHING_PUBLISHED

    @property
    def templates(self) -> tuple[EventTemplate, ...]:
        return (*self.records, *self.views)


class Views:
    """The desired state of each unit on a disk.

    `owners` are user ids. `groups` maps channel ids to their group on a NIP-29 relay. `redactor` removes
    secrets from views once more; a ledger record with a secret is withheld as a whole.
    """

    def __init__(
        self,
        disk: Disk,
        names: Names,
        *,
        owners: Collection[str] = (),
        redactor: Redactor = PLAIN,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        self.names = names
        self._disk = disk
        self._owners = owners
        self._redactor = redactor
        self._groups = groups or {}
        self._documents = DocumentCodec(names, redactor)

    def units(self) -> list[str]:
        """Every unit that has something on disk. Raises OSError."""
        # The patterns leave out what people put into the folders: backups, editors' files.
        found = [subject for subject, _ in self._disk.ledgers.by_age() if _SUBJECT.fullmatch(subject)]
        for folder in (PROFILES, TOOLS, GROUPS, ROLLING, CURSORS):
            units = (unit_of(f"{folder}/{name}") for name in self._disk.documents(folder).names())
            found += [unit for unit in units if unit is not None]
        if choices.exist(self._disk):
            found.append(CHOSEN)
        # A cleared conversation may have no other file left.
        cleared = clears.CLEARS.read(self._disk.log(clears.FILE))
        found += [f"{SESSION}{one.session}" for one in cleared if _KEY.fullmatch(one.session)]
        return list(dict.fromkeys(found))

    def desired(
        self, unit: str, since: LedgerCursor = NOTHING_PUBLISHED, *, full: bool = False
    ) -> DesiredState:
        """The desired state of a unit. Raises OSError when the disk fails.

        Of the ledger it has only what changed `since` a cursor. It has all of it with `full`, or when the
        ledger no longer begins with the bytes of the cursor.
        """
        if unit.startswith(SESSION):
            return self._session(unit.removeprefix(SESSION))
        if unit == CHOSEN:
            try:
                return DesiredState(views=tuple(self._documents.choices(choices.read(self._disk) or {})))
            except MemoryFault as fault:
                log.warning("cannot mirror what people have chosen about being remembered: %s", fault)
                return DesiredState()
        content = self._disk.ledgers.log(unit).read()
        size = content.rfind(b"\n") + 1  # a kill may have cut off the last line
        continues = 0 < since.size <= len(content) and (
            self._digest(unit, content[: since.size]) == since.digest
        )
        known = since.size if continues and not full else 0
        is_new, has_confidential = known < size or not known, CONFIDENTIAL_MARK in content
        must_read = is_new or has_confidential  # an old item may have become confidential: look at all of it
        lines, unreadable = ledgers.read(content) if must_read else ([], 0)
        if unreadable and is_new:
            log.warning("%s: %d lines cannot be read and are not mirrored", unit, unreadable)
        confidential = NOTHING_CONFIDENTIAL
        if has_confidential:
            confidential = Confidential.of(line.record for line in lines)
            before = Confidential.of(line.record for line in lines if line.start < known)
            if confidential.items != before.items:
                known = 0  # an item has become confidential, and older records are about it too
        records, views, complete = list[EventTemplate](), list[EventTemplate](), set[int]()
        for line in lines:
            if line.start >= known:
                with _logging(f"{unit}, line {line.number + 1}"):
                    records += ledgers.templates(unit, line, self.names, self._redactor, confidential)
        documents = self._documents
        if (user_id := user_of(unit)) is not None:
            profile = parse_file(self._disk.documents(PROFILES), user_id, Profile.from_json)
            if profile is not None:
                with _logging(f"the profile of {user_id}"):
                    is_owner = user_id in self._owners
                    views.append(documents.profile(user_id, profile, confidential, is_owner=is_owner))
            calls, all_read = read_lines(tool_log.log_of(self._disk, unit), tool_log.CALLS)
            for call in {one.id: one for one in calls}.values():
                with _logging(f"a call of {call.tool}"):
                    views.append(documents.tool(user_id, call, confidential))
            # The log drops old calls, so published ones that it lacks are removed. But not if nothing of the
            # person is on disk: then the disk was lost.
            if all_read and (calls or profile is not None or size):
                complete.add(TOOL)
            if is_new and size:
                with _logging(f"what {user_id} prefers"):
                    view = History(line.record for line in lines).shown()
                    preferences = documents.preferences(user_id, view, confidential)
                    views += [preferences] if preferences is not None else []
                if not unreadable:
                    complete.add(PREFERENCE)
        elif (channel_id := group_of(unit)) is not None:
            group = parse_file(self._disk.documents(GROUPS), channel_id, Group.from_json)
            if group is not None:
                complete.add(TOPICS)
                with _logging(f"the group {channel_id}"):
                    h = self._groups.get(channel_id, "")
                    views += documents.group(channel_id, group, confidential, h=h)
        return DesiredState(
            tuple(records),
            tuple(views),
            # A ledger that has become shorter means that the disk was lost or restored from a backup. Then
            # missing views were not removed by anybody.
            frozenset(complete) if since.size <= size else frozenset(),
            full=known == 0,
            ledger=LedgerCursor(size, self._digest(unit, content[:size])) if size else NOTHING_PUBLISHED,
        )

    def _digest(self, unit: str, content: bytes) -> str:
        rules = ledgers.RULES
        return self.names.keyed_hash(f"{unit}:{hashlib.sha256(content).hexdigest()}:rules-{rules}")

    def _session(self, key: str) -> DesiredState:
        """A conversation's clears, and its summary unless it was cleared.

        When a summary is cleared or erased, its cursor stays and no longer says that one was stored. If both
        are missing, the disk was lost; the relays' copy of a lost summary stays.
        """
        if not _KEY.fullmatch(key):
            log.warning("cannot mirror %s: not the session key of a DM, channel or thread", key)
            return DesiredState()
        lines, all_read = read_lines(self._disk.log(clears.FILE), clears.CLEARS)
        found = {one.id: one for one in lines if one.session == key}.values()
        views, complete = list(map(self._documents.clear, found)), {CLEAR} if lines and all_read else set()
        cleared = max((one.at for one in found), default=-1)
        seen = self._cursor(f"summary-{key}")
        content = read_file(self._disk.documents(ROLLING), session_name(key))
        if content == b"":
            stored_at = (seen or {}).get("at")
            lost = valid_ms(stored_at) and stored_at > cleared
            if not lost and (seen is not None or cleared >= 0):
                complete.add(SUMMARY)
            return DesiredState(views=tuple(views), complete=frozenset(complete))
        value = json_object(content)
        text, at = value.get("summary"), value.get("updatedAt")
        if isinstance(text, str) and valid_ms(at):  # an unreadable summary was not removed by anybody
            complete.add(SUMMARY)
            if text and at > cleared:
                count, up_to = (seen or {}).get("count"), (seen or {}).get("upTo")
                summary = Summary(
                    scrub(text),
                    at,
                    count if isinstance(count, int) and not isinstance(count, bool) else 0,
                    up_to if isinstance(up_to, str) else None,
                    tuple(sorted(people_of(self._cursor(f"people-{key}") or {}))),
                )
                with _logging(f"the summary of {key}"):
                    views.append(self._documents.summary(key, summary, cleared))
        return DesiredState(views=tuple(views), complete=frozenset(complete))

    def _cursor(self, name: str) -> dict[str, Any] | None:
        content = read_file(self._disk.documents(CURSORS), session_name(name))
        return json_object(content) if content else None


@contextmanager
def _logging(what: str) -> Iterator[None]:
    """What can't be made is logged and left out, so that the rest is mirrored."""
    try:
        yield
    except NostrError as error:
        log.error("cannot mirror %s: %s", what, error)


def unit_of(name: str) -> str | None:
    """The unit that shows a text, by its path in the store; None if none does."""
    folder, _, file = name.rpartition("/")
    if name.startswith(CHOICES):
        return CHOSEN
    if folder in {ROLLING, CURSORS}:
        talk = _CONVERSATION.fullmatch(file)
        return f"{SESSION}discord:{talk[1]}:{talk[2]}" if talk is not None else None
    if (found := _FILE.fullmatch(file)) is None or folder not in _SUBJECT_OF:
        return None
    return _SUBJECT_OF[folder](found[1])


# ---------------------------------------------------------------------- reading files


def read_file(folder: Documents, name: str) -> bytes | None:
    """The content of a file: b"" if it doesn't exist, None when the disk fails, which is logged."""
    try:
        return folder.read(name)
    except FileNotFoundError:
        return b""
    except OSError as error:
        log.warning("cannot read %s, so it is not mirrored: %s", folder.folder / name, error)
        return None


def parse_file(folder: Documents, name: str, parse: Callable[[object], T]) -> T | None:
    """The parsed `<name>.json`; None if it doesn't exist or can't be read, which is logged."""
    content = read_file(folder, f"{name}.json")
    if not content:
        return None
    try:
        return parse(json.loads(content))
    except (ValueError, RecursionError) as error:
        log.warning("cannot mirror %s: %s", folder.folder / f"{name}.json", error)
        return None


def json_object(content: bytes | None) -> dict[str, Any]:
    """The JSON object in a file's content; an empty one for anything else."""
    try:
        value = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_lines(lines: Log, kind: Lines[T]) -> tuple[list[T], bool]:
    """The records of a log, and whether all of its lines could be read."""
    try:
        content = lines.read()
    except OSError as error:
        log.warning("cannot read %s, so it is not mirrored: %s", lines.path, error)
        return [], False
    found = kind.of(content)
    return found, not kind.damaged(content, found)
