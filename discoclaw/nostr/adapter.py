"""The Nostr adapter: builds relays, outbox, mirror and owner events from a configuration, and runs them.

    adapter = NostrAdapter(config, memory, clock=clock)
    await adapter.open()       opens the outbox and begins to connect, without waiting for any relay
    await adapter.hydrate()    canonical mode: recovers from the relays, before anybody is answered
    await adapter.start()      applies the owner's configuration, then mirrors
    …
    await adapter.close()

Times are in seconds unless said otherwise. Knows nothing about Discord, prompts or settings.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any, Final

from discoclaw.core.consent import NEVER, UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault, NostrError, Refused, RelayUnreachable, SettingsError, faulting
from discoclaw.core.ports import Clock
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import user_of, user_subject
from discoclaw.core.text import clip, collapse
from discoclaw.core.times import iso_ms, span
from discoclaw.memory.changes import Listener
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.subjects.inspect import subjects
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.config import (
    EMBEDDED,
    STATE_INTERVAL_S,
    NostrConfig,
    relay_folder,
    save_state,
    state_path,
)
from discoclaw.nostr.delivery import Delivery, RelayStatus
from discoclaw.nostr.mirror import PURGE, STEP, Mirror, Pace
from discoclaw.nostr.outbox import DeliveryProgress, Outbox
from discoclaw.nostr.owner import OwnerEvents, OwnerNotes, person_finder
from discoclaw.nostr.recovery import adopt, gather, recover
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.embedded import EmbeddedRelay
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.report import Progress, RecoveryReport
from discoclaw.nostr.schemas import Names
from discoclaw.nostr.units import Views, unit_of
from discoclaw.store.database import remove
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import CHOICES, INTENTS, PROFILES
from discoclaw.work import LONGEST_S, RETRY_S

log = logging.getLogger(__name__)

OWNER_WAIT_S: Final = 5.0
"""How long a start waits for the owner's configuration. What arrives later applies from then on."""
CLOSE_FLUSH_S: Final = 3.0
"""How long closing may take to deliver what is waiting."""


