"""Removes a person from groups: from the ledgers what rests on their words, from the files their membership.

A ledger is rewritten without the commits that rest on the person's words (see `core/history`). A group
with no tie to the person keeps every byte. The file is updated before the ledger: if the program is killed in
between, the next start still finds the person named in the ledger and does both again. Copies kept aside of
any group, and leftovers of killed writers, are removed too, since nobody knows whose words they contain; so
are unreadable lines of groups in which the person is named. Blocking. Independent of how an erasing is
recorded.
"""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Final

from pydantic import JsonValue

from discoclaw.core.errors import LedgerDamaged, NewerSchema
from discoclaw.core.event import Commit, Record, decode_line, encode_line
from discoclaw.core.history import History, contributors, without
from discoclaw.core.profile import Group
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged
from discoclaw.core.subject import group_of, group_subject, user_subject
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.cursors import parsed, texts_of
from discoclaw.memory.kept import JSON, remove_named
from discoclaw.memory.subjects.entries import Entries
from discoclaw.store.files import in_thread, render_json, session_name
from discoclaw.store.port import CURSORS, GROUPS, LEDGERS, Disk, Documents, drop

log = logging.getLogger(__name__)

EVERY = "*"
"""Stands for all groups."""

INDEX: Final = "groups-index"
OF_PERSON: Final = "groups-of-"
MANY: Final = 1_000
"""How many changed ledgers of people are worth writing the index for."""
_LEDGER, _FILE = re.compile(r"group-[A-Za-z0-9_-]+\.jsonl"), re.compile(r"[A-Za-z0-9_-]+\.json")


class GroupRecords(Derived):
    """Records about people in the groups of one store; `snapshots` lie beside all stores."""

    name = "group records"

    def __init__(self, disk: Disk, snapshots: Documents, entries: Entries | None = None) -> None:
        self._index = GroupIndex(disk)
        self._logs = disk.ledgers
        self._ledgers = disk.documents(LEDGERS)
        self._groups = disk.documents(GROUPS)
        self._cursors = disk.documents(CURSORS)
        self._snapshots = snapshots
        self._entries = entries

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        return self._erase(purge.user_id) if phase == "disk" and purge.erases and purge.user_id else None

    async def _erase(self, user: str) -> Purged:
        """Remove a person from all groups, while nobody writes the ledger of one."""
        async with self._entries.groups_alone() if self._entries is not None else nullcontext():
            return await in_thread(self._removed, user)

    def _removed(self, user: str) -> Purged:
        """Remove a person from all groups. Groups that the disk does not let us change are `stuck`."""
        try:
            # Copies and leftovers may have anybody's words.
            ledgers = [one for one in self._ledgers.names() if "group-" in one and not _LEDGER.fullmatch(one)]
            files = [one for one in self._groups.names() if not _FILE.fullmatch(one)]
            removed, left = self._ledgers.remove(ledgers)
            count, stays = self._groups.remove(files)
            done, seen = Purged(removed + count, (*left, *stays)), set[str]()
            while groups := self._index.of(user) - seen:  # a commit may have come meanwhile
                seen |= groups
                for subject in sorted(groups):
                    try:
                        if self._remove(subject, user):
                            done += Purged(1, changed=frozenset({subject}))
                    except OSError as error:
                        done += Purged(left=(f"{subject}: {error}",), stuck=frozenset({subject}))
            if not done.stuck:
                self._index.forget(user)
        except OSError as error:
            return Purged(left=(f"{self._groups.folder}: {error}",), stuck=frozenset({EVERY}))
        return done

    def _remove(self, subject: str, user: str) -> bool:
        """Remove a person from one group. Returns whether there was anything. Raises OSError."""
        log, name = self._logs.log(subject), f"{group_of(subject)}{JSON}"
        before, file = log.read(), self._groups.find(name) or b""
        named = any(re.search(rb"(?<!\w)%b(?!\w)" % re.escape(user.encode()), one) for one in (before, file))
        after = _without(before, user) if named else before[: before.rfind(b"\n") + 1]
        if not named and after == before:
            return False
        renewed = bool(file) and _bring_in_line(self._groups, name, file, after, user)
        if after != before:
            beside = remove_named(self._snapshots, {f"{subject}{JSON}"})
            beside += remove_named(self._cursors, {session_name(f"access-{subject}")})
            if beside.left:
                raise OSError("; ".join(beside.left))
            if after:
                log.replace(after)
            else:
                drop(self._ledgers, f"{subject}.jsonl")
        return renewed or after != before


