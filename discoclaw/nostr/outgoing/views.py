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
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from discoclaw.core.errors import MemoryFault, NostrError
from discoclaw.core.item import by_newest
from discoclaw.core.privacy import may_show
from discoclaw.core.profile import Group, Profile, preference_text
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import group_of, group_subject, person_of, user_of, user_subject
from discoclaw.core.text import scrub
from discoclaw.core.times import valid_ms
from discoclaw.core.view import View
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations import clears
from discoclaw.memory.conversations.clears import Clear, clear_of
from discoclaw.memory.cursors import people_of
from discoclaw.memory.people import choices, tool_log
from discoclaw.memory.people.tool_log import Call, call_of
from discoclaw.nostr.encryption import canonical
from discoclaw.nostr.event import MAX_PLAINTEXT
from discoclaw.nostr.names import CHOICES, Names
from discoclaw.nostr.outgoing import ledger_view
from discoclaw.nostr.outgoing.ledger_view import (
    CONFIDENTIAL_MARK,
    NOTHING_CONFIDENTIAL,
    Confidential,
    LedgerContent,
)
from discoclaw.nostr.schemas import (
    APP,
    CLEAR,
    PREFERENCE,
    SUMMARY,
    TOOL,
    TOPICS,
    EventTemplate,
    clear_body,
    tool_body,
    unique,
)
from discoclaw.store.files import session_name
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING, TOOLS, Disk, Documents, Log

log = logging.getLogger(__name__)
T = TypeVar("T")

CHOSEN: Final = "choices"
"""The unit of what people have chosen about being remembered."""
_PEOPLE_PER_EVENT: Final = 300
_SUBJECT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE = re.compile(r"([A-Za-z0-9_-]{1,64})\.jsonl?")
_KEY = re.compile(r"discord:(?:dm|thread|channel):[A-Za-z0-9_-]+")
CONVERSATION = re.compile(r"(?:summary-)?discord[:-](dm|thread|channel)[:-]([A-Za-z0-9_-]+)\.json")


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


