"""Starting with 10,000 known people on disk, beside an empty folder.

A start takes the folder and lets the followers of the ledger see what changed while nobody looked; it must
not read what is remembered of 10,000 people. Everybody has a ledger and a durable file, and the mirror of the
transparency channel is up to date, as after a clean stop. Connecting to Discord is left out.
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
from discoclaw.memory.disk.files import render_json, session_file
from discoclaw.memory.subjects import durable_file

PEOPLE = 10_000
ITEMS = 5
MOST_S = 1.0


async def measure() -> list[Figure]:
    """One figure: seconds to a start."""
    with fresh_folder() as folder:
        populate(folder / "full" / "data" / "memory", PEOPLE)
        empty = await _start(folder / "empty")
        full = await _start(folder / "full")
    name = f"start with {PEOPLE:,} known people"
    return [Figure(name, full, empty, "s", "an empty folder", f"<= {MOST_S:g} s", full <= MOST_S)]


async def _start(folder: Path) -> float:
    app = build(settings_in(folder, memory_channel=str(CHANNEL)), model=EchoModel())
    with without_garbage():
        began = time.perf_counter()
        async with app:
            for caught_up in app.client.ready_hooks:
                await caught_up()
            return time.perf_counter() - began


def populate(root: Path, people: int) -> None:
    """The files of so many people. They share one history, and nobody looks whose it is."""
    dice = random.Random(7)
    draft = Draft(EMPTY, now_ms=now_ms())
    fill(draft, ITEMS, dice)
    commit = draft.commit("fill")
    assert commit is not None
    line, picture = encode_line(commit), durable_file.render(EMPTY.after(commit))
    for folder in ("ledger", "durable", "cursors"):
        (root / folder).mkdir(parents=True)
    for number in range(people):
        (root / "ledger" / f"user-{number}.jsonl").write_bytes(line)
        (root / "durable" / f"{number}.json").write_bytes(picture)
    done = {f"user-{number}": len(line) for number in range(people)}
    session_file(root / "cursors", "follow-transparency").write_bytes(render_json(done))
