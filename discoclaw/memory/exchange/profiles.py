"""Profiles of people and of groups in the folder of a whole store (see `everybody`), written and read.

The files are the same as in a store of plain files. Existing ones are never replaced. The memory in a group's
file is written anew from the ledger, so a file cannot bring in what the ledger doesn't have. Blocking.
"""

from collections.abc import Iterator

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_subject, user_subject
from discoclaw.memory.disk.files import render_json, safe_id
from discoclaw.memory.disk.port import GROUPS, PROFILES, Disk, Documents
from discoclaw.memory.erasing.group_index import GroupIndex
from discoclaw.memory.exchange.layout import parse_json
from discoclaw.memory.exchange.logs import ErasedAt
from discoclaw.memory.subjects import ledger

_JSON = ".json"


def write_profiles(disk: Disk, target: Disk) -> None:
    """Copy the files of all people and groups. Raises OSError."""
    for part in (PROFILES, GROUPS):
        source = disk.documents(part)
        for name in source.names():
            if name.endswith(_JSON) and not name.startswith((".", "#")):
                target.documents(part).write(name, source.read(name))


def check_profiles(disk: Disk) -> None:
    """Raise Refused, naming the file, for one that is not a profile. Raises OSError."""
    for part, read in ((PROFILES, Profile.from_json), (GROUPS, Group.from_json)):
        folder = disk.documents(part)
        for name in folder.names():
            where = f"{part}/{name}"
            try:
                safe_id(name.removesuffix(_JSON))
                read(parse_json(where, folder.read(name)))
            except (ValueError, MemoryFault) as error:
                raise Refused(f"{where} is not what it should be ({error}); move it out") from error


def take_profiles(source: Disk, disk: Disk, erased_at: ErasedAt, *, exported_at: int) -> None:
    """Add the files that don't exist yet, except of people who were erased after the export (ms).

    The ledgers have to be imported first. Raises OSError.
    """
    for user_id, content in _new(source.documents(PROFILES), disk.documents(PROFILES)):
        if erased_at(user_subject(user_id)) < exported_at:
            disk.documents(PROFILES).write(f"{user_id}{_JSON}", content)
    for group_id, content in _new(source.documents(GROUPS), disk.documents(GROUPS)):
        before = Group.from_json(parse_json(group_id, content))
        view = History(ledger.read(disk.ledgers.log(group_subject(group_id))).records).shown()
        group = before.with_view(view)
        for user_id, _ in before.members:
            if erased_at(user_subject(user_id)) >= exported_at:
                group = group.without(user_id)
        GroupIndex(disk).note(group_subject(group_id), [user_id for user_id, _ in group.members])
        same = group == before
        disk.documents(GROUPS).write(f"{group_id}{_JSON}", content if same else render_json(group.to_json()))


def _new(source: Documents, target: Documents) -> Iterator[tuple[str, bytes]]:
    """The files that don't exist yet, by id."""
    known = set(target.names())
    for name in source.names():
        if name not in known:
            yield name.removesuffix(_JSON), source.read(name)
