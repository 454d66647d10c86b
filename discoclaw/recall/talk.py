"""Ranking of talk: messages of the archive, which mean little without those around them.

An answer seldom repeats the words of its question ("How was the concert?" "They even played my song"), so a
message also earns a half of what the best of its neighbours has, and a quarter of what the next one has.
Otherwise as items are ranked: the same terms, the same score, the same rule of evidence. A speaker whom the
query names counts more.

With vectors the meaning counts beside the words: the cosine of a message, and the same shares of those around
it, since an answer alone ("the oboe, since school") means as little as its words. A message found by its
meaning alone has to be far nearer to the question than what is usually said. Pure and deterministic; ties are
newer first, then by id.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from discoclaw.core.message import Entry
from discoclaw.core.query import Query
from discoclaw.recall.document import Document, of_entry
from discoclaw.recall.index import Index
from discoclaw.recall.terms import Corpus, asked_of

NEIGHBOUR = 0.5
"""The share of a neighbour's score that a message gets, and again for the next one."""
SPEAKER = 1.3
"""The factor for messages of a speaker whom the query names."""
CLEARLY = 0.25
"""How far, from the usual cosine to 1, a cosine has to be to be evidence."""
BESIDE = "beside what matches"
"""`why` of a message that has nothing of the query itself."""
MOST_BY_MEANING = 12
"""How many messages are found by their meaning alone, beside those around them."""


@dataclass(frozen=True, slots=True)
class Meant:
    """The meaning of a query by vectors: the cosines of messages that have one, by id.

    `usual` is the mean cosine of the query with what may be seen. Below `floor` the model's cosines are
    evidence of nothing. `text_weight` and `vector_weight` weigh words and meaning.
    """

    cosines: Mapping[str, float] = field(default_factory=dict)
    usual: float = 0.0
    floor: float = 0.0
    text_weight: float = 0.4
    vector_weight: float = 0.6

    @property
    def least(self) -> float:
        """The cosine from which a message is clearly nearer than usual."""
        return max(self.floor, self.usual + CLEARLY * (1 - self.usual))

    def evident(self) -> list[str]:
        """The few messages that are clearly nearer than usual, best first."""
        clear = [key for key, value in self.cosines.items() if value >= self.least]
        return sorted(clear, key=lambda key: (-self.cosines[key], key))[:MOST_BY_MEANING]

    def shares(self, ids: Collection[str]) -> dict[str, float]:
        """The cosines of messages as shares of the way from the least of them to the best.

        If none is clearly near, to what would be: small differences among cosines that say nothing must not
        change the order that the words give.
        """
        cosines = {key: value for key, value in self.cosines.items() if key in ids}
        low = min(cosines.values(), default=0.0)
        high = max(self.least, *cosines.values()) if cosines else 0.0
        return {key: (value - low) / (high - low) if high > low else 1.0 for key, value in cosines.items()}


NOTHING_MEANT = Meant()


@dataclass(frozen=True, slots=True)
class RankedEntry:
    """A message with its score (> 0, comparable within one query), what found it, and what each step gave."""

    entry: Entry
    score: float
    why: str
    parts: Mapping[str, float] = field(default_factory=dict)


_Around = list[tuple[str, float]]
_Ranked = tuple[Entry, float, str, dict[str, float]]
"""The fields of a `RankedEntry`."""


def rank_talk(
    query: Query,
    entries: Sequence[Entry],
    *,
    corpus: Corpus,
    neighbours: Mapping[str, tuple[str, ...]],
    documents: Mapping[str, Document] | None = None,
    meant: Meant = NOTHING_MEANT,
) -> list[RankedEntry]:
    """The entries with real evidence for `query`, best first.

    `entries` are candidates and what stands around them; `neighbours` maps an id to those of the messages
    right before and behind it in the same conversation. `corpus` is of all talk that may be seen.
    `documents` are entries as documents, by id, where that is known already.
    """
    known = documents or {}
    documents = {entry.id: known.get(entry.id) or of_entry(entry) for entry in entries}
    # Who asks what Ann said about something nobody mentioned doesn't ask for everything that Ann said.
    asked = asked_of(query, corpus, skip_unknown=False)
    matches = Index.of(documents.values(), corpus.average).search(asked)
    own = {key: position for position, key in enumerate(documents) if position in matches.scores}
    words = {key: matches.scores[position] for key, position in own.items()}
    by_meaning = set(meant.evident())
    evident = {key for key, position in own.items() if position in matches.evident} | by_meaning
    around = {entry.id: _around(entry.id, neighbours) for entry in entries}
    kept = [
        entry
        for entry in entries
        if entry.id in evident or not evident.isdisjoint(other for other, _ in around[entry.id])
    ]
    ranked = []
    for entry in kept:
        mine, beside = words.get(entry.id, 0.0), _most(words, around[entry.id])
        named = SPEAKER if not documents[entry.id].marks.isdisjoint(query.terms) else 1.0
        matched = matches.matched(own[entry.id]) if entry.id in own else []
        why = ", ".join([*matched, *(["meaning"] if entry.id in by_meaning else [])])
        parts = {"words": mine, "neighbours": beside, "speaker": named}
        ranked.append((entry, (mine + beside) * named, why or BESIDE, parts))
    if meant.cosines:
        ranked = _fused(ranked, meant, around)
    hits = [RankedEntry(*one) for one in ranked]
    return sorted(hits, key=lambda hit: (-round(hit.score, 9), -hit.entry.sent_at, hit.entry.id))


def _fused(ranked: Sequence[_Ranked], meant: Meant, around: Mapping[str, _Around]) -> list[_Ranked]:
    """Messages ranked by words and by meaning, their own and that of the messages around each."""
    near = meant.shares({entry.id for entry, *_ in ranked})
    best = max((words for _, words, *_ in ranked), default=0.0) or 1.0
    fused = []
    for entry, words, why, parts in ranked:
        meaning = near.get(entry.id, 0.0) + _most(near, around[entry.id])
        parts["meaning"] = meaning
        if entry.id in near:
            parts["cosine"] = meant.cosines[entry.id]
        weighed = meant.text_weight * words / best + meant.vector_weight * meaning
        fused.append((entry, weighed, why, parts))
    return fused


def _most(scores: Mapping[str, float], around: _Around) -> float:
    """The most that a message gets of what stands around it."""
    most = 0.0
    for other, share in around:
        if other in scores and scores[other] * share > most:
            most = scores[other] * share
    return most


def _around(key: str, neighbours: Mapping[str, tuple[str, ...]]) -> _Around:
    """The neighbours of a message, each with the share of its score that counts."""
    found = []
    for one in neighbours.get(key, ()):
        found.append((one, NEIGHBOUR))
        found += [(far, NEIGHBOUR**2) for far in neighbours.get(one, ()) if far != key]
    return found
