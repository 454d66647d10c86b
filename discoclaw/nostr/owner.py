"""Events signed by the owner: configuration, which applies at once, and notes about people.

    snowclaw:config:{global, group:<id>, npub:<id>}   the live fields of core/policy
    snowclaw:memory:npub:<id>                         {notes: [text…], preferences: {key: text}}

Both have kind 30078 and JSON as content, optionally encrypted to the bot (tag ["encrypted", "nip44"]). Events
of anybody else have no effect; without an owner, no event has one. Only the settings say who the owner is.

An event counts once. `memory/live` remembers the newest event of each address; a note is also remembered
by the commit it became. So an event that arrives again, after a crash or from an old copy, changes
nothing. What a person said or forgot after an event was made takes precedence over it.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from discoclaw.core import live
from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import BadEvent, MemoryFault, Refused, UnreadableContent
from discoclaw.core.event import Commit
from discoclaw.core.item import Facets, Item, item_id
from discoclaw.core.live import Pseudonyms, Scope, Signed
from discoclaw.core.policy import Overrides
from discoclaw.core.profile import preference_text, slug
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_subject
from discoclaw.core.text import collapse, normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import NIP44, Event, Keys, canonical, object_of, verified
from discoclaw.nostr.ledgers import source_of
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.schemas import APP, CONFIG, NPUB, Names, fits
from discoclaw.store.files import read_in_thread

log = logging.getLogger(__name__)

# ----------------------------------------------------------------------
# The owner's notes about people, written into the people's memories as stated by the owner.

BY = "owner"
"""The author named in commits of notes."""
MAX_NOTES = 200
"""Notes in one event, and as many preferences."""


class OwnerNotes:
    """Adds the owner's notes about people to their memory, as stated by the owner.

    `who` finds a Discord id by the name in an address, among the people that are known; it may block.
    `consent` keeps out notes about people who opted out, and notes from before a person was erased.
    `erased_at` returns when (ms) a person was erased as far as relays know; it may block. `redactor` removes
    secrets from notes.
    """

    def __init__(
        self,
        memory: Memory,
        who: Callable[[str], str | None],
        *,
        consent: Consent,
        redactor: Redactor = PLAIN,
        erased_at: Callable[[str], int] = UNLIMITED.erased_at,
    ) -> None:
        self._memory = memory
        self._erased_at = erased_at
        self._who = who
        self._consent = consent
        self._clean = redactor.clean

    async def add(self, event: Event, content: str) -> bool:
        """Add the notes in an event. Returns whether the event is done with.

        False means that it may count later, because nobody with that name is known yet. Raises
        UnreadableContent, Refused and MemoryFault.
        """
        name, at_ms = event.d.removeprefix(NPUB), event.created_at * 1000
        user_id = await read_in_thread(self._who, name)
        if user_id is None:
            log.info("the owner noted something about a person who is not known here: %s", name[:80])
            return False
        subject = user_subject(user_id)
        erased_at = await read_in_thread(self._erased_at, user_id)
        if not self._consent.may_keep(user_id, at_ms) or at_ms <= erased_at:
            log.info("the owner noted something about a person who opted out or was erased since")
            return False
        notes, preferences = _parse_notes(content, self._clean)
        known = _Known((await self._memory.history(subject)).commits.values())
        if known.has_taken(event):
            return True
        origin = Origin("stated", said_at=at_ms, evidence="the owner's note")

        def write(draft: Draft) -> None:
            if not self._consent.may_keep(user_id, at_ms):
                raise Refused("the person was erased since, or opted out")
            _write(draft, origin, known, notes, preferences)

        source = {"d": event.d, "created_at": event.created_at, "id": event.id}
        await self._memory.change(subject, "noted by the owner", write, by=BY, event=source)
        return True


class _Known:
    """The notes and items in a history, whether a view has them or not.

    `sources` are the owner's events (address, time, id) from which events of the ledger came, by the latter's
    ids.
    """

    def __init__(self, commits: Iterable[Commit]) -> None:
        self.sources: dict[str, tuple[str, Signed]] = {}
        self._decided: dict[str, int] = {}
        self._items: dict[str, set[str]] = {}
        for commit in commits:
            source = source_of(commit.metadata.get("event")) if commit.metadata.get("by") == BY else None
            for event in commit.events:
                if source is not None:
                    self.sources[event.id] = source
                item, author = event.ext.get("item"), event.ext.get("facets", {}).get("author")
                # A link says nothing about the item itself.
                if not isinstance(item, Mapping) or "link" in event.ext:
                    continue
                if not isinstance(key := item.get("id"), str):
                    continue
                if isinstance(text := item.get("text"), str):
                    self._items.setdefault(_plain(text), set()).add(key)
                if source is None and author == "stated":
                    self._decided[key] = max(ms_of_iso(event.timestamp), self._decided.get(key, -1))

    def has_taken(self, event: Event) -> bool:
        """Whether this event of the owner, or a later one at its address, is in the history."""
        new = Signed(event.created_at, event.id)
        return any(d == event.d and not signed.older_than(new) for d, signed in self.sources.values())

    def decided_at(self, kind: str, text: str) -> int:
        """When (ms) the person last stated or forgot an item that had this text once; -1 for never."""
        items = {item_id(kind, text), *self._items.get(_plain(text), ())}
        return max(self._decided.get(one, -1) for one in items)


def _plain(text: str) -> str:
    return normalise(collapse(text))


def _parse_notes(content: str, clean: Callable[[str], str]) -> tuple[list[str], dict[str, str]]:
    """The notes and preferences in an event, in the form of Snowclaw's specification or of its code.

    They have no secrets. Raises UnreadableContent or Refused.
    """
    value = object_of(content)
    # Snowclaw's code writes a string of JSON: a list of notes, or the whole object.
    if isinstance(inner := value.get("notes_json"), str):
        try:
            parsed = json.loads(inner)
        except (ValueError, RecursionError):
            raise Refused("its notes_json is not JSON") from None
        value = parsed if isinstance(parsed, dict) else {"notes": parsed}
    notes, preferences = value.get("notes") or [], value.get("preferences") or {}
    if not isinstance(notes, list) or not isinstance(preferences, dict):
        raise Refused("notes must be a list and preferences an object")
    if not all(isinstance(one, str) for one in (*notes, *preferences.values())):
        raise Refused("notes and preferences must be texts")
    if max(len(notes), len(preferences)) > MAX_NOTES:
        log.warning("the owner's event has more than %d notes or preferences; the rest is ignored", MAX_NOTES)
    cleaned = [(clean(key), clean(one)) for key, one in list(preferences.items())[:MAX_NOTES]]
    return [clean(one) for one in notes[:MAX_NOTES]], dict(cleaned)


def _write(
    draft: Draft, origin: Origin, known: _Known, notes: Iterable[str], preferences: Mapping[str, str]
) -> None:
    """Write the owner's notes into a draft, as far as what is `known` of its history allows."""
    view = draft.view

    def with_text(text: str) -> list[Item]:
        plain = _plain(text)
        return [item for item in draft.items.values() if normalise(item.text) == plain]

    def upsert(items: Iterable[Item], kind: str, text: str, facets: Facets | None) -> None:
        """Add or change an item, unless the person stated or forgot it after the owner noted it."""
        for item in items:
            source = known.sources.get(view.last_event.get(item.id, ""))
            # For an item from an earlier note, the time of that note counts, not when we wrote it.
            when = source[1].at * 1000 if source is not None else item.updated_at
            if when > origin.said_at and (not item.active or item.facets.author == "stated"):
                return
        if max(view.forgotten.get(item_id(kind, text), -1), known.decided_at(kind, text)) > origin.said_at:
            return
        try:
            draft.upsert(kind, text, origin, facets=facets)
        except Refused as refusal:
            log.warning("one of the owner's notes is ignored: %s", refusal)

    for text in notes:
        same = with_text(text)
        if not any(item.active for item in same):
            upsert(same, "fact", text, Facets(category="core"))  # core: always in the prompt
    for key, value in ((collapse(key), value) for key, value in preferences.items()):
        if any(item.active and item.kind == "preference" for item in with_text(value)):
            continue
        # A value that repeats the key, as in our own profiles, stands alone.
        text = value if slug(value).startswith(slug(key)) else preference_text(key, value)
        keyed = [item for item in draft.items.values() if item.facets.key == key]
        facets = None if slug(value) == key else Facets(key=key)
        upsert([*keyed, *with_text(text)], "preference", text, facets)


