"""The Nostr door as a whole: what the settings wish for becomes relays, outbox, mirror and the owner's voice.

    door = NostrAdapter(wish, memory, clock=clock)
    await door.open()       outbox and relays; no relay is waited for
    await door.hydrate()    canonical mode: what relays have is taken in, before anybody is answered
    await door.start()      the owner's configuration, then the mirror
    …
    await door.close()

Times are in seconds where not said otherwise. Knows nothing about Discord, prompts or settings.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault, NostrError, Refused, RelayUnreachable, SettingsError
from discoclaw.core.ports import Clock
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_of
from discoclaw.memory.disk.files import in_thread
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.subjects.inspect import subjects
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Keys
from discoclaw.nostr.folder import NOTED_EVERY_S, note_state, relay_folder, state_path
from discoclaw.nostr.incoming.recovered import Progress, Recovered
from discoclaw.nostr.incoming.recovery import recover
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.delivery import Delivery, Standing
from discoclaw.nostr.outgoing.mirror import PURGE, STEP, Mirror
from discoclaw.nostr.outgoing.outbox import Outbox, Tally
from discoclaw.nostr.outgoing.views import Views
from discoclaw.nostr.owner import OwnerEvents, OwnerNotes, who_among
from discoclaw.nostr.relays.embedded import EmbeddedRelay
from discoclaw.nostr.relays.info import check_near
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.schemas import Pen
from discoclaw.nostr.sealed import Box
from discoclaw.nostr.status import told

log = logging.getLogger(__name__)

EMBEDDED: Final = "embedded"
OWNER_WAIT_S: Final = 5.0
"""So long a start waits for the owner's configuration; what comes later holds from then on."""
LAST_WORDS_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class NostrConfig:
    """What is to be mirrored where. `data_dir` is the folder of everything, `outbox` the outbox's file.

    `owner` is the public key (hex) whose events configure us, `owners` are user ids. `in_clear` lets
    preferences without anything private go out unencrypted.
    """

    keys: Keys
    relays: tuple[str, ...]
    data_dir: Path
    outbox: Path
    canonical: bool = False
    box: Box | None = None
    owner: str | None = None
    owners: frozenset[str] = frozenset()
    min_acks: int = 1
    timeout_s: float = 10.0
    flush_s: float = 300.0
    in_clear: bool = False
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def pen(self) -> Pen:
        return Pen(self.keys, self.box or Box.of(self.keys), in_clear=self.in_clear)

    def __post_init__(self) -> None:
        if self.in_clear:
            check_near(one for one in self.relays if one != EMBEDDED)


