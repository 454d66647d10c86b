"""What is published: everything that is to stand on relays, computed from the files on disk alone.

    user-<id>      its ledger, the person's profile, what they prefer, which tools were called for them
    group-<id>     its ledger, the group, its themes as topics
    bot            its ledger
    session:<key>  a conversation's summary, and when it was cleared

These are the *units*. The same files give the same digests, whenever somebody asks. What can not be read is
left out with a line in the log, and never taken for something that was removed: `Look.settled` names the
kinds of which everything there is was seen, so that whatever else is published is gone from the disk.
Opting out changes nothing here: what is remembered of somebody stays on disk, and is mirrored like that.
Blocking. Knows nothing about relays, signatures, or what was published before.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from discoclaw.core.errors import MemoryFault, NostrError
from discoclaw.core.profile import Group, Profile
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import group_of, group_subject, user_of, user_subject
from discoclaw.core.text import scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations import clears
from discoclaw.memory.conversations.clears import clear_of
from discoclaw.memory.disk.files import session_name
from discoclaw.memory.disk.port import CURSORS, GROUPS, PROFILES, ROLLING, TOOLS, Disk, Documents, Log
from discoclaw.memory.erasing.cursor_files import people_of
from discoclaw.memory.people import choices, tool_log
from discoclaw.memory.people.tool_log import call_of
from discoclaw.nostr.names import CHOICES, Names
from discoclaw.nostr.outgoing import ledger_view
from discoclaw.nostr.outgoing.ledger_view import CONFIDENTIAL, NO_SECRETS, Ledger, Secrets
from discoclaw.nostr.outgoing.payloads import Payloads, Summarised
from discoclaw.nostr.schemas import APP, CLEAR, PREFERENCE, SUMMARY, TOOL, TOPICS, Wanted

log = logging.getLogger(__name__)
T = TypeVar("T")

CHOSEN: Final = "choices"
"""The unit of what people have chosen about being remembered."""
_PEOPLE_AT_ONCE: Final = 300
_SUBJECT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE = re.compile(r"([A-Za-z0-9_-]{1,64})\.jsonl?")
_KEY = re.compile(r"discord:(?:dm|thread|channel):[A-Za-z0-9_-]+")
_CONVERSATION = re.compile(r"(?:summary-)?discord[:-](dm|thread|channel)[:-]([A-Za-z0-9_-]+)\.json")


@dataclass(frozen=True, slots=True)
class Published:
    """How much of a unit's ledger is published: its first `size` bytes, and a keyed hash of them."""

    size: int = 0
    mark: str = ""


NOTHING_SEEN = Published()


@dataclass(frozen=True, slots=True)
class Look:
    """What is to stand on relays of one unit.

    `records` are those of the ledger: all of them if `whole`, else those that changed since it was seen.
    `settled` are the kinds of which the `views` are all that is wanted. `seen` is the ledger now.
    """

    records: tuple[Wanted, ...] = ()
    views: tuple[Wanted, ...] = ()
    settled: frozenset[int] = frozenset()
    whole: bool = False
    seen: Published = NOTHING_SEEN

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        return (*self.records, *self.views)


@dataclass(slots=True)
class _ViewBuilder:
    """Views in the making."""

    views: list[Wanted] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)

    def add(self, what: str, make: Callable[[], Iterable[Wanted]]) -> None:
        """Add what can be made; that something can not is said."""
        try:
            self.views += make()
        except NostrError as error:
            log.error("%s is not mirrored: %s", what, error)


