"""One change of memory in PostgreSQL, beside the same in plain files on the same disk. Both are durable.

A commit in files is two synced writes, the ledger's and the durable file's; in PostgreSQL there is no durable
file, and one synced write of the server's log may serve several commits at once. One after the other and in
turns, it shows what somebody waits for; many at a time, what a store can take. Files belong to one process,
so four processes have a folder each; for one person who talks in four processes, the baseline is four tasks
in one process.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.commit import Wish
from bench.figure import Figure, median, p95, without_garbage
from bench.server import FILES, meet, opened, processes, server
from bench.world import fill, fresh_folder, sentence
from discoclaw.storage import Storage

ITEMS = 20
ROUNDS = 300
PEOPLE = 400
AT_ONCE = 8
EACH = 1_200
TOGETHER = 4
MOST = 1.5


async def measure() -> list[Figure]:
    """One after the other, many at a time, and in four processes."""
    figures = []
    with fresh_folder() as folder, server() as postgres:
        figures += await _in_turns(folder / "turns", postgres.new_database())
        for count in (1, TOGETHER):
            crowd = partial(_Crowd, people=PEOPLE // count, commits=EACH // count)
            files = _crowded(count, [crowd(FILES, folder / f"files-{count}-{n}", n) for n in range(count)])
            url = postgres.new_database()
            ours = _crowded(count, [crowd(url, folder / f"ours-{count}-{n}", n) for n in range(count)])
            where = "one process" if count == 1 else f"{count} processes"
            figures.append(
                _rate(f"commits of {PEOPLE} people, {where}, {AT_ONCE} at a time each", ours, files)
            )
        files = _crowded(1, [_Crowd(FILES, folder / "one", 0, 0, EACH // 2, TOGETHER)])
        url = postgres.new_database()
        crowd = partial(_Crowd, people=0, commits=EACH // 2 // TOGETHER, at_once=1)
        ours = _crowded(TOGETHER, [crowd(url, folder / f"one-{n}", n) for n in range(TOGETHER)])
        figures.append(_rate(f"commits of one person in {TOGETHER} processes", ours, files))
    return figures


async def _in_turns(folder: Path, url: str) -> list[Figure]:
    dice = random.Random(7)
    times: dict[str, list[float]] = {FILES: [], url: []}
    async with opened(FILES, folder / "files") as files, opened(url, folder / "ours") as ours:
        stores = {FILES: files, url: ours}
        names = {name: await _known(storage, "user-1", ITEMS) for name, storage in stores.items()}
        with without_garbage():
            for number in range(ROUNDS):
                for name, storage in stores.items():
                    wish = Wish(names[name][number % ITEMS], sentence(dice))
                    began = time.perf_counter()
                    await storage.memory.change("user-1", "say it anew", wish)
                    times[name].append((time.perf_counter() - began) * 1e3)
                    await storage.purger.settle()
    figures = []
    for what, middle in (("median", median), ("p95", p95)):
        mine, base = middle(times[url]), middle(times[FILES])
        name = f"commit in PostgreSQL, one after the other, {what}"
        figures.append(Figure(name, mine, base, "ms", "in files", f"<= {MOST}x", mine <= MOST * base))
    return figures


@dataclass(frozen=True, slots=True)
class _Crowd:
    """What one process does: so many commits, for so many people (0: one person whom all share)."""

    store: str
    folder: Path
    number: int
    people: int
    commits: int
    at_once: int = AT_ONCE


def _crowded(count: int, crowds: Sequence[_Crowd]) -> float:
    """Commits a second of all processes together."""
    with processes(count) as pool:
        took = pool.map(_commit, crowds, chunksize=1)
    return sum(one.commits for one in crowds) / max(took)


def _commit(crowd: _Crowd) -> float:
    return asyncio.run(_committed(crowd))


async def _committed(crowd: _Crowd) -> float:
    dice = random.Random(crowd.number)
    async with opened(crowd.store, crowd.folder) as storage:
        people = [f"user-{crowd.number * 10_000 + n + 1}" for n in range(crowd.people)] or ["user-1"]
        names = {person: await _known(storage, person, 2) for person in people}
        meet()

        async def talk(first: int) -> None:
            for number in range(first, crowd.commits, crowd.at_once):
                person = people[number % len(people)]
                wish = Wish(names[person][number % 2], sentence(dice))
                await storage.memory.change(person, "say it anew", wish)

        with without_garbage():
            began = time.perf_counter()
            await asyncio.gather(*(talk(first) for first in range(crowd.at_once)))
            return time.perf_counter() - began


async def _known(storage: Storage, person: str, items: int) -> list[str]:
    """The names of a person's items, after they were made where there are none."""
    if not (await storage.memory.view(person)).items:
        await storage.memory.change(person, "fill", lambda draft: fill(draft, items, random.Random(7)))
    return list((await storage.memory.view(person)).items)[:items]


def _rate(name: str, ours: float, files: float) -> Figure:
    beside = f"in files; time <= {MOST}x"
    return Figure(name, ours, files, "/s", beside, f">= {1 / MOST:.2f}x", ours * MOST >= files)
