"""What is compared: plain rankings that anybody would write first, and ours. All get the same data.

`item_systems` and `talk_systems` are the tables' rows; each entry makes a fresh system. What a system is
given is what may be shown: an item that is deprecated, or private in the open, never reaches it, as in the
bot. The plain ones are given turns as lines, "Name: words", since that is what they would return.
"""

import math
import re
import shutil
import sqlite3
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol

from bench.recall import overlap
from bench.recall.data import Turn
from bench.recall.times import NOW
from bench.recall.vectors import Vectors, question
from discoclaw.core.consent import UNLIMITED
from discoclaw.core.item import MANUAL, Item, by_newest
from discoclaw.core.message import Entry
from discoclaw.core.ports import Signals
from discoclaw.core.visible import VisibleItems
from discoclaw.recall.document import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.select import Chosen, select
from discoclaw.recall.talk import NOTHING_MEANT
from discoclaw.search.archive import Archive, Put, Visible
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.search.matrix import Matrix
from discoclaw.search.talk_vectors import Provider, TalkVectors
from discoclaw.session.archiving import find, words_of


class ItemSystem(Protocol):
    """Finds items."""

    def load(self, items: Sequence[Item]) -> None:
        """Take a person's items, instead of those before."""
        ...

    def search(self, query: str, limit: int) -> list[str]:
        """The ids of at most `limit` of them, best first."""
        ...


class TalkSystem(Protocol):
    """Finds turns of a conversation."""

    def load(self, turns: Sequence[Turn]) -> None: ...
    def search(self, query: str, limit: int) -> list[str]: ...


class Overlap:
    """DNAM's ranking, without its cap of twelve."""

    def __init__(self, *, recency: bool) -> None:
        self._recency = recency
        self._items: Sequence[Item] = ()

    def load(self, items: Sequence[Item]) -> None:
        self._items = items

    def search(self, query: str, limit: int) -> list[str]:
        found = overlap.ranked(query, self._items, now_ms=NOW, recency=self._recency)
        return [item.id for item in found[:limit]]


class KeyOverlap:
    """PtrClaw's ranking without an index: words shared, those of a key twice. Ties are newer first."""

    def __init__(self) -> None:
        self._items: Sequence[Item] = ()

    def load(self, items: Sequence[Item]) -> None:
        self._items = items

    def search(self, query: str, limit: int) -> list[str]:
        scored = []
        for item in self._items:
            score = overlap.key_weighted_overlap(query, item.facets.key or "", item.text)
            if score:
                scored.append((-score, *by_newest(item)))
        return [item_id for *_, item_id in sorted(scored)[:limit]]


class Bm25:
    """BM25 as in its textbook: k1 1.2, b 0.75, no stop words, no stems. Ties are newer first, then by id."""

    K1, B = 1.2, 0.75

    def __init__(self) -> None:
        self._documents: list[tuple[Item, Counter[str], int]] = []
        self._frequency: Counter[str] = Counter()
        self._average = 1.0

    def load(self, items: Sequence[Item]) -> None:
        bags = [(item, Counter(_words(_searchable(item)))) for item in items]
        self._documents = [(item, bag, bag.total()) for item, bag in bags]
        self._frequency = Counter(word for _, bag in bags for word in bag)
        self._average = sum(length for *_, length in self._documents) / max(1, len(bags)) or 1.0

    def search(self, query: str, limit: int) -> list[str]:
        total = len(self._documents)
        weights = {
            word: math.log(1 + (total - self._frequency[word] + 0.5) / (self._frequency[word] + 0.5))
            for word in _words(query)
        }
        scored = []
        for item, bag, length in self._documents:
            norm = self.K1 * (1 - self.B + self.B * length / self._average)
            score = sum(
                weight * bag[word] * (self.K1 + 1) / (bag[word] + norm)
                for word, weight in weights.items()
                if word in bag
            )
            if score:
                scored.append((-round(score, 9), *by_newest(item)))
        return [item_id for *_, item_id in sorted(scored)[:limit]]