def person_finder(people: Callable[[], Iterable[str]], names: Names) -> Callable[[str], str | None]:
    """A function that finds one of these people (Discord ids) by id or beginning of the pseudonym.

    It returns None if it is nobody, or could be several.
    """

    def who(name: str) -> str | None:
        known = list(people())
        if name in known:
            return name
        found = [one for one in known if fits(name, names.user(one))]
        return found[0] if len(found) == 1 else None

    return who


# ---------------------------------------------------------------------- the owner's events


class OwnerEvents:
    """Applies events of the owner.

    `owner` is a public key in hex, None if there is no owner; `keys` are the bot's.
    """

    def __init__(
        self, owner: str | None, keys: Keys, config: LiveConfig, notes: OwnerNotes | None = None
    ) -> None:
        self._owner = owner
        self._keys = keys
        self._config = config
        self._notes = notes
        self._lock = asyncio.Lock()

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The filters for relays; empty if there is no owner."""
        return (Filter(kinds=(APP,), authors=(self._owner,)),) if self._owner is not None else ()

    async def catch_up(self, relays: Iterable[Relay]) -> int:
        """Apply what the relays have stored. Returns how many of them served everything.

        Each relay's events are applied as soon as that relay has answered. So a caller that stops waiting
        for a slow relay loses nothing.
        """

        async def apply(relay: Relay) -> bool:
            answer = await relay.fetch(self.filters)
            if not answer.complete:
                log.warning("cannot fetch all events of the owner: %s", answer.reason)
            async with self._lock:
                # Oldest first, as they were signed: relays serve the newest first.
                for event in sorted(answer.events, key=lambda event: (event.created_at, event.id)):
                    await self._apply(event)
                await self._config.save()
            return answer.complete

        return sum(await asyncio.gather(*map(apply, relays))) if self._owner is not None else 0

    async def follow(self, relays: Iterable[Relay]) -> None:
        """Apply new events until the relays are closed."""
        for relay in relays if self._owner is not None else ():
            await relay.subscribe(self.filters, self.handle)

    async def handle(self, event: Event) -> None:
        """Apply one event if it is the owner's and new.

        Any other event has no effect; that is not an error.
        """
        async with self._lock:
            await self._apply(event)
            await self._config.save()

    # ------------------------------------------------------------------ one event

    async def _apply(self, event: Event) -> None:
        if self._owner is None or event.pubkey != self._owner or event.kind != APP:
            return
        if not event.d.startswith((CONFIG, NPUB)):
            return  # another program of the owner uses the same kind (NIP-78)
        if not self._config.fresh(event.d, event.created_at, event.id):
            return
        try:
            # The relay connection checks this too, but here it grants power over the bot.
            verified(event.to_json())
            if event.d.startswith(CONFIG):
                scope = live.scope_of_address(event.d)
                overrides = live.fitting(scope, live.overrides_of(self._plaintext(event), event.tags))
                if self._config.take(event.d, event.created_at, event.id, overrides):
                    log.info("the owner configured %s: %s", scope, dict(overrides) or "reset to the defaults")
            # If the owner uses the bot's key, a note is our own mirrored profile.
            elif (
                self._notes is not None
                and self._owner != self._keys.public
                and await self._notes.add(event, self._plaintext(event))
            ):
                self._config.take(event.d, event.created_at, event.id)
        except BadEvent as error:
            log.warning("dropped a forged event in the owner's name: %s", error)
        except (UnreadableContent, Refused, MemoryFault, OSError) as error:
            log.warning("cannot apply the owner's event %s: %s", event.d[:120], error)

    def _plaintext(self, event: Event) -> str:
        """The content of an event, decrypted if necessary.

        Raises UnreadableContent; ciphertext is never used as text.
        """
        how = event.tag("encrypted")
        if how is None:
            return event.content
        if how != NIP44:
            raise UnreadableContent(f"unknown encryption {how[:40]!r}; expected {NIP44!r}")
        return self._keys.open(event.content, by=event.pubkey)


# ---------------------------------------------------------------------- publishing as the owner


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The relays (URLs) that accepted an event, and why others did not."""

    accepted: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


Publish = Callable[[Event], Awaitable[PublishResult]]


def config_event(
    owner: Keys, scope: Scope, overrides: Overrides, at: int, *, bot: str, names: Pseudonyms
) -> Event:
    """A configuration event signed by the owner at a time (s), encrypted to the bot (its public key in hex).

    Its address has a pseudonym for the scope. Raises NostrError.
    """
    forms = live.scope_aliases(scope, names)
    shown = next((one for one in forms[1:] if len(one.id) == 32), scope)
    content = owner.seal(canonical(dict(overrides)), to=bot)
    return owner.sign(APP, content, [["d", live.address(shown)], ["encrypted", NIP44]], at)
