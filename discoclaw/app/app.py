"""The running program: its services, and the connection to Discord."""

import asyncio
import ctypes
import gc
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Self

import aiohttp
import discord
import yarl

from discoclaw.app.monitoring import Health
from discoclaw.app.services import Services
from discoclaw.app.sharding import Sharding
from discoclaw.bot.client import DiscoClaw
from discoclaw.core.errors import ChatUnavailable, SettingsError
from discoclaw.core.health import Seen
from discoclaw.core.ports import MirrorControl, Service
from discoclaw.core.redact import without_login
from discoclaw.session.talk import Talk
from discoclaw.settings import Settings
from discoclaw.storage import Storage
from discoclaw.usage.accounts import Accounts

CLOSE_S: Final = 10.0
"""What closing may take beside the grace for answers: each part needs up to five seconds, few need any."""
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


class App:
    """The running program. `client` is its connection to Discord, `storage` everything on disk.

    `talk` are all conversations, `accounts` what models cost, `mirror` the relays, and `seen` says how the
    models do. `services` are the parts that run, in the order in which they start. `health` says how
    everything is.
    """

    def __init__(
        self,
        settings: Settings,
        client: DiscoClaw,
        storage: Storage,
        talk: Talk,
        sharding: Sharding,
        accounts: Accounts,
        mirror: MirrorControl,
        seen: Seen,
        services: Sequence[Service],
        health: Health,
    ) -> None:
        self.settings = settings
        self.client = client
        self.storage = storage
        self.talk = talk
        self.accounts = accounts
        self.mirror = mirror
        self.seen = seen
        self.services = tuple(services)
        self.health = health
        self._sharding = sharding
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

        Raises SettingsError without a token, and LeaseLost when another process has taken our shards.
        """
        if self.settings.token is None:
            raise SettingsError("DISCORD_TOKEN is not set; set it, or try `discoclaw demo`, which needs none")
        freeze_heap()  # a full collection stops every reply: for 25 instead of 175 ms under load
        try:
            await self.client.login(self.settings.token.get_secret_value())
            await self._sharding.served(self.client.connect)
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