class NostrAdapter:
    """Mirrors `memory`, which has to be open before `open` is called.

    Events of the owner are applied only with `live`, and notes about people as far as `consent` allows.
    """

    def __init__(
        self,
        config: NostrConfig,
        memory: Memory,
        *,
        clock: Clock,
        redactor: Redactor = PLAIN,
        live: LiveConfig | None = None,
        consent: Consent = UNLIMITED,
    ) -> None:
        self.config = config
        self.names = Names(config.keys)
        self.codec = config.codec
        self.outbox = Outbox(config.outbox, clock=clock)
        self.relays: tuple[Relay, ...] = ()
        self.recovering: Progress | None = None
        """How far the recovery at this start is; None if there is none under way."""
        self.known: tuple[RelayStatus, ...] = ()
        """The state of each relay when it was last looked at."""
        self._memory = memory
        self._live = live
        self._clock = clock
        self._embedded: EmbeddedRelay | None = None
        views = Views(memory.disk, self.names, owners=config.owners, redactor=redactor, groups=config.groups)
        self.mirror = Mirror(
            memory,
            views,
            self.codec,
            self.outbox,
            clock=clock,
            pace=Pace(config.flush_s, gap_s=min(1.0, config.flush_s)),
            wake=self._wake_delivery,
            erased=self._erased,
        )
        self._delivery: Delivery | None = None
        self._owner: OwnerEvents | None = None
        if live is not None:
            who = person_finder(self._people, self.names)
            notes = OwnerNotes(
                memory, who, consent=consent, redactor=redactor, erased_at=self._erased_on_relays
            )
            self._owner = OwnerEvents(config.owner, config.keys, live, notes)
            live.names = self.names
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ lifecycle

    async def open(self) -> None:
        """Open the outbox, and begin to connect. Raises MemoryFault and SettingsError."""
        async with AsyncExitStack() as stack:
            await read_in_thread(self.outbox.open)
            stack.callback(self.outbox.close)
            stack.push_async_callback(self.mirror.close)
            addresses = self.config.relays
            names: dict[str, str] = {}
            if EMBEDDED in addresses:
                self._embedded = EmbeddedRelay(relay_folder(self.config.data_dir))
                await self._embedded.start()
                stack.push_async_callback(self._embedded.stop)
                addresses = (self._embedded.url,)
                names[self._embedded.url] = EMBEDDED
            self.relays = tuple(
                Relay(one, self.config.keys, name=names.get(one), timing=Timing(self.config.timeout_s))
                for one in addresses
            )
            self._delivery = Delivery(
                self.outbox,
                self.relays,
                min_acks=self.config.min_acks,
                clock=self._clock,
                allow_plaintext=self.config.codec.allow_plaintext,
            )
            for relay in self.relays:
                relay.start()
                stack.push_async_callback(relay.close)
            stack.push_async_callback(self._delivery.close)

            async def stop() -> None:
                tasks = list(self._tasks)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                with contextlib.suppress(OSError):  # the state tells the command line that a bot is running
                    await in_thread(state_path(self.config.data_dir).unlink, missing_ok=True)

            stack.push_async_callback(stop)
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Sign what waits, deliver what can be delivered within a few seconds, and stop.

        The next start finds what is left.
        """
        await self._stack.aclose()

    async def _flush_at_close(self) -> None:
        if any(relay.connected for relay in self.relays):
            try:
                async with asyncio.timeout(CLOSE_FLUSH_S):
                    await self.flush()
            except (MemoryFault, TimeoutError) as error:
                log.info(
                    "not everything was delivered before the shutdown; the next start goes on: %s", error
                )

    # ------------------------------------------------------------------ running

    async def recover(self, progress: Callable[[Progress], None] | None = None) -> RecoveryReport:
        """Recover from the relays; see `recovery.recover`."""
        return await recover(
            self.relays,
            self.codec,
            self.names,
            self._memory,
            self.outbox,
            clock=self._clock,
            progress=progress,
            live=self._live,
        )

    async def hydrate(self) -> None:
        """In canonical mode, recover from the relays, before anybody is answered.

        A failure is only logged: the bot then starts with what is on this disk.
        """
        if not self.config.canonical:
            return

        def show(progress: Progress) -> None:
            self.recovering = progress

        show(Progress("fetching", 0, None, 0))
        try:
            found = await self.recover(show)
        except (RelayUnreachable, Refused, MemoryFault, NostrError) as error:
            log.error("cannot recover from the relays, so the bot uses only what is on this disk: %s", error)
            return
        finally:
            self.recovering = None
        log.info(
            "recovered %d new records and %d new files from the relays",
            found.records,
            len(found.files),
        )
        for warning in found.warnings():
            log.warning("recovery: %s", warning)

    async def start(self) -> None:
        """Apply the owner's events and mirror the memory.

        Waits a few seconds for the owner's configuration.
        """
        if self._owner is not None and self.config.owner is not None:
            try:
                async with asyncio.timeout(OWNER_WAIT_S):
                    await self._owner.catch_up(self.relays)
            except TimeoutError:
                log.warning(
                    "the relays have not served the owner's configuration within %.0f s; "
                    "the last known one applies until they do",
                    OWNER_WAIT_S,
                )
            self._background(self._owner.follow(self.relays), "owner")
        self._stack.push_async_callback(self._flush_at_close)
        self.deliver()
        self._background(self._catch_up(), "mirror")
        self._background(self._save_state(), "state")

    def deliver(self) -> None:
        """Begin to send what is signed."""
        assert self._delivery is not None
        self._delivery.start()

    async def _catch_up(self) -> None:
        await self.mirror.catch_up()
        if self._embedded is not None and await read_in_thread(self.outbox.meta, PURGE) == "1":
            await self._purge()

    async def _save_state(self) -> None:
        """Save the state of the relays regularly, for `discoclaw nostr status`."""
        path = state_path(self.config.data_dir)
        while True:
            try:
                self.known = await self.status()
                await in_thread(save_state, path, self.known, self._clock())
            except (MemoryFault, OSError) as error:
                log.warning("cannot save the state of the relays for `discoclaw nostr status`: %s", error)
            await asyncio.sleep(STATE_INTERVAL_S)

    async def flush(self, timeout_s: float | None = None) -> None:
        """Sign everything on disk, and wait at most `timeout_s` for its delivery."""
        await self.mirror.push()
        await self.drain(timeout_s)

    async def drain(self, timeout_s: float | None = None) -> DeliveryProgress:
        """Wait until nothing waits for any relay, at most `timeout_s`; see `Delivery.drain`."""
        assert self._delivery is not None
        return await self._delivery.drain(timeout_s)

    async def settle(self) -> None:
        """Wait until the mirror has nothing to do now. Relays are not waited for."""
        await self.mirror.settle()

    # ------------------------------------------------------------------ for owners

    async def status(self) -> tuple[RelayStatus, ...]:
        """The state of each relay. Raises MemoryFault."""
        return await self._delivery.status() if self._delivery is not None else ()

    async def status_text(self) -> str:
        """The state of each relay, as lines of plain text."""
        try:
            quarantined = await read_in_thread(self.outbox.quarantined)
            return status_text(await self.status(), self.config.keys.npub, self._clock(), quarantined)
        except MemoryFault as fault:
            return f"The state of the mirror is unknown: {fault}"

    def push(self) -> None:
        """Bring the relays up to date now, and send again what they refused. Runs in the background."""
        delivery = self._delivery

        async def push() -> None:
            if delivery is None:
                return  # another process mirrors
            try:
                await delivery.unpark()
                await self.mirror.push()
            except MemoryFault as fault:
                log.warning("cannot bring the mirror up to date: %s", fault)

        self._background(push(), "push")

    # ------------------------------------------------------------------ inside

    def _wake_delivery(self) -> None:
        if self._delivery is not None:
            self._delivery.wake()

    def _people(self) -> list[str]:
        """The user ids of everybody with a ledger or a profile. Blocking."""
        disk = self._memory.disk
        found = {user_of(subject) for subject in subjects(disk)}
        found |= {name.removesuffix(".json") for name in disk.documents(PROFILES).names()}
        return sorted(user_id for user_id in found if user_id is not None)

    def _erased_on_relays(self, user_id: str) -> int:
        """When (ms) a person's records were deleted on relays; -1 for never. Blocking.

        After the loss of a disk, nothing else says that somebody was erased. Raises MemoryFault.
        """
        at = self.outbox.erased_at(self.names.ledger_prefix(user_subject(user_id)))
        return at * 1000 + 999 if at is not None else NEVER

    def _erased(self) -> None:
        """Destroy erased bytes in the embedded relay's files, once it has the deletion requests."""
        if self._embedded is not None:
            self._background(self._purge(), "purge")
        elif (folder := relay_folder(self.config.data_dir)).exists():
            log.warning(
                "%s belongs to an embedded relay that is not used any more, and still has what was erased; "
                "delete the folder",
                folder,
            )

    async def _purge(self) -> None:
        assert self._embedded is not None and self._delivery is not None
        try:
            await self._delivery.drain(60.0)
            await self._embedded.purge(())
            waits = any(one.queue.depth for one in await self._delivery.status())
            if not waits and not self._memory.pending_erasures(STEP):  # otherwise the next start purges again
                await in_thread(self.outbox.set_meta, PURGE, "0")
        except (NostrError, MemoryFault, SettingsError) as error:
            log.warning(
                "erased events are still in the embedded relay's files; the next start purges again: %s",
                error,
            )

    def _background(self, work: Coroutine[Any, Any, None], name: str) -> None:
        async def logged() -> None:
            try:
                await work
            except Exception:  # a named edge: a failing mirror must never affect conversations
                log.exception("nostr: %s failed", name)

        task = asyncio.get_running_loop().create_task(logged(), name=f"nostr-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


# ---------------------------------------------------------------------- its state as text

_MAX_CHARS = 160


def status_text(statuses: Iterable[RelayStatus], npub: str, now_ms: int, quarantined: int = 0) -> str:
    """Lines of text, a block for each relay. `quarantined` counts events from relays that can't be used."""

    def minute(ms: int) -> str:  # a time in UTC, to the minute
        return f"{iso_ms(ms)[:16].replace('T', ' ')}Z"

    lines = [f"mirrored as {npub}"]
    for one in statuses:
        connection, queue = one.connection, one.queue
        since, eose, name = connection.connected_since_ms, connection.last_eose_ms, connection.url
        lines += ["", name if name == connection.address else f"{name} ({connection.address})"]
        lines.append(f"  connected: {'since ' + minute(since) if since is not None else 'no'}")
        lines.append(f"  last complete answer: {minute(eose) if eose is not None else 'none yet'}")
        waits = queue.depth and queue.since is not None
        oldest = f", the oldest for {span(now_ms - (queue.since or 0))}" if waits else ""
        lines.append(f"  waiting: {queue.depth}{oldest}")
        for reason, count in queue.parked:
            lines.append(f"  refused permanently: {count} ({clip(collapse(reason), _MAX_CHARS)})")
        if one.pause_s > 0 and queue.depth:
            lines.append(f"  next try in {span(round(one.pause_s * 1000))}")
        failure = connection.last_error or one.last_failure
        for label, text in (("last error", failure), ("last notice", connection.last_notice)):
            if text:
                lines.append(f"  {label}: {clip(collapse(text), _MAX_CHARS)}")
    if quarantined:
        lines += ["", f"{quarantined} events from relays cannot be read; they are kept for inspection"]
    return "\n".join(lines)


# ----------------------------------------------------------------------
# Mirroring a store that several processes share: one of them does it, and the next one goes on.

SENT_S: Final = 10.0
"""How long an erasure waits for relays before others are mirrored."""


class SharingAdapter(NostrAdapter):
    """A `NostrAdapter` in one of several processes; it can be opened again after it was closed."""

    async def open(self) -> None:
        with faulting("an old outbox cannot be removed"):
            await in_thread(remove, self.config.outbox)  # it is of another time as the one that mirrors
        self.mirror.open(sent=self._sent)
        await super().open()

    async def _catch_up(self) -> None:
        pause_s = RETRY_S
        while True:
            try:
                # Tell the outbox what relays have.
                erased, disk = self._memory.pending_erasures(STEP), self._memory.disk
                found = await gather(self.relays, self.codec, self.names, disk, also=erased)
                await in_thread(adopt, found, self.names, self.outbox)
                break
            except (RelayUnreachable, MemoryFault, NostrError) as error:
                log.warning("nothing is mirrored for %.0f s, until it is known what is: %s", pause_s, error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_S)
        await super()._catch_up()

    async def _sent(self) -> None:
        """Raises MemoryFault while too few relays have what is in the outbox."""
        if not (await self.drain(SENT_S)).safe:
            raise MemoryFault("the relays do not have all deletion requests yet")


class OthersChanges(Listener):
    """Has what other processes change mirrored."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    async def renewed(self, names: Collection[str]) -> None:
        for name in names:
            if (unit := unit_of(name)) is not None:
                self._mirror.touch(unit, urgent=name.startswith((f"{INTENTS}/", CHOICES)))
