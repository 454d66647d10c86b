"""`discoclaw nostr`: the state of the encrypted mirror on relays, bringing it up to date, and recovery.

The commands come first, then the work behind them: the key, the relays and the mirror, as the settings
configure them. `relays_of` and `relay_access` are also for other commands that reach relays; these import
this module when they run, since Nostr's libraries take a tenth of a second to load.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from discoclaw import settings as settings_module
from discoclaw.cli.common import (
    AsJson,
    local_day,
    local_time,
    locked_storage,
    note,
    now_ms,
    print_grid,
    say,
    say_json,
    stores_of,
    uses,
)
from discoclaw.core.errors import FolderInUse, RelayError, SettingsError
from discoclaw.core.live import Pseudonyms
from discoclaw.core.text import clip
from discoclaw.memory.subjects.store import Memory
from discoclaw.mirroring import find_keys, nostr_config, redactor_for
from discoclaw.nostr import recovery
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.config import NostrConfig, key_path, make_key, read_state, relay_folder, state_path
from discoclaw.nostr.event import Event, Keys
from discoclaw.nostr.outbox import DeliveryProgress, Outbox
from discoclaw.nostr.owner import Publish, PublishResult
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.embedded import EmbeddedRelay
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.report import Progress as Reached
from discoclaw.nostr.report import RecoveryReport
from discoclaw.nostr.schemas import Names
from discoclaw.settings import EMBEDDED, Settings
from discoclaw.show.answer import Grid
from discoclaw.show.words import count, line
from discoclaw.store.files import in_thread

nostr = typer.Typer(no_args_is_help=True)
LONGEST = 200
"""Longest text of a relay that is shown, in UTF-16 units."""
PANEL = "Push and recover (stop the bot first)"


@nostr.command()
def status(as_json: AsJson = False) -> None:
    """Show the state of each relay, what is waiting for it, and what it refused. Works while the bot runs.

    Example: discoclaw nostr status
    """
    found = asyncio.run(status_of(settings_module.load()))
    if as_json:
        say_json(found)
        return
    say(f"mode: {found['mode']}")
    say(f"key: {found['npub'] or 'none; make one with `discoclaw nostr new-key`'}")
    least = count(found["min_acks"], "relay")
    say(f"mirrored: {count(found['events'], 'event')}, each needed on at least {least}")
    if found["quarantined"]:
        say(f"unreadable, and set aside: {count(found['quarantined'], 'event')}")
    if not found["relays"]:
        say("No relays are configured; set NOSTR_RELAYS.")
        return
    rows = []
    for one in found["relays"]:
        waiting = "" if one["waiting"] is None else f"{one['waiting']:,}"
        rows.append(
            [
                clip(one["url"], LONGEST),
                "yes" if one["connected"] else "no",
                _when(one["last_eose"]),
                waiting + (f" since {_when(one['waiting_since'])}" if one["waiting"] else ""),
                "; ".join(f"{each['events']:,} {line(each['reason'], LONGEST)}" for each in one["parked"]),
                clip(one["error"] or one["notice"], LONGEST),
            ]
        )
    columns = ("relay", "connected", "last answer", "waiting", "refused", "problem")
    print_grid(Grid(columns, rows))
    if not found["running"]:
        say("The bot isn't running, or has just started, so this is what the relays answered just now.")


def _when(ms: int | None) -> str:
    """A local time: just `15:03` if it is today, else with the date; "" for none."""
    if ms is None:
        return ""
    return local_time(ms)[11:] if local_day(ms) == local_day(now_ms()) else local_time(ms)


@nostr.command(rich_help_panel=PANEL)
def push(
    check: Annotated[
        bool,
        typer.Option("--check", help="Ask each relay what it has, and send again what it lost or refused."),
    ] = False,
) -> None:
    """Publish everything that isn't mirrored yet, and wait until the relays have it.

    The exit code is 1 unless every event is on at least NOSTR_MIN_ACKS relays.

    Example: discoclaw nostr push --check
    """
    here = nostr_context(_wanted())
    instead = "it publishes by itself; its owners can start that with `!nostr push`"
    with exclusive_memory(instead) as memory, ProgressBars() as bars:
        tally, notes = asyncio.run(deliver(here, memory, check=check, tell=bars.show_delivery))
    for text in notes:
        note(text)
    say(
        f"{count(tally.events, 'event')}: {tally.everywhere:,} on every relay, "
        f"{tally.enough:,} on at least {here.settings.nostr_min_acks}."
    )
    if not tally.safe:
        raise typer.Exit(1)


@nostr.command(rich_help_panel=PANEL)
def recover(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be recovered; works while the bot runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recover the memory that relays have, and unite it with what is here. Repeating it changes nothing.

    Nothing that is here is lost, and what was erased here does not come back. The exit code is 1 if the
    recovery may be incomplete: no relay sent everything it has, something is known to be missing or was
    withheld, or something couldn't be restored.

    Example: discoclaw nostr recover --dry-run
    """
    here = nostr_context(_wanted())
    keys, codec = here.config.keys, here.config.codec

    async def previewed(bars: ProgressBars) -> RecoveryReport:
        with stores_of(here.settings) as stores:
            async with relays_of(here.settings, keys) as relays:
                return await recovery.preview(
                    relays, codec, Names(keys), stores.used, clock=now_ms, progress=bars.show_recovery
                )

    async def recovered(memory: Memory, bars: ProgressBars) -> RecoveryReport:
        async with here.adapter(memory) as adapter:
            return await adapter.recover(bars.show_recovery)

    if dry_run:
        with ProgressBars() as bars:
            found = asyncio.run(previewed(bars))
    else:
        with (
            exclusive_memory("use `--dry-run` to see what would be recovered") as memory,
            ProgressBars() as bars,
        ):
            found = asyncio.run(recovered(memory, bars))
    if as_json:
        say_json(found.to_json())
    else:
        for text in found.warnings():
            note(text)
        if not found.events:
            note(f"no relay has any event by {here.config.keys.npub}; is that the key that was used before?")
        would = "would be" if found.dry else "were"
        say(
            f"Found {count(found.events, 'event')} on relays: {count(found.records, 'record')} of "
            f"{count(found.subjects, 'memory')} and {count(len(found.files), 'file')} {would} recovered."
        )
    if not found.is_complete:
        raise typer.Exit(1)


