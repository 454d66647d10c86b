"""Starting with 10,000 and 100,000 known people on disk, beside an empty folder; wall and processor time.

A start takes the folder and lets the followers of the ledger see what changed while nobody looked; it must
not read what is remembered of so many people. Everybody has a ledger and a durable file, and all followers
are up to date, as after a clean stop. Connecting to Discord is left out.
"""

import random
import time
from pathlib import Path

from bench.figure import Figure, without_garbage
from bench.world import CHANNEL, EchoModel, fill, fresh_folder, settings_in
from discoclaw.app import build, now_ms
from discoclaw.core.draft import Draft
from discoclaw.core.event import encode_line
from discoclaw.core.view import EMPTY
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.subjects import durable_file
from discoclaw.memory.subjects.follow import Numbered
from discoclaw.settings import Settings
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, Disk

PEOPLE = (10_000, 100_000)
ITEMS = 5
MOST_S = 1.0
FOLLOWERS = ("withdrawals", "transparency", "questions")


async def measure() -> list[Figure]:
    """Seconds to a start, and seconds of the processor until then."""
    figures = []
    for people in PEOPLE:
        with fresh_folder() as folder:
            populate(folder / "full" / "data" / "memory", people)
            await follow(FilesDisk(folder / "full" / "data" / "memory"))
            empty = await started(settings_in(folder / "empty", memory_channel=str(CHANNEL)))
            full = await started(settings_in(folder / "full", memory_channel=str(CHANNEL)))
        most = MOST_S * people / PEOPLE[0]
        for what, ours, base in zip(("", ", CPU"), full, empty, strict=True):
            name = f"start with {people:,} known people{what}"
            figures.append(Figure(name, ours, base, "s", "an empty folder", f"<= {most:g} s", ours <= most))
    return figures


async def started(settings: Settings) -> tuple[float, float]:
    """How many seconds a start takes, and how many of the processor."""
    app = build(settings, model=EchoModel())
    with without_garbage():
        began, used = time.perf_counter(), time.process_time()
        async with app:
            for caught_up in app.client.door.ready:
                await caught_up()
            return time.perf_counter() - began, time.process_time() - used


async def follow(disk: Disk) -> None:
    """Bring the cursors of all followers up to date, though they did nothing."""
    ledgers, cursors = disk.ledgers if disk.shared else Numbered(disk), Cursors(disk.documents(CURSORS))
    changed, mark = ledgers.since(None)
    while changed:
        changed, mark = ledgers.since(mark)
    for name in FOLLOWERS:
        await cursors.put(f"follow-{name}", {"mark": mark, "todo": []})


def populate(root: Path, people: int) -> None:
    """The files of so many people. They share one history, and nobody looks whose it is."""
    dice = random.Random(7)
    draft = Draft(EMPTY, now_ms=now_ms())
    fill(draft, ITEMS, dice)
    commit = draft.commit("fill")
    assert commit is not None
    line, picture = encode_line(commit), durable_file.render(EMPTY.after(commit))
    for folder in ("ledger", "durable"):
        (root / folder).mkdir(parents=True)
    for number in range(people):
        (root / "ledger" / f"user-{number}.jsonl").write_bytes(line)
        (root / "durable" / f"{number}.json").write_bytes(picture)
