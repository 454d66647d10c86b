"""Restores views to files on disk: profiles, groups, summaries, tool calls, clears, choices.

These have no history, so each kind has a rule that keeps everything newer on this disk:

    profile, group   united; names, members and purpose on this disk come first
    summary          the later one, with its two cursors: how far it goes, and whose words are in it
    tool calls       added, each once, if they are not older than 30 days
    clears           added, each once; what they hide is not restored
    choices          only those of people without a choice on this disk

A file that can't be read is set aside as `<name>.corrupt-<time>`. What is about somebody who was erased
here is not restored. Blocking. Each file is written completely or not at all, so repeating this after a
kill has the same result.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from discoclaw.core.profile import MOST_MEMBERS, MOST_NAMES, Group, Profile
from discoclaw.core.subject import group_subject, person_of, user_subject
from discoclaw.core.times import valid_ms
from discoclaw.memory.conversations import clears as clear_lines
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.cursors import people_of
from discoclaw.memory.erasing.groups import GroupIndex
from discoclaw.memory.people import choices, tool_log
from discoclaw.memory.people.choices import Chosen
from discoclaw.memory.people.tool_log import Call
from discoclaw.store.files import render_json, session_name, stamp_of
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING, Disk, Documents

T = TypeVar("T")
ErasedAt = Callable[[str], int]
"""When (ms) a subject was last erased; -1 if never."""


@dataclass(frozen=True, slots=True)
class Dated(Generic[T]):
    """A published file's value, and the time (s) of its event."""

    value: T
    at: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation's summary as in its file, with its two cursors as far as they were published."""

    text: str
    updated_at: int
    seen: Mapping[str, Any] | None = None
    people: Mapping[str, Any] | None = None


@dataclass(slots=True)
class RecoveredViews:
    """The views that were found: profiles by user id, groups by channel id, summaries by session key.

    Calls are by subject, choices by user id.
    """

    profiles: dict[str, Dated[Profile]] = field(default_factory=dict)
    groups: dict[str, Dated[Group]] = field(default_factory=dict)
    summaries: dict[str, Summary] = field(default_factory=dict)
    calls: dict[str, list[Call]] = field(default_factory=dict)
    clears: list[Clear] = field(default_factory=list)
    choices: dict[str, Chosen] = field(default_factory=dict)


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


def restore_views(views: RecoveredViews, to: Destination) -> list[str]:
    """Write all views. Returns the names of changed files. Raises OSError and MemoryFault."""
    cleared = clear_lines.newest([*clear_lines.CLEARS.read(to.disk.log(clear_lines.FILE)), *views.clears])
    written = _restore_clears(views, to)
    if choices.add_missing(views.choices, to.disk, dry=to.dry):
        written.append(choices.FILE)
    for session, summary in sorted(views.summaries.items()):
        if not clear_lines.hidden(cleared, session, summary.updated_at):
            written += _restore_summary(session, summary, to)
    for user_id, profile in sorted(views.profiles.items()):
        written += _restore_profile(user_id, profile.value, to)
    for channel_id, group in sorted(views.groups.items()):
        written += _restore_group(channel_id, group, to)
    for subject, calls in sorted(views.calls.items()):
        shown = [one for one in calls if not clear_lines.hidden(cleared, one.session, one.at)]
        written += _restore_calls(subject, shown, to)
    return written


# ---------------------------------------------------------------------- lines


def _restore_clears(views: RecoveredViews, to: Destination) -> list[str]:
    kept = [one for one in views.clears if not _clear_is_of_erased(one, to)]
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
    for prefix, cursor in (("people", summary.people), ("summary", summary.seen)):
        if cursor is not None and _restore_cursor(session_name(f"{prefix}-{session}"), cursor, to):
            written.append(f"{CURSORS}/{session_name(f'{prefix}-{session}')}")
    if here is None or here.updated_at < summary.updated_at:
        content = render_json({"summary": summary.text, "updatedAt": summary.updated_at})
        written += _write(rolling, name, content, to)
    return written


def _is_of_erased(session: str, summary: Summary, to: Destination) -> bool:
    person = person_of(session)
    people = {person} if person is not None else people_of(summary.people or {})
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
