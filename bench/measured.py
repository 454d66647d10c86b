"""What it costs a turn that health and metrics are noted, beside the same turn without that.

Two bots with the same memories answer in turns: the usual one, asked for its metrics every hundred turns,
more often than any Prometheus asks; and one whose workers, models and disk calls note nothing, which only
this module can build. What counts is the CPU time from a message's arrival until its answer has ended.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import aiohttp

from bench.discord_payloads import connect, message_payload
from bench.figure import Figure, median, without_garbage
from bench.turn import settle_in
from bench.world import OWNER, EchoModel, fresh_folder, settings_in
from discoclaw.app import App, build
from discoclaw.settings_types import Listen
from discoclaw.web.listening import Listener
from discoclaw.work import Jobs

TURNS, WARM_UP, SCRAPE_EVERY = 1_000, 50, 100
MOST = 1.02


class _Unnoted(Jobs):
    """Jobs that nobody notes."""

    def moved(self) -> float:
        return 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        yield

    leasing = running


def _same(model: Any, *_: object, **__: object) -> Any:
    return model


@contextmanager
def _unmeasured() -> Iterator[None]:
    """What is built or done meanwhile notes nothing."""
    with (
        patch("discoclaw.work.Jobs", _Unnoted),
        patch("discoclaw.session.desk.Jobs", _Unnoted),
        patch("discoclaw.loops.heartbeat.Jobs", _Unnoted),
        patch("discoclaw.models.config.SeenModel", _same),
        patch("discoclaw.store.files.step", lambda: None),
    ):
        yield


async def measure() -> list[Figure]:
    """The median of a thousand turns of each."""
    dice, ours, bare = random.Random(7), list[float](), list[float]()
    async with AsyncExitStack() as stack:
        noted = await _begun(stack, dice, metrics=Listen("127.0.0.1", 0))
        with _unmeasured():
            unnoted = await _begun(stack, dice)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        with without_garbage():
            for number in range(WARM_UP + TURNS):
                if number == WARM_UP:
                    del ours[:], bare[:]
                ours.append(await _turn(noted, number))
                with _unmeasured():
                    bare.append(await _turn(unnoted, number))
                if number % SCRAPE_EVERY == 0:
                    await _scrape(session, noted)
    ratio = median(ours) / median(bare)
    what = "the same, nothing noted"
    return [
        Figure("a turn, CPU", median(ours), median(bare), "ms", what, f"<= {MOST:g} times", ratio <= MOST)
    ]


async def _begun(stack: AsyncExitStack, dice: random.Random, **changes: Any) -> App:
    folder = stack.enter_context(fresh_folder())
    settings = settings_in(folder, allow_users=frozenset({str(OWNER)}), shutdown_grace_s=1.0, **changes)
    app = await stack.enter_async_context(build(settings, model=EchoModel(), small_model=EchoModel()))
    await connect(app.client, lambda text: None)
    await settle_in(app, dice)
    return app


async def _turn(app: App, number: int) -> float:
    """How long (ms) a turn takes until its answer has ended."""
    before, began = app.talk.counts.answers.total(), time.process_time()
    app.client._connection.parse_message_create(message_payload(number, f"what about {number}?"))
    while app.talk.counts.answers.total() == before:  # noqa: ASYNC110 - an event would be one more thing to pay
        await asyncio.sleep(0)
    took = (time.process_time() - began) * 1000
    await app.settle()
    return took


async def _scrape(session: aiohttp.ClientSession, app: App) -> None:
    (listener,) = (one for one in app.services if isinstance(one, Listener))
    async with session.get(f"http://127.0.0.1:{listener.port}/metrics") as answer:
        assert answer.status == 200
        await answer.read()
