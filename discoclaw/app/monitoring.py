"""How the program as a whole is: background work, calls that hang, the event loop; and who may ask about it.

With DISCOCLAW_METRICS it answers /healthz, /readyz and /metrics (`web/monitor`), from the first moment of the
start on. Without it, the log still says when something becomes bad, and when it is good again.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.lag import LoopLag
from discoclaw.app.mirror import Mirror
from discoclaw.app.models import Models
from discoclaw.app.talk import Talking
from discoclaw.app.usage import Usage
from discoclaw.bot.client import DiscoClaw
from discoclaw.core.event import Commit
from discoclaw.core.health import Finding
from discoclaw.jobs import at_work
from discoclaw.memory.changes import Listener
from discoclaw.memory.disk.threads import running
from discoclaw.memory.disk.writes import WRITES
from discoclaw.settings import Settings
from discoclaw.show.words import count

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from discoclaw.web.listening import Listener as HttpListener

log = logging.getLogger(__name__)

SLOW_S, HANGS_S = 10.0, 60.0
"""From when on a call in a thread is a warning, and from when on it hangs. Answers wait two seconds."""
LOOK_S: Final = 10.0
"""How often one looks for what to say in the log."""


class Monitoring(Feature, Listener):
    """Looks at everything. `everything` is the program's health, which the composition root sets."""

    settings: ClassVar = ("metrics", "log_format")
    listener: "HttpListener | None" = None

    def __init__(
        self,
        basics: Basics,
        client: DiscoClaw,
        disk: OnDisk,
        mirror: Mirror,
        usage: Usage,
        models: Models,
        talk: Talking,
    ) -> None:
        self.everything: Callable[[], list[Finding]] = list
        self.lag = LoopLag()
        self._client = client
        self._disk = disk
        self._mirror = mirror
        self._models = models
        self._talk = talk.talk
        self._accounts = usage.accounts
        self._names = (_models(basics.settings), usage.rates(None).prices.table)
        self.watch = Watch(lambda: self.everything())
        self.services = (self.lag, self.watch)
        if (at := basics.settings.metrics) is not None:
            from discoclaw.web import monitor  # 13 MB with Prometheus, and more with a server
            from discoclaw.web.listening import Listener as HttpListener

            app = monitor.application(lambda: self.everything(), monitor.registry_of(self.measured))
            self.listener = HttpListener(app, at, "DISCOCLAW_METRICS")
            self.services = (self.listener, self.lag, self.watch)
        self.joins = (self,)
        self.health = (_background, hanging, lambda: [self.lag.finding()])

    def committed(self, subject: str, commit: Commit) -> None:
        self._talk.counts.commits += 1

    def measured(self) -> "Iterator[Metric]":
        """Everything that is measured, as it is now."""
        from discoclaw.app import measures

        desk = self._talk.desk
        yield from measures.of_health(self.everything())
        yield from measures.of_answers(self._talk.counts, desk.waiting, desk.oldest_s)
        yield from measures.of_work(at_work())
        yield from measures.of_loop(self.lag.times, self.lag.last_s, len(running(SLOW_S)))
        yield from measures.of_store(WRITES.state(), self._disk.storage.processes.in_touch)
        client = self._client
        ours, away = len(client.shards_served.ids), len(client.connected.away(client.shards_served))
        latency = client.latency if not away and math.isfinite(client.latency) else None
        yield from measures.of_gateway(measures.Gateway(ours - away, away, latency))
        yield from measures.of_models(self._models.seen.last)
        accounts = self._accounts
        yield from measures.of_usage(accounts.ended, accounts.all_spent(), measures.known_model(*self._names))
        yield from measures.of_relays(self._mirror.relays())


def _models(settings: Settings) -> frozenset[str]:
    """The models that the settings name."""
    chat, small = settings.model, (settings.summary_model, settings.durable_model, settings.model_provider)
    return frozenset(filter(None, (chat, *small, settings.transcribe_model, settings.embedding_model)))


def _background() -> Iterator[Finding]:
    work = at_work()
    if not any(one.hangs for one in work):
        waiting = count(sum(one.waiting for one in work), "job")
        text = f"{count(len(work), 'worker')}, none of them hangs; {waiting} waiting"
        yield Finding("background work", "good", text)
    yield from (finding for one in work if (finding := one.finding()) is not None)


def hanging(slow_s: float = SLOW_S, hangs_s: float = HANGS_S) -> list[Finding]:
    """Whether calls hang in threads. Nearly all of them read or write a disk, or a database."""
    name, way_out = "the disk", "look at the disk and its mounts, or at the database"
    if not (slow := running(slow_s)):
        return [Finding(name, "good", "no call hangs")]
    if not (calls := running(hangs_s)):
        return [Finding(name, "warning", f"{count(len(slow), 'call')} of more than {slow_s:.0f} s", way_out)]
    return [
        Finding(name, "bad", f"{count(len(calls), 'call')} hanging for {hangs_s:.0f} s or longer", way_out)
    ]


class Watch:
    """Says in the log what becomes bad, and when it is no longer. It is a `core.service.Service`."""

    def __init__(self, health: Callable[[], list[Finding]]) -> None:
        self._health = health
        self._bad: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="health")

    async def settle(self) -> None:
        """It is never done."""

    async def close(self) -> None:
        self._closing.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._closing.wait()
                    return
            self.look()

    def look(self) -> None:
        """Look now."""
        found = self._health()
        bad = {one.name: one.text for one in found if one.state == "bad"}
        for one in found:
            if one.name in bad and one.name not in self._bad:
                log.warning("not ready: %s: %s; %s", one.name, one.text, one.way_out)
        for name in self._bad.keys() - bad.keys():
            log.info("ready again: %s", name)
        self._bad = bad
