"""What the owner signs: configuration that holds at once, and notes about people.

    snowclaw:config:{global, group:<id>, npub:<id>}   {respond_mode, context_history}
    snowclaw:memory:npub:<id>                         {notes: [text…], preferences: {key: text}}

Both are of kind 30078, with JSON as content, which may be encrypted to the bot (tag ["encrypted", "nip44"]).
Nobody else's events have any effect, and without an owner none has; who that is, the settings alone say.
An event counts once: it is remembered by its address (`memory/live`), and notes also by the commit they
became, so that one which comes again, after a crash or out of an old copy, changes nothing. What a person
said or forgot after an event was made outranks it.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from discoclaw.core import live
from discoclaw.core.consent import Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import BadEvent, MemoryFault, NotOpened, Refused
from discoclaw.core.event import Commit
from discoclaw.core.item import Facets, Item, item_id
from discoclaw.core.live import Pseudonyms, Scope, Signed
from discoclaw.core.policy import Overrides
from discoclaw.core.profile import slug
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_subject
from discoclaw.core.text import collapse, normalise
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event, Keys, received
from discoclaw.nostr.names import CONFIG, LENGTHS, NPUB, Names
from discoclaw.nostr.relays.paging import Fetched
from discoclaw.nostr.relays.wire import Filter
from discoclaw.nostr.schemas import APP
from discoclaw.nostr.sealed import NIP44, canonical, object_of

log = logging.getLogger(__name__)

BY = "owner"
"""What commits say of who made them."""
MOST_NOTES = 200
"""Of one event; as many preferences."""


class Relay(Protocol):
    """What is needed of a relay."""

    async def fetch(self, filters: Iterable[Filter]) -> Fetched:
        """All stored events of these filters, as far as it gives them."""
        ...

    async def subscribe(
        self, filters: Iterable[Filter], handler: Callable[[Event], Awaitable[None]]
    ) -> object:
        """Hand over each event, those that are stored too."""
        ...


class OwnerEvents:
    """Takes what the owner signed. `owner` is a public key in hex, `keys` the bot's."""

    def __init__(
        self, owner: str | None, keys: Keys, config: LiveConfig, notes: "OwnerNotes | None" = None
    ) -> None:
        self._owner = owner
        self._keys = keys
        self._config = config
        self._notes = notes
        self._alone = asyncio.Lock()

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What to ask relays for; nothing when there is no owner."""
        return (Filter(kinds=(APP,), authors=(self._owner,)),) if self._owner is not None else ()

    async def catch_up(self, relays: Iterable[Relay]) -> int:
        """Take what the relays have, before anything is answered. Returns how many of them gave all of it.

        What one relay gave counts at once, so whoever gives up waiting for a slow one has lost nothing.
        """
        if self._owner is None:
            return 0
        return sum(await asyncio.gather(*(self._catch_up(relay) for relay in relays)))

    async def _catch_up(self, relay: Relay) -> bool:
        answer = await relay.fetch(self.filters)
        if not answer.complete:
            log.warning("what the owner signed could not be fetched completely: %s", answer.reason)
        async with self._alone:
            for event in sorted(answer.events, key=lambda event: (event.created_at, event.id)):
                await self._take(event)
            await self._config.save()
        return answer.complete

    async def follow(self, relays: Iterable[Relay]) -> None:
        """Take what comes from now on, for as long as the relays are open."""
        for relay in relays if self._owner is not None else ():
            await relay.subscribe(self.filters, self.take)

    async def take(self, event: Event) -> None:
        """Take one event, if it is the owner's and new. Anything else is no error, and has no effect."""
        async with self._alone:
            await self._take(event)
            await self._config.save()

    # ------------------------------------------------------------------ one event

    async def _take(self, event: Event) -> None:
        if self._owner is None or event.pubkey != self._owner or event.kind != APP:
            return
        if not event.d.startswith((CONFIG, NPUB)):
            return  # another program of the owner uses this kind too
        if not self._config.fresh(event.d, event.created_at, event.id):
            return
        try:
            received(event.to_json())  # relays were asked for it, and are still not trusted
            if event.d.startswith(CONFIG):
                self._configure(event)
            else:
                await self._note(event)
        except BadEvent as error:
            log.warning("an event in the owner's name is dropped: %s", error)
        except (NotOpened, Refused, MemoryFault, OSError) as error:
            log.warning("%s: an event of the owner has no effect: %s", event.d[:120], error)

    def _configure(self, event: Event) -> None:
        scope = live.scope_of_address(event.d)
        overrides = live.overrides_of(self._plain(event), event.tags)
        if self._config.take(event.d, event.created_at, event.id, overrides):
            log.info(
                "the owner configured %s: %s", scope, live.overrides_json(overrides) or "nothing any more"
            )

    async def _note(self, event: Event) -> None:
        if self._notes is None or self._owner == self._keys.public:
            return  # of the same key, it is our own mirror
        if await self._notes.take(event, self._plain(event)):
            self._config.take(event.d, event.created_at, event.id)

    def _plain(self, event: Event) -> str:
        """The content of an event. Raises NotOpened; what is encrypted is never taken for text."""
        how = event.tag("encrypted")
        if how is None:
            return event.content
        if how != NIP44:
            raise NotOpened(f"it is encrypted in a way that is not known here ({how[:40]})")
        return self._keys.open(event.content, by=event.pubkey)