@nostr.command("new-key")
def new_key(
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password, and encrypt the key with it.")
    ] = False,
) -> None:
    """Create the bot's secret key in a file that only you can read. The key is not displayed.

    Anyone with the key can read everything that is mirrored, and nobody can without it. Keep a copy of the
    file on another disk. If NOSTR_SECRET_KEY is set, that key is used instead.

    Example: discoclaw nostr new-key --password
    """
    settings = settings_module.load()
    path = key_path(settings.data_dir)
    if password:
        typed = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    keys = make_key(path, typed if password else None)
    say(f"Created the key {keys.npub} in {path}.")
    say("Keep a copy of that file elsewhere: if this disk is lost, memory can only be recovered with it.")
    if password:
        say("Set NOSTR_KEY_PASSWORD to the password, so that the bot can use the key.")
    if settings.nostr_key is not None:
        note("NOSTR_SECRET_KEY is set, so that key is used; unset it to use the new one")


def _wanted() -> Settings:
    """The settings, with a note if the bot itself does not mirror."""
    settings = settings_module.load()
    if settings.nostr_mode == "off":
        note("NOSTR_MODE=off, so the bot mirrors nothing; this command works all the same")
    return settings


# ---------------------------------------------------------------------- the relays of the settings

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
    return NostrContext(settings, nostr_config(settings, keys))


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


