"""A thousand conversations in four processes that share a PostgreSQL, beside the same in one process.

At the level of `Talk`, as in `sessions`, with models that answer at once: what is measured is everything that
is ours, up to the last text that a loop has written. Each process has its share of the conversations, as it
has with Discord's shards. Server, processes and speakers share the cores of this machine, so that four
processes can be faster only as far as there are cores for them.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.discord_payloads import connect
from bench.figure import Figure, without_garbage
from bench.server import FILES, meet, processes, server
from bench.sessions import SESSIONS, NoPast, converse, message_of
from bench.world import EchoModel, fresh_folder, settings_in
from discoclaw.app import build

EACH = 10
TOGETHER = 4


@dataclass(frozen=True, slots=True)
class _Share:
    """The conversations that one process has."""

    store: str
    folder: Path
    first: int
    count: int


async def measure() -> list[Figure]:
    """Messages a second: four processes beside one, and one beside files."""
    with fresh_folder() as folder, server() as postgres:
        files = _together([_Share(FILES, folder / "files", 0, SESSIONS)])
        one = _together([_Share(postgres.new_database(), folder / "one", 0, SESSIONS)])
        url, share = postgres.new_database(), SESSIONS // TOGETHER
        shares = [_Share(url, folder / f"of-{n}", n * share, share) for n in range(TOGETHER)]
        four = _together(shares)
    name = f"{SESSIONS:,} conversations of {EACH} with PostgreSQL"
    return [
        Figure(f"{name}, {TOGETHER} processes", four, one, "msg/s", "one process"),
        Figure(f"{name}, one process", one, files, "msg/s", "in files"),
    ]


def _together(shares: Sequence[_Share]) -> float:
    with processes(len(shares)) as pool:
        took = pool.map(_serve, shares, chunksize=1)
    return sum(one.count for one in shares) * EACH / max(took)


def _serve(share: _Share) -> float:
    return asyncio.run(_served(share))


async def _served(share: _Share) -> float:
    numbers = range(share.first, share.first + share.count)
    talk = [[message_of(session, number) for number in range(EACH)] for session in numbers]
    app = build(settings_in(share.folder, store=share.store), model=EchoModel(), history=NoPast())
    async with app:
        await connect(app.client, lambda text: None)
        meet()
        with without_garbage():
            began = time.perf_counter()
            answers = await converse(app.talk, talk)
            await app.settle()
            took = time.perf_counter() - began
    for place, session in enumerate(numbers):
        if answers[place] != [f"{session}:{number}" for number in range(EACH)]:
            raise RuntimeError(f"conversation {session} was answered {answers[place]}")
    return took