class FullText:
    """SQLite's FTS5 with `porter unicode61`: a quoted OR query without stop words, ranked by bm25()."""

    def __init__(self) -> None:
        self._base = sqlite3.connect(":memory:")
        weakref.finalize(self, self._base.close)
        self._base.execute(
            "CREATE VIRTUAL TABLE lines USING fts5(id UNINDEXED, words, tokenize='porter unicode61')"
        )

    def load(self, items: Sequence[Item]) -> None:
        self._base.execute("DELETE FROM lines")
        rows = [(item.id, _searchable(item)) for item in sorted(items, key=by_newest)]
        self._base.executemany("INSERT INTO lines VALUES (?, ?)", rows)

    def search(self, query: str, limit: int) -> list[str]:
        words = dict.fromkeys(word for word in _words(query) if word not in _STOP)
        if not words:
            return []
        asked = " OR ".join(f'"{word}"' for word in words)
        statement = "SELECT id FROM lines WHERE lines MATCH ? ORDER BY bm25(lines), rowid LIMIT ?"
        return [row[0] for row in self._base.execute(statement, (asked, limit))]


class Ours:
    """The bot's ranking of items, which knows what the person is called; with `vectors`, if there are any.

    `sure`: without what it returns as only possibly related.
    """

    def __init__(self, vectors: Vectors | None = None, *, sure: bool = False) -> None:
        self._sure = sure
        self.own_name = "Somebody"
        self._recall = Ranker()
        self._vectors = vectors
        self._items = VisibleItems()
        self._texts: dict[str, str] = {}
        self._matrix = Matrix()

    def load(self, items: Sequence[Item]) -> None:
        self._items = VisibleItems(items)
        if self._vectors is not None:
            self._texts = {item.id: item.text for item in items}
            self._matrix = self._vectors.matrix(items)

    def search(self, query: str, limit: int) -> list[str]:
        hits = self._recall.rank(parse(query), self._items, now_ms=NOW, signals=self.signals(query))
        return [hit.item.id for hit in hits if not (self._sure and hit.possible)][:limit]

    def chosen(self, query: str, max_chars: int) -> Sequence[Chosen]:
        """What a prompt would hold, within so many characters."""
        signals = self.signals(query)
        return select(
            self._recall, parse(query), self._items, max_chars=max_chars, now_ms=NOW, signals=signals
        ).chosen

    def embedded(self, query: str) -> str:
        """What is embedded of a query: "" if nothing is."""
        return question(query, [self.own_name])

    def signals(self, query: str) -> Signals:
        """What is known of a query beside its words."""
        asked = self.embedded(query)
        if self._vectors is None or not asked:
            return Signals(own_name=self.own_name)
        cosines = self._matrix.cosines(self._vectors.vector(asked), self._texts)
        return Signals(cosines, own_name=self.own_name, floor=self._vectors.floor)


class OverTurns:
    """A system for items, given turns."""

    def __init__(self, inner: ItemSystem) -> None:
        self._inner = inner

    def load(self, turns: Sequence[Turn]) -> None:
        self._inner.load([as_item(turn) for turn in turns])

    def search(self, query: str, limit: int) -> list[str]:
        return self._inner.search(query, limit)


PLAIN: dict[str, Callable[[], ItemSystem]] = {
    "token overlap": lambda: Overlap(recency=True),
    "token overlap, no recency": lambda: Overlap(recency=False),
    "words, keys twice": KeyOverlap,
    "BM25, plain": Bm25,
    "SQLite FTS5, porter": FullText,
}

OURS, WITH_VECTORS = "ours", "ours, with vectors"
SURE = "ours, what is sure"


def ours_for_items(vectors: Vectors | None = None) -> dict[str, Callable[[], Ours]]:
    """The rows of our ranking of items: with words alone, and with vectors if there are any."""
    rows: dict[str, Callable[[], Ours]] = {OURS: Ours}
    return rows | {WITH_VECTORS: lambda: Ours(vectors)} if vectors is not None else rows


