"""Choosing what to inject: `choose` over all of a person's items, beside a plain token-overlap loop.

The loop splits each item's text at white space and counts the words it shares with the query: no stems, no
tags, no rarity, no budget. It is what a bot does that has no recall to speak of, so the ratio is the price of
finding the right memory. Both see the same items and queries, in turns; both may keep what they learned of an
item from one query to the next, as they do in a running bot, and only `choose` has something to keep.
"""

import random
import time

from bench.figure import Figure, median, without_garbage
from bench.world import items_of, sentence
from discoclaw.core.item import Item
from discoclaw.recall.rank import Ranker
from discoclaw.recall.select import choose

SIZES = {200: 100, 2_000: 20, 10_000: 6}
NOW = 1_770_000_000_000


async def measure() -> list[Figure]:
    """One figure a size."""
    return [_at(count, rounds) for count, rounds in SIZES.items()]


def _at(count: int, rounds: int) -> Figure:
    dice = random.Random(7)
    items = items_of(count, dice, now_ms=NOW)
    recall = Ranker()
    choose(recall, "warm", items, max_chars=2000, now_ms=NOW)
    ours: list[float] = []
    plain: list[float] = []
    with without_garbage():
        for _ in range(rounds):
            query = f"what about {sentence(dice, 4)}?"
            began = time.perf_counter()
            choose(recall, query, items, max_chars=2000, now_ms=NOW)
            between = time.perf_counter()
            overlap(query, items)
            plain.append((time.perf_counter() - between) * 1e3)
            ours.append((between - began) * 1e3)
    name = f"recall among {count:,} items, median"
    return Figure(name, median(ours), median(plain), "ms", "plain token-overlap loop")


def overlap(query: str, items: list[Item]) -> list[Item]:
    """The items that share most words with the query."""
    wanted = set(query.lower().split())
    scored = [(len(wanted & set(item.text.lower().split())), item) for item in items]
    return [item for score, item in sorted(scored, key=lambda pair: -pair[0]) if score][:20]
