"""Which groups have words of a person, so that erasing somebody does not read what every group says.

    cursors/groups-index.json          {mark, damaged}: up to which moment of the store the ledgers of groups
                                       are indexed, and which of them have lines that nobody can read
    cursors/groups-of-<user id>_.json  {groups}: those that name the person

The ledgers that changed since are read before the index is asked, so it lacks none, whoever wrote them. A
lost index is built again from all. It may name groups that have nothing of the person any more. A person's
entry goes last in an erasing, when no group has anything. Blocking; every method raises OSError.
"""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from pydantic import JsonValue

from discoclaw.core.attribution import contributors
from discoclaw.core.errors import LedgerDamaged, NewerSchema
from discoclaw.core.event import Commit, decode_line
from discoclaw.core.profile import Group
from discoclaw.core.subject import group_of, group_subject
from discoclaw.memory.cursors import parsed
from discoclaw.memory.erasing.cursor_files import texts_of
from discoclaw.store.files import render_json
from discoclaw.store.port import CURSORS, GROUPS, Disk, Documents, drop

log = logging.getLogger(__name__)

INDEX: Final = "groups-index"
OF_PERSON: Final = "groups-of-"
MANY: Final = 1_000
"""How many changed ledgers of people are worth writing the index for."""
_JSON: Final = ".json"


class GroupIndex:
    """The index of one store."""

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
            found |= set(texts_of(parsed(_content(self._cursors, _name(user))), "groups"))
        return found

    def note(self, group: str, users: Iterable[str]) -> None:
        """Note that the file of a group is about to name people."""
        if self._disk.shared:
            for user in users:
                self._add(user, {group})

    def forget(self, user: str) -> None:
        """Drop what the index has about a person."""
        drop(self._cursors, _name(user))

    def lose(self) -> None:
        """Have the index built again, because somebody else may have written files of groups."""
        drop(self._cursors, f"{INDEX}{_JSON}")

    # ------------------------------------------------------------------ inside

    def _index(self) -> Mapping[str, object]:
        try:
            return parsed(_content(self._cursors, f"{INDEX}{_JSON}"))
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
            self._cursors.change(f"{INDEX}{_JSON}", lambda before: index)
        except OSError as error:
            log.warning("which groups have words of whom could not be written: %s", error)

    def _add(self, user: str, groups: Collection[str]) -> None:
        def work(before: bytes | None) -> bytes | None:
            known = set(texts_of(parsed(before or b""), "groups"))
            return None if known.issuperset(groups) else render_json({"groups": sorted({*known, *groups})})

        self._cursors.change(_name(user), work)

    def _in_files(self, user: str) -> set[str]:
        """The groups whose file names a person, in a store of one process: others may write files there."""
        if self._disk.shared:
            return set()
        named = re.compile(rb"(?<!\w)%b(?!\w)" % re.escape(user.encode()))
        return {subject for subject, name in self._files() if named.search(_content(self._groups, name))}

    def _members(self) -> Iterable[tuple[str, Collection[str]]]:
        for subject, name in self._files():
            try:
                group = Group.from_json(json.loads(_content(self._groups, name)))
            except (ValueError, RecursionError):
                continue
            yield subject, [user for user, _ in group.members]

    def _files(self) -> Iterable[tuple[str, str]]:
        for name in self._groups.names():
            if name.endswith(_JSON) and name.count(".") == 1:
                yield group_subject(name.removesuffix(_JSON)), name


def _people_in(content: bytes) -> tuple[set[str], bool]:
    """The people whom a ledger's commits name, and whether it has lines that nobody can read."""
    *lines, rest = content.split(b"\n")
    people, unreadable = set[str](), bool(rest)
    for line in lines:
        try:
            record = decode_line(line)
        except (LedgerDamaged, NewerSchema):
            unreadable = True
        else:
            people |= contributors(record) if isinstance(record, Commit) else set()
    return people, unreadable


def _name(user: str) -> str:
    return f"{OF_PERSON}{user}_{_JSON}"


def _content(folder: Documents, name: str) -> bytes:
    """A text's bytes; empty if there is none."""
    try:
        return folder.read(name)
    except FileNotFoundError:
        return b""
