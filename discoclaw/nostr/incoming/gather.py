"""Collects everything of ours from relays: fetched, selected, decrypted, parsed. Nothing is written.

Views become the values that our files hold. CPU work is done in batches, in threads, so that a running bot
keeps answering.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from discoclaw.core.errors import MemoryFault, NostrError, RelayUnreachable, SettingsError, UnreadableContent
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import dm_of, group_of, group_subject, user_of, user_subject
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import SESSION
from discoclaw.memory.conversations.clears import clear_of
from discoclaw.memory.people import choices
from discoclaw.memory.people.tool_log import call_of
from discoclaw.nostr.event import Event, public_key
from discoclaw.nostr.incoming.rebuild import RebuiltLedger, rebuild_ledgers
from discoclaw.nostr.incoming.report import Progress, RelayReport
from discoclaw.nostr.incoming.restore_views import Dated, RecoveredViews, Summary
from discoclaw.nostr.incoming.selection import (
    DecryptedEvent,
    EventCollector,
    Selection,
    UnreadableEvent,
    decrypted,
    is_tombstone,
)
from discoclaw.nostr.names import CHOICES, GROUP, INVENTORY, LEDGER, LENGTHS, NPUB, Names
from discoclaw.nostr.outgoing.views import CHOSEN
from discoclaw.nostr.relays.paging import FetchResult, OnEvents
from discoclaw.nostr.relays.wire import Filter
from discoclaw.nostr.schemas import (
    APP,
    CLEAR,
    DELETE,
    OWN_KINDS,
    PREFERENCE,
    SUMMARY,
    TOOL,
    TOPICS,
    Address,
    Codec,
)
from discoclaw.store.files import safe_id

BATCH = 256
"""Events that are decrypted at once: about a twentieth of a second."""
OWN_PREFIXES = (LEDGER, INVENTORY, CHOICES, NPUB, GROUP)
"""Prefixes of our addresses of kind 30078. Others belong to another program with the same key (NIP-78)."""

OnProgress = Callable[[Progress], None]
"""Called often while a recovery runs."""


class ReadableRelay(Protocol):
    """A relay, as far as a recovery needs it."""

    @property
    def url(self) -> str: ...

    async def fetch(self, filters: Iterable[Filter], take: OnEvents | None = None) -> FetchResult:
        """All stored events in verified batches. The result says whether that is everything. Never raises."""
        ...


class Stage:
    """Reports the progress of one stage, with its rate per second."""

    def __init__(self, name: str, on_progress: OnProgress | None, total: int | None = None) -> None:
        self._name, self._on_progress, self._total = name, on_progress, total
        self._time = asyncio.get_running_loop().time
        self._since = self._time()
        self.done = 0
        self.add(0)

    def add(self, number: int) -> None:
        """Report that so many more are done."""
        self.done += number
        if self._on_progress is not None:
            took = self._time() - self._since
            rate = self.done / took if took > 0 else 0.0
            self._on_progress(Progress(self._name, self.done, self._total, rate))


@dataclass(frozen=True, slots=True)
class RecoveredContent:
    """The content of the selected events. `units` has the unit of each address, as far as it is known.

    `usable` are the records and views, `inventory` the events that list what was published.
    """

    usable: tuple[DecryptedEvent, ...]
    tombstones: tuple[DecryptedEvent, ...]
    inventory: tuple[DecryptedEvent, ...]
    ledgers: dict[str, RebuiltLedger]
    views: RecoveredViews
    units: dict[Address, str]
    unreadable: tuple[UnreadableEvent, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that was found, and on which relays."""

    collector: EventCollector
    relays: tuple[RelayReport, ...]
    selection: Selection
    content: RecoveredContent

    @property
    def deleted_addresses(self) -> set[Address]:
        """The addresses at which something was deleted, by a request or a tombstone."""
        deleted = {(one.kind, one.d) for one in self.selection.deleted}
        return deleted | {one.address for one in self.content.tombstones}


