"""A store with a million lines of ledgers: PostgreSQL beside files, for one person, a huge one, and a start.

Twenty thousand people have 5 to 5,000 lines each, half of them less than 20, as a bot that is a few years old
might have; one has 20,000. They share one history, and nobody looks whose it is. Nothing is in RAM and there
are no snapshots, as in a process that serves these people for the first time; the pages of the store are in
the caches of the system, as far as they fit there. The two stores take turns.
"""

import os
import random
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import psycopg

from bench.commit import Wish
from bench.figure import Figure, median, p95, without_garbage
from bench.history import lines_of
from bench.server import FILES, opened, server
from bench.start import follow, started
from bench.world import CHANNEL, fresh_folder, sentence, settings_in
from discoclaw.show import text as shown
from discoclaw.storage import Storage
from discoclaw.store.port import LEDGERS

LINES = 1_000_000
HUGE = 20_000
FEWEST, MOST_LINES = 5, 5_000
SAMPLE = 200
ITEMS = 5
HUGE_ONE = "user-1"

Stores = dict[str, Storage]


async def measure() -> list[Figure]:
    """Sizes, views, a log, commits and starts."""
    history = lines_of(HUGE, ITEMS)
    people = {HUGE_ONE: HUGE} | {f"user-{n + 2}": count for n, count in enumerate(_split(LINES - HUGE))}
    with fresh_folder() as folder, server() as postgres:
        url = postgres.new_database()
        root = folder / "files" / "data" / "memory" / LEDGERS
        _fill_files(root, people, history)
        async with opened(url, folder / "ours"):
            pass  # the tables are made
        _fill_tables(postgres.url(url.rpartition("/")[2], "postgres"), people, history)
        figures = [_sizes(url, root)]
        figures.append(await _starts({url: folder / "ours", FILES: folder / "files"}))
        shutil.rmtree(folder / "files" / "data" / "cache", ignore_errors=True)
        figures += await _read({url: folder / "read-ours", FILES: folder / "files"}, list(people))
    return figures


def _split(lines: int) -> Iterator[int]:
    """How many lines each person has: few of most, many of some."""
    dice = random.Random(11)
    while lines > 0:
        count = min(lines, MOST_LINES, max(FEWEST, round(dice.lognormvariate(3, 1.34))))
        lines -= count
        yield count


def _fill_files(root: Path, people: dict[str, int], history: Sequence[bytes]) -> None:
    root.mkdir(parents=True)
    for person, count in people.items():
        (root / f"{person}.jsonl").write_bytes(b"".join(history[:count]))


def _fill_tables(url: str, people: dict[str, int], history: Sequence[bytes]) -> None:
    """The rows that so many appends would have left."""
    lengths = [len(line) for line in history]
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    with psycopg.connect(url) as db, db.cursor() as cursor:
        with cursor.copy("COPY logs (name, size) FROM STDIN") as copy:
            for person, count in people.items():
                copy.write_row((f"{LEDGERS}/{person}.jsonl", ends[count]))
        names: dict[str, int] = dict(cursor.execute("SELECT name, id FROM logs").fetchall())
        with cursor.copy("COPY lines (log, position, line) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "int8", "bytea"])
            for person, count in people.items():
                log = names[f"{LEDGERS}/{person}.jsonl"]
                for number in range(count):
                    copy.write_row((log, ends[number], history[number]))
        cursor.execute(
            "INSERT INTO changes (name, version, attempt) SELECT name, version, row_number() OVER ()"
            " FROM lines JOIN logs ON logs.id = log ORDER BY position"
        )
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM ANALYZE")
        db.execute("CHECKPOINT")


def _sizes(url: str, root: Path) -> Figure:
    with psycopg.connect(url) as db:
        row = db.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row
    files = sum(os.stat(path).st_blocks * 512 for path in root.iterdir())
    return Figure(f"room of {LINES:,} lines, a line", row[0] / LINES, files / LINES, "bytes", "in files")


async def _starts(folders: dict[str, Path]) -> Figure:
    times: dict[str, list[float]] = {store: [] for store in folders}
    for store, folder in folders.items():
        async with opened(store, folder) as storage:
            await follow(storage.memory.disk)
    for _ in range(5):
        for store, folder in folders.items():
            settings = settings_in(folder, store=store, memory_channel=str(CHANNEL))
            times[store].append((await started(settings))[0])
    ours, base = (median(one) for one in times.values())
    return Figure(f"start with {LINES:,} lines", ours, base, "s", "in files", "<= 1 s", ours <= 1)


async def _read(folders: dict[str, Path], people: list[str]) -> list[Figure]:
    dice = random.Random(12)
    some = dice.sample(people[1:], SAMPLE)
    url, files = folders
    async with opened(url, folders[url]) as ours, opened(files, folders[files]) as base:
        stores = {url: ours, files: base}

        async def log(storage: Storage, person: str) -> None:
            told = shown.log(await storage.memory.history(person), oneline=True)
            assert len(told.splitlines()) == HUGE

        async def view(storage: Storage, person: str) -> None:
            assert (await storage.memory.view(person)).items

        async def commit(storage: Storage, person: str) -> None:
            known = list((await storage.memory.view(person)).items)
            await storage.memory.change(person, "say it anew", Wish(known[0], sentence(dice)))

        first = await _in_turns(stores, view, some)
        write = await _in_turns(stores, commit, some)
        huge = await _in_turns(stores, view, [HUGE_ONE])
        whole = await _in_turns(stores, log, [HUGE_ONE] * 3)
    return [
        _figure("first view of a person, median", first, median),
        _figure("first view of a person, p95", first, p95),
        _figure("commit among all of them, median", write, median),
        _figure(f"first view of a person with {HUGE:,} lines", huge, median),
        _figure(f"log of a person with {HUGE:,} lines", whole, median),
    ]


async def _in_turns(
    stores: Stores, work: Callable[[Storage, str], Awaitable[None]], people: Sequence[str]
) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in stores]
    with without_garbage():
        for person in people:
            for storage, spent in zip(stores.values(), times, strict=True):
                began = time.perf_counter()
                await work(storage, person)
                spent.append((time.perf_counter() - began) * 1e3)
                await storage.purger.settle()
    return times


def _figure(name: str, times: list[list[float]], middle: Callable[[Sequence[float]], float]) -> Figure:
    ours, base = map(middle, times)
    return Figure(f"{name}, of {LINES:,} lines", ours, base, "ms", "in files")
