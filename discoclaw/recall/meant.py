"""Which items somebody may mean by words that name none: what holds all the words, and what comes nearest.

What is found here is only asked about, so it may be wrong; `core/matching` has the rule for acting at once.
Pure.
"""

import difflib
from collections.abc import Collection, Sequence

from discoclaw.core.item import Item
from discoclaw.core.words import STOP_WORDS, fold, terms, tokenise
from discoclaw.recall.document import of_item
from discoclaw.recall.query import parse
from discoclaw.recall.rank import Ranker

ALIKE = 0.8
"""How similar two words are at least (`difflib`): "cofee" and "coffee" are 0.91, "cats" and "cars" 0.75."""
SHORTEST = 4
"""Shorter words are too similar to others."""


def holds(text: str, typed: str) -> bool:
    """Whether every word that was typed is part of a text, in any order, case and accent."""
    folded = fold(text)
    return all(word in folded for word in fold(typed).split())


def like(items: Collection[Item], typed: str) -> list[Item]:
    """The items that hold every word that was typed; as a whole word where there is one, else as a part.

    Where none does, other forms of the words count, and tags, key and kind: "works" finds "worked".
    """
    if not typed.strip():
        return []
    there = [item for item in items if holds(item.text, typed)]
    clues = set(terms(typed))
    # Texts are cut into terms for what the cheaper test has left: thousands of items take half a second.
    whole = [item for item in there or items if clues and clues <= _terms_of(item)]
    return whole or there


def nearest(items: Sequence[Item], typed: str) -> Item | None:
    """The item that comes nearest to what was typed; None if none has enough in common with it."""
    ranked = Ranker().rank(parse(typed, search=True), items, now_ms=0)
    return ranked[0].item if ranked else _misspelt(items, typed)


def _misspelt(items: Sequence[Item], typed: str) -> Item | None:
    """The item in which at least half of the words that were typed stand in a similar spelling."""
    wanted = _words(typed)
    known = {item.id: _words(item.text) for item in items}
    every = sorted(set().union(*known.values()))
    alike = {word: set(difflib.get_close_matches(word, every, n=5, cutoff=ALIKE)) for word in wanted}
    scores = {
        item.id: sum(not found.isdisjoint(known[item.id]) for found in alike.values()) for item in items
    }
    best = max(items, key=lambda item: (scores[item.id], item.updated_at), default=None)
    return best if best is not None and scores[best.id] * 2 >= max(1, len(wanted)) else None


def _terms_of(item: Item) -> set[str]:
    document = of_item(item)
    return {*document.bag, *document.marks}


def _words(text: str) -> set[str]:
    found = tokenise(text)
    return {run for run in found.runs if len(run) >= SHORTEST and run not in STOP_WORDS[found.language]}
