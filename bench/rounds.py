"""One round of hygiene and the heartbeat when 10 people's memories changed, among few and among many people.

The baseline is a round among 1,000 people in the same run: what a round costs should not grow with the number
of people. Plain files are looked at all the same, each for its length, so there it grows with that. Where
PostgreSQL cannot be started, it is left out.
"""

import time
from pathlib import Path

import psycopg

from bench.figure import Figure, median, without_garbage
from bench.world import STATED, EchoModel, fresh_folder
from discoclaw.app import now_ms
from discoclaw.core.decay import Decay
from discoclaw.core.draft import Draft
from discoclaw.loops.consolidate import Consolidator
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.hygiene import Beside, Hygiene
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import in_thread
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, LEDGERS, Disk
from discoclaw.store.postgres.disk import PostgresDisk
from tests.servers.postgres import Postgres, Unavailable

FEW, MANY, CHANGED, ROUNDS = 1_000, 100_000, 10, 3
MOST = 2.0


async def measure() -> list[Figure]:
    """A figure for each store."""
    with fresh_folder() as folder:
        few, many = [await _files(folder / str(count), count) for count in (FEW, MANY)]
        figures = [_figure("files", few, many, "")]
    try:
        with Postgres() as server:
            few, many = [await _postgres(server, count) for count in (FEW, MANY)]
    except Unavailable:
        return figures
    return [*figures, _figure("PostgreSQL", few, many, f"<= {MOST:g}x")]


def _figure(store: str, few: float, many: float, target: str) -> Figure:
    met = many / few <= MOST if target else None
    name = f"round among {MANY:,} people, {CHANGED} changed, {store}"
    return Figure(name, many, few, "ms", f"among {FEW:,}", target, met)


async def _files(folder: Path, count: int) -> float:
    line, ledgers = await _line(), folder / LEDGERS
    ledgers.mkdir(parents=True)
    for number in range(1, count + 1):
        (ledgers / f"user-{number}.jsonl").write_bytes(line)
    return await _rounds(FilesDisk(folder), folder)


async def _postgres(server: Postgres, count: int) -> float:
    url = server.new_database()
    disk = PostgresDisk(url)
    disk.open()
    line = await _line()
    with psycopg.connect(url) as db:
        names = f"SELECT 'ledger/user-' || n || '.jsonl' FROM generate_series(1, {count}) AS n"
        db.execute(f"INSERT INTO logs (name, size) SELECT *, {len(line)} FROM ({names})")
        db.execute("INSERT INTO lines SELECT id, 0, %s FROM logs", (line,))
        db.execute("INSERT INTO changes (name, version) SELECT name, version FROM logs")
    db.close()
    with fresh_folder() as folder:
        try:
            return await _rounds(disk, folder)
        finally:
            disk.close()


async def _rounds(disk: Disk, folder: Path) -> float:
    """How long (ms) a round takes behind one that has looked at everybody."""
    cursors = Cursors(disk.documents(CURSORS))
    memory = Memory(Disks(folder, disk), clock=now_ms, cursors=cursors)
    hygiene = Hygiene(
        memory,
        LastUsed(memory, cursors, clock=now_ms),
        cursors,
        clock=now_ms,
        rules=Decay(),
        roll=lambda: 0.5,
        beside=Beside(),
    )
    tidier = Consolidator(EchoModel(), memory, clock=now_ms)
    heartbeat = Heartbeat(tidier, memory, cursors, clock=now_ms, every_minutes=30, first=hygiene.run)
    _, mark = await in_thread(disk.ledgers.since, None)
    for name in ("hygiene", "heartbeat"):
        await cursors.put(name, {"todo": [], "rules": str(Decay())})
        await cursors.put(f"{name}-mark", {"mark": mark})
    taken = []
    for turn in range(ROUNDS):
        for number in range(1, CHANGED + 1):
            await memory.change(f"user-{number}", "why", Says(f"thing {turn}"))
        with without_garbage():
            began = time.perf_counter()
            await heartbeat.round()
            taken.append((time.perf_counter() - began) * 1e3)
    return median(taken)


class Says:
    """Adds one item."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, draft: Draft) -> None:
        draft.upsert("fact", self._text, STATED)


async def _line() -> bytes:
    """The ledger of somebody of whom one thing is known."""
    with fresh_folder() as folder:
        memory = Memory(folder, clock=now_ms)
        await memory.change("user-1", "fill", Says("likes tea"))
        return memory.ledgers.log("user-1").read()