class OurArchive:
    """The bot's archive: a file, its candidates, and the ranking of talk; with `vectors`, if it has any."""

    VISIBLE = Visible(frozenset({"1"}))
    PROVIDER = Provider("bench", here=True)

    def __init__(self, vectors: Vectors | None = None, archive: Archive | None = None) -> None:
        if archive is None:
            folder = Path(mkdtemp(prefix="discoclaw-bench-"))
            archive = Archive(ArchiveFile(folder / "archive.sqlite", clock=lambda: NOW))
            weakref.finalize(self, _remove, archive, folder)
        self._archive = archive
        self._ids: dict[str, str] = {}
        self._speakers: frozenset[str] = frozenset()
        self._vectors = vectors
        self._of_talk = TalkVectors(self._archive, self.PROVIDER, consent=UNLIMITED)

    def load(self, turns: Sequence[Turn]) -> None:
        self._speakers = frozenset(turn.speaker for turn in turns)
        self._archive.drop_channel("1")
        self._ids = {str(number): turn.id for number, turn in enumerate(turns, start=1)}
        entries = [
            Entry(str(number), "s", "1", "1", "1", turn.speaker, turn.speaker, turn.text, turn.at_ms)
            for number, turn in enumerate(turns, start=1)
        ]
        self._archive.write([Put(one) for one in entries], words=words_of, consent=UNLIMITED)
        if self._vectors is not None:
            self._vectors.learn(entry.text for entry in entries)
            while (batch := self._of_talk.take(len(entries), NOW)).entries:
                made = {entry: self._vectors.vector(entry.text) for entry in batch.entries}
                self._of_talk.keep(made, batch.token)

    def search(self, query: str, limit: int) -> list[str]:
        asked, weights = None, NOTHING_MEANT
        if self._vectors is not None and (text := self.embedded(query)):
            asked = self._of_talk.asked(self._vectors.vector(text))
            weights = replace(weights, floor=self._vectors.floor)
        hits = find(
            self._archive,
            query,
            self.VISIBLE,
            limit=limit,
            consent=UNLIMITED,
            asked=asked,
            weights=weights,
        )
        return [self._ids[hit.entry.id] for hit in hits]

    def embedded(self, query: str) -> str:
        """What is embedded of a query: "" if nothing is."""
        return question(query, self._speakers)


def _remove(archive: Archive, folder: Path) -> None:
    archive.close()
    shutil.rmtree(folder, ignore_errors=True)


def ours_for_talk(vectors: Vectors | None = None) -> dict[str, Callable[[], TalkSystem]]:
    """The rows of our search of talk: with words alone, and with vectors if there are any."""
    rows: dict[str, Callable[[], TalkSystem]] = {OURS: OurArchive}
    return rows | {WITH_VECTORS: lambda: OurArchive(vectors)} if vectors is not None else rows


def _over(make: Callable[[], ItemSystem]) -> Callable[[], TalkSystem]:
    return lambda: OverTurns(make())


def item_systems(vectors: Vectors | None = None) -> dict[str, Callable[[], ItemSystem]]:
    """Every row about items."""
    ours = ours_for_items(vectors)
    return {**PLAIN, **ours, SURE: lambda: Ours(vectors, sure=True)}


def talk_systems(vectors: Vectors | None = None) -> dict[str, Callable[[], TalkSystem]]:
    """Every row about talk."""
    return {**{name: _over(make) for name, make in PLAIN.items()}, **ours_for_talk(vectors)}


def as_item(turn: Turn) -> Item:
    """A turn as something that ranks items can take; its text is the line it would be shown as."""
    text = f"{turn.speaker}: {turn.text}"
    return Item(turn.id, "fact", text, (), "active", MANUAL, turn.at_ms, turn.at_ms)


def _searchable(item: Item) -> str:
    return f"{item.text} {' '.join(item.tags)} {item.kind}"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


_STOP = frozenset(
    """a about all am an and any are as at be been but by can could did do does for from get had has
    have he her him his how i if in into is it its just me my no not of on or our she should so some
    tell than that the their them then there these they this those to up us was we were what when where
    which who whom whose why will with would you your""".split()  # noqa: SIM905 - words are read as words
)