@dataclass(slots=True)
class _ViewBuilder:
    """Collects views and the kinds that were read completely."""

    views: list[EventTemplate] = field(default_factory=list)
    complete: set[int] = field(default_factory=set)

    def add(self, what: str, make: Callable[[], Iterable[EventTemplate]]) -> None:
        """Add templates. What can't be made is logged and left out, so that the rest is mirrored."""
        try:
            self.views += make()
        except NostrError as error:
            log.error("cannot mirror %s: %s", what, error)


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
        self._payloads = Payloads(names, redactor)

    def units(self) -> list[str]:
        """Every unit that has something on disk. Raises OSError."""
        # The patterns leave out what people put into the folders: backups, editors' files.
        found = [subject for subject, _ in self._disk.ledgers.by_age() if _SUBJECT.fullmatch(subject)]
        for folder, subject_of in ((PROFILES, user_subject), (TOOLS, str), (GROUPS, group_subject)):
            files = map(_FILE.fullmatch, self._disk.documents(folder).names())
            found += [subject_of(file[1]) for file in files if file is not None]
        for folder in (ROLLING, CURSORS):
            files = map(CONVERSATION.fullmatch, self._disk.documents(folder).names())
            found += [f"{SESSION}discord:{file[1]}:{file[2]}" for file in files if file is not None]
        if choices.exist(self._disk):
            found.append(CHOSEN)
        # A cleared conversation may have no other file left.
        cleared = clears.CLEARS.read(self._disk.log(clears.FILE))
        found += [f"{SESSION}{one.session}" for one in cleared if _KEY.fullmatch(one.session)]
        return list(dict.fromkeys(found))

    def templates(self, unit: str) -> list[EventTemplate]:
        """Everything that should be published of a unit. Raises OSError when the disk fails."""
        return list(self.desired(unit).templates)

    def desired(
        self, unit: str, since: LedgerCursor = NOTHING_PUBLISHED, *, full: bool = False
    ) -> DesiredState:
        """The desired state of a unit. Raises OSError when the disk fails.

        Of the ledger it has only what changed `since` a cursor. It has all of it with `full`, or when the
        ledger no longer begins with the bytes of the cursor.
        """
        if unit.startswith(SESSION):
            session = self._session(unit.removeprefix(SESSION))
            return DesiredState(views=tuple(session.views), complete=frozenset(session.complete))
        if unit == CHOSEN:
            return DesiredState(views=self._choices())
        content = self._disk.ledgers.log(unit).read()
        size = ledger_view.complete_size(content)
        known = 0 if full or not self._continues(unit, content, since) else since.size
        is_new, has_confidential = known < size or not known, CONFIDENTIAL_MARK in content
        must_read = is_new or has_confidential  # an old item may have become confidential: look at all of it
        ledger = ledger_view.read(unit, content) if must_read else LedgerContent(unit, size=size)
        if ledger.unreadable and is_new:
            log.warning("%s: %d lines cannot be read and are not mirrored", unit, ledger.unreadable)
        confidential = NOTHING_CONFIDENTIAL
        if has_confidential:
            confidential, known = _confidential(ledger, known)
        records = ledger_view.records(ledger, self.names, self._redactor, confidential, since=known)
        found = self._views(ledger, confidential, is_new=is_new)
        return DesiredState(
            tuple(records),
            tuple(found.views),
            # A ledger that has become shorter means that the disk was lost or restored from a backup. Then
            # missing views were not removed by anybody.
            frozenset(found.complete) if since.size <= size else frozenset(),
            full=known == 0,
            ledger=LedgerCursor(size, self._digest(unit, content[:size])) if size else NOTHING_PUBLISHED,
        )

    def _continues(self, unit: str, content: bytes, since: LedgerCursor) -> bool:
        """Whether a ledger still begins with what was published of it."""
        return 0 < since.size <= len(content) and self._digest(unit, content[: since.size]) == since.digest

    def _digest(self, unit: str, content: bytes) -> str:
        rules = ledger_view.RULES
        return self.names.keyed_hash(f"{unit}:{hashlib.sha256(content).hexdigest()}:rules-{rules}")

    def _views(self, ledger: LedgerContent, confidential: Confidential, *, is_new: bool) -> _ViewBuilder:
        found = _ViewBuilder()
        if (user_id := user_of(ledger.subject)) is not None:
            is_known = self._profile(found, user_id, confidential)
            self._tools(found, user_id, confidential, is_known=is_known or ledger.size > 0)
            if is_new and ledger.size:
                self._preference(found, user_id, ledger, confidential)
        elif (channel_id := group_of(ledger.subject)) is not None:
            self._group(found, channel_id, confidential)
        return found

    # ------------------------------------------------------------------ people and groups

    def _profile(self, found: _ViewBuilder, user_id: str, confidential: Confidential) -> bool:
        """Add a person's profile. Returns whether there is one."""
        profile = parse_file(self._disk.documents(PROFILES), user_id, Profile.from_json)
        if profile is None:
            return False
        is_owner, make = user_id in self._owners, self._payloads.profile
        found.add(
            f"the profile of {user_id}", lambda: [make(user_id, profile, confidential, is_owner=is_owner)]
        )
        return True

    def _preference(
        self, found: _ViewBuilder, user_id: str, ledger: LedgerContent, confidential: Confidential
    ) -> None:
        make = self._payloads.preference
        found.add(
            f"what {user_id} prefers",
            lambda: filter(None, [make(user_id, ledger.view(), confidential)]),
        )
        if not ledger.unreadable:
            found.complete.add(PREFERENCE)

    def _tools(
        self, found: _ViewBuilder, user_id: str, confidential: Confidential, *, is_known: bool
    ) -> None:
        """Add a person's tool calls. The log drops old ones, so published calls that it lacks are removed.

        But not if nothing of the person is on disk: then the disk was lost.
        """
        calls, all_read = read_lines(tool_log.log_of(self._disk, user_subject(user_id)), call_of)
        for call in {one.id: one for one in calls}.values():
            found.add(
                f"a call of {call.tool}",
                lambda call=call: [self._payloads.tool(user_id, call, confidential)],  # type: ignore[misc]
            )
        if all_read and (calls or is_known):
            found.complete.add(TOOL)

    def _group(self, found: _ViewBuilder, channel_id: str, confidential: Confidential) -> None:
        group = parse_file(self._disk.documents(GROUPS), channel_id, Group.from_json)
        if group is None:
            return
        h, make = self._groups.get(channel_id, ""), self._payloads.group
        found.add(f"the group {channel_id}", lambda: make(channel_id, group, confidential, h=h))
        found.complete.add(TOPICS)

    def _choices(self) -> tuple[EventTemplate, ...]:
        """The choices of people about being remembered, a few hundred people in one event."""
        try:
            people = sorted((choices.read(self._disk) or {}).items())
        except MemoryFault as fault:
            log.warning("cannot mirror what people have chosen about being remembered: %s", fault)
            return ()
        starts = enumerate(range(0, len(people), _PEOPLE_PER_EVENT))
        return tuple(
            EventTemplate(
                APP, f"{CHOICES}{number}", {"people": dict(people[start : start + _PEOPLE_PER_EVENT])}
            )
            for number, start in starts
        )

    # ------------------------------------------------------------------ conversations

    def _session(self, key: str) -> _ViewBuilder:
        found = _ViewBuilder()
        if not _KEY.fullmatch(key):
            log.warning("cannot mirror %s: not the session key of a DM, channel or thread", key)
            return found
        lines, all_read = read_lines(self._disk.log(clears.FILE), clear_of)
        cleared = {one.id: one for one in lines if one.session == key}.values()
        for one in cleared:
            found.views.append(self._payloads.clear(one))
        if lines and all_read:
            found.complete.add(CLEAR)
        self._summary(found, key, max((one.at for one in cleared), default=-1))
        return found

    def _summary(self, found: _ViewBuilder, key: str, cleared: int) -> None:
        """Add the summary, unless it was cleared.

        When a summary is cleared or erased, its cursor stays and no longer says that one was stored. If both
        are missing, the disk was lost; the relays' copy of a lost summary stays.
        """
        seen = self._cursor(f"summary-{key}")
        content = read_file(self._disk.documents(ROLLING), session_name(key))
        if content == b"":
            stored_at = (seen or {}).get("at")
            lost = valid_ms(stored_at) and stored_at > cleared
            if not lost and (seen is not None or cleared >= 0):
                found.complete.add(SUMMARY)
            return
        value = json_object(content)
        text, at = value.get("summary"), value.get("updatedAt")
        if not isinstance(text, str) or not valid_ms(at):
            return  # an unreadable summary was not removed by anybody
        found.complete.add(SUMMARY)
        if text and at > cleared:
            count, up_to = (seen or {}).get("count"), (seen or {}).get("upTo")
            summary = SummaryContent(
                key,
                scrub(text),
                at,
                count if isinstance(count, int) and not isinstance(count, bool) else 0,
                up_to if isinstance(up_to, str) else None,
                tuple(sorted(people_of(self._cursor(f"people-{key}") or {}))),
            )
            found.add(f"the summary of {key}", lambda: [self._payloads.summary(summary, cleared)])

    def _cursor(self, name: str) -> dict[str, Any] | None:
        content = read_file(self._disk.documents(CURSORS), session_name(name))
        return json_object(content) if content else None


