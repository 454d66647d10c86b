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
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from discoclaw.core import live
from discoclaw.core.errors import BadEvent, MemoryFault, Refused, UnreadableContent
from discoclaw.core.live import Pseudonyms, Scope
from discoclaw.core.policy import Overrides
from discoclaw.memory.live import LiveConfig
from discoclaw.nostr.encryption import NIP44, canonical
from discoclaw.nostr.event import Event, Keys, verified
from discoclaw.nostr.names import CONFIG, NPUB
from discoclaw.nostr.owner_notes import OwnerNotes
from discoclaw.nostr.relays.paging import FetchResult
from discoclaw.nostr.relays.wire import Filter
from discoclaw.nostr.schemas import APP

log = logging.getLogger(__name__)


class SubscribableRelay(Protocol):
    """A relay, as far as the owner's events need it."""

    async def fetch(self, filters: Iterable[Filter]) -> FetchResult:
        """All stored events for the filters, and whether that is everything."""
        ...

    async def subscribe(
        self, filters: Iterable[Filter], handler: Callable[[Event], Awaitable[None]]
    ) -> object:
        """Hand over each event, stored ones included, until the relay is closed."""
        ...


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

    async def catch_up(self, relays: Iterable[SubscribableRelay]) -> int:
        """Apply what the relays have stored. Returns how many of them served everything.

        Each relay's events are applied as soon as that relay has answered. So a caller that stops waiting
        for a slow relay loses nothing.
        """
        if self._owner is None:
            return 0
        return sum(await asyncio.gather(*(self._catch_up(relay) for relay in relays)))

    async def _catch_up(self, relay: SubscribableRelay) -> bool:
        answer = await relay.fetch(self.filters)
        if not answer.complete:
            log.warning("cannot fetch all events of the owner: %s", answer.reason)
        async with self._lock:
            # Oldest first, as they were signed: relays serve the newest first.
            for event in sorted(answer.events, key=lambda event: (event.created_at, event.id)):
                await self._apply(event)
            await self._config.save()
        return answer.complete

    async def follow(self, relays: Iterable[SubscribableRelay]) -> None:
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
            verified(
                event.to_json()
            )  # the relay connection checks this too, but here it grants power over the bot
            if event.d.startswith(CONFIG):
                self._configure(event)
            else:
                await self._add_note(event)
        except BadEvent as error:
            log.warning("dropped a forged event in the owner's name: %s", error)
        except (UnreadableContent, Refused, MemoryFault, OSError) as error:
            log.warning("cannot apply the owner's event %s: %s", event.d[:120], error)

    def _configure(self, event: Event) -> None:
        scope = live.scope_of_address(event.d)
        overrides = live.fitting(scope, live.overrides_of(self._plaintext(event), event.tags))
        if self._config.take(event.d, event.created_at, event.id, overrides):
            what = dict(overrides) or "reset to the defaults"
            log.info("the owner configured %s: %s", scope, what)

    async def _add_note(self, event: Event) -> None:
        if self._notes is None or self._owner == self._keys.public:
            return  # if the owner uses the bot's key, this is our own mirrored profile
        if await self._notes.add(event, self._plaintext(event)):
            self._config.take(event.d, event.created_at, event.id)

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
