"""From a message to the request that leaves for the model, with memory in PostgreSQL beside memory in files.

The same as `turn`: 200 items, a summary, a full window, both loops at work. The two bots take turns. What is
asked of PostgreSQL until the model is asked is counted: a message costs one question, which claims it and
tells which of the texts that the turn reads were changed by others. The renewal of the process once a second
is not counted; what followers and the configuration ask now and then is, which is why the median says more
than the mean.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.discord_payloads import connect
from bench.figure import Figure, median, p95, without_garbage
from bench.server import FILES, server
from bench.turn import TURNS, WARM_UP, Watch, settle_in
from bench.world import OWNER, EchoModel, fresh_folder, sentence, settings_in
from discoclaw.app import build
from discoclaw.store.postgres.connection import Connection

MOST = 1.5
RENEWING = "renewing"
"""The thread by which a process stays alive; its statements belong to no message."""


class Counted(Watch):
    """Times a bot, and counts what it asks of PostgreSQL meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.running = 0

    def stop(self, _text: str = "") -> None:
        super().stop(_text)
        self.asked.append(self.running)

    def forget(self) -> None:
        """Begin anew."""
        del self.times[:], self.asked[:]


async def measure() -> list[Figure]:
    """Median, p95, and questions a message."""
    ours, base = Counted(), Counted()
    dice = random.Random(7)
    with fresh_folder() as folder, server() as postgres:
        url = postgres.new_database()
        allowed = {"allow_users": frozenset({str(OWNER)}), "shutdown_grace_s": 1.0}
        shared = build(
            settings_in(folder / "ours", store=url, **allowed),
            model=EchoModel(ours.stop),
            small_model=EchoModel(),
        )
        files = build(
            settings_in(folder / "files", store=FILES, **allowed),
            model=EchoModel(base.stop),
            small_model=EchoModel(),
        )
        async with shared, files:
            for app in (shared, files):
                await connect(app.client, lambda text: None)
                await settle_in(app, dice)
            with without_garbage(), _counting(ours):
                for number in range(WARM_UP + TURNS):
                    for app, watch in ((shared, ours), (files, base)):
                        if number == WARM_UP:
                            await app.settle()
                            watch.forget()
                        watch.running = 0
                        await watch.time(app.client, number, f"what about {sentence(dice, 6)}?")
                        await app.settle()
    figures = []
    for what, middle in (("median", median), ("p95", p95)):
        mine, beside = middle(ours.times), middle(base.times)
        name = f"message to model request with PostgreSQL, {what}"
        figures.append(Figure(name, mine, beside, "ms", "in files", f"<= {MOST}x", mine <= MOST * beside))
    asked = median(ours.asked)
    figures.append(
        Figure("questions to PostgreSQL a message, median", asked, 1, "", "one", "<= 1", asked <= 1)
    )
    return figures


@contextmanager
def _counting(watch: Counted) -> Iterator[None]:
    execute = Connection.execute

    def counted(self: Connection, *args: Any, **options: Any) -> Any:
        if threading.current_thread().name != RENEWING:
            watch.running += 1
        return execute(self, *args, **options)

    Connection.execute = counted  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Connection.execute = execute  # type: ignore[method-assign]
