"""Restores ledgers from relays to the memory on disk. Nothing that is here is ever lost.

A ledger that is missing here comes back byte for byte. One that is here gets the records that it lacks,
each once. What a person erased here does not come back. What another replica erased is kept here and
reported: only a person erases. Restoring is idempotent, also after a kill: each file is written completely
or not at all. Knows nothing about relays.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Record, encode_line
from discoclaw.core.history import History
from discoclaw.core.profile import MOST_MEMBERS, MOST_NAMES, Group, Profile
from discoclaw.core.subject import group_subject, person_of, user_of, user_subject
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.memory.conversations import clears as clear_lines
from discoclaw.memory.cursors import people_of
from discoclaw.memory.erasing.groups import GroupIndex
from discoclaw.memory.exchange.histories import Records
from discoclaw.memory.exchange.take import united
from discoclaw.memory.kept import Lines
from discoclaw.memory.people import choices, tool_log
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.documents import FoundDocuments, Summary
from discoclaw.nostr.ledgers import RebuiltLedger, with_mends
from discoclaw.nostr.schemas import Address, Names
from discoclaw.store.files import read_in_thread, render_json, safe_id, session_name, stamp_of
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING, TOOLS, Disk, Documents, Ledgers, Log

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
        before = await read_in_thread(preview_ledger, found, memory.ledgers.log(subject), erased_at)
        if not before.records:
            if before.here and await read_in_thread(_lacks_durable_file, memory, subject):
                await memory.view(subject)  # this writes the file
            return before
        if not before.here:
            records, result = await read_in_thread(_new_records, found, History(), now_ms, erased_at)
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


def _new_records(
    found: RebuiltLedger, history: History, now_ms: int, erased_at: int
) -> tuple[Sequence[Record], RestoredLedger]:
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


@dataclass(frozen=True, slots=True)
class Destination:
    """The stores to which views are written. `erased_at` is when (ms) a subject was last erased; -1 if never.

    `any_erased`: somebody was erased here, so a summary without authors may be theirs.

    With `dry` nothing is written.
    """

    disk: Disk
    erased_at: Callable[[str], int]
    any_erased: bool
    now_ms: int
    dry: bool = False

    def is_erased(self, people: Iterable[str | None], at: int) -> bool:
        """Whether one of these people was erased since a time (ms)."""
        return any(self.erased_at(user_subject(one)) >= at for one in people if one is not None)

    def here(self, folder: Documents, name: str, read: Callable[[Any], T]) -> T | None:
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
            if not self.dry:
                folder.keep_aside(name, "corrupt", stamp_of(self.now_ms))
            return None

    def write(self, folder: Documents, name: str, value: object) -> list[str]:
        if not self.dry:
            folder.write(name, render_json(value))
        return [f"{folder.folder.name}/{name}"]

    def add(self, kind: Lines[T], name: str, records: Collection[T]) -> list[str]:
        """Add the missing lines to a log. Returns its name if there were any."""
        lines = self.disk.log(name)
        if not {kind.key(one) for one in records} - {kind.key(one) for one in kind.read(lines)}:
            return []
        if not self.dry:
            kind.add(lines, records)
        return [name]


def restore_documents(documents: FoundDocuments, to: Destination) -> list[str]:
    """Write all views. Returns the names of changed files. Raises OSError and MemoryFault."""
    cleared = clear_lines.newest([*clear_lines.CLEARS.read(to.disk.log(clear_lines.FILE)), *documents.clears])
    # Nothing about somebody who was erased since.
    clears = [one for one in documents.clears if not to.is_erased((one.by, person_of(one.session)), one.at)]
    written = to.add(clear_lines.CLEARS, clear_lines.FILE, sorted(clears, key=lambda one: (one.at, one.id)))
    if choices.add_missing(documents.choices, to.disk, dry=to.dry):
        written.append(choices.FILE)
    for session, summary in sorted(documents.summaries.items()):
        if not clear_lines.hidden(cleared, session, summary.updated_at):
            written += _restore_summary(session, summary, to)
    profiles, groups = to.disk.documents(PROFILES), to.disk.documents(GROUPS)
    for user_id, profile in sorted(documents.profiles.items()):
        # `first_seen` is in whole seconds: the erasure may lie in the same one.
        if not to.is_erased([user_id], (profile.value.first_seen + 1) * 1000):
            there = to.here(profiles, f"{user_id}.json", Profile.from_json)
            united = profile.value if there is None else united_profile(there, profile.value)
            written += to.write(profiles, f"{user_id}.json", united.to_json()) if united != there else []
    for channel_id, dated in sorted(documents.groups.items()):
        found, held = dated.value, to.here(groups, f"{channel_id}.json", Group.from_json)
        for member, _ in dated.value.members:
            if to.is_erased([member], dated.at * 1000):
                found = found.without(member)
        group = found if held is None else united_group(held, found)
        if group != held:
            if not to.dry:
                GroupIndex(to.disk).note(group_subject(channel_id), [member for member, _ in group.members])
            written += to.write(groups, f"{channel_id}.json", group.to_json())
    for subject, calls in sorted(documents.calls.items()):
        since = max(to.now_ms - tool_log.KEPT_MS, to.erased_at(subject) + 1)
        shown = [one for one in calls if not clear_lines.hidden(cleared, one.session, one.at)]
        kept = [one for one in shown if one.at >= since]
        written += to.add(tool_log.CALLS, f"{TOOLS}/{safe_id(subject)}.jsonl", kept)
    return written


def _restore_summary(session: str, summary: Summary, to: Destination) -> list[str]:
    person = person_of(session)
    people = {person} if person is not None else set(summary.people or ())
    # Without authors nobody knows whose words are in it, so it may be those of anybody who was erased.
    if to.is_erased(people, summary.updated_at) if people else to.any_erased:
        return []

    def read(value: Any) -> int:
        text, at = value["summary"], value["updatedAt"]
        if not isinstance(text, str) or not valid_ms(at):
            raise ValueError("not a summary")
        return int(at)

    name, rolling, folder = session_name(session), to.disk.documents(ROLLING), to.disk.documents(CURSORS)
    here_at = to.here(rolling, name, read)
    if here_at is not None and here_at > summary.updated_at:
        return []
    written = []
    # Its authors first: an erasure that finds a summary without them could not tell whose words are in it.
    if summary.people is not None:
        cursor = session_name(f"people-{session}")
        here = to.here(folder, cursor, dict) or {}
        # One author too many is harmless; one too few would survive an erasure. Their names are only here.
        united = {**here, "session": session, "people": sorted(people_of(here) | set(summary.people))}
        written += to.write(folder, cursor, united) if united != here else []
    if summary.up_to is not None:
        cursor = session_name(f"summary-{session}")
        # The one on disk may be further.
        if _number(summary.up_to) > _number((to.here(folder, cursor, dict) or {}).get("upTo")):
            value = {"upTo": summary.up_to} | ({"count": summary.count} if summary.count else {})
            written += to.write(folder, cursor, value)
    if here_at is None or here_at < summary.updated_at:
        written += to.write(rolling, name, {"summary": summary.text, "updatedAt": summary.updated_at})
    return written


def _number(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else -1


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
