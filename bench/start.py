"""Starting with 10,000 known people on disk, beside an empty folder.

A start takes the folder and lets the followers of the ledger see what changed while nobody looked; it must
not read what is remembered of 10,000 people. Everybody has a ledger and a durable file, and all followers are
up to date, as after a clean stop. Connecting to Discord is left out.
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
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.plain import FilesDisk
from discoclaw.memory.disk.port import CURSORS, Disk
from discoclaw.memory.subjects import durable_file
from discoclaw.memory.subjects.follow import Follower
from discoclaw.settings import Settings

PEOPLE = 10_000
ITEMS = 5
MOST_S = 1.0
FOLLOWERS = ("withdrawals", "transparency", "questions")


async def measure() -> list[Figure]:
    """One figure: seconds to a start."""
    with fresh_folder() as folder:
        populate(folder / "full" / "data" / "memory", PEOPLE)
        await follow(FilesDisk(folder / "full" / "data" / "memory"))
        empty = await started(settings_in(folder / "empty", memory_channel=str(CHANNEL)))
        full = await started(settings_in(folder / "full", memory_channel=str(CHANNEL)))
    name = f"start with {PEOPLE:,} known people"
    return [Figure(name, full, empty, "s", "an empty folder", f"<= {MOST_S:g} s", full <= MOST_S)]


async def started(settings: Settings) -> float:
    """How many seconds a start takes."""
    app = build(settings, model=EchoModel())
    with without_garbage():
        began = time.perf_counter()
        async with app:
            for caught_up in app.client.ready_hooks:
                await caught_up()
            return time.perf_counter() - began


async def follow(disk: Disk) -> None:
    """Bring the cursors of all followers up to date, though they did nothing."""
    for name in FOLLOWERS:
        follower = Follower(name, _mirrored, ledgers=disk.ledgers, cursors=Cursors(disk.documents(CURSORS)))
        await follower.start()
        await follower.catch_up()
        await follower.settle()
        await follower.close()


async def _mirrored(_subject: str) -> None:
    """Nothing to do."""


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