def _confidential(ledger: LedgerContent, known: int) -> tuple[Confidential, int]:
    """The confidential part of a ledger, and the byte from which its records have to be compared.

    That is 0 when an item has become confidential since the first `known` bytes: older records are about
    it too.
    """
    now = Confidential.of(line.record for line in ledger.lines)
    before = Confidential.of(line.record for line in ledger.lines if line.start < known)
    return now, known if now.items == before.items else 0


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


def read_lines(lines: Log, parse: Callable[[object], T | None]) -> tuple[list[T], bool]:
    """The parsed lines of a log, and whether all of them could be read."""
    try:
        content = lines.read()
    except OSError as error:
        log.warning("cannot read %s, so it is not mirrored: %s", lines.path, error)
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


# ---------------------------------------------------------------------- payloads

WITHHELD: Final = "(confidential)"
"""Replaces a tool's answer that quotes something confidential."""
MIN_QUOTE: Final = 8
"""A cut-off answer that ends in this many characters of a confidential text counts as quoting it."""
MAX_BODY_BYTES: Final = MAX_PLAINTEXT - 200
"""Longest payload: it leaves room for the time, which is filled in when the event is signed."""


@dataclass(frozen=True, slots=True)
class SummaryContent:
    """A conversation's summary: session key, text and time (ms).

    As far as known also the number of messages in it, the newest one's id, and the ids of its authors.
    """

    session: str
    text: str
    at: int
    count: int = 0
    up_to: str | None = None
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Payloads:
    """Makes the templates of one bot. `names` has its pseudonyms."""

    names: Names
    redactor: Redactor

    # ------------------------------------------------------------------ people

    def profile(
        self, user_id: str, profile: Profile, confidential: Confidential, *, is_owner: bool
    ) -> EventTemplate:
        """A person's profile."""
        body = self.redactor.value(profile.published(is_owner=is_owner))
        body["notes"] = self._clean(text for text in profile.notes if text not in confidential.texts)
        body["preferences"] = {
            self.redactor.clean(key): self.redactor.clean(text)
            for key, text in profile.preferences.items()
            if confidential.texts.isdisjoint((text, preference_text(key, text)))
        }
        body["x_discord"] = user_id
        return EventTemplate(
            APP, self.names.profile(user_id), fitting(body, "notes", "preferences", "display_names")
        )

    def preference(self, user_id: str, view: View, confidential: Confidential) -> EventTemplate | None:
        """A person's preferences, one sentence a line, newest first; None if there are none.

        It may be published as plaintext only if nothing in it is private.
        """
        found = (item for item in view.active() if item.kind == "preference" and may_show(item, in_dm=True))
        items = sorted((item for item in found if item.id not in confidential.items), key=by_newest)
        if not items:
            return None
        hk, is_open = self.names.user_key(user_id), all(may_show(item, in_dm=False) for item in items)
        # Oldest first, because `fitting` drops the first entries; reversed again below.
        lines = self._clean(item.text for item in reversed(items))
        body: dict[str, Any] = {"history_key": hk, "preference": lines, "updated_at": None}
        if not is_open:  # in the payload, so that turning private makes it another version
            body["x_private"] = True
        body = fitting(body, "preference")
        body["preference"] = "\n".join(reversed(body["preference"]))
        return EventTemplate(PREFERENCE, f"{hk}:preference", body, hk=hk, plaintext_ok=is_open)

    def tool(self, user_id: str, call: Call, confidential: Confidential) -> EventTemplate:
        """A tool call, made while answering a person."""
        names, in_dm = self.names, person_of(call.session) is not None
        try:
            hk = names.history_key(call.session)
        # A call outside of any conversation we mirror belongs to the person.
        except NostrError:
            hk = names.user_key(user_id)
        quotes = any(_quotes(call.content, text) for text in confidential.texts)
        body = tool_body(
            hk,
            tool_name=self.redactor.clean(call.tool),
            success=call.ok,
            content=WITHHELD if quotes else self.redactor.clean(call.content),
            sender=names.user(user_id)[:32],
            # A DM has a channel id too, but in Aman's schema it has no group.
            group=names.channel(call.channel)[:32] if call.channel is not None and not in_dm else None,
            at=call.at // 1000,
            id=call.id,
            ms=call.at,
            channel=call.channel,
            session=call.session,
            private=call.private,
            discord=user_id,
        )
        return unique(TOOL, hk, body, salt=names.keyed_hash(canonical(body)), at=call.at // 1000)

    # ------------------------------------------------------------------ groups

    def group(
        self, channel_id: str, group: Group, confidential: Confidential, *, h: str = ""
    ) -> list[EventTemplate]:
        """A channel's group memory, and its themes as topics. `h` is its group on a NIP-29 relay."""
        hk, body = self.names.group_key(channel_id), self.redactor.value(group.to_json())
        decisions = [(text, when) for text, when in group.decisions if text not in confidential.texts]
        # Pseudonyms for other readers; our own ids are in `x_members`.
        body["members"] = [[self.names.user(user)[:32], name] for user, name in body["members"]]
        body["themes"] = self._clean(text for text in group.themes if text not in confidential.texts)
        body["decisions"] = [[self.redactor.clean(text), when] for text, when in decisions]
        body["x_members"] = self.redactor.value(group.members)
        body["x_discord"] = channel_id
        fits = fitting(body, "decisions", "themes", "members", "x_members")
        templates = [EventTemplate(APP, self.names.group(channel_id), fits, group=h)]
        if fits["themes"]:
            topics = {"history_key": hk, "topics": fits["themes"], "updated_at": None}
            templates.append(EventTemplate(TOPICS, f"{hk}:subscription_state", topics, hk=hk))
        return templates

    # ------------------------------------------------------------------ conversations

    def summary(self, summary: SummaryContent, cleared: int) -> EventTemplate:
        """A summary. It is dated after the second of the last clear (ms): Aman's readers hide older ones."""
        hk = self.names.history_key(summary.session)
        body: dict[str, Any] = {
            "history_key": hk,
            "summary": self.redactor.clean(summary.text),
            "message_count": summary.count,
            "updated_at": None,
            "x_session": summary.session,
            "x_updated_at": summary.at,
            "x_up_to": summary.up_to,
        }
        if person_of(summary.session) is None:
            body["x_people"] = list(summary.people)
        at = max(summary.at // 1000, cleared // 1000 + 1)
        return EventTemplate(SUMMARY, f"{hk}:summary", fitting(body), at, hk)

    def clear(self, one: Clear) -> EventTemplate:
        """The marker that a conversation was cleared."""
        hk, at = self.names.history_key(one.session), one.at // 1000
        sender = self.names.user(one.by)[:32] if one.by is not None else None
        body = clear_body(hk, sender=sender, at=at, id=one.id, ms=one.at, session=one.session, by=one.by)
        return unique(CLEAR, hk, body, salt=self.names.keyed_hash(canonical(body)), at=at)

    def _clean(self, texts: Iterable[str]) -> list[str]:
        return [self.redactor.clean(text) for text in texts]


def _quotes(content: str, text: str) -> bool:
    """Whether an answer contains a text, or was cut off in the middle of it."""
    if text in content:
        return True
    kept = content.removesuffix("…")
    return kept != content and any(text.startswith(kept[at:]) for at in range(len(kept) - MIN_QUOTE + 1))


def fitting(body: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    """A body that fits into one event: first entries of these fields are dropped, field by field.

    Raises NostrError when that isn't enough.
    """
    fits = dict(body)
    for name in fields:
        while fits[name] and (over := _over(fits)) > 0:
            fits[name] = _shorter(fits[name], over)
    if (over := _over(fits)) > 0:
        raise NostrError(f"{over} bytes too long for one event")
    return fits


def _over(body: Mapping[str, Any]) -> int:
    return len(canonical(body).encode("utf-8")) - MAX_BODY_BYTES


def _shorter(entries: Any, over: int) -> Any:
    """A list or an object without its first entries, which together have at least `over` bytes."""
    rest = list(entries.items()) if isinstance(entries, Mapping) else list(entries)
    while rest and over > 0:
        over -= len(canonical(rest.pop(0)).encode("utf-8"))
    return dict(rest) if isinstance(entries, Mapping) else rest
