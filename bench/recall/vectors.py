"""The vectors of the rows with vectors: each text is embedded once, by the local model.

What is embedded is what the bot embeds: an item's text, and a message without the names of the people in the
talk. For measuring time there are made-up vectors, since ranking takes as long whatever they say.
"""

import asyncio
import hashlib
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from discoclaw.core.item import Item
from discoclaw.embed import local
from discoclaw.recall.document import in_context
from discoclaw.recall.floor import texts as sample
from discoclaw.search.matrix import Matrix, packed
from discoclaw.search.vectors import VectorCache, hash_of
from discoclaw.session.meaning import LONGEST_QUESTION, floor_from, without_names

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]

HOW_TO_GET = "for the rows with vectors run: make bench-recall VECTORS=1"
FILE, OWNER = "vectors.sqlite", "bench"
BATCH = 256
GROUPS = 200
PATIENCE_S = 300.0
"""The time limit of one batch."""


class Vectors:
    """Vectors of texts, made by `embed`. `floor` is the cosine from which they may mean the same.

    They are kept in RAM, and in a file of `folder` for later runs, if there is one.
    """

    def __init__(
        self, embed: Embed, *, name: str = "made up", folder: Path | None = None, floor: float = 0.0
    ) -> None:
        self.floor = floor
        self._embed = embed
        self._name = name
        self._cache = VectorCache(folder / FILE) if folder is not None else None
        self._known: dict[bytes, bytes] = {}
        if self._cache is not None:
            weakref.finalize(self, self._cache.close)
            self._known = dict(self._cache.load(OWNER, name))

    def learn(self, texts: Iterable[str]) -> int:
        """Embed those texts that have no vector yet, and return how many they were."""
        missing = [text for text in dict.fromkeys(texts) if hash_of(text) not in self._known]
        missing.sort(key=len)  # a batch takes as long as its longest text
        for begin in range(0, len(missing), BATCH):
            some = missing[begin : begin + BATCH]
            made = dict(zip(map(hash_of, some), map(packed, self._embed(some)), strict=True))
            if self._cache is not None:
                self._cache.put(OWNER, self._name, made, erasings=self._cache.erasings(OWNER))
            self._known.update(made)
        return len(missing)

    def matrix(self, items: Iterable[Item]) -> Matrix:
        """The vectors of items' texts, without those of confidential ones, which are never embedded."""
        texts = [item.text for item in items if item.facets.sensitivity != "confidential"]
        self.learn(texts)
        return Matrix({key: self._known[key] for key in map(hash_of, texts)})

    def vector(self, question: str) -> Sequence[float]:
        """The vector of a text from `question`."""
        self.learn([question])
        vector: Sequence[float] = memoryview(self._known[hash_of(question)]).cast("f").tolist()
        return vector


def question(message: str, names: Iterable[str]) -> str:
    """What the bot would embed of a message, given the names of the people in the talk."""
    return without_names(in_context(message, ""), names)[:LONGEST_QUESTION]


def of_the_model(folder: Path | None = None) -> Vectors | None:
    """The vectors of the local model; None if it is not installed."""
    if local.missing():
        return None
    embedder = local.LocalEmbedder()

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return asyncio.run(embedder.embed(texts, timeout_s=PATIENCE_S))

    return Vectors(embed, name=embedder.name, folder=folder, floor=floor_from(embed(sample())))


def made_up() -> Vectors:
    """Random vectors as long as the model's, the same for the same text.

    Each text is near to one in `GROUPS` of the others, with a cosine of about 0.5, as among real ones.
    """

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        import numpy as np

        def noise(seed: int) -> Any:
            return np.random.default_rng(seed).standard_normal(local.DIMS)

        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        return [(noise(seed) + noise(seed % GROUPS)).tolist() for seed in seeds]

    return Vectors(embed)
