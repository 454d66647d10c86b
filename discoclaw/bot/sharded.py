"""The client of a process that has several of Discord's shards: one connection for each, the rest is shared.

Before each IDENTIFY it waits for a slot (`Slots`): Discord takes one in five seconds for each bucket of
shards, from all processes together. Each shard has sessions of its own, so what was missed is caught up with
shard by shard.
"""

import asyncio
import logging
from typing import Final

import yarl
from discord.ext import commands

from discoclaw.bot import gateway
from discoclaw.bot.client import DiscoClaw
from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Processes
from discoclaw.core.redact import Redactor
from discoclaw.core.shards import Shards
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.live import LiveConfig
from discoclaw.settings import Settings

log = logging.getLogger(__name__)

PAUSE_S: Final = 5.25
"""How long a slot is kept: Discord's 5 s, and what an IDENTIFY may be late on its way."""


class Slots:
    """When which shard may IDENTIFY. Shards whose ids leave the same remainder take turns, everywhere."""

    def __init__(self, processes: Processes, concurrency: int, pause_s: float = PAUSE_S) -> None:
        self._processes = processes
        self._turns = [asyncio.Lock() for _ in range(concurrency)]
        self._pause_s = pause_s
        self._tasks: set[asyncio.Task[None]] = set()

    async def taken(self, shard_id: int) -> None:
        """Wait until a shard may IDENTIFY; the next one of its bucket may a while after this returns."""
        began = asyncio.get_running_loop().create_future()
        # A task of its own keeps the lease, because the slot stays ours while the caller goes on.
        task = asyncio.create_task(self._keep(shard_id % len(self._turns), began))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await began
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def _keep(self, bucket: int, began: "asyncio.Future[None]") -> None:
        try:
            async with self._turns[bucket], self._processes.lease(f"identify/{bucket}"):
                if not began.done():
                    began.set_result(None)
                await asyncio.sleep(self._pause_s)
        except MemoryFault as error:  # for whoever waits: the store failed, or the lease was lost
            if began.done():
                log.info("the slot for an IDENTIFY ended early: %s", error)
            else:
                began.set_exception(error)
        finally:
            if not began.done():
                began.set_result(None)

    async def close(self) -> None:
        """Give up all slots. Whoever waits for one waits no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class ShardedDiscoClaw(DiscoClaw, commands.AutoShardedBot):
    """The client. `serve` says which shards it has, before it connects."""

    def __init__(
        self, settings: Settings, redactor: Redactor, live: LiveConfig, cursors: Cursors, processes: Processes
    ) -> None:
        super().__init__(settings, redactor, live, cursors, processes)
        self._slots: Slots | None = None
        self._begun = False
        self._early: set[int] = set()
        self._mending: set[asyncio.Task[None]] = set()

    def serve(self, shards: Shards, slots: Slots) -> None:
        """Have these shards, each of which waits for its slot."""
        self.shards_served, self._slots = shards, slots
        self.shard_ids, self.shard_count = list(shards.ids), shards.count

    async def launch_shard(self, gateway_url: yarl.URL, shard_id: int, *, initial: bool = False) -> None:
        """Connect a shard, once it has its slot: a connection must not wait for one longer than a minute."""
        if self.is_closed():
            return  # discord.py tries again for ever
        await self._slot(shard_id)
        if self.is_closed():
            return
        self._early.add(shard_id)
        await super().launch_shard(gateway_url, shard_id, initial=initial)
        self._early.discard(shard_id)
        if (launched := self.get_shard(shard_id)) is not None:
            gateway.keep_connected(launched._parent, self._mending)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait for a slot, unless the shard has had one for this connection."""
        if shard_id in self._early:
            self._early.discard(shard_id)
        elif shard_id is not None:
            await self._slot(shard_id)

    async def _slot(self, shard_id: int) -> None:
        if self._slots is not None:
            await self._slots.taken(shard_id)

    # discord.py tells of all shards at once only when it has connected them for the first time.

    async def on_ready(self) -> None:
        log.info("all shards of %s are connected", self.shards_served)
        await self.greet()

    async def on_connect(self) -> None:
        """`on_shard_connect` says which one."""

    async def on_resumed(self) -> None:
        """`on_shard_resumed` says which one."""

    async def on_disconnect(self) -> None:
        """`on_shard_disconnect` says which one."""

    async def on_shard_disconnect(self, shard_id: int) -> None:
        self.connected.lost(self.shards_served.only(shard_id))

    async def on_shard_connect(self, shard_id: int) -> None:
        self.sessions.began(self.shards_served.only(shard_id))

    async def on_shard_ready(self, shard_id: int) -> None:
        log.info("shard %s is connected", self.shards_served.only(shard_id))
        self.talk.listener.windows.reopen()
        await self.sessions.ready(self.shards_served.only(shard_id))

    async def on_shard_resumed(self, shard_id: int) -> None:
        self.sessions.resumed(self.shards_served.only(shard_id))

    async def hang_up(self) -> None:
        for shard in self.shards.values():
            await shard.disconnect()

    async def login(self, token: str) -> None:
        self._begun = True
        await super().login(token)

    async def close(self) -> None:
        if self._begun:  # discord.py's own fails before that
            await super().close()
        if self._slots is not None:
            await self._slots.close()
