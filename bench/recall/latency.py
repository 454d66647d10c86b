"""What finding costs: `choose` over a person's items, the index of a big memory, the archive.

Items and questions are those of the quality benchmark. Beside `choose` stands a loop that splits each item at
white space and counts the words it shares with the query: no stems, no tags, no rarity, no budget. It is what
a bot does that has no recall to speak of, so the ratio is the price of finding the right memory. Beside index
and archive stands SQLite's own FTS5 with `porter unicode61` over the same texts.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

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
from discoclaw.core.visible import VisibleItems
from discoclaw.memory.subjects.store import Memory
from discoclaw.recall.query import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.select import choose
from discoclaw.search.item_index import ItemIndex
from discoclaw.session.finding import Finder, words_of

SIZES = {200: 200, 2_000: 100, 10_000: 30}
TARGETS = {200: 1.0, 2_000: 2.0, 10_000: 5.0}
"""Median ms."""
BIG, ROWS = 10_000, 100_000
TALK_TARGET = 25.0
SUBJECT = "user-1"


async def measure() -> list[Figure]:
    """One figure a size; then the index of a big memory, and the archive."""
    queries = [one.text for person in people(REPORT_SEED) for one in person.questions][::7]
    return [
        *(_at(count, queries[:rounds]) for count, rounds in SIZES.items()),
        *(_at(count, queries[:rounds], made_up()) for count, rounds in SIZES.items()),
        *await _big(queries),
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


async def _big(queries: Sequence[str]) -> list[Figure]:
    """What a turn does with a memory so large that an index names the candidates: pool, ranking, budget."""
    items = crowd(BIG, REPORT_SEED)
    plain = FullText()
    plain.load(items)
    with fresh_folder() as folder:
        memory = Memory(folder / "memory", clock=lambda: NOW, max_items=2 * BIG)
        memory.open()
        index = ItemIndex(folder / "items", words_of, clock=lambda: NOW, idle_ms=3_600_000)
        finder = Finder(memory, index, clock=lambda: NOW, wait_s=60)
        try:
            await memory.change(SUBJECT, "fill", lambda draft: _fill(draft, items))
            active = (await memory.view(SUBJECT)).visible(in_dm=True)
            await finder.pool(SUBJECT, MAIN, active, parse("warm"))
            await finder.settle()
            return [
                await _through(finder, active, plain, queries[:100], vectors) for vectors in (None, made_up())
            ]
        finally:
            await finder.close()
            memory.close()


async def _through(
    finder: Finder,
    active: VisibleItems,
    plain: FullText,
    queries: Sequence[str],
    vectors: Vectors | None,
) -> Figure:
    known, recall = Ours(vectors), Ranker()
    known.load(active)
    if vectors is not None:
        vectors.learn(map(known.embedded, queries))
    ours: list[float] = []
    beside: list[float] = []
    with without_garbage():
        for query in queries:
            began = time.perf_counter()
            asked, signals = parse(query), known.signals(query)
            pool = await finder.pool(SUBJECT, MAIN, active, asked, cosines=signals.cosines)
            signals = replace(signals, corpus=pool.corpus)
            choose(recall, asked, pool.items, max_chars=2000, now_ms=NOW, signals=signals)
            between = time.perf_counter()
            plain.search(query, 20)
            beside.append((time.perf_counter() - between) * 1e3)
            ours.append((between - began) * 1e3)
    name = f"the same through the index of {BIG:,}{_with(vectors)}"
    return _figure(name, ours, beside, "plain FTS5", TARGETS[BIG])


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
