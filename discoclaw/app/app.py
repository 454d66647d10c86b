"""The running program: its services, the connection to Discord, and which of its shards this process has."""

import asyncio
import ctypes
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal, Self

import aiohttp
import discord
import yarl

from discoclaw.app.monitoring import Health
from discoclaw.app.services import Services
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.sharded import ShardedDiscoClaw, Slots
from discoclaw.core.errors import ChatUnavailable, LeaseLost, SettingsError, faulting
from discoclaw.core.health import Seen
from discoclaw.core.ports import MirrorControl, Passive, Processes, Service
from discoclaw.core.redact import without_login
from discoclaw.core.shards import AUTO, EVERY, Shards, every
from discoclaw.memory.conversations.inboxes import Inboxes
from discoclaw.session.talk import Talk
from discoclaw.settings import Settings
from discoclaw.storage import Storage
from discoclaw.store.port import SHARDS
from discoclaw.usage.accounts import Accounts

log = logging.getLogger(__name__)

CLOSE_S: Final = 10.0
"""What closing may take beside the grace for answers: each part needs up to five seconds, few need any."""
GIVE_UP_AGAIN_S: Final = 0.1
_M_ARENA_MAX: Final = -8
"""The number of this option in glibc's `malloc.h`."""


@contextmanager
def stop_asked() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set. After the block these signals end the program at once again."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    # Windows has no such handlers; there Ctrl-C raises KeyboardInterrupt.
    with suppress(NotImplementedError):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        with suppress(NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


class Sharding(Passive):
    """The leases of this process's shards: `served` takes them, and they are left with the store.

    A client without shards is one of one. Where the store is not shared, nobody else can have any.
    """

    def __init__(
        self,
        wanted: Shards | Literal["auto"] | None,
        processes: Processes,
        client: DiscoClaw,
        inboxes: Inboxes,
        *,
        store: str,
    ) -> None:
        """`store` is what the processes would have to share. Raises SettingsError if they can't share it."""
        if isinstance(wanted, Shards) and not wanted.all and not processes.shared:
            raise SettingsError(
                f"DISCOCLAW_SHARDS={wanted}: the other shards need other processes, and those can't share "
                f"DISCOCLAW_STORE={store}; set it to postgresql://…, or take all shards"
            )
        self._wanted = wanted
        self._processes = processes
        self._client = client
        self._inboxes = inboxes
        self._holding: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Give the shards back: the store was left, and so were the leases."""
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.gather(self._holding, return_exceptions=True)

    async def served(self, connect: Callable[[], Awaitable[None]]) -> None:
        """Take the shards, which may take until another process ends, and stay connected.

        Raises LeaseLost when other processes may have taken them, and SettingsError where living processes
        have another number of shards.
        """
        shards = await self._prepared()
        if not self._processes.shared:
            await connect()
            return
        taken = asyncio.get_running_loop().create_future()
        self._holding = asyncio.create_task(self._hold(shards, taken), name="shards")
        await asyncio.wait({taken, self._holding}, return_when=asyncio.FIRST_COMPLETED)
        if self._holding.done():
            _result(self._holding)
            return
        await self._read(shards)
        connecting = asyncio.ensure_future(connect())
        await asyncio.wait({connecting, self._holding}, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            connecting.result()
            return
        self._inboxes.leave()
        while not connecting.done():  # while it connects one shard, discord.py ends only this attempt
            connecting.cancel()
            await asyncio.wait({connecting}, timeout=GIVE_UP_AGAIN_S)
        connecting.cancelled() or connecting.exception()  # retrieved
        await self._client.hang_up()
        _result(self._holding)

    async def _prepared(self) -> Shards:
        """The shards to have, after the client was told of them."""
        if self._wanted is None:
            return EVERY
        assert isinstance(self._client, ShardedDiscoClaw)
        count, _, limits = await self._client.http.get_bot_gateway()
        shards = every(count) if self._wanted == AUTO else self._wanted
        log.info("shards %s; Discord recommends %d in all", shards, count)
        if limits["remaining"] < len(shards.ids):
            log.warning(
                "Discord lets this bot connect only %d more times in the next %.0f minutes",
                limits["remaining"],
                limits["reset_after"] / 60_000,
            )
        self._client.serve(shards, Slots(self._processes, limits["max_concurrency"]))
        if not self._processes.shared:
            await self._read(shards)
        return shards

    async def _read(self, shards: Shards) -> None:
        with faulting(f"what was handled of the shards {shards} can't be read"):
            await self._inboxes.serve(shards)

    async def _hold(self, shards: Shards, taken: "asyncio.Future[None]") -> None:
        """Have the leases until they are given back. Raises LeaseLost and SettingsError."""
        try:
            await self._check(shards)  # first, so that who is refused never had one that others then see
            async with AsyncExitStack() as leases:
                for shard in shards.ids:
                    await self._take(f"{SHARDS}{shard}/{shards.count}", shards, leases)
                await self._check(shards)
                taken.set_result(None)
                await asyncio.get_running_loop().create_future()
        except LeaseLost as error:
            raise LeaseLost(
                f"another process may have taken over the shards {shards} while the store could not be "
                f"reached; this process ends; started again, it waits for them ({error})"
            ) from error

    async def _take(self, name: str, shards: Shards, leases: AsyncExitStack) -> None:
        """Take one lease, or wait for it."""
        if await leases.enter_async_context(self._processes.free(name)):
            return
        shard, who = name.removeprefix(SHARDS), (await self._processes.holders(name)).get(name, "")
        log.info(
            "shard %s belongs to another process%s; waiting until that ends",
            shard,
            f" ({who})" if who else "",
        )
        await leases.enter_async_context(self._processes.lease(name))

    async def _check(self, shards: Shards) -> None:
        """Raise SettingsError if a living process has another number of shards."""
        for name, who in (await self._processes.holders(SHARDS)).items():
            if name.rpartition("/")[2] != str(shards.count):
                raise SettingsError(
                    f"DISCOCLAW_SHARDS={shards}: another process ({who}) has shard "
                    f"{name.removeprefix(SHARDS)}; stop all processes before you start one with another "
                    "number of shards"
                )


def _result(task: "asyncio.Task[None]") -> None:
    """Raise what a task has raised, and nothing if it was cancelled: then we are closing."""
    if not task.cancelled():
        task.result()


@dataclass(eq=False)
class App:
    """The running program. `client` is its connection to Discord, `storage` everything on disk.

    `talk` are all conversations, `accounts` what models cost, `mirror` the relays, and `seen` says how the
    models do. `services` are the parts that run, in the order in which they start. `health` says how
    everything is.
    """

    settings: Settings
    client: DiscoClaw
    storage: Storage
    talk: Talk
    sharding: Sharding
    accounts: Accounts
    mirror: MirrorControl
    seen: Seen
    services: Sequence[Service]
    health: Health

    def __post_init__(self) -> None:
        self._running = Services(self.services, close_s=self.closing_s)

    @property
    def closing_s(self) -> float:
        """The longest that closing everything takes."""
        return self.settings.shutdown_grace_s + CLOSE_S

    async def __aenter__(self) -> Self:
        """Start everything except the connection. Raises FolderInUse, MemoryFault or SettingsError."""
        share_heap()
        if self.settings.discord_api is not None:
            discord.http.Route.BASE = self.settings.discord_api
        if self.settings.discord_gateway is not None:
            discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(self.settings.discord_gateway)
        await self._running.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish running work, then close everything in reverse order."""
        await self._running.close()

    async def settle(self) -> None:
        """Wait until no turn, loop or mirror is working."""
        await self._running.settle()

    async def run(self) -> None:
        """Connect to Discord and stay until the client is closed.

        Raises SettingsError without a token, and LeaseLost when other processes may have our shards.
        """
        if self.settings.token is None:
            raise SettingsError("DISCORD_TOKEN is not set; set it, or try `discoclaw demo`, which needs none")
        freeze_heap()  # a full collection stops every reply: for 25 instead of 175 ms under load
        try:
            await self.client.login(self.settings.token.get_secret_value())
            await self.sharding.served(self.client.connect)
        except discord.LoginFailure:
            raise SettingsError("DISCORD_TOKEN=…: Discord does not accept this token") from None
        except discord.PrivilegedIntentsRequired:
            raise SettingsError(
                "the bot may not read messages: enable the “message content” intent at "
                "https://discord.com/developers/applications, under Bot"
            ) from None
        except (aiohttp.ClientError, OSError, discord.HTTPException, discord.GatewayNotFound) as error:
            raise self._unreachable(error) from None
        except AttributeError as error:
            # discord.py 2.7 fails on its own missing socket if the very first connection fails.
            if getattr(self.client, "ws", None) is not None:
                raise
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> ChatUnavailable:
        where = f" at {without_login(self.settings.discord_api)}" if self.settings.discord_api else ""
        return ChatUnavailable(
            f"Discord cannot be reached{where} ({type(error).__name__}); "
            "check the network, or DISCORD_API_BASE and DISCORD_GATEWAY"
        )


# The memory of the process: where threads take it from, and what the garbage collector has to look at.


def share_heap() -> None:
    """Have all threads take memory from one heap, if the C library is glibc.

    By default it makes up to eight heaps a core, and what threads that write to disk once used stays in each:
    1.2 kB more with every message. Python's lock already keeps threads from allocating at the same time.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # musl has no such option, and one heap
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def freeze_heap() -> None:
    """Have the collector pass over all objects there are by now: modules, settings, and the parts.

    They stay until the program ends, and a full collection would look at each of the 260,000 again while
    every reply waits. With 300 conversations at once it takes 25 instead of 175 ms of the processor without
    them; `python -m bench pauses` measures it.
    """
    gc.collect()
    gc.freeze()