def newest(disk: Disk, user: str) -> int:
    """Return the time (ms) of the newest commit of any group that rests on a person's words; 0 for none.

    Raises OSError.
    """
    found = [0]
    for subject in GroupIndex(disk).recorded(user):
        for _, record in _lines(disk.ledgers.log(subject).read()):
            if isinstance(record, Commit) and user in contributors(record):
                found.append(ms_of_iso(record.timestamp))
    return max(found)


def _bring_in_line(groups: Documents, name: str, file: bytes, ledger: bytes, user: str) -> bool:
    """Update a group's file to show what is left. Returns whether it had to change.

    An unreadable file is removed, since nobody knows what is in it. Raises OSError.
    """
    try:
        group = Group.from_json(json.loads(file))
    except (ValueError, RecursionError):
        return drop(groups, name)
    records = [record for _, record in _lines(ledger) if record is not None]
    content = render_json(group.without(user).with_view(History(records).shown()).to_json())
    if content == file:
        return False
    groups.write(name, content)
    return True


def _without(content: bytes, user: str) -> bytes:
    """The lines of a ledger, without those that rest on a person's words and those that cannot be read."""
    mark = user.encode()
    kept = [
        (line, record)
        for line, record in _lines(content)
        if record is not None or (mark not in line and _is_newer(line))
    ]
    lines = {record.id: line for line, record in kept if record is not None}
    records = [record for _, record in kept if record is not None]
    left = without(records, lambda commit: user in contributors(commit))
    newer = [line + b"\n" for line, record in kept if record is None]
    if not any(isinstance(record, Commit) for record in left) and not newer:
        return b""
    # An old record keeps its bytes.
    old = (lines[one.id] + b"\n" if one.id in lines else encode_line(one) for one in left)
    return b"".join([*old, *newer])


def unerased(records: Iterable[Record], erased_at: Callable[[str], int]) -> list[Record]:
    """A group's records, without those that rest on words from before their author's memory was erased.

    `erased_at` says when (ms) a subject was erased; -1 for never.
    """

    def gone(commit: Commit) -> bool:
        when = ms_of_iso(commit.timestamp)
        return any(erased_at(user_subject(user)) >= when for user in contributors(commit))

    return without(list(records), gone)


def _lines(content: bytes) -> Iterator[tuple[bytes, Record | None]]:
    """The complete lines of a ledger, each with its record, or None if it cannot be read."""
    for line in content[: content.rfind(b"\n") + 1].split(b"\n")[:-1]:
        try:
            yield line, decode_line(line)
        except (LedgerDamaged, NewerSchema):
            yield line, None


def _is_newer(line: bytes) -> bool:
    try:
        decode_line(line)
    except NewerSchema:
        return True
    except LedgerDamaged:
        return False
    return False


# ---------------------------------------------------------------------- which groups name whom


