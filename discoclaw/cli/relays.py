"""The work behind `discoclaw nostr`: the key, the relays and the mirror, as the settings configure them.

The commands import this module only when they run, since Nostr's libraries take a tenth of a second to load.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from discoclaw.cli.common import locked_storage, now_ms, stores_of, uses
from discoclaw.core.errors import FolderInUse, RelayError, SettingsError
from discoclaw.core.live import Pseudonyms
from discoclaw.memory.subjects.store import Memory
from discoclaw.mirroring import find_keys, nostr_config_with, redactor_for
from discoclaw.nostr.adapter import NostrAdapter, NostrConfig
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.folder import read_state, relay_folder, state_path
from discoclaw.nostr.incoming import recovery
from discoclaw.nostr.incoming.report import Progress as Reached
from discoclaw.nostr.incoming.report import RecoveryReport
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.outbox import DeliveryProgress, Outbox, OutboxStatus
from discoclaw.nostr.owner import Publish, PublishResult
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.embedded import EmbeddedRelay
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.relays.wire import Filter
from discoclaw.settings import EMBEDDED, Settings
from discoclaw.show.words import count
from discoclaw.store.files import in_thread

STATUS_WAIT_S = 3.0
"""How long `status` waits for a relay."""
_TICK_S = 0.25
"""How often the progress of a delivery is looked at."""


@dataclass(frozen=True, slots=True)
class NostrContext:
    """The settings of a command that uses relays."""

    settings: Settings
    config: NostrConfig

    @asynccontextmanager
    async def adapter(self, memory: Memory) -> AsyncIterator[NostrAdapter]:
        """The Nostr adapter, open, for a memory whose folder this process has locked."""
        redactor = redactor_for(self.settings, self.config.keys)
        adapter = NostrAdapter(self.config, memory, clock=now_ms, redactor=redactor)
        await adapter.open()
        try:
            yield adapter
        finally:
            await adapter.close()


def nostr_context(settings: Settings) -> NostrContext:
    """The Nostr configuration. Raises SettingsError if relays or the key are missing or unusable."""
    if not settings.nostr_relays:
        raise SettingsError("no relays are set; name some with NOSTR_RELAYS, or say NOSTR_RELAYS=embedded")
    uses(settings)
    keys = find_keys(settings)
    if keys is None:
        raise SettingsError(
            "there is no key; set NOSTR_SECRET_KEY to the one that was used before, or create one with "
            "`discoclaw nostr new-key`"
        )
    return NostrContext(settings, nostr_config_with(settings, keys))


@contextmanager
def exclusive_memory(instead: str) -> Iterator[Memory]:
    """The memory, with its folder locked. Raises FolderInUse with what to do `instead` while the bot runs."""
    try:
        with locked_storage() as storage:
            yield storage.memory
    except FolderInUse as error:
        raise FolderInUse(f"{error}. While the bot runs, {instead}") from None


@asynccontextmanager
async def relays_of(
    settings: Settings, keys: Keys, timeout_s: float | None = None
) -> AsyncIterator[list[Relay]]:
    """The configured relays, connecting. The bot may be running.

    The embedded relay is the running bot's, or is started here for the time being. Raises SettingsError for
    an invalid address.
    """
    async with AsyncExitStack() as stack:
        urls, name = list(settings.nostr_relays), None
        if urls == [EMBEDDED]:
            name, running = EMBEDDED, read_state(state_path(settings.data_dir), now_ms()) or {}
            if EMBEDDED in running:
                urls = [str(running[EMBEDDED].get("address"))]
            else:
                embedded = EmbeddedRelay(relay_folder(settings.data_dir))
                await embedded.start()
                stack.push_async_callback(embedded.stop)
                urls = [embedded.url]
        wait_s = timeout_s or settings.nostr_timeout_s
        relays = [Relay(url, keys, name=name, timing=Timing(timeout_s=wait_s)) for url in urls]
        for relay in relays:
            stack.push_async_callback(relay.close)
            relay.start()
        yield relays


# ---------------------------------------------------------------------- how the relays are doing


async def status(settings: Settings) -> dict[str, Any]:
    """The state of each relay, as JSON: from the notes of a running bot, or else by connecting briefly.

    Changes nothing. Raises SettingsError.
    """
    uses(settings)
    keys = find_keys(settings)
    noted = read_state(state_path(settings.data_dir), now_ms())
    connections = dict(noted) if noted is not None else await _probed(settings, keys)
    queued, quarantined = _queued(settings, list(connections))
    return {
        "mode": settings.nostr_mode,
        "npub": keys.npub if keys is not None else None,
        "running": noted is not None,
        "events": queued.events if queued is not None else 0,
        "quarantined": quarantined,
        "min_acks": settings.nostr_min_acks,
        "relays": [_relay(url, one, queued) for url, one in connections.items()],
    }


async def _probed(settings: Settings, keys: Keys | None) -> dict[str, dict[str, Any]]:
    """The state of each relay, found out by connecting."""
    if settings.nostr_relays == (EMBEDDED,):
        return {EMBEDDED: {"error": "it runs only while the bot runs"}}
    found: dict[str, dict[str, Any]] = {}
    wait_s = min(STATUS_WAIT_S, settings.nostr_timeout_s)
    # Without a key of the bot any will do: it is only used if a relay asks for authentication.
    async with relays_of(settings, keys or Keys.generate(), wait_s) as relays:
        for relay in relays:
            with suppress(RelayError):  # which is then part of its status
                await relay.ready(wait_s)
            one = relay.status()
            found[relay.url] = {
                "connected_since": one.connected_since_ms,
                "last_eose": one.last_eose_ms,
                "error": one.last_error if one.connected_since_ms is None else "",
                "notice": one.last_notice,
            }
    return found


def _queued(settings: Settings, urls: list[str]) -> tuple[OutboxStatus | None, int]:
    """The outbox's queue for each relay, and how many events are in quarantine."""
    path = settings.outbox_path
    if not path.exists():
        return None, 0
    outbox = Outbox.reading(path)
    try:
        return outbox.status(urls), outbox.quarantined()
    finally:
        outbox.close()