# ---------------------------------------------------------------------- notes


class OwnerNotes:
    """Adds what the owner notes about people to their memory, as stated by the owner.

    `who` finds a Discord id by what stands in an address, among the people that are known; it may block.
    Nothing is learned of who opted out, and nothing that was noted before they were erased (`consent`).
    `redactor` takes secrets out of what is noted.
    """

    def __init__(
        self,
        memory: Memory,
        who: Callable[[str], str | None],
        *,
        consent: Consent,
        redactor: Redactor = PLAIN,
    ) -> None:
        self._memory = memory
        self._who = who
        self._consent = consent
        self._clean = redactor.clean

    async def take(self, event: Event, content: str) -> bool:
        """Add what an event says; whether it counts as taken. Raises NotOpened, Refused and MemoryFault.

        False where it may count later: nobody is known by that name yet.
        """
        name, at_ms = event.d.removeprefix(NPUB), event.created_at * 1000
        user_id = await asyncio.to_thread(self._who, name)
        if user_id is None:
            log.info("a note of the owner is about somebody who is not known here: %s", name[:80])
            return False
        subject = user_subject(user_id)
        if not self._consent.may_keep(user_id, at_ms):
            log.info("a note of the owner is about somebody who is not to be remembered")
            return False
        said = _said(content, self._clean)
        history = await self._memory.history(subject)
        marks = {one: mark for commit in history.commits.values() for one, mark in _marked(commit)}
        if any(mark.d == event.d and not mark.of.older_than(_signed(event)) for mark in marks.values()):
            return True
        origin = Origin("stated", said_at=at_ms, evidence="the owner's note")

        def wish(draft: Draft) -> None:
            if not self._consent.may_keep(user_id, at_ms):
                raise Refused("they were erased since, or opted out")
            _Noting(draft, origin, marks).take(said)

        mark = {"d": event.d, "created_at": event.created_at, "id": event.id}
        await self._memory.change(subject, "noted by the owner", wish, by=BY, event=mark)
        return True


@dataclass(frozen=True, slots=True)
class _Mark:
    """Of which event of the owner a commit came."""

    d: str
    of: Signed


def _signed(event: Event) -> Signed:
    return Signed(event.created_at, event.id)


def _marked(commit: Commit) -> list[tuple[str, _Mark]]:
    """What a commit that came of an event of the owner did, by the ids of its own events."""
    mark = commit.metadata.get("event")
    match mark if commit.metadata.get("by") == BY else None:
        case {"d": str(d), "created_at": int(at), "id": str(id_)}:
            return [(event.id, _Mark(d, Signed(at, id_))) for event in commit.events]
    return []


@dataclass(frozen=True, slots=True)
class _Said:
    """What an event says of a person, without secrets."""

    notes: tuple[str, ...]
    preferences: Mapping[str, str]


