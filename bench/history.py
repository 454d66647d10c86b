"""What a long history costs: the view of a ledger with 10,000 commits, its log, the next commit, a merge.

The ledger is made of real commits, each changing one of 200 items, written at once. "Cold" is a new program
that opens it, as the bot does at a person's first word after a start; beside it stands the same without its
snapshot, where every line is read and every hash computed anew. A commit behind 10,000 others stands beside
one behind ten, in turns on the same disk. The merge is of two branches with 1,000 events each, over a history
that is in RAM; what it costs to read it is the log's figure.
"""

import random
import shutil
import time
from pathlib import Path

from bench.commit import Wish
from bench.figure import Figure, median, without_garbage
from bench.world import STATED, fill, fresh_folder, sentence
from discoclaw.app import now_ms
from discoclaw.core.draft import Draft
from discoclaw.core.event import Record, encode_line
from discoclaw.core.history import MAIN, History
from discoclaw.core.merge import MergeContext, merge
from discoclaw.core.view import View
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import text as shown

COMMITS = 10_000
ITEMS = 200
FEW = 10
ROUNDS = 100
EVENTS = 1_000
SUBJECT = "user-1"
BEGAN = 1_760_000_000_000


async def measure() -> list[Figure]:
    """Cold and warm view, log, append and merge."""
    with fresh_folder() as folder:
        _write(folder / "many", COMMITS)
        _write(folder / "few", FEW)
        return [*await _views(folder / "many"), *await _appends(folder), _merge()]


def _write(folder: Path, count: int) -> None:
    ledgers = folder / "memory" / "ledger"
    ledgers.mkdir(parents=True)
    (ledgers / f"{SUBJECT}.jsonl").write_bytes(b"".join(lines_of(count)))


def lines_of(count: int, items: int = ITEMS) -> list[bytes]:
    """So many commits as lines of a ledger, each changing one of the items that the first one made."""
    dice = random.Random(7)
    view, lines = View(), []
    for number in range(count):
        draft = Draft(view, now_ms=BEGAN + number * 1000)
        if number == 0:
            fill(draft, items, dice)
        else:
            name = dice.choice(list(view.items))
            Wish(name, sentence(dice))(draft)
        commit = draft.commit("say it anew")
        assert commit is not None
        view = view.after(commit)
        lines.append(encode_line(commit))
    return lines


async def _views(folder: Path) -> list[Figure]:
    await Memory(folder / "memory", clock=now_ms).view(SUBJECT)  # leaves its snapshot and the durable file
    cold: list[float] = []
    whole: list[float] = []
    for _ in range(5):
        cold.append(await _open(folder))
        aside = folder / "aside"
        shutil.move(folder / "cache", aside)
        whole.append(await _open(folder))
        shutil.rmtree(folder / "cache")
        shutil.move(aside, folder / "cache")
    memory = Memory(folder / "memory", clock=now_ms)
    await memory.view(SUBJECT)
    warm: list[float] = []
    with without_garbage():
        for _ in range(1000):
            began = time.perf_counter()
            await memory.view(SUBJECT)
            warm.append((time.perf_counter() - began) * 1e3)
    began = time.perf_counter()
    history = await memory.history(SUBJECT)
    read = (time.perf_counter() - began) * 1e3
    began = time.perf_counter()
    told = shown.log(history, oneline=True)
    log = (time.perf_counter() - began) * 1e3
    assert len(told.splitlines()) == COMMITS
    name = f"of {COMMITS:,} commits"
    return [
        Figure(
            f"view {name}, cold",
            median(cold),
            median(whole),
            "ms",
            "all lines verified anew",
            "<= 50 ms",
            median(cold) <= 50,
        ),
        Figure(f"view {name}, warm", median(warm), median(cold), "ms", "cold", "<= 1 ms", median(warm) <= 1),
        Figure(f"log {name}", read + log, read, "ms", "reading and verifying them"),
    ]


async def _open(folder: Path) -> float:
    memory = Memory(folder / "memory", clock=now_ms)
    with without_garbage():
        began = time.perf_counter()
        view = await memory.view(SUBJECT)
        spent = (time.perf_counter() - began) * 1e3
    assert len(view.items) == ITEMS
    return spent


async def _appends(folder: Path) -> list[Figure]:
    dice = random.Random(8)
    many, few = (Memory(folder / name / "memory", clock=now_ms) for name in ("many", "few"))
    times: dict[Memory, list[float]] = {many: [], few: []}
    names = {memory: list((await memory.view(SUBJECT)).items) for memory in times}
    with without_garbage():
        for number in range(ROUNDS):
            for memory, spent in times.items():
                wish = Wish(names[memory][number % ITEMS], sentence(dice))
                began = time.perf_counter()
                await memory.change(SUBJECT, "say it anew", wish)
                spent.append((time.perf_counter() - began) * 1e3)
    ours, base = median(times[many]), median(times[few])
    name = f"commit behind {COMMITS:,} others"
    return [Figure(name, ours, base, "ms", f"behind {FEW}", "<= 1.1x", ours / base <= 1.1)]


def _merge() -> Figure:
    history = History(_two_branches())
    spent: list[float] = []
    replay: list[float] = []
    with without_garbage():
        for _ in range(5):
            fresh = History(history.records)
            began = time.perf_counter()
            brought = merge(fresh, "coding", MergeContext(MAIN, STATED, now_ms(), max_items=10 * EVENTS))
            between = time.perf_counter()
            fresh = History(history.records)
            for branch in fresh.branches.all.values():
                fresh.view(branch.head)
            spent.append((between - began) * 1e3)
            replay.append((time.perf_counter() - between) * 1e3)
    assert len(brought.changes) == EVENTS
    name = f"merge of two branches with {EVENTS:,} events each"
    return Figure(
        name, median(spent), median(replay), "ms", "replay of both", "<= 50 ms", median(spent) <= 50
    )


def _two_branches() -> list[Record]:
    dice = random.Random(9)
    draft = Draft(View(), now_ms=BEGAN, max_items=10 * EVENTS)
    fill(draft, ITEMS, dice)
    first = draft.commit("fill")
    assert first is not None
    start = View().after(first)
    fork = History([first]).branches.create("coding", "", now_ms=BEGAN + 1, start=first.id)
    records: list[Record] = [first, fork]
    at = BEGAN + 2
    for branch in (MAIN, "coding"):
        view = start
        for number in range(EVENTS):
            draft = Draft(view, now_ms=at + number, max_items=10 * EVENTS)
            draft.upsert("fact", f"{branch} {number} {sentence(dice)}", STATED)
            commit = draft.commit("learn", branch=branch)
            assert commit is not None
            view = view.after(commit)
            records.append(commit)
        at += EVENTS
    return records