def _relay(url: str, one: Any, queued: OutboxStatus | None) -> dict[str, Any]:
    queue = queued.relays[url] if queued is not None else None
    return {
        "url": url,
        "connected": one.get("connected_since") is not None,
        "last_eose": one.get("last_eose"),
        "waiting": queue.depth if queue is not None else None,
        "waiting_since": queue.since if queue is not None else None,
        "parked": [{"reason": why, "events": count} for why, count in (queue.parked if queue else ())],
        "error": one.get("error") or "",
        "notice": one.get("notice") or "",
    }


# ---------------------------------------------------------------------- push and recovery


@dataclass(frozen=True, slots=True)
class PushResult:
    """How much was delivered. `notes` are sentences about what was not."""

    tally: DeliveryProgress
    notes: tuple[str, ...]


async def push(
    here: NostrContext, memory: Memory, *, check: bool, tell: Callable[[DeliveryProgress], None]
) -> PushResult:
    """Publish everything that is not published, and wait until the relays have it, or progress stops.

    `check`: also send again what relays have lost or refused.
    """
    async with here.adapter(memory) as adapter:
        await adapter.mirror.push(full=check)
        waiting = adapter.mirror.waiting
        notes = [f"{count(waiting, 'unit')} can't be mirrored now; see the bot's log"] if waiting else []
        notes += await _checked(adapter) if check else []
        adapter.deliver()
        tally = await _delivered(adapter, here.settings, tell)
        for one in await adapter.status():
            url = one.connection.url
            why = one.last_failure or one.connection.last_error or "it didn't accept them in time"
            if one.queue.depth:
                notes.append(f"{url}: {one.queue.depth:,} events are still waiting: {why}")
            notes += [f"{url} refused {number:,}: {reason}" for reason, number in one.queue.parked]
    return PushResult(tally, tuple(notes))