def _said(content: str, clean: Callable[[str], str]) -> _Said:
    """The notes and preferences of an event, in Snowclaw's form as specified or as its code writes it.

    Raises NotOpened or Refused.
    """
    value = object_of(content)
    if isinstance(inner := value.get("notes_json"), str):  # JSON in JSON: a list of notes, or all of it
        try:
            within = json.loads(inner)
        except (ValueError, RecursionError):
            raise Refused("its notes_json is no JSON") from None
        value = within if isinstance(within, dict) else {"notes": within}
    notes, preferences = value.get("notes") or [], value.get("preferences") or {}
    if not isinstance(notes, list) or not isinstance(preferences, dict):
        raise Refused("notes are a list of texts, preferences an object")
    if not all(isinstance(one, str) for one in (*notes, *preferences.values())):
        raise Refused("notes and preferences are texts")
    if max(len(notes), len(preferences)) > MOST_NOTES:
        log.warning("the owner noted more than %d things at once; the rest is left out", MOST_NOTES)
    cleaned = [(clean(key), clean(one)) for key, one in list(preferences.items())[:MOST_NOTES]]
    return _Said(tuple(clean(one) for one in notes[:MOST_NOTES]), dict(cleaned))


class _Noting:
    """Writes what the owner noted at a time into a draft. `marks` say which events came of earlier notes."""

    def __init__(self, draft: Draft, origin: Origin, marks: Mapping[str, _Mark]) -> None:
        self._draft = draft
        self._before = draft.view
        self._origin = origin
        self._marks = marks

    def take(self, said: _Said) -> None:
        for text in said.notes:
            self._note(text)
        for key, value in said.preferences.items():
            self._prefer(collapse(key), value)

    def _note(self, text: str) -> None:
        same = self._saying(text)
        if not any(item.active for item in same) and not self._later(same, "fact", text):
            self._upsert("fact", text, Facets(category="core"))  # what they note is to be known always

    def _prefer(self, key: str, value: str) -> None:
        """A preference by its key. A value that says all by itself, as we publish them, stands as it is."""
        if any(item.active and item.kind == "preference" for item in self._saying(value)):
            return
        text = value if slug(value).startswith(slug(key)) else f"{key}: {value}"
        keyed = [item for item in self._draft.items.values() if item.facets.key == key]
        if not self._later([*keyed, *self._saying(text)], "preference", text):
            self._upsert("preference", text, None if slug(value) == key else Facets(key=key))

    def _saying(self, text: str) -> list[Item]:
        plain = normalise(collapse(text))
        return [item for item in self._draft.items.values() if normalise(item.text) == plain]

    def _later(self, items: Iterable[Item], kind: str, text: str) -> bool:
        """Whether the person said or forgot it after the owner noted it."""
        view, at = self._before, self._origin.said_at
        for item in items:
            mark = self._marks.get(view.last_event.get(item.id, ""))
            # Of what an earlier note wrote, the time of that note counts, not when it was written here.
            when = mark.of.at * 1000 if mark is not None else item.updated_at
            if when > at and (not item.active or item.facets.author == "stated"):
                return True
        return view.forgotten.get(item_id(kind, text), -1) > at

    def _upsert(self, kind: str, text: str, facets: Facets | None = None) -> None:
        try:
            self._draft.upsert(kind, text, self._origin, facets=facets)
        except Refused as refusal:
            log.warning("one of the owner's notes is left out: %s", refusal)


def who_among(people: Callable[[], Iterable[str]], names: Names) -> Callable[[str], str | None]:
    """Finds one of these people (Discord ids) by their id, or by the beginning of their pseudonym.

    None where it is nobody, or could be several.
    """

    def who(name: str) -> str | None:
        there = list(people())
        if name in there:
            return name
        found = [one for one in there if names.matches(name, one)] if len(name) in LENGTHS else []
        return found[0] if len(found) == 1 else None

    return who


# ---------------------------------------------------------------------- the owner's own hand


@dataclass(frozen=True, slots=True)
class Posted:
    """Which relays took an event, and which did not, and why."""

    accepted: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


Publish = Callable[[Event], Awaitable[Posted]]


def config_event(
    owner: Keys, scope: Scope, overrides: Overrides, at: int, *, bot: str, names: Pseudonyms
) -> Event:
    """A configuration signed by the owner, of that time (s), encrypted to the bot (its public key in hex).

    The scope stands in it as a pseudonym. Raises NostrError.
    """
    named = live.scope_aliases(scope, names)
    called = next((one for one in named[1:] if len(one.id) == 32), scope)
    content = owner.seal(canonical(live.overrides_json(overrides)), to=bot)
    return owner.sign(APP, content, [["d", live.address(called)], ["encrypted", NIP44]], at)