class NostrAdapter:
    """All of it. `memory` is open before `open`; what the owner signs needs `config` and `consent`."""

    def __init__(
        self,
        wish: NostrConfig,
        memory: Memory,
        *,
        clock: Clock,
        redactor: Redactor = PLAIN,
        config: LiveConfig | None = None,
        consent: Consent = UNLIMITED,
    ) -> None:
        self.wish = wish
        self.names = Names(wish.keys)
        self.pen = wish.pen
        self.outbox = Outbox(wish.outbox, clock=clock)
        self.relays: tuple[Relay, ...] = ()
        self._memory = memory
        self._clock = clock
        self._embedded: EmbeddedRelay | None = None
        views = Views(memory.disk, self.names, owners=wish.owners, redactor=redactor, groups=wish.groups)
        self.mirror = Mirror(
            memory,
            views,
            self.pen,
            self.outbox,
            clock=clock,
            flush_s=wish.flush_s,
            poke=self._poke,
            erased=self._erased,
        )
        self._delivery: Delivery | None = None
        self._owner: OwnerEvents | None = None
        if config is not None:
            who = who_among(self._people, self.names)
            notes = OwnerNotes(memory, who, consent=consent, redactor=redactor)
            self._owner = OwnerEvents(wish.owner, wish.keys, config, notes)
            config.names = self.names
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ opening and closing

    async def open(self) -> None:
        """Take the outbox, and begin to connect. Raises MemoryFault and SettingsError."""
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(self.outbox.open)
            stack.callback(self.outbox.close)
            stack.push_async_callback(self.mirror.close)
            addresses = self.wish.relays
            names: dict[str, str] = {}
            if EMBEDDED in addresses:
                self._embedded = EmbeddedRelay(relay_folder(self.wish.data_dir))
                await self._embedded.start()
                stack.push_async_callback(self._embedded.stop)
                addresses = (self._embedded.url,)
                names[self._embedded.url] = EMBEDDED
            self.relays = tuple(
                Relay(one, self.wish.keys, name=names.get(one), timeout_s=self.wish.timeout_s)
                for one in addresses
            )
            self._delivery = Delivery(
                self.outbox,
                self.relays,
                min_acks=self.wish.min_acks,
                clock=self._clock,
                in_clear=self.wish.in_clear,
            )
            for relay in self.relays:
                relay.start()
                stack.push_async_callback(relay.close)
            stack.push_async_callback(self._delivery.close)
            stack.push_async_callback(self._note_nothing)
            stack.push_async_callback(self._cancel)
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Sign what is waiting, deliver what can be delivered in a few seconds, and stop.

        What is left is found again at the next start.
        """
        await self._stack.aclose()

    async def _last_words(self) -> None:
        if any(relay.connected for relay in self.relays):
            try:
                async with asyncio.timeout(LAST_WORDS_S):
                    await self.pushed()
            except (MemoryFault, TimeoutError) as error:
                log.info("not everything was delivered before the end: %s", error)

    async def _note_nothing(self) -> None:
        """Whoever looks from outside is not to take us for running any more."""
        with contextlib.suppress(OSError):
            await in_thread(state_path(self.wish.data_dir).unlink, missing_ok=True)

    async def _cancel(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------------ at work

    async def recover(self, progress: Callable[[Progress], None] | None = None) -> Recovered:
        """Bring back what relays have; see `recovery.recover`."""
        return await recover(
            self.relays,
            self.pen,
            self.names,
            self._memory,
            self.outbox,
            clock=self._clock,
            progress=progress,
        )

    async def hydrate(self) -> None:
        """In canonical mode take in what relays have, before anybody is answered. That fails without harm."""
        if not self.wish.canonical:
            return
        try:
            found = await self.recover()
        except (RelayUnreachable, Refused, MemoryFault, NostrError) as error:
            log.error("the relays could not be read, so what is on this disk is all there is: %s", error)
            return
        log.info(
            "taken in from the relays: %d records and %d files that are new here",
            found.records,
            len(found.files),
        )
        for warning in found.warnings():
            log.warning("recovery: %s", warning)

    async def start(self) -> None:
        """Follow the owner and mirror the memory. Waits for the owner's configuration, but not long."""
        if self._owner is not None and self.wish.owner is not None:
            try:
                async with asyncio.timeout(OWNER_WAIT_S):
                    await self._owner.catch_up(self.relays)
            except TimeoutError:
                log.warning("the owner's configuration is not there yet; what was known holds until then")
            self._background(self._owner.follow(self.relays), "owner")
        self._stack.push_async_callback(self._last_words)
        self.deliver()
        self._background(self._catch_up(), "mirror")
        self._background(self._note_state(), "state")

    def deliver(self) -> None:
        """Begin to deliver what is signed."""
        assert self._delivery is not None
        self._delivery.start()

    async def _catch_up(self) -> None:
        await self.mirror.catch_up()
        if self._embedded is not None and await asyncio.to_thread(self.outbox.meta, PURGE) == "1":
            await self._purge()

    async def _note_state(self) -> None:
        """Note now and then how the relays are doing, for whoever looks from outside."""
        path = state_path(self.wish.data_dir)
        while True:
            try:
                standings = await self.standing()
                await in_thread(note_state, path, standings, self._clock())
            except (MemoryFault, OSError) as error:
                log.warning("how the relays are doing can not be noted: %s", error)
            await asyncio.sleep(NOTED_EVERY_S)

    async def pushed(self, timeout_s: float | None = None) -> None:
        """Everything that is on disk is signed, and was delivered as far as relays take it in that time."""
        await self.mirror.push()
        await self.delivered(timeout_s)

    async def delivered(self, timeout_s: float | None = None) -> Tally:
        """Wait until nothing waits for any relay, or for so long (s); see `Delivery.flushed`."""
        assert self._delivery is not None
        return await self._delivery.flushed(timeout_s)

    async def settle(self) -> None:
        """Wait until the mirror has nothing to do now; relays are not waited for."""
        await self.mirror.settle()

    # ------------------------------------------------------------------ what owners see

    async def standing(self) -> tuple[Standing, ...]:
        """How it stands with each relay. Raises MemoryFault."""
        return await self._delivery.status() if self._delivery is not None else ()

    async def status_text(self) -> str:
        """The same in lines of plain text."""
        try:
            quarantined = await asyncio.to_thread(self.outbox.quarantined)
            return told(await self.standing(), self.wish.keys.npub, self._clock(), quarantined)
        except MemoryFault as fault:
            return f"How it stands is not known: {fault}"

    def push(self) -> None:
        """Bring the relays up to date now, and try again what they refused. Never waits."""
        self._background(self._push(), "push")

    async def _push(self) -> None:
        try:
            if self._delivery is not None:
                await self._delivery.unpark()
            await self.mirror.push()
        except MemoryFault as fault:
            log.warning("the mirror could not be brought up to date: %s", fault)

    # ------------------------------------------------------------------ inside

    def _poke(self) -> None:
        if self._delivery is not None:
            self._delivery.poke()

    def _people(self) -> list[str]:
        """The user ids of everybody of whom there is a memory."""
        found = (user_of(subject) for subject in subjects(self._memory.disk))
        return [user_id for user_id in found if user_id is not None]

    def _erased(self) -> None:
        """Once the deletions arrived at our own relay, their bytes are to leave its files too."""
        if self._embedded is not None:
            self._background(self._purge(), "purge")
        elif (folder := relay_folder(self.wish.data_dir)).exists():
            log.warning("%s is used no more, and has what was erased; remove it", folder)

    async def _purge(self) -> None:
        assert self._embedded is not None and self._delivery is not None
        try:
            await self._delivery.flushed(60.0)
            await self._embedded.forget(())
            waits = any(one.queue.depth for one in await self._delivery.status())
            if not waits and not self._memory.pending_erasures(STEP):  # else the next start does it again
                await in_thread(self.outbox.set_meta, PURGE, "0")
        except (NostrError, MemoryFault, SettingsError) as error:
            log.warning("what was erased is still in the embedded relay's files: %s", error)

    def _background(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(_logged(work, name), name=f"nostr-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Coroutine[Any, Any, None], name: str) -> None:
    try:
        await work
    except Exception:  # a named edge: the mirror may fail in any way, and nobody else notices
        log.exception("nostr: %s failed", name)