async def _checked(adapter: NostrAdapter) -> list[str]:
    """Queue again what relays lack or refused. Returns sentences about it."""
    notes, outbox = [], adapter.outbox
    for relay in adapter.relays:
        there: set[str] = set()

        async def take(events: list[Event], there: set[str] = there) -> None:
            there.update(event.id for event in events)

        fetched = await relay.fetch([Filter(authors=(adapter.config.keys.public,))], take)
        if fetched.complete:
            if lacking := await in_thread(outbox.requeue_missing, relay.url, there):
                notes.append(f"{relay.url} lost {lacking:,} events; they are sent again")
        else:
            notes.append(f"{relay.url} can't be checked: {fetched.reason}")
        await in_thread(outbox.unpark, relay.url)
    return notes


async def _delivered(
    adapter: NostrAdapter, settings: Settings, tell: Callable[[DeliveryProgress], None]
) -> DeliveryProgress:
    """Wait until nothing is waiting for any relay, or nothing has moved for twice the relays' timeout."""
    outbox, urls = adapter.outbox, [relay.url for relay in adapter.relays]
    # Twice the timeout, so that one attempt can fail and the next one still counts as progress.
    time, patience_s = asyncio.get_running_loop().time, 2 * settings.nostr_timeout_s
    flushed = asyncio.create_task(adapter.drain())
    moved, depth = time(), -1
    try:
        while not flushed.done() and time() - moved < patience_s:
            await asyncio.wait([flushed], timeout=_TICK_S)
            status = await in_thread(outbox.status, urls)
            waits = sum(queue.depth for queue in status.relays.values())
            if waits != depth:
                moved, depth = time(), waits
            tell(await in_thread(outbox.progress, urls, min_acks=settings.nostr_min_acks))
    finally:
        flushed.cancel()
        await asyncio.gather(flushed, return_exceptions=True)
    return await in_thread(outbox.progress, urls, min_acks=settings.nostr_min_acks)


async def recover(here: NostrContext, memory: Memory, tell: Callable[[Reached], None]) -> RecoveryReport:
    """Recover what relays have into a memory whose folder this process has locked."""
    async with here.adapter(memory) as adapter:
        return await adapter.recover(tell)


async def preview_recovery(here: NostrContext, tell: Callable[[Reached], None]) -> RecoveryReport:
    """Report what a recovery would restore, without changing anything. The bot may be running."""
    keys, codec = here.config.keys, here.config.codec
    with stores_of(here.settings) as stores:
        async with relays_of(here.settings, keys) as relays:
            return await recovery.preview(
                relays, codec, Names(keys), stores.used, clock=now_ms, progress=tell
            )


# ---------------------------------------------------------------------- progress


class ProgressBars:
    """Progress bars on stderr, if that is a terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            console=Console(stderr=True),
            transient=True,
            disable=not Console(stderr=True).is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "ProgressBars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show_recovery(self, at: Reached) -> None:
        """Show how far a recovery has come."""
        self._show(at.stage, at.done, at.total, f"{at.per_s:,.0f}/s" if at.done else "")

    def show_delivery(self, tally: DeliveryProgress) -> None:
        """Show how much has been delivered."""
        self._show("delivering", tally.enough, tally.events, "")

    def _show(self, name: str, done: int, total: int | None, rate: str) -> None:
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = self._progress.add_task(name, total=total, rate="")
        self._progress.update(task, completed=done, total=total, rate=rate)


# ---------------------------------------------------------------------- the owner's events


@dataclass(frozen=True, slots=True)
class RelayAccess:
    """How to reach the bot over relays: its public key (hex), its pseudonyms, and a way to publish events."""

    bot: str
    names: Pseudonyms
    publish: Publish


def relay_access(settings: Settings) -> RelayAccess | None:
    """How an event of the owner reaches the bot; None without relays or without a key of the bot."""
    keys = find_keys(settings)
    if keys is None or not settings.nostr_relays or settings.nostr_mode == "off":
        return None

    async def publish(event: Event) -> PublishResult:
        accepted, failed = [], {}
        async with relays_of(settings, keys) as relays:
            for relay in relays:
                try:
                    await relay.ready(settings.nostr_timeout_s)
                    await relay.publish(event)
                    accepted.append(relay.url)
                except RelayError as error:
                    failed[relay.url] = str(error).removeprefix(f"{relay.url}: ")
        return PublishResult(tuple(accepted), failed)

    return RelayAccess(keys.public, Names(keys), publish)