async def gather(
    relays: Sequence[ReadableRelay],
    codec: Codec,
    names: Names,
    *,
    subjects: Sequence[str] = (),
    tombstones: Iterable[Event] = (),
    on_progress: OnProgress | None = None,
) -> Gathered:
    """Fetch and parse everything of ours.

    `subjects` are those with a ledger on this disk. `tombstones` are our own tombstones and deletion
    requests: what they delete must not come back from a relay that ignored them. Raises RelayUnreachable,
    with each relay and its reason, when none can be read.
    """
    collector = EventCollector(codec.keys.public)
    fetched = await _fetched(relays, collector, on_progress)
    results = list(zip(relays, fetched, strict=True))
    if not any(result.complete or result.count for result in fetched):
        why = "; ".join(f"{relay.url}: {result.reason}" for relay, result in results)
        raise RelayUnreachable(f"no relay could be read, so nothing was done: {why or 'none is configured'}")
    collector.add_known(tombstones)
    selection = await asyncio.to_thread(collector.select)
    current = [event.id for event in selection.current]
    reports = tuple(_relay_report(relay, result, collector, current) for relay, result in results)
    events, unreadable = await _decrypted(codec, selection, on_progress)
    content = await asyncio.to_thread(_content, events, unreadable, names, subjects)
    return Gathered(collector, reports, selection, content)


def _content(
    events: Iterable[DecryptedEvent],
    unreadable: Iterable[UnreadableEvent],
    names: Names,
    subjects: Sequence[str],
) -> RecoveredContent:
    """Sort events by what they are, and parse them. Blocking."""
    tombstones: list[DecryptedEvent] = []
    inventory: list[DecryptedEvent] = []
    records: list[DecryptedEvent] = []
    views: list[DecryptedEvent] = []
    for one in events:
        is_app = one.event.kind == APP
        if is_tombstone(one):
            tombstones.append(one)
        elif is_app and one.event.d.startswith(INVENTORY):
            inventory.append(one)
        else:
            (records if is_app and one.event.d.startswith(LEDGER) else views).append(one)
    found, unusable = rebuild_ledgers(records, names)
    subjects = [*found, *subjects]
    reader = ViewReader(names, people=_ids(user_of, subjects), channels=_ids(group_of, subjects))
    unusable += reader.read(views)
    skipped = {one.event.id for one in unusable}
    usable = tuple(one for one in (*records, *views) if one.event.id not in skipped)
    stated = reader.units | {
        one.address: ledger.subject for ledger in found.values() for one in ledger.events
    }
    known = UnitLookup(names, {*subjects, *reader.units.values()}, reader.views.summaries)
    units = with_units(stated, (one.address for one in (*usable, *tombstones)), known)
    return RecoveredContent(
        usable, tuple(tombstones), tuple(inventory), found, reader.views, units, (*unreadable, *unusable)
    )


def _ids(id_of: Callable[[str], str | None], subjects: Iterable[str]) -> list[str]:
    return [key for subject in subjects if (key := id_of(subject)) is not None]


async def _fetched(
    relays: Sequence[ReadableRelay], collector: EventCollector, on_progress: OnProgress | None
) -> list[FetchResult]:
    stage = Stage("fetching", on_progress)
    filters = [Filter(kinds=(DELETE, *OWN_KINDS), authors=(collector.public,))]

    async def one(relay: ReadableRelay) -> FetchResult:
        async def take(events: list[Event]) -> None:
            stage.add(collector.add(relay.url, events))

        return await relay.fetch(filters, take)

    return list(await asyncio.gather(*map(one, relays)))


async def _decrypted(
    codec: Codec, selection: Selection, on_progress: OnProgress | None
) -> tuple[list[DecryptedEvent], list[UnreadableEvent]]:
    own = [one for one in selection.current if one.kind != APP or one.d.startswith(OWN_PREFIXES)]
    stage = Stage("reading", on_progress, len(own))
    found: list[DecryptedEvent] = []
    unreadable: list[UnreadableEvent] = []
    for start in range(0, len(own), BATCH):
        batch = own[start : start + BATCH]
        good, bad = await asyncio.to_thread(decrypted, codec, batch)
        found += good
        unreadable += bad
        stage.add(len(batch))
    return found, unreadable


def _relay_report(
    relay: ReadableRelay, result: FetchResult, collector: EventCollector, current: Sequence[str]
) -> RelayReport:
    events, missing = collector.count_of(relay.url), collector.missing(relay.url, current)
    return RelayReport(relay.url, events, result.complete, result.reason, missing, result.bad)


