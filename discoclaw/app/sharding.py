"""Discord's shards: which of them this process has, and that no other process has them at the same time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, Literal

from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.sharded import ShardedDiscoClaw, Slots
from discoclaw.core.errors import LeaseLost, MemoryFault, SettingsError
from discoclaw.core.processes import Processes
from discoclaw.core.shards import AUTO, EVERY, Shards, every
from discoclaw.memory.conversations.inboxes import Inboxes
from discoclaw.store.sharing import SHARDS

log = logging.getLogger(__name__)

GIVE_UP_AGAIN_S: Final = 0.1


class Sharding:
    """The leases of this process's shards, taken before it connects, and left with the store. A `Service`.

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

    async def start(self) -> None:
        """Nothing to start: `served` takes the shards."""

    async def settle(self) -> None:
        """There is nothing to wait for."""

    async def close(self) -> None:
        """Give the shards back: the store was left, and so were the leases."""
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.gather(self._holding, return_exceptions=True)

    async def served(self, connect: Callable[[], Awaitable[None]]) -> None:
        """Take the shards, which may take until another process ends, and stay connected.

        Raises LeaseLost when another process has taken one of them, and SettingsError where living processes
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
        await _given_up(connecting)
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
        try:
            await self._inboxes.serve(shards)
        except OSError as error:
            raise MemoryFault(f"what was handled of the shards {shards} can't be read: {error}") from error

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
                f"another process took over the shards {shards} while the store could not be reached; this "
                f"process ends; started again, it waits for them ({error})"
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


async def _given_up(connecting: "asyncio.Future[None]") -> None:
    """End the connection. While discord.py connects one shard, it takes that for the end of this attempt."""
    while not connecting.done():
        connecting.cancel()
        await asyncio.wait({connecting}, timeout=GIVE_UP_AGAIN_S)
    connecting.cancelled() or connecting.exception()  # retrieved


def _result(task: "asyncio.Task[None]") -> None:
    """Raise what a task has raised, and nothing if it was cancelled: then we are closing."""
    if not task.cancelled():
        task.result()
