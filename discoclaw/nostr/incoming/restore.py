"""Restores ledgers from relays to the memory on disk. Nothing that is here is ever lost.

A ledger that is missing here comes back byte for byte. One that is here gets the records that it lacks,
each once. What a person erased here does not come back. What another replica erased is kept here and
reported: only a person erases. Restoring is idempotent, also after a kill: each file is written completely
or not at all. Knows nothing about relays.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Record, encode_line
from discoclaw.core.history import History
from discoclaw.core.profile import MOST_MEMBERS, MOST_NAMES, Group, Profile
from discoclaw.core.subject import group_subject, person_of, user_of, user_subject
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.memory.conversations import clears as clear_lines
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.cursors import people_of
from discoclaw.memory.erasing.groups import GroupIndex
from discoclaw.memory.exchange.histories import Records
from discoclaw.memory.exchange.take import united
from discoclaw.memory.people import choices, tool_log
from discoclaw.memory.people.tool_log import Call
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.documents import Dated, FoundDocuments, Summary
from discoclaw.nostr.ledgers import RebuiltLedger, with_mends
from discoclaw.nostr.names import Names
from discoclaw.nostr.schemas import Address
from discoclaw.store.files import read_in_thread, render_json, session_name, stamp_of
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING, Disk, Documents, Ledgers, Log

_ANY_NUMBER = 1_000_000_000
"""The limit of items on a branch does not apply: recovery must not refuse what was stored before."""


@dataclass(frozen=True, slots=True)
class RestoredLedger:
    """The result for one ledger. `records` counts new ones; `lost` are ids of commits that no relay has.

    `withheld` counts missing records that never left the disk that wrote them, `erased` those left out
    because they were erased here. `refused` says why nothing was restored.
    """

    subject: str
    here: bool = False
    """Whether there was a ledger before."""
    records: int = 0
    lost: frozenset[str] = frozenset()
    withheld: int = 0
    erased: int = 0
    refused: str = ""


async def restore_ledger(memory: Memory, found: RebuiltLedger, now_ms: int) -> RestoredLedger:
    """Restore one ledger. Raises MemoryFault when the disk fails; the ledger is then unchanged."""
    subject, erased_at = found.subject, memory.erased_at(found.subject)
    try:
        before, new = await read_in_thread(_prepared, memory, found, erased_at, now_ms)
        if not before.records:
            if before.here and await read_in_thread(_lacks_durable_file, memory, subject):
                await memory.view(subject)  # this writes the file
            return before
        if new is not None:
            records, result = new
            if not result.records or await memory.restore(subject, records):
                return result
        return await memory.act(subject, lambda history, now, _: _new_records(found, history, now, erased_at))
    except Refused as refusal:
        return RestoredLedger(subject, refused=str(refusal))
    except MemoryFault as fault:
        if isinstance(fault.__cause__, OSError):
            raise  # the disk fails, so the other ledgers would fail too
        return RestoredLedger(subject, refused=str(fault))


def _lacks_durable_file(memory: Memory, subject: str) -> bool:
    """Whether a person's durable file is missing: a kill may have come between ledger and file."""
    user_id, folder = user_of(subject), memory.disk.durable
    return user_id is not None and folder is not None and not (folder / f"{user_id}.json").exists()


def preview_ledger(found: RebuiltLedger, here: Log, erased_at: int) -> RestoredLedger:
    """Report what restoring one ledger would do. Blocking. Raises MemoryFault when the disk fails.

    Lines on disk are compared as text and not verified.
    """
    content = _read(here)
    lines, known = frozenset(content.splitlines()), _ids(content)
    records = found.records()
    kept = [one for one in records if ms_of_iso(one.timestamp) > erased_at]
    new = sum(not lines or encode_line(one).rstrip(b"\n") not in lines for one in kept)
    _, gaps = with_mends(kept, known, found.withheld)
    withheld = len(found.withheld.keys() - _ids(content, mended=False))
    return RestoredLedger(found.subject, bool(content), new, gaps, withheld, len(records) - len(kept))