# ---------------------------------------------------------------------- views

MAX_SUMMARY_CHARS: Final = 20_000
"""Longest accepted summary, in characters: the highest value of DISCOCLAW_SUMMARY_MAX_CHARS."""


class ViewReader:
    """Reads events into `views`. `units` gets the unit of each address whose event names it.

    `people` and `channels` are ids known from elsewhere, for profiles by other programs that name no id.
    """

    def __init__(self, names: Names, *, people: Iterable[str] = (), channels: Iterable[str] = ()) -> None:
        self.views = RecoveredViews()
        self.units: dict[Address, str] = {}
        self._names = names
        self._people = list(people)
        self._channels = list(channels)
        self._readers: Mapping[int, Callable[[DecryptedEvent], str | None]] = {
            APP: self._record,
            SUMMARY: self._summary,
            TOOL: self._call,
            CLEAR: self._clear,
            PREFERENCE: self._skip,
            TOPICS: self._skip,
        }

    def read(self, events: Iterable[DecryptedEvent]) -> list[UnreadableEvent]:
        """Read events, one for each address. Returns those that can't be used."""
        unreadable = []
        # Two addresses can be about the same person (16 or 32 hex digits). The later event wins, so it is
        # read last; of a tie the lower id, as everywhere.
        for one in sorted(
            sorted(events, key=lambda one: one.event.id, reverse=True), key=lambda one: one.event.created_at
        ):
            try:
                unit = self._readers[one.event.kind](one)
            except (UnreadableContent, MemoryFault, NostrError) as why:
                unreadable.append(UnreadableEvent(one.event, str(why)))
                continue
            if unit is not None:
                self.units[one.address] = unit
        return unreadable

    def _skip(self, one: DecryptedEvent) -> str | None:
        return None

    # ------------------------------------------------------------------ people and channels

    def _record(self, one: DecryptedEvent) -> str:
        d = one.event.d
        if d.startswith(CHOICES):
            return self._choices(one)
        is_person = d.startswith(NPUB)
        if not is_person and not d.startswith(GROUP):
            raise UnreadableContent("its address has an unknown form")
        fits: Callable[[str, str], bool]
        fits = self._names.matches if is_person else self._names.matches_channel
        stated, pseudonym = one.body.get("x_discord"), _pseudonym(d.rpartition(":")[2])
        known = (
            [safe_id(stated)] if isinstance(stated, str) else self._people if is_person else self._channels
        )
        key = next((key for key in known if fits(pseudonym, key)), None)
        if key is None:
            raise UnreadableContent("it names nobody we know, or its address belongs to somebody else")
        body = {name: value for name, value in one.body.items() if name != "x_discord"}
        try:
            (self._profile if is_person else self._group)(key, body, one.event.created_at)
        except ValueError as why:
            raise UnreadableContent(str(why)) from None
        return user_subject(key) if is_person else group_subject(key)

    def _choices(self, one: DecryptedEvent) -> str:
        try:
            self.views.choices |= choices.checked(one.body["people"])
        except (KeyError, ValueError, TypeError, AttributeError):
            raise UnreadableContent("it has no valid list of people's choices") from None
        return CHOSEN

    def _profile(self, user_id: str, body: dict[str, Any], at: int) -> None:
        self.views.profiles[user_id] = Dated(Profile.from_json(body), at)

    def _group(self, channel_id: str, body: dict[str, Any], at: int) -> None:
        members = body.pop("x_members", None)
        if members is not None:  # `members` itself has pseudonyms
            body["members"] = members
        self.views.groups[channel_id] = Dated(Group.from_json(body), at)

    # ------------------------------------------------------------------ conversations

    def _summary(self, one: DecryptedEvent) -> str:
        body, session = one.body, self._session(one)
        text, at = body.get("summary"), body.get("x_updated_at")
        at = one.event.created_at * 1000 if at is None else at
        if not isinstance(text, str) or len(text) > MAX_SUMMARY_CHARS or not valid_ms(at):
            raise UnreadableContent("it is not a valid summary")
        seen: dict[str, Any] | None = None
        if isinstance(up_to := body.get("x_up_to"), str):
            count = body.get("message_count")
            seen = {"upTo": up_to, **({"count": count} if isinstance(count, int) and count else {})}
        people = body.get("x_people")
        if isinstance(people, list) and all(isinstance(user, str) for user in people):
            self.views.summaries[session] = Summary(text, at, seen, {"session": session, "people": people})
        else:
            self.views.summaries[session] = Summary(text, at, seen)
        return f"{SESSION}{session}"

    def _call(self, one: DecryptedEvent) -> str:
        body = one.body
        call = call_of(
            {
                "id": body.get("x_id"),
                "at": body.get("x_ms"),
                "tool": body.get("tool_name"),
                "ok": body.get("success"),
                "content": body.get("content"),
                "channel": body.get("x_channel"),
                "session": body.get("x_session"),
                "private": body.get("x_private"),
            }
        )
        user_id = body.get("x_discord")
        if call is None or not isinstance(user_id, str):
            raise UnreadableContent("it is not a valid tool call, or doesn't name its person")
        subject = user_subject(safe_id(user_id))
        self.views.calls.setdefault(subject, []).append(call)
        return subject

    def _clear(self, one: DecryptedEvent) -> str:
        body, session = one.body, self._session(one)
        fields = {"id": body.get("x_id"), "at": body.get("x_ms"), "session": session, "by": body.get("x_by")}
        if (clear := clear_of(fields)) is None:
            raise UnreadableContent("it is not a valid clear marker")
        self.views.clears.append(clear)
        return f"{SESSION}{session}"

    def _session(self, one: DecryptedEvent) -> str:
        """The conversation that an event names. Its address has to match."""
        session = one.body.get("x_session")
        if not isinstance(session, str):
            raise UnreadableContent("it does not name its conversation")
        if not one.event.d.startswith(f"{self._names.history_key(session)}:"):
            raise UnreadableContent("its address belongs to another conversation")
        return session


