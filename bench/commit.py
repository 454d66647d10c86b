"""One change of memory: `Memory.change` with one upsert, beside the bare writes of the same bytes.

A commit is a synced append to the ledger and a synced replacement of the durable file, in that order, and
nothing can be quicker that survives a power cut. The baseline is these two writes and nothing else: no lock,
no draft, no hashing, no view, no rendering, no hop to a thread. The two take turns, so that a disk which is
busy for a while is busy for both.
"""

import os
import random
import time
from pathlib import Path

from bench.figure import Figure, median, without_garbage
from bench.world import STATED, fill, fresh_folder, sentence
from discoclaw.app import now_ms
from discoclaw.core.draft import Draft
from discoclaw.memory.subjects.store import Memory

SIZES = (10, 200)
ROUNDS = 100
MOST = 1.5
SUBJECT = "user-1"


async def measure() -> list[Figure]:
    """One figure a size of memory."""
    return [await _at(count) for count in SIZES]


async def _at(count: int) -> Figure:
    dice = random.Random(7)
    ours: list[float] = []
    bare: list[float] = []
    with fresh_folder() as folder:
        memory = Memory(folder / "ours", clock=now_ms)
        await memory.change(SUBJECT, "fill", lambda draft: fill(draft, count, dice))
        ledger = memory.ledger_folder / f"{SUBJECT}.jsonl"
        durable = memory.durable_folder / "1.json"
        names = list((await memory.view(SUBJECT)).items)
        other = Bare(folder / "bare")
        with without_garbage():
            for number in range(ROUNDS):
                before = ledger.stat().st_size
                began = time.perf_counter()
                await memory.change(SUBJECT, "say it anew", Wish(names[number % count], sentence(dice)))
                ours.append((time.perf_counter() - began) * 1e3)
                line, picture = ledger.read_bytes()[before:], durable.read_bytes()
                began = time.perf_counter()
                other.write(line, picture)
                bare.append((time.perf_counter() - began) * 1e3)
    name = f"commit among {count} items, median"
    met = median(ours) / median(bare) <= MOST
    return Figure(name, median(ours), median(bare), "ms", "its bare writes", f"<= {MOST}x", met)


class Wish:
    """Gives one item another text."""

    def __init__(self, item_id: str, text: str) -> None:
        self._item_id = item_id
        self._text = text

    def __call__(self, draft: Draft) -> None:
        kind = draft.items[self._item_id].kind
        draft.upsert(kind, self._text, STATED, given_id=self._item_id)


class Bare:
    """The least that two durable writes can be."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._ledger = folder / "ledger"

    def write(self, line: bytes, picture: bytes) -> None:
        with self._ledger.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        temporary = self._folder / "durable.tmp"
        with temporary.open("wb") as file:
            file.write(picture)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._folder / "durable")
        handle = os.open(self._folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