def _read(lines: Log) -> bytes:
    try:
        return lines.read()
    except OSError as error:
        raise MemoryFault(
            f"cannot read {lines.path.name}: {error}; check the disk and recover again"
        ) from error


def _ids(content: bytes, *, mended: bool = True) -> frozenset[str]:
    """The ids that a ledger's lines claim, and (`mended`) those that its mends accept as lost.

    Nothing is verified.
    """
    ids = set()
    for line in content.splitlines():
        try:
            value = json.loads(line)
            ids.add(str(value["id"]))
            if mended and value.get("action") == "mend":
                ids.add(str(value["head"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # loading the ledger reports damaged lines
    return frozenset(ids)


def erased_elsewhere(ledgers: Ledgers, names: Names, gone: Collection[Address]) -> dict[str, tuple[int, int]]:
    """For each subject here, how many of its records are deleted on relays, and how many it has. Blocking.

    Subjects without deleted records are left out. Raises MemoryFault when the disk fails.
    """
    addresses = {d for _, d in gone}
    prefixes = {d.rpartition(":")[0] + ":" for d in addresses}
    found = {}
    try:
        subjects = [subject for subject, _ in ledgers.by_age()]
    except OSError as error:
        raise MemoryFault(
            f"cannot list the memories on this disk: {error}; check it and recover again"
        ) from error
    for subject in subjects:
        if names.ledger_prefix(subject) not in prefixes:
            continue
        here = _ids(_read(ledgers.log(subject)))
        deleted = sum(names.record(subject, one) in addresses for one in here)
        if deleted:
            found[subject] = (deleted, len(here))
    return found


# ---------------------------------------------------------------------- records


NewRecords = tuple[Sequence[Record], RestoredLedger]


def _prepared(
    memory: Memory, found: RebuiltLedger, erased_at: int, now_ms: int
) -> tuple[RestoredLedger, NewRecords | None]:
    """Compute what restoring a ledger would change, with its records if the ledger is missing here. Blocking.

    Raises Refused, and MemoryFault when the disk fails.
    """
    before = preview_ledger(found, memory.ledgers.log(found.subject), erased_at)
    missing = bool(before.records) and not before.here
    return before, _new_records(found, History(), now_ms, erased_at) if missing else None


def _new_records(found: RebuiltLedger, history: History, now_ms: int, erased_at: int) -> NewRecords:
    """The records to add to a history. Raises Refused."""
    known = history.commits.keys() | history.accepted
    served = found.records()
    mended, gaps = with_mends(served, known, found.withheld, after=erased_at)
    records, report = united(
        Records(mended), history, now_ms=now_ms, max_items=_ANY_NUMBER, erased_at=erased_at
    )
    if not history.records:  # line order, not time order, so that the file comes back byte for byte
        order: Mapping[str, int] = {record.id: number for number, record in enumerate(mended)}
        records.sort(key=lambda record: order.get(record.id, -1))
    new = max(0, report.records - (len(mended) - len(served)))  # mends are not counted
    ids = {record.id for record in history.records}
    withheld = len(found.withheld.keys() - ids)
    return records, RestoredLedger(found.subject, bool(ids), new, gaps, withheld, report.erased)


# ----------------------------------------------------------------------
# Restores views to files on disk: profiles, groups, summaries, tool calls, clears, choices.

T = TypeVar("T")
ErasedAt = Callable[[str], int]
"""When (ms) a subject was last erased; -1 if never."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The stores to which views are written.

    `any_erased`: somebody was erased here, so a summary without authors may be theirs.

    With `dry` nothing is written.
    """

    disk: Disk
    erased_at: ErasedAt
    any_erased: bool
    now_ms: int
    dry: bool = False


def restore_documents(documents: FoundDocuments, to: Destination) -> list[str]:
    """Write all views. Returns the names of changed files. Raises OSError and MemoryFault."""
    cleared = clear_lines.newest([*clear_lines.CLEARS.read(to.disk.log(clear_lines.FILE)), *documents.clears])
    written = _restore_clears(documents, to)
    if choices.add_missing(documents.choices, to.disk, dry=to.dry):
        written.append(choices.FILE)
    for session, summary in sorted(documents.summaries.items()):
        if not clear_lines.hidden(cleared, session, summary.updated_at):
            written += _restore_summary(session, summary, to)
    for user_id, profile in sorted(documents.profiles.items()):
        written += _restore_profile(user_id, profile.value, to)
    for channel_id, group in sorted(documents.groups.items()):
        written += _restore_group(channel_id, group, to)
    for subject, calls in sorted(documents.calls.items()):
        shown = [one for one in calls if not clear_lines.hidden(cleared, one.session, one.at)]
        written += _restore_calls(subject, shown, to)
    return written


# ---------------------------------------------------------------------- lines


def _restore_clears(documents: FoundDocuments, to: Destination) -> list[str]:
    kept = [one for one in documents.clears if not _clear_is_of_erased(one, to)]
    kept.sort(key=lambda one: (one.at, one.id))
    lines = to.disk.log(clear_lines.FILE)
    known = {one.id for one in clear_lines.CLEARS.read(lines)}
    if all(one.id in known for one in kept):
        return []
    if not to.dry:
        clear_lines.CLEARS.add(lines, kept)
    return [clear_lines.FILE]


def _clear_is_of_erased(clear: Clear, to: Destination) -> bool:
    """Whether a clear is about somebody who was erased since."""
    people = {one for one in (clear.by, person_of(clear.session)) if one is not None}
    return any(to.erased_at(user_subject(one)) >= clear.at for one in people)


def _restore_calls(subject: str, calls: list[Call], to: Destination) -> list[str]:
    since = max(to.now_ms - tool_log.KEPT_MS, to.erased_at(subject) + 1)
    kept = [one for one in calls if one.at >= since]
    lines = tool_log.log_of(to.disk, subject)
    known = {one.id for one in tool_log.CALLS.read(lines)}
    if all(one.id in known for one in kept):
        return []
    if not to.dry:
        tool_log.CALLS.add(lines, kept)
    return [f"tools/{lines.path.name}"]


# ---------------------------------------------------------------------- summaries


def _restore_summary(session: str, summary: Summary, to: Destination) -> list[str]:
    if _is_of_erased(session, summary, to):
        return []
    name, rolling = session_name(session), to.disk.documents(ROLLING)
    here = _summary_here(rolling, name, to)
    if here is not None and here.updated_at > summary.updated_at:
        return []
    written = []
    # Its authors first: an erasure that finds a summary without them could not tell whose words are in it.
    cursors: dict[str, dict[str, Any]] = {}
    if summary.people is not None:
        cursors["people"] = {"session": session, "people": list(summary.people)}
    if summary.up_to is not None:
        cursors["summary"] = {"upTo": summary.up_to} | ({"count": summary.count} if summary.count else {})
    for prefix, cursor in cursors.items():
        if _restore_cursor(session_name(f"{prefix}-{session}"), cursor, to):
            written.append(f"{CURSORS}/{session_name(f'{prefix}-{session}')}")
    if here is None or here.updated_at < summary.updated_at:
        content = render_json({"summary": summary.text, "updatedAt": summary.updated_at})
        written += _write(rolling, name, content, to)
    return written


def _is_of_erased(session: str, summary: Summary, to: Destination) -> bool:
    person = person_of(session)
    people = {person} if person is not None else set(summary.people or ())
    # Nobody knows whose words are in it, so it may be those of anybody who was erased.
    if not people:
        return to.any_erased
    return any(to.erased_at(user_subject(one)) >= summary.updated_at for one in people)


def _summary_here(rolling: Documents, name: str, to: Destination) -> Summary | None:
    def read(value: Any) -> Summary:
        text, at = value["summary"], value["updatedAt"]
        if not isinstance(text, str) or not valid_ms(at):
            raise ValueError("not a summary")
        return Summary(text, at)

    return _here(rolling, name, read, to)


def _restore_cursor(name: str, cursor: Mapping[str, Any], to: Destination) -> bool:
    """Write a cursor, unless the one on disk is further.

    Lists of people are united. Returns whether it changed.
    """
    folder = to.disk.documents(CURSORS)
    here = _here(folder, name, dict, to) or {}
    value = dict(cursor)
    if "people" in value:
        # One author too many is harmless; one too few would survive an erasure. Their names are only here.
        value = {**here, **value, "people": sorted(people_of(here) | people_of(value))}
    elif _up_to(here) >= _up_to(value):
        return False
    return bool(value != here and _write(folder, name, render_json(value), to))


def _up_to(cursor: Mapping[str, Any]) -> int:
    value = cursor.get("upTo")
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else -1


# ---------------------------------------------------------------------- profiles and groups


def _restore_profile(user_id: str, found: Profile, to: Destination) -> list[str]:
    # `first_seen` is in whole seconds: the erasure may lie in the same one.
    if (found.first_seen + 1) * 1000 <= to.erased_at(user_subject(user_id)):
        return []
    folder, name = to.disk.documents(PROFILES), f"{user_id}.json"
    here = _here(folder, name, Profile.from_json, to)
    result = found if here is None else united_profile(here, found)
    return _write(folder, name, render_json(result.to_json()), to) if result != here else []


def united_profile(here: Profile, found: Profile) -> Profile:
    """Both profiles together: names by time, without repetitions in a row, and the earlier `first_seen`.

    Notes and preferences are those on this disk: they are a view of the ledger, which is restored later.
    """
    names: list[tuple[str, int]] = []
    for name, at in sorted({*here.display_names, *found.display_names}, key=lambda one: (one[1], one[0])):
        if not names or names[-1][0] != name:
            names.append((name, at))
    if len(names) > MOST_NAMES:
        names = [names[0], *names[1 - MOST_NAMES :]]
    return replace(
        here,
        display_names=tuple(names),
        first_seen=min(here.first_seen, found.first_seen),
        other={**found.other, **here.other},
    )


def _restore_group(channel_id: str, found: Dated[Group], to: Destination) -> list[str]:
    folder, name, group = to.disk.documents(GROUPS), f"{channel_id}.json", found.value
    for user_id, _ in group.members:
        if to.erased_at(user_subject(user_id)) >= found.at * 1000:
            group = group.without(user_id)
    here = _here(folder, name, Group.from_json, to)
    result = group if here is None else united_group(here, group)
    if result != here and not to.dry:
        GroupIndex(to.disk).note(group_subject(channel_id), [user_id for user_id, _ in result.members])
    return _write(folder, name, render_json(result.to_json()), to) if result != here else []


def united_group(here: Group, found: Group) -> Group:
    """Both groups together.

    Members are ordered by when they spoke last, so members that are new here come first.

    Themes and decisions are those on this disk: they are a view of the ledger, which is restored later.
    """
    known = {user_id for user_id, _ in here.members}
    members = [*(one for one in found.members if one[0] not in known), *here.members]
    purpose = here.purpose if here.purpose is not None else found.purpose
    other = {**found.other, **here.other}
    return replace(here, purpose=purpose, members=tuple(members[-MOST_MEMBERS:]), other=other)


# ---------------------------------------------------------------------- files


def _here(folder: Documents, name: str, read: Callable[[Any], T], to: Destination) -> T | None:
    """The value in a file on disk; None if there is none.

    An unreadable file is set aside and counts as none.
    """
    try:
        content = folder.read(name)
    except FileNotFoundError:
        return None
    try:
        return read(json.loads(content))
    except (ValueError, TypeError, KeyError, RecursionError):
        if not to.dry:
            folder.keep_aside(name, "corrupt", stamp_of(to.now_ms))
        return None


def _write(folder: Documents, name: str, content: bytes, to: Destination) -> list[str]:
    if not to.dry:
        folder.write(name, content)
    return [f"{folder.folder.name}/{name}"]