def _pseudonym(text: str) -> str:
    """The pseudonym in an address, in hex. Snowclaw's code writes it as a full npub, against its own spec."""
    if len(text) in LENGTHS or not text.startswith("npub1"):
        return text
    try:
        return public_key(text)
    except SettingsError:
        return text


# ---------------------------------------------------------------------- units

_CHANNEL = "discord:channel:"


class UnitLookup:
    """Knows the addresses that units of these subjects and conversations (session keys) can have."""

    def __init__(self, names: Names, subjects: Iterable[str], sessions: Iterable[str] = ()) -> None:
        self._names = names
        self._ledgers: dict[str, str] = {}
        self._others: dict[Address, str] = {}
        for subject in subjects:
            self._add(subject)
        for session in sessions:
            self._add_session(session)

    def __call__(self, address: Address) -> str | None:
        """The unit of an address; None if it belongs to none of them."""
        kind, d = address
        if kind == APP and d.startswith(LEDGER):
            return self._ledgers.get(d[: d.find(":", len(LEDGER)) + 1])
        return self._others.get(address)

    def _add(self, subject: str) -> None:
        names = self._names
        self._ledgers[names.ledger_prefix(subject)] = subject
        if (user_id := user_of(subject)) is not None:
            self._others[APP, names.profile(user_id)] = subject
            self._others[PREFERENCE, f"{names.user_key(user_id)}:preference"] = subject
            self._add_session(dm_of(user_id))
        elif (channel_id := group_of(subject)) is not None:
            self._others[APP, names.group(channel_id)] = subject
            self._others[TOPICS, f"{names.group_key(channel_id)}:subscription_state"] = subject
            self._add_session(f"{_CHANNEL}{channel_id}")

    def _add_session(self, session: str) -> None:
        try:
            self._others[SUMMARY, f"{self._names.history_key(session)}:summary"] = f"{SESSION}{session}"
        except NostrError:
            return  # this conversation is not mirrored


def with_units(
    units: Mapping[Address, str], addresses: Iterable[Address], known: UnitLookup
) -> dict[Address, str]:
    """The units of these addresses, as far as they are known."""
    found = {address: units.get(address) or known(address) for address in addresses}
    return {address: unit for address, unit in found.items() if unit is not None}