class Views:
    """What is wanted of each unit of a disk.

    `owners` are user ids; `groups` gives the group of a channel (id) on a NIP-29 relay. `redactor` takes
    secrets out of everything once more; a record of a ledger that has one is withheld.
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
        self._payloads = Payloads(names, redactor)

    def units(self) -> list[str]:
        """Every unit of which there is anything on disk. Raises OSError."""
        found = [subject for subject, _ in self._disk.ledgers.by_age() if _SUBJECT.fullmatch(subject)]
        for folder, subject_of in ((PROFILES, user_subject), (TOOLS, str), (GROUPS, group_subject)):
            files = map(_FILE.fullmatch, self._disk.documents(folder).names())
            found += [subject_of(file[1]) for file in files if file is not None]
        for folder in (ROLLING, CURSORS):
            files = map(_CONVERSATION.fullmatch, self._disk.documents(folder).names())
            found += [f"{SESSION}discord:{file[1]}:{file[2]}" for file in files if file is not None]
        if choices.FILE in self._disk.documents("").names():
            found.append(CHOSEN)
        cleared = clears.read(self._disk.log(clears.FILE))
        found += [f"{SESSION}{one.session}" for one in cleared if _KEY.fullmatch(one.session)]
        return list(dict.fromkeys(found))

    def wanted(self, unit: str) -> list[Wanted]:
        """All that is to stand on relays of a unit. Raises OSError when the disk fails."""
        return list(self.look(unit).wanted)

    def look(self, unit: str, seen: Published = NOTHING_SEEN, *, whole: bool = False) -> Look:
        """What is to stand on relays of a unit. Raises OSError when the disk fails.

        Of its ledger it is only what has changed since it was `seen`, unless the `whole` is asked for, or
        what was seen does not stand there any more.
        """
        if unit.startswith(SESSION):
            session = self._session(unit.removeprefix(SESSION))
            return Look(views=tuple(session.views), settled=frozenset(session.settled))
        if unit == CHOSEN:
            return Look(views=self._choices())
        content = self._disk.ledgers.log(unit).read()
        size = ledger_view.sound_size(content)
        known = 0 if whole or not self._is_there(unit, content, seen) else seen.size
        is_new, is_secret = known < size or not known, CONFIDENTIAL in content
        ledger = ledger_view.read(unit, content) if is_new or is_secret else Ledger(unit, size=size)
        if ledger.unread and is_new:
            log.warning("%s: %d lines can not be read and are not mirrored", unit, ledger.unread)
        secrets, known = _secrets(ledger, known) if is_secret else (NO_SECRETS, known)
        records = ledger_view.records(ledger, self.names, self._redactor, secrets, since=known)
        found = self._views(ledger, secrets, is_new=is_new)
        return Look(
            tuple(records),
            tuple(found.views),
            # With less of a ledger than there was the disk was lost, or is an old one: nothing was removed.
            frozenset(found.settled) if seen.size <= size else frozenset(),
            whole=known == 0,
            seen=Published(size, self._mark(unit, content[:size])) if size else NOTHING_SEEN,
        )

    def _is_there(self, unit: str, content: bytes, seen: Published) -> bool:
        """Whether a ledger still begins with what was seen of it."""
        return 0 < seen.size <= len(content) and self._mark(unit, content[: seen.size]) == seen.mark

    def _mark(self, unit: str, content: bytes) -> str:
        return self.names.mark(f"{unit}:{hashlib.sha256(content).hexdigest()}")

    def _views(self, ledger: Ledger, secrets: Secrets, *, is_new: bool) -> _ViewBuilder:
        found = _ViewBuilder()
        if (user_id := user_of(ledger.subject)) is not None:
            is_known = self._profile(found, user_id, secrets)
            self._tools(found, user_id, secrets, is_known=is_known or ledger.size > 0)
            if is_new and ledger.size:
                self._preference(found, user_id, ledger, secrets)
        elif (channel_id := group_of(ledger.subject)) is not None:
            self._group(found, channel_id, secrets)
        return found

    # ------------------------------------------------------------------ people and groups

    def _profile(self, found: _ViewBuilder, user_id: str, secrets: Secrets) -> bool:
        """A person's record; whether there is one."""
        profile = _parsed(self._disk.documents(PROFILES), user_id, Profile.from_json)
        if profile is None:
            return False
        is_owner, make = user_id in self._owners, self._payloads.profile
        found.add(f"the profile of {user_id}", lambda: [make(user_id, profile, secrets, is_owner=is_owner)])
        return True

    def _preference(self, found: _ViewBuilder, user_id: str, ledger: Ledger, secrets: Secrets) -> None:
        make = self._payloads.preference
        found.add(
            f"what {user_id} prefers",
            lambda: filter(None, [make(user_id, ledger.shown(), secrets)]),
        )
        if not ledger.unread:
            found.settled.add(PREFERENCE)

    def _tools(self, found: _ViewBuilder, user_id: str, secrets: Secrets, *, is_known: bool) -> None:
        """Calls of tools. They go with time: what is in no log any more is gone, if the person is there."""
        calls, all_read = _lines(tool_log.log_of(self._disk, user_subject(user_id)), call_of)
        for call in {one.id: one for one in calls}.values():
            found.add(
                f"a call of {call.tool}",
                lambda call=call: [self._payloads.tool(user_id, call, secrets)],  # type: ignore[misc]
            )
        if all_read and (calls or is_known):
            found.settled.add(TOOL)

    def _group(self, found: _ViewBuilder, channel_id: str, secrets: Secrets) -> None:
        group = _parsed(self._disk.documents(GROUPS), channel_id, Group.from_json)
        if group is None:
            return
        h, make = self._groups.get(channel_id, ""), self._payloads.group
        found.add(f"the group {channel_id}", lambda: make(channel_id, group, secrets, h=h))
        found.settled.add(TOPICS)

    def _choices(self) -> tuple[Wanted, ...]:
        """What people have chosen about being remembered, some hundred of them in one event."""
        try:
            people = sorted((choices.read(self._disk.documents("")) or {}).items())
        except MemoryFault as fault:
            log.warning("what people have chosen is not mirrored: %s", fault)
            return ()
        starts = enumerate(range(0, len(people), _PEOPLE_AT_ONCE))
        return tuple(
            Wanted(APP, f"{CHOICES}{number}", {"people": dict(people[start : start + _PEOPLE_AT_ONCE])})
            for number, start in starts
        )

    # ------------------------------------------------------------------ conversations

    def _session(self, key: str) -> _ViewBuilder:
        found = _ViewBuilder()
        if not _KEY.fullmatch(key):
            log.warning("%s is no conversation that can be mirrored", key)
            return found
        lines, all_read = _lines(self._disk.log(clears.FILE), clear_of)
        cleared = {one.id: one for one in lines if one.session == key}.values()
        for one in cleared:
            found.views.append(self._payloads.clear(one))
        if lines and all_read:
            found.settled.add(CLEAR)
        self._summary(found, key, max((one.at for one in cleared), default=-1))
        return found

    def _summary(self, found: _ViewBuilder, key: str, cleared: int) -> None:
        """The summary, unless it was cleared.

        Its cursor outlives it when it is cleared or erased; where both are gone, a disk was lost.
        """
        seen = self._cursor(f"summary-{key}")
        content = _read(self._disk.documents(ROLLING), session_name(key))
        if content == b"":
            if seen is not None or cleared >= 0:
                found.settled.add(SUMMARY)
            return
        value = _object(content)
        text, at = value.get("summary"), value.get("updatedAt")
        if not isinstance(text, str) or not valid_ms(at):
            return  # nobody knows what it says, so it was not removed
        found.settled.add(SUMMARY)
        if text and at > cleared:
            count, up_to = (seen or {}).get("count"), (seen or {}).get("upTo")
            said = Summarised(
                key,
                scrub(text),
                at,
                count if isinstance(count, int) and not isinstance(count, bool) else 0,
                up_to if isinstance(up_to, str) else None,
                tuple(sorted(people_of(self._cursor(f"people-{key}") or {}))),
            )
            found.add(f"the summary of {key}", lambda: [self._payloads.summary(said, cleared)])

    def _cursor(self, name: str) -> dict[str, Any] | None:
        content = _read(self._disk.documents(CURSORS), session_name(name))
        return _object(content) if content else None


