"""The archive in PostgreSQL beside the one in a file: 100,000 messages, in the same run, on the same disk.

A search takes its words from the questions of the quality benchmark, once in one channel, as for a prompt,
and once in fifty, as for a command. Both archives find the same, so what counts is the ratio. The database
writes what it acknowledges through to the disk.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bench.figure import Figure, median, without_garbage
from bench.recall.data import REPORT_SEED
from bench.recall.data_asked import people
from bench.recall.data_items import crowd
from bench.recall.latency import ROWS
from bench.recall.times import NOW
from bench.recall.vectors import made_up
from bench.server import server
from bench.world import fresh_folder
from discoclaw.core.consent import UNLIMITED
from discoclaw.core.message import Entry
from discoclaw.search.archive import Archive, Put, Visible
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.search.archive_tables import ArchiveTables
from discoclaw.search.talk_vectors import Provider, TalkVectors
from discoclaw.session.archiving import find, words_of
from discoclaw.store.postgres.connection import Database
from discoclaw.store.postgres.tables import Tables

BATCH, ROUNDS = 10, 100
CHANNELS = 50
ONE, ALL = Visible(frozenset({"1"})), Visible(frozenset(str(one) for one in range(1, CHANNELS + 1)))
PERSON, THEIRS = "7777", 2_000
IN_FILE = "in a file"
T = TypeVar("T")


async def measure() -> list[Figure]:
    """Writing, size, searching and erasing."""
    entries = [
        Entry(str(number), f"s{channel}", channel, channel, "1", author, author, item.text, item.created_at)
        for number, item in enumerate(crowd(ROWS, REPORT_SEED), start=1)
        for channel, author in ((str(number % CHANNELS + 1), PERSON if number <= THEIRS else "8888"),)
    ]
    queries = [one.text for person in people(REPORT_SEED) for one in person.questions][::7][:100]
    with fresh_folder() as folder, _both(folder) as (ours, plain, size):
        ours.write([], words=words_of, consent=UNLIMITED)  # makes the tables
        empty, few = size(), ROWS - ROUNDS * BATCH
        _beside(_write, ours, plain, [entries[begin : begin + 1_000] for begin in range(0, few, 1_000)])
        batches = [entries[begin : begin + BATCH] for begin in range(few, ROWS, BATCH)]
        figures = _figures(f"archive: a batch of {BATCH} messages", *_beside(_write, ours, plain, batches))
        kept = (size() - empty) / 1e6, sum(one.stat().st_size for one in folder.glob("*.sqlite*")) / 1e6
        figures.append(Figure(f"archive: size of {ROWS:,} messages", *kept, "MB", IN_FILE))
        for visible, where in ((ONE, "one channel"), (ALL, f"{CHANNELS} channels")):

            def search(archive: Archive, query: str, visible: Visible = visible) -> object:
                return find(archive, query, visible, limit=10, consent=UNLIMITED)

            figures += _figures(f"archive: search of {where}", *_beside(search, ours, plain, queries))
        figures += _with_vectors(ours, plain, queries)
        erase = _beside(lambda archive, person: archive.erase_person(person), ours, plain, [PERSON])
        figures.append(_figure(f"archive: erasing {THEIRS:,} messages", *erase))
    return figures


def _with_vectors(ours: Archive, plain: Archive, queries: Sequence[str]) -> list[Figure]:
    vectors = made_up()
    for archive in (ours, plain):
        talk = TalkVectors(archive, Provider("bench", here=True), consent=UNLIMITED)
        while (batch := talk.take(1_000, NOW)).entries:
            vectors.learn(entry.text for entry in batch.entries)
            talk.keep({entry: vectors.vector(entry.text) for entry in batch.entries}, batch.token)
    vectors.learn(queries)
    figures = []
    for visible, where in ((ONE, "one channel"), (ALL, f"{CHANNELS} channels")):

        def search(archive: Archive, query: str, visible: Visible = visible) -> object:
            asked = tuple(vectors.vector(query))
            return find(archive, query, visible, limit=10, consent=UNLIMITED, asked=asked)

        name = f"archive: search of {where}, with vectors"
        figures += _figures(name, *_beside(search, ours, plain, queries))
    return figures


@contextmanager
def _both(folder: Path) -> Iterator[tuple[Archive, Archive, Callable[[], int]]]:
    """Both archives, and what tells the size of the database."""
    with server() as postgres:
        database = Database(postgres.new_database())
        plain = Archive(ArchiveFile(folder / "archive.sqlite", clock=lambda: NOW))

        def size() -> int:
            sql = "SELECT pg_database_size(current_database())"
            ((found,),) = database.read(lambda db: db.execute(sql).fetchall())
            return int(found)

        yield Archive(ArchiveTables(Tables(database))), plain, size
        plain.close()
        database.close()


def _write(archive: Archive, batch: Sequence[Entry]) -> None:
    archive.write([Put(one) for one in batch], words=words_of, consent=UNLIMITED)


def _beside(
    work: Callable[[Archive, T], object], ours: Archive, plain: Archive, given: Sequence[T]
) -> tuple[list[float], list[float]]:
    """The times of both in ms; they take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    with without_garbage():
        for one in given:
            for archive, kept in zip((ours, plain), times, strict=True):
                began = time.perf_counter()
                work(archive, one)
                kept.append((time.perf_counter() - began) * 1e3)
    return times


def _figures(name: str, ours: Sequence[float], plain: Sequence[float]) -> list[Figure]:
    """The median, and what one in twenty is above."""
    worst = sorted(ours)[int(len(ours) * 0.95)], sorted(plain)[int(len(plain) * 0.95)]
    return [_figure(f"{name}, median", ours, plain), Figure(f"{name}, p95", *worst, "ms", IN_FILE)]


def _figure(name: str, ours: Sequence[float], plain: Sequence[float]) -> Figure:
    return Figure(name, median(ours), median(plain), "ms", IN_FILE)
