"""What finding costs: `choose` over a person's items, the first question after a start, the archive.

Items and questions are those of the quality benchmark. Beside `choose` stands a loop that splits each item at
white space and counts the words it shares with the query: no stems, no tags, no rarity, no budget. It is what
a bot does that has no recall to speak of, so the ratio is the price of finding the right memory. Beside the
archive stands SQLite's own FTS5 with `porter unicode61` over the same texts.
"""

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figure import Figure, median, without_garbage
from bench.recall.data import REPORT_SEED, Turn
from bench.recall.data_asked import people
from bench.recall.data_items import crowd
from bench.recall.systems import FullText, OurArchive, Ours, as_item
from bench.recall.times import NOW
from bench.recall.vectors import Vectors, made_up
from bench.world import fresh_folder
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.history import MAIN
from discoclaw.core.item import Item
from discoclaw.core.message import Me
from discoclaw.core.visible import VisibleItems
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects.store import Memory
from discoclaw.recall.rank import Ranker
from discoclaw.session.kept_terms import KeptTerms
from discoclaw.session.meaning import NoMeaning
from discoclaw.session.prepare import ItemSearch

SIZES = {200: 200, 2_000: 100, 10_000: 30}
TARGETS = {200: 1.0, 2_000: 2.0, 10_000: 5.0}
"""Median ms."""
BIG, ROWS = 10_000, 100_000
TALK_TARGET = 25.0
FIRST = 500.0
"""ms of the first question after a start, when its terms are kept."""
SUBJECT = "user-1"


async def measure() -> list[Figure]:
    """One figure a size; then the first question after a start, and the archive."""
    queries = [one.text for person in people(REPORT_SEED) for one in person.questions][::7]
    return [
        *(_at(count, queries[:rounds]) for count, rounds in SIZES.items()),
        *(_at(count, queries[:rounds], made_up()) for count, rounds in SIZES.items()),
        *await _first(queries),
        *_talk(queries),
    ]


def _at(count: int, queries: Sequence[str], vectors: Vectors | None = None) -> Figure:
    """What one choice for a prompt takes; with vectors also comparing them, but not making the question's."""
    items = VisibleItems(crowd(count, REPORT_SEED))
    choosing = Ours(vectors)
    choosing.load(items)
    if vectors is not None:
        vectors.learn(map(choosing.embedded, queries))
    choosing.chosen("warm", 2000)
    ours: list[float] = []
    plain: list[float] = []
    with without_garbage():
        for query in queries:
            began = time.perf_counter()
            choosing.chosen(query, 2000)
            between = time.perf_counter()
            overlap(query, items)
            plain.append((time.perf_counter() - between) * 1e3)
            ours.append((between - began) * 1e3)
    name = f"recall among {count:,} items{_with(vectors)}, median"
    return _figure(name, ours, plain, "plain token-overlap loop", TARGETS.get(count))


async def _first(queries: Sequence[str]) -> list[Figure]:
    """The first question about a memory after a start, with its terms kept and without; later ones beside."""
    with fresh_folder() as folder:
        memory = Memory(folder / "memory", clock=lambda: NOW, max_items=2 * BIG)
        memory.open()
        try:
            await memory.change(SUBJECT, "fill", lambda draft: _fill(draft, crowd(BIG, REPORT_SEED)))
            items = (await memory.view(SUBJECT)).active()
            figures = []
            for known in ("nothing", "its terms"):
                took, later, _ = await _started(folder, memory, items, queries, clear=known == "nothing")
                *_, pause = await _started(
                    folder, memory, items, queries, clear=known == "nothing", watch=True
                )
                name, words = f"first question about {BIG:,} items, {known} kept, CPU", f"<= {FIRST:g} ms"
                met = took - later <= FIRST if known == "its terms" else None
                figures.append(Figure(name, took, later, "ms", "later ones", words if met else "", met))
                figures.append(
                    Figure(
                        f"{name}, longest pause", pause, later, "ms", "later ones", "<= 20 ms", pause <= 20
                    )
                )
            return figures
        finally:
            memory.close()


async def _started(
    folder: Path,
    memory: Memory,
    items: Sequence[Item],
    queries: Sequence[str],
    *,
    clear: bool,
    watch: bool = False,
) -> tuple[float, float, float]:
    """What the first question and later ones take (ms of CPU), and for how long the first stops everybody.

    `clear`: nothing is kept from before. A `watch` runs between all steps, and costs time of its own.
    """
    if clear:
        shutil.rmtree(folder / "cache", ignore_errors=True)
    terms, known = KeptTerms(folder / "cache", memory), VisibleItems(items)
    used, me = LastUsed(memory, Cursors(folder / "cursors"), clock=lambda: NOW), Me("1", "bot")
    ranker = Ranker(documents=terms.documents)
    search = ItemSearch(ranker, terms, NoMeaning(), used, clock=lambda: NOW, me=lambda: me)
    took, longest, done = list[float](), 0.0, not watch

    async def watched() -> None:
        nonlocal longest
        while not done:
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, (time.thread_time() - began) * 1e3)

    with without_garbage():
        watching = asyncio.create_task(watched())
        for query in queries[:20]:
            began = time.process_time()
            await search.find(SUBJECT, MAIN, query, known, limit=5, question=None)
            took.append((time.process_time() - began) * 1e3)
            done = True
            await watching
    await terms.settle()
    await terms.close()
    return took[0], median(took[1:]), longest


def _talk(queries: Sequence[str]) -> list[Figure]:
    turns = [
        Turn(f"t{number:06}", ("Ann", "Ben")[number % 2], item.text, item.created_at)
        for number, item in enumerate(crowd(ROWS, REPORT_SEED))
    ]
    plain = FullText()
    plain.load([as_item(turn) for turn in turns])
    return [_through_talk(turns, plain, queries[:100], vectors) for vectors in (None, made_up())]


def _through_talk(
    turns: Sequence[Turn], plain: FullText, queries: Sequence[str], vectors: Vectors | None
) -> Figure:
    """A search of the archive; with vectors also comparing them, but not making the query's."""
    archive = OurArchive(vectors)
    archive.load(turns)
    if vectors is not None:
        vectors.learn(map(archive.embedded, queries))
    ours: list[float] = []
    beside: list[float] = []
    archive.search("warm", 10)
    with without_garbage():
        for query in queries:
            began = time.perf_counter()
            archive.search(query, 10)
            between = time.perf_counter()
            plain.search(query, 10)
            beside.append((time.perf_counter() - between) * 1e3)
            ours.append((between - began) * 1e3)
    name = f"search of {ROWS:,} messages{_with(vectors)}, median"
    return _figure(name, ours, beside, "plain FTS5", TALK_TARGET)


def _with(vectors: Vectors | None) -> str:
    return "" if vectors is None else ", with vectors"


def _fill(draft: Draft, items: Sequence[Item]) -> None:
    for item in items:
        draft.set_item(item.id, item, parent=None, origin=Origin("inferred"))


def _figure(
    name: str, ours: Sequence[float], beside: Sequence[float], what: str, target: float | None
) -> Figure:
    found, words = median(ours), f"{target:g} ms" if target is not None else ""
    return Figure(
        name, found, median(beside), "ms", what, words, found <= target if target is not None else None
    )


def overlap(query: str, items: Sequence[Item]) -> list[Item]:
    """The items that share most words with the query."""
    wanted = set(query.lower().split())
    scored = [(len(wanted & set(item.text.lower().split())), item) for item in items]
    return [item for score, item in sorted(scored, key=lambda pair: -pair[0]) if score][:20]