def _secrets(ledger: Ledger, known: int) -> tuple[Secrets, int]:
    """What is confidential in a ledger, and from which byte on its records have to be looked at: all of them,
    where an item of which older ones tell has become confidential since the first `known` bytes."""
    now = Secrets.of(line.record for line in ledger.lines)
    before = Secrets.of(line.record for line in ledger.lines if line.start < known)
    return now, known if now.items == before.items else 0


# ---------------------------------------------------------------------- files


def _read(folder: Documents, name: str) -> bytes | None:
    """A file; empty where there is none, None when the disk fails, which is said."""
    try:
        return folder.read(name)
    except FileNotFoundError:
        return b""
    except OSError as error:
        log.warning("%s can not be read, so it is not mirrored: %s", folder.folder / name, error)
        return None


def _parsed(folder: Documents, name: str, parse: Callable[[object], T]) -> T | None:
    """What a file says; None where there is none, or none that can be read, which is said."""
    content = _read(folder, f"{name}.json")
    if not content:
        return None
    try:
        return parse(json.loads(content))
    except (ValueError, RecursionError) as error:
        log.warning("%s is not mirrored: %s", folder.folder / f"{name}.json", error)
        return None


def _object(content: bytes | None) -> dict[str, Any]:
    """The JSON object that a file is; an empty one for anything else."""
    try:
        value = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _lines(lines: Log, parse: Callable[[object], T | None]) -> tuple[list[T], bool]:
    """What the lines of a log say, and whether all of them could be read."""
    try:
        content = lines.read()
    except OSError as error:
        log.warning("%s can not be read, so it is not mirrored: %s", lines.path, error)
        return [], False
    found, all_read = [], True
    for line in filter(bytes.strip, content.split(b"\n")):
        try:
            one = parse(json.loads(line))
        except (ValueError, RecursionError):
            one = None
        if one is not None:
            found.append(one)
        all_read &= one is not None
    return found, all_read
