"""simcord as a place to talk in, not as a test: nothing waits until the bot has finished.

simcord is made for tests. Each action there ends when everything that the bot began has ended: people would
wait after each message for the summary, the extraction and the mirror, and would never see an answer grow.
It has no option for that (3.2), so two of its private methods are overridden here, and nothing else uses any.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import discord
import simcord

TYPING_S: Final = 9.0
"""How long Discord shows that somebody types."""


class LiveEnv(simcord.Env):
    """A simulated Discord in real time. Build its servers and people, then `connect` a client.

    Ids are the same in every run, since the clock stands still until then. simcord takes one act at a time:
    hold `acting` around each. It ends at once, and what the bot does about it is told to who is `watching`.
    """

    def __init__(self) -> None:
        nobody: Any = None  # the client comes later: who owns the bot is one of its settings
        super().__init__(nobody, check_errors=False)
        self.acting = asyncio.Lock()
        self._watching: set[asyncio.Event] = set()
        self._typing: dict[tuple[int, int], float] = {}
        # Both are for reports of tests, and grow for ever. Only the first sees ephemeral messages change.
        self.backend.transcript = _Told(self._happened)
        self.backend.http_requests = _Told(lambda entry: None)

    async def connect(self, client: discord.Client) -> None:
        """Let the clock run, log a client in, and wait until it knows the servers."""
        clock: Any = _RealTime()
        self.backend.clock = clock
        self.bot = client
        await self.start()
        await client.wait_until_ready()

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever something has happened. Who waits for it clears it."""
        event = asyncio.Event()
        self._watching.add(event)
        try:
            yield event
        finally:
            self._watching.discard(event)

    def typing(self, channel_id: int) -> list[int]:
        """The ids of those who type in a channel."""
        now = time.monotonic()
        self._typing = {key: until for key, until in self._typing.items() if until > now}
        return sorted(who for where, who in self._typing if where == channel_id)

    def _happened(self, entry: tuple[str, str, Any]) -> None:
        kind, name, payload = entry
        if (kind, name) == ("GATEWAY", "TYPING_START"):
            who = int(payload["channel_id"]), int(payload["user_id"])
            self._typing[who] = time.monotonic() + TYPING_S
        elif (kind, name) == ("GATEWAY", "MESSAGE_CREATE"):
            self._typing.pop((int(payload["channel_id"]), int(payload["author"]["id"])), None)
        # A request is noted before it is carried out.
        asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        for event in self._watching:
            event.set()

    # ------------------------------------------------------------------ what simcord does otherwise

    @contextmanager
    def _bot_scope(self) -> Iterator[None]:
        """Tasks and timers made in the scope of simcord would be tracked, and awaited by every action."""
        with self.time_context():  # what else there is in that scope: how discord.py answers interactions
            yield

    async def _settle_internal(self, **_: Any) -> None:
        """End an action at once."""
        await asyncio.sleep(0)


class _Told(list[Any]):
    """A list that keeps nothing, and tells of what is appended to it."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, entry: Any) -> None:
        self._tell(entry)


class _RealTime:
    """The clock of the simulated Discord: that of this machine."""

    _began = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    @property
    def elapsed(self) -> float:
        """Seconds since the clock's first moment, which is simcord's own."""
        return time.time() - self._began

    def now(self) -> datetime:
        return datetime.now(UTC)

    def advance(self, seconds: float) -> None:
        """Time passes by itself."""
