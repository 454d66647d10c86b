"""The logs of tool calls, cleared summaries and usage, in the folder of a whole store (see `everybody`).

    tools/<subject>.jsonl, clears.jsonl, usage/<month>.jsonl, answers/<channel id>.<period>.jsonl
                        the same files as in a store of plain files

Lines have ids, so a line that exists already is not added again. Unreadable lines are skipped.
Blocking. Raises OSError, and MemoryFault if somebody else writes meanwhile.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from discoclaw.core.errors import Refused
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.usage import Record, record_of
from discoclaw.memory.conversations import answers, clears
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.disk.lines import joined, line_of, rewrite, values_in
from discoclaw.memory.disk.port import TOOLS, USAGE, Disk
from discoclaw.memory.people import tool_calls

ErasedAt = Callable[[str], int]
"""When (ms) a subject was last erased; -1 when never."""
_MONTH = re.compile(r"\d{4}-\d\d\.jsonl")


def write_logs(disk: Disk, target: Disk) -> None:
    """Copy the logs of a store to another one that has none."""
    take_logs(disk, target, lambda subject: -1)


def check_logs(disk: Disk) -> None:
    """Raise Refused for a log that belongs to nobody."""
    folder = disk.documents(TOOLS)
    for name in folder.names():
        if tool_calls.subject_of(name) is None:
            raise Refused(f"{folder.folder / name} has no name of ours; move it out of the folder")


def take_logs(source: Disk, target: Disk, erased_at: ErasedAt) -> None:
    """Add the lines of a store to another one to which nobody else writes meanwhile.

    Lines from before the person they are about was erased are left out.
    """
    for name in source.documents(TOOLS).names():
        if (subject := tool_calls.subject_of(name)) is None:
            continue
        calls = tool_calls.read(tool_calls.log_of(source, subject))
        young = [one for one in calls if one.at > erased_at(subject)]
        if young:
            tool_calls.add(tool_calls.log_of(target, subject), young)
    marks = [_without_erased(one, erased_at) for one in clears.read(source.log(clears.FILE))]
    if known := [one for one in marks if one is not None]:
        clears.add(target.log(clears.FILE), known)
    for name in filter(_MONTH.fullmatch, source.documents(USAGE).names()):
        _take_usage(source, target, f"{USAGE}/{name}", erased_at)
    answers.take(source, target, erased_at)


def _take_usage(source: Disk, target: Disk, name: str, erased_at: ErasedAt) -> None:
    """Add a month's usage: what was spent stays, also where its person was erased and is no longer named."""
    records = [one for one in map(record_of, values_in(source.log(name).read())) if one is not None]

    def with_new(before: bytes) -> bytes:
        known = {_key(one) for one in map(record_of, values_in(before)) if one is not None}
        new = [one for one in records if _key(one) not in known]
        return joined(before, b"".join(line_of(_unnamed(one, erased_at).to_json()) for one in new))

    rewrite(target.log(name), with_new)


def _key(record: Record) -> tuple[type[Record], str]:
    return type(record), record.id


def _unnamed(record: Record, erased_at: ErasedAt) -> Record:
    user = record.payer.user
    if user is None or erased_at(user_subject(user)) < record.at:
        return record
    return replace(record, payer=record.payer.without(user))


def _without_erased(clear: Clear, erased_at: ErasedAt) -> Clear | None:
    """A clear without the name of somebody who was erased later; None if it was in their direct messages."""

    def gone(user_id: str | None) -> bool:
        return user_id is not None and erased_at(user_subject(user_id)) >= clear.at

    if gone(person_of(clear.session)):
        return None
    return replace(clear, by=None) if gone(clear.by) else clear
