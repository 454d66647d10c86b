"""A link to a relay that is made anew whenever it breaks, with growing pauses, until it is closed.

Knows what a relay offers of itself, and nothing about what is said on the link.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

import aiohttp
import yarl

from discoclaw.core.errors import RelayError, RelayUnreachable
from discoclaw.nostr.relays.info import Limits, limits_of
from discoclaw.nostr.relays.link import Link, new_session

log = logging.getLogger(__name__)

_INFO_S: Final = 3.0


class Listener(Protocol):
    """Whom the link is kept for. None of it may wait."""

    def came_up(self) -> None: ...

    def heard(self, text: str) -> None: ...

    def went_down(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take, in seconds: an answer, the pauses between two tries, silence before a ping.

    A pause is `backoff_s`, twice that, … and `most_backoff_s` at most, less up to half of it by chance.
    """

    timeout_s: float = 10.0
    backoff_s: float = 1.0
    most_backoff_s: float = 300.0
    heartbeat_s: float = 30.0

    def pause_s(self, failures: int, chance: float) -> float:
        """After so many failures in a row (from 1); `chance` is from 0 to 1."""
        longest = min(self.most_backoff_s, self.backoff_s * 2.0 ** min(failures - 1, 30))
        return longest * (1.0 - chance / 2)


class KeptLink:
    """Its errors begin with `name`. `useful` is set by whoever hears that the relay does its work: pauses
    begin anew then, while a relay that only takes connections to drop them is left alone ever longer."""

    def __init__(
        self, url: yarl.URL, name: str, listener: Listener, patience: Patience, random: Callable[[], float]
    ) -> None:
        self.name = name
        self.useful = False
        self.limits = Limits()
        self.last_error = ""
        self._url = url
        self._listener = listener
        self._patience = patience
        self._random = random
        self._task: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._up = asyncio.Event()
        self._chores: set[asyncio.Task[None]] = set()
        self._asking: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        return self._link is not None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._keep(), name=f"relay {self.name}")

    async def close(self) -> None:
        """Within two seconds, whatever the relay does."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def ready(self, timeout_s: float | None) -> None:
        """Wait for the link. Raises RelayUnreachable with the last error."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._up.wait()
        except TimeoutError:
            raise self._missing() from None

    async def informed(self) -> Limits:
        """What the relay offers, once it had the time to say so: some seconds at most."""
        if self._asking is not None and not self._asking.done():
            await asyncio.wait({self._asking})
        return self.limits

    async def send(self, text: str) -> None:
        """Raises RelayUnreachable."""
        if self._link is None:
            raise self._missing()
        try:
            await self._link.send(text)
        except RelayUnreachable as error:
            raise RelayUnreachable(f"{self.name}: {error}") from None

    def pause_s(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return self._patience.pause_s(failures, self._random())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside reading, as long as this link lasts."""
        self._spawn(work)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._quietly(work))
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been cancelled before it began
        return task

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RelayError as error:
            self.last_error = str(error)
        except Exception:  # nobody waits for it, so it is told here
            log.exception("work for %s failed", self.name)

    def _missing(self) -> RelayUnreachable:
        return RelayUnreachable(self.last_error or f"{self.name}: it is not connected")

    async def _keep(self) -> None:
        failures = 0
        async with new_session() as session:
            while True:
                self.useful = False
                try:
                    await self._once(session)
                except RelayUnreachable as error:
                    self.last_error = f"{self.name}: {error}"
                    (log.debug if failures else log.warning)("%s", self.last_error)
                except Exception:  # whatever is wrong here, the next link may do
                    log.exception("the connection to %s failed", self.name)
                failures = 1 if self.useful else failures + 1
                await asyncio.sleep(self.pause_s(failures))

    async def _once(self, session: aiohttp.ClientSession) -> None:
        """Connect, and read until it ends. Raises RelayUnreachable then."""
        times = self._patience
        link = await Link.open(session, self._url, timeout_s=times.timeout_s, heartbeat_s=times.heartbeat_s)
        try:
            log.info("connected with %s", self.name)
            self._link = link
            self._asking = self._spawn(self._ask(session))
            self._up.set()
            self._listener.came_up()
            while True:
                self._listener.heard(await link.receive())
        finally:
            await self._over(link)

    async def _over(self, link: Link) -> None:
        self._up.clear()
        self._link = None
        self._listener.went_down()
        chores = list(self._chores)
        for chore in chores:
            chore.cancel()
        await link.close()
        await asyncio.gather(*chores, return_exceptions=True)

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        self.limits = await limits_of(session, self._url, min(_INFO_S, self._patience.timeout_s))
