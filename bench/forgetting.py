"""How often `forget` ticks what a person means, by kind of request, beside the memories that have all words.

The cases are small made-up worlds (`forgetting.json`), written by somebody who had not read the program: what
is remembered, what is typed, what has to be ticked and what must not be. A third (`unseen`) was not looked at
while the rules were made, so its figure is the honest one. No model is asked.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.figure import Figure
from discoclaw.core.item import KINDS, MANUAL, Facets, Item, new_item
from discoclaw.core.words import terms
from discoclaw.recall.meant import find, has_all

CASES = Path(__file__).parent / "forgetting.json"
GOAL = 75.0
"""Percent of the cases that nobody looked at, without a model."""


async def measure() -> list[Figure]:
    """The shares, in percent of the cases of each kind."""
    right: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for case in json.loads(CASES.read_text("utf-8")):
        pair = _right(case)
        right[case["kind"]].append(pair)
        right["unseen" if case["unseen"] else "seen"].append(pair)
    return [_figure(name, pairs) for name, pairs in right.items()]


def _right(case: dict[str, Any]) -> tuple[bool, bool]:
    """Whether we, and the memories with all words, hit what is meant and nothing that must stay."""
    items = [_item(one, at) for at, one in enumerate(case["memories"])]
    found = find(items, case["request"])
    ours = {one.id for one in (found.meant if found.certain is None else [found.certain])}
    plain = {one.id for one in items if has_all(one, case["request"])} if terms(case["request"]) else set()
    gone, kept = ({items[at].id for at in case[part]} for part in ("gone", "kept"))
    return gone <= ours and not ours & kept, gone <= plain and not plain & kept


def _item(memory: dict[str, Any], at: int) -> Item:
    kind = memory.get("kind", "fact")
    facets = Facets(key=memory.get("key"))
    return new_item(
        kind if kind in KINDS else "fact",
        memory["text"],
        tags=memory.get("tags", ()),
        source=MANUAL,
        now_ms=at + 1,
        facets=facets,
    )


def _figure(name: str, pairs: list[tuple[bool, bool]]) -> Figure:
    ours, plain = (100 * sum(some) / len(pairs) for some in zip(*pairs, strict=True))
    target, met = (f"at least {GOAL:.0f}", ours >= GOAL) if name == "unseen" else ("", None)
    return Figure(f"forget ticks what is meant: {name}", ours, plain, "%", "all words", target, met)