class GroupIndex:
    """Which groups have words of a person, so that erasing somebody does not read what every group says.

        cursors/groups-index.json          {mark, damaged}: up to which moment of the store the ledgers of
                                           groups are indexed, and which have lines that nobody can read
        cursors/groups-of-<user id>_.json  {groups}: those that name the person

    The ledgers that changed since are read before the index is asked, so it lacks none, whoever wrote them. A
    lost index is built again from all. It may name groups that have nothing of the person any more. A
    person's entry goes last in an erasing, when no group has anything. Every method raises OSError.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._cursors = disk.documents(CURSORS)
        self._groups = disk.documents(GROUPS)

    def of(self, user: str) -> set[str]:
        """The groups that may have anything of a person, and those of which nobody can know."""
        return self.recorded(user) | self._in_files(user)

    def recorded(self, user: str) -> set[str]:
        """The groups recorded as having something of a person, without those where they only were members."""
        known = self._index()
        found = self._bring(known, user)
        if "mark" in known:  # else everything was read just now
            found |= set(texts_of(parsed(self._cursors.find(_name(user))), "groups"))
        return found

    def note(self, group: str, users: Iterable[str]) -> None:
        """Note that the file of a group is about to name people."""
        if self._disk.shared:
            for user in users:
                self._add(user, {group})

    def forget(self, user: str) -> None:
        """Drop what the index has about a person."""
        drop(self._cursors, _name(user))

    # ------------------------------------------------------------------ inside

    def _index(self) -> Mapping[str, object]:
        try:
            return parsed(self._cursors.find(f"{INDEX}{JSON}"))
        except OSError as error:
            log.warning("which groups have words of whom could not be read: %s", error)
            return {}

    def _bring(self, known: Mapping[str, object], user: str) -> set[str]:
        """Index what changed. Returns the groups that nobody can read, and those that now name a person."""
        mark: JsonValue = known.get("mark")  # type: ignore[assignment]
        changed, present = self._disk.ledgers.since(mark)
        damaged, named = set(texts_of(known, "damaged")), defaultdict[str, set[str]](set)
        groups = [one for one in changed if group_of(one) is not None]
        for subject in groups:
            people, unreadable = _people_in(self._disk.ledgers.log(subject).read())
            (damaged.add if unreadable else damaged.discard)(subject)
            for one in people:
                named[one].add(subject)
        if "mark" not in known and self._disk.shared:
            for subject, members in self._members():
                for one in members:
                    named[one].add(subject)
        if groups or len(changed) > MANY:
            self._keep(named, render_json({"mark": present, "damaged": sorted(damaged)}))
        return damaged | named[user]

    def _keep(self, named: Mapping[str, Collection[str]], index: bytes) -> None:
        """Write what was found. What the disk refuses is found again the next time."""
        try:
            for user, groups in named.items():
                self._add(user, groups)
            self._cursors.change(f"{INDEX}{JSON}", lambda before: index)
        except OSError as error:
            log.warning("which groups have words of whom could not be written: %s", error)

    def _add(self, user: str, groups: Collection[str]) -> None:
        def work(before: bytes | None) -> bytes | None:
            known = set(texts_of(parsed(before), "groups"))
            return None if known.issuperset(groups) else render_json({"groups": sorted({*known, *groups})})

        self._cursors.change(_name(user), work)

    def _in_files(self, user: str) -> set[str]:
        """The groups whose file names a person, in a store of one process: others may write files there."""
        if self._disk.shared:
            return set()
        named = re.compile(rb"(?<!\w)%b(?!\w)" % re.escape(user.encode()))
        return {subject for subject, name in self._files() if named.search(self._groups.find(name) or b"")}

    def _members(self) -> Iterable[tuple[str, Collection[str]]]:
        for subject, name in self._files():
            try:
                group = Group.from_json(json.loads(self._groups.find(name) or b""))
            except (ValueError, RecursionError):
                continue
            yield subject, [user for user, _ in group.members]

    def _files(self) -> Iterable[tuple[str, str]]:
        for name in self._groups.names():
            if name.endswith(JSON) and name.count(".") == 1:
                yield group_subject(name.removesuffix(JSON)), name


def _people_in(content: bytes) -> tuple[set[str], bool]:
    """The people whom a ledger's commits name, and whether it has lines that nobody can read."""
    records = [record for _, record in _lines(content)]
    people = set[str]().union(*(contributors(one) for one in records if isinstance(one, Commit)))
    return people, None in records or (content != b"" and not content.endswith(b"\n"))


def _name(user: str) -> str:
    return f"{OF_PERSON}{user}_{JSON}"