async def status_of(settings: Settings) -> dict[str, Any]:
    """The state of each relay, as JSON: from the notes of a running bot, or else by connecting briefly.

    Changes nothing. Raises SettingsError.
    """
    uses(settings)
    keys = find_keys(settings)
    noted = read_state(state_path(settings.data_dir), now_ms())
    connections: dict[str, Any] = dict(noted) if noted is not None else {}
    if noted is None and settings.nostr_relays == (EMBEDDED,):
        connections[EMBEDDED] = {"error": "it runs only while the bot runs"}
    elif noted is None:
        wait_s = min(STATUS_WAIT_S, settings.nostr_timeout_s)
        # Without a key of the bot any will do: it is only used if a relay asks for authentication.
        async with relays_of(settings, keys or Keys.generate(), wait_s) as relays:
            for relay in relays:
                with suppress(RelayError):  # which is then part of its status
                    await relay.ready(wait_s)
                now = relay.status()
                connections[relay.url] = {
                    "connected_since": now.connected_since_ms,
                    "last_eose": now.last_eose_ms,
                    "error": now.last_error if now.connected_since_ms is None else "",
                    "notice": now.last_notice,
                }
    queued, quarantined = None, 0
    if settings.outbox_path.exists():
        with closing(Outbox.to_read(settings.outbox_path)) as outbox:
            queued, quarantined = outbox.status(list(connections)), outbox.quarantined()
    rows = []
    for url, one in connections.items():
        queue = queued.relays[url] if queued is not None else None
        parked = queue.parked if queue is not None else ()
        rows.append(
            {
                "url": url,
                "connected": one.get("connected_since") is not None,
                "last_eose": one.get("last_eose"),
                "waiting": queue.depth if queue is not None else None,
                "waiting_since": queue.since if queue is not None else None,
                "parked": [{"reason": why, "events": number} for why, number in parked],
                "error": one.get("error") or "",
                "notice": one.get("notice") or "",
            }
        )
    return {
        "mode": settings.nostr_mode,
        "npub": keys.npub if keys is not None else None,
        "running": noted is not None,
        "events": queued.events if queued is not None else 0,
        "quarantined": quarantined,
        "min_acks": settings.nostr_min_acks,
        "relays": rows,
    }


# ---------------------------------------------------------------------- push and recovery


async def deliver(
    here: NostrContext, memory: Memory, *, check: bool, tell: Callable[[DeliveryProgress], None]
) -> tuple[DeliveryProgress, list[str]]:
    """Publish everything that is not published, and wait until the relays have it, or progress stops.

    `check`: also send again what relays have lost or refused. Returns how much was delivered, and sentences
    about what was not.
    """
    async with here.adapter(memory) as adapter:
        await adapter.mirror.push(full=check)
        waiting, outbox = adapter.mirror.waiting, adapter.outbox
        notes = [f"{count(waiting, 'unit')} can't be mirrored now; see the bot's log"] if waiting else []
        for relay in adapter.relays if check else ():
            there: set[str] = set()

            async def take(events: list[Event], there: set[str] = there) -> None:
                there.update(event.id for event in events)

            fetched = await relay.fetch([Filter(authors=(adapter.config.keys.public,))], take)
            if not fetched.complete:
                notes.append(f"{relay.url} can't be checked: {fetched.reason}")
            elif lacking := await in_thread(outbox.requeue_missing, relay.url, there):
                notes.append(f"{relay.url} lost {lacking:,} events; they are sent again")
            await in_thread(outbox.unpark, relay.url)
        adapter.deliver()
        tally = await _delivered(adapter, here.settings, tell)
        for one in await adapter.status():
            url = one.connection.url
            why = one.last_failure or one.connection.last_error or "it didn't accept them in time"
            if one.queue.depth:
                notes.append(f"{url}: {one.queue.depth:,} events are still waiting: {why}")
            notes += [f"{url} refused {number:,}: {reason}" for reason, number in one.queue.parked]
    return tally, notes


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
