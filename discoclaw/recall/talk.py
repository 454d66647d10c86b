"""Ranking of talk: messages of the archive, which mean little without those around them.

An answer seldom repeats the words of its question ("How was the concert?" "They even played my song"), so a
message also earns a half of what the best of its neighbours has, and a quarter of what the next one has.
Otherwise as items are ranked: the same terms, the same score, the same rule of evidence. A speaker whom the
query names counts more. Pure and deterministic; ties are newer first, then by id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from discoclaw.core.entry import Entry
from discoclaw.core.ports import Corpus
from discoclaw.core.query import Query
from discoclaw.recall.document import Document, of_entry
from discoclaw.recall.score import asked_of, score

NEIGHBOUR = 0.5
"""The share of a neighbour's score that a message gets, and again for the next one."""
SPEAKER = 1.3
"""The factor for messages of a speaker whom the query names."""


@dataclass(frozen=True, slots=True)
class RankedEntry:
    """A message with its score (> 0, comparable within one query), what found it, and what each step gave."""

    entry: Entry
    score: float
    why: str
    parts: Mapping[str, float] = field(default_factory=dict)


def rank_talk(
    query: Query,
    entries: Sequence[Entry],
    *,
    corpus: Corpus,
    neighbours: Mapping[str, tuple[str, ...]],
    documents: Mapping[str, Document] | None = None,
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
    matches = score(asked, list(documents.values()), corpus)
    own = {key: position for position, key in enumerate(documents) if position in matches.scores}
    ranked = []
    for entry in entries:
        mine, around = own.get(entry.id), _around(entry.id, own, neighbours)
        if mine not in matches.evident and not any(other in matches.evident for other, _ in around):
            continue
        words = matches.scores[mine] if mine is not None else 0.0
        beside = max((matches.scores[other] * share for other, share in around), default=0.0)
        named = SPEAKER if not documents[entry.id].marks.isdisjoint(query.terms) else 1.0
        parts = {"words": words, "neighbours": beside, "speaker": named}
        why = ", ".join(matches.matched(mine)) if mine is not None else "beside what matches"
        ranked.append(RankedEntry(entry, (words + beside) * named, why, parts))
    return sorted(ranked, key=lambda hit: (-round(hit.score, 9), -hit.entry.sent_at, hit.entry.id))


def _around(
    key: str, own: Mapping[str, int], neighbours: Mapping[str, tuple[str, ...]]
) -> list[tuple[int, float]]:
    """The positions of what stands around a message and matches, with the share of its score that counts."""
    found = []
    for one in neighbours.get(key, ()):
        if one in own:
            found.append((own[one], NEIGHBOUR))
        found += [(own[far], NEIGHBOUR**2) for far in neighbours.get(one, ()) if far != key and far in own]
    return found
