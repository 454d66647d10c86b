"""The running program: its services, and the connection to Discord."""

import asyncio
import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self, TypeVar

import aiohttp
import discord
import yarl

from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.heap import freeze_heap, share_heap
from discoclaw.app.services import Services
from discoclaw.app.sharding import Sharding
from discoclaw.bot.client import DiscoClaw
from discoclaw.core.errors import ChatUnavailable, SettingsError
from discoclaw.core.health import Check, Finding
from discoclaw.core.redact import without_login
from discoclaw.session.talk import Talk
from discoclaw.settings import Settings
from discoclaw.storage import Storage

log = logging.getLogger(__name__)
F = TypeVar("F", bound=Feature)

CLOSE_S = 10.0
"""What closing may take beside the grace for answers: each part needs up to five seconds, few need any."""


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
    """The running program. `client` is the discord.py client, `features` are its parts."""

    def __init__(self, settings: Settings, client: DiscoClaw, features: Sequence[Feature]) -> None:
        self.settings = settings
        self.client = client
        self.features = tuple(features)
        for feature in features:
            self.storage.memory.join(*feature.joins)
        services = [service for feature in features for service in feature.services]
        self._services = Services(services, close_s=self.closing_s)

    def feature(self, kind: type[F]) -> F:
        """Return the feature of a type, for programs that embed this one. Raises KeyError."""
        for one in self.features:
            if isinstance(one, kind):
                return one
        raise KeyError(kind.__name__)

    @property
    def closing_s(self) -> float:
        """The longest that closing everything takes."""
        return self.settings.shutdown_grace_s + CLOSE_S

    @property
    def storage(self) -> Storage:
        """Everything on disk."""
        return self.feature(OnDisk).storage

    @property
    def talk(self) -> Talk:
        """All conversations."""
        return self.client.talk

    async def __aenter__(self) -> Self:
        """Start everything except the connection. Raises FolderInUse, MemoryFault or SettingsError."""
        share_heap()
        if self.settings.discord_api is not None:
            discord.http.Route.BASE = self.settings.discord_api
        if self.settings.discord_gateway is not None:
            discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(self.settings.discord_gateway)
        await self._services.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish running work, then close everything in reverse order."""
        await self._services.close()

    def health(self) -> list[Finding]:
        """How everything is, by what is known already. Call it in the event loop; never blocks or raises."""
        return [one for feature in self.features for check in feature.health for one in _looked_at(check)]

    async def settle(self) -> None:
        """Wait until no turn, loop or mirror is working."""
        await self._services.settle()

    async def run(self) -> None:
        """Connect to Discord and stay until the client is closed.

        Raises SettingsError without a token, and LeaseLost when another process has taken our shards.
        """
        if self.settings.token is None:
            raise SettingsError("DISCORD_TOKEN is not set; set it, or try `discoclaw demo`, which needs none")
        freeze_heap()  # a full collection stops every reply: for 25 instead of 175 ms under load
        try:
            await self.client.login(self.settings.token.get_secret_value())
            await self.feature(Sharding).served(self.client.connect)
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


def _looked_at(check: Check) -> list[Finding]:
    """What a check found; a check that fails is a finding itself."""
    try:
        return list(check())
    except Exception as error:  # a named edge: one bad check must not hide what the others found
        log.exception("a check of the health failed")
        name = getattr(check, "__qualname__", type(check).__qualname__)
        return [Finding(name, "unknown", f"can't be looked at: {type(error).__name__}", "the log says more")]
