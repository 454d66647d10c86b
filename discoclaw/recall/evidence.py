"""Which documents a query means: what they share with it, topic by topic, and what others share. Pure.

Words of different topics ask for different things, so a document needs evidence in one of them: a term that
says something about just this document, a name that is named completely, two terms together, or most of what
the topic asks. Then it is compared with the others:

- Where a document is named completely ("room 9"), one that only shares words with the topic needs nearly its
  score, or more of what the topic asks. A name within a longer one that is named too ("Karl Vogt" in
  "Karl-Heinz Vogt") is not meant.
- Where one owns a name as an alias or a key, others that mention it are not meant if more is asked, but for
  those whose text begins with it.
- Where a document has nearly all that a topic asks, one that has clearly less, and nothing else of it, is
  another matter: the brother who wants to emigrate, when it is asked what the brother wants for his birthday.
  What somebody gave an item as its name, an alias or a key, is never outdone.
- Where a topic names somebody unknown, a document needs a term of one of its names, or half of what it asks.

Where an account is asked for, neither owners nor those that have more push others out: it takes several.

`recall/terms` says what is asked, and `recall/index` what a document has; this says whether it was meant.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from discoclaw.core.query import Topic
from discoclaw.core.values import dataclass, field
from discoclaw.recall.document import Document
from discoclaw.recall.terms import MARK, Asked, Concept

MOST_OF_IT = 0.5
"""The share of what a topic asks that is evidence although no term of it is specific."""
TOGETHER = 0.2
"""The share of what a topic asks that two terms need to be evidence together."""
MANY = 3
IN_PASSING = 0.3
"""The share of what a topic asks that one specific term needs, in a message of `MANY` topics or more.

The more somebody writes, the more words meet a memory by chance.
"""
LONGEST_LIST = 4
NAMED, GIVEN = 1.1, 1.25
"""The factors for a document that is named completely, and by a name that somebody gave it."""
NEARLY = 0.9
"""The share of the best named document's score that one needs that is not named itself."""
RARE, RARE_SHARE = 3, 0.1
"""A name in a text needs a term that at most so many documents have, or this share of all.

"Mara" tells little in a memory about Mara. An alias or a key may be of any words, but not of more items.
"""
MOST_NAMES = 100
"""The most names considered in one topic: of more, the longest."""
NEARLY_ALL, CLEARLY_LESS = 0.75, 0.7
"""If the best has so much of what a topic asks, a document needs this share of that."""
ROUNDING = 1e-9
NO_EVIDENCE, OUTDONE = "no real evidence", "others have more of what was asked"
Names: TypeAlias = Mapping[frozenset[str], Sequence[int]]
"""The positions of the documents that have a name, by the name, for names that a query has completely."""
Part: TypeAlias = Mapping[int, float]
"""What the best spelling of a concept counts in each document that has it."""


class Has(NamedTuple):
    """What documents have that have the same concepts of a topic; `terms` has a bit for each concept.

    `covered` is the share of what is asked. `name`: one of the terms is written as a name.
    """

    terms: int
    covered: float
    specific: bool
    name: bool


@dataclass(slots=True)
class _Judged:
    """How well documents match one topic, by position: `scores`, and what they have.

    `named` has the terms of the names that the topic names completely; of those in `given` one is an alias
    or a key. Those in `whole` have the only word that tells anything.
    """

    topic: Topic
    here: Sequence[tuple[Concept, Part]]
    scores: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    has: dict[int, Has] = field(default_factory=dict)
    named: dict[int, frozenset[str]] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)


class Matches:
    """How well documents match a query, by their positions.

    `scores` are above 0. `evident` are the documents that have evidence, `meant` those of them that no other
    document outdoes, `accounts` those that are meant where an account is asked for. Documents that have the
    same concepts of a topic are judged together. What matched in one of them is worked out when it is asked
    for: few of many are ever looked at.
    """

    def __init__(
        self,
        asked: Asked,
        parts: Sequence[Part],
        among: Iterable[int] | None,
        documents: Sequence[Document | None],
        names: Names,
    ) -> None:
        """`parts` are those of each concept. If there is an `among`, only those documents are judged."""
        self.scores = dict.fromkeys(chain.from_iterable(parts) if among is None else among, 0.0)
        self.evident: set[int] = set()
        self.meant: set[int] = set()
        self.accounts: set[int] = set()
        self._asked = asked
        self._parts = parts
        self._all = among is None
        self._names = names
        self._documents = documents
        self._about_others: dict[int, frozenset[str]] = {}
        topics = asked.topics
        if asked.bare and len(topics) == 1:
            # A few words alone are each a topic if no document has two of them ("python llama?").
            found = [part for part in parts if part]
            if 1 < len(found) <= LONGEST_LIST and len(set().union(*found)) == sum(map(len, found)):
                topics = [topics[0]._replace(terms=frozenset([one])) for one in sorted(topics[0].terms)]
        self._judged = [self._judge(topic, many=len(topics)) for topic in topics]
        for judged in self._judged:
            for position, score in judged.scores.items():
                self.scores[position] += score

    def coverage(self, position: int) -> float:
        """The largest share of what a topic asked that a document has."""
        return max((one.has[position].covered for one in self._judged if position in one.has), default=0.0)

    def verdict(self, position: int) -> str:
        """Why a document is not meant; "" if it is."""
        if position in self.meant:
            return ""
        if position in self.evident:
            return OUTDONE
        if position not in self._about_others:
            return NO_EVIDENCE
        return f"about others than {', '.join(sorted(self._about_others[position]))}"

    def given(self, position: int) -> bool:
        """Whether an alias or key of a document is named completely."""
        return any(position in one.given for one in self._judged)

    @property
    def naming(self) -> bool:
        """Whether the query names any document completely."""
        return any(one.named for one in self._judged)

    def matched(self, position: int) -> list[str]:
        """The names of what a document has."""
        both = zip(self._asked.concepts, self._parts, strict=True)
        return [concept.name for concept, part in both if position in part]

    def telling(self, position: int) -> bool:
        """Whether a document has a term that says more than common words do."""
        return any(one.has[position].specific for one in self._judged if position in one.has)

    def names(self, position: int) -> Sequence[frozenset[str]]:
        """The names of a document of which nothing else is asked than what it is."""
        document = self._documents[position]
        if document is None or not any(position in one.whole for one in self._judged):
            return ()
        named = any(position in one.named for one in self._judged)
        return document.given if named else (*document.given, *document.written)

    # ------------------------------------------------------------------ inside

    def _judge(self, topic: Topic, *, many: int) -> _Judged:
        """What one topic of `many` says about the documents."""
        both = zip(self._asked.concepts, self._parts, strict=True)
        found = _Judged(topic, [(concept, part) for concept, part in both if concept.name in topic.terms])
        kinds = self._have(found)
        self._name(found)
        strangers = topic.terms & self._asked.strangers
        strange = bool(strangers)
        evidence = {has.terms for has in kinds if _is_evidence(has, topic, many, strange=strange)}
        evident = [one for one, has in found.has.items() if has.terms in evidence or one in found.named]
        self.evident.update(evident)
        if sum(concept.specific for concept, _ in found.here) == 1:
            found.whole.update(evident)
        meant = _undone(evident, found)
        self.meant |= meant
        if topic.account:
            self.accounts |= meant
        if strangers:
            about = {has.terms for has in kinds if _is_evidence(has, topic, many, strange=False)} - evidence
            for position, has in found.has.items():
                if has.terms in about and position not in found.named:
                    self._about_others[position] = self._about_others.get(position, NOBODY) | strangers
        return found

    def _have(self, found: _Judged) -> Collection[Has]:
        """Note how well each document matches, and what it has; those that have the same share one `Has`."""
        scores, bits = found.scores, defaultdict[int, int](int)
        for number, (concept, part) in enumerate(found.here):
            weight, least, bit = concept.weight, concept.least, 1 << number
            if self._all:
                entries: Iterable[tuple[int, float]] = part.items()
            elif len(part) > len(self.scores):
                entries = [(position, part[position]) for position in self.scores if position in part]
            else:
                entries = [(position, best) for position, best in part.items() if position in self.scores]
            for position, best in entries:
                scores[position] += weight * best
                bits[position] |= bit if best > least else 0
        asks = found.topic.asks or found.topic.account
        # Who asks in common words may use others than those in which it was remembered.
        counted = [concept for concept, part in found.here if part or concept.specific or not asks]
        whole = sum(concept.share for concept in counted) or 1.0
        kinds = {}
        for terms in set(bits.values()):
            having = [concept for number, (concept, _) in enumerate(found.here) if terms >> number & 1]
            kinds[terms] = Has(
                terms,
                sum(concept.share for concept in having) / whole,
                any(concept.specific for concept in having),
                any(concept.name in self._asked.names for concept in having),
            )
        found.has = {position: kinds[terms] for position, terms in bits.items()}
        return kinds.values()

    def _name(self, found: _Judged) -> None:
        """Note which documents a topic names completely, those that have all terms of a name, and lift them.

        The name is one of theirs, or of another document; the longest that the topic names are meant.
        """
        few = max(RARE, RARE_SHARE * self._asked.total)
        asked = [({term for term, _ in one.spellings}, one, part) for one, part in found.here]
        terms = NOBODY.union(*(spellings for spellings, *_ in asked))
        telling = NOBODY.union(*(spellings for spellings, one, _ in asked if one.share))
        rare = NOBODY.union(*(spellings for spellings, one, part in asked if one.share and len(part) <= few))
        complete: dict[frozenset[str], set[int]] = {}
        for name, positions in self._names.items():
            if not name <= terms or name.isdisjoint(telling):
                continue
            having = found.has.keys() & positions
            given = {one for one in having if (known := self._documents[one]) and name in known.given}
            if 0 < len(given) <= few or (len(given) < len(having) and not name.isdisjoint(rare)):
                complete[name] = given
        meant = sorted(complete, key=lambda name: (-len(name), sorted(name)))[:MOST_NAMES]
        for name in [name for name in meant if not any(name < other for other in meant)]:
            found.given |= complete[name]
            # What has all terms of the name has its rarest.
            rarest = min([part for spellings, _, part in asked if not name.isdisjoint(spellings)], key=len)
            owners, has, documents = complete[name], found.has, self._documents
            asks_more = any(one.specific and name.isdisjoint(spellings) for spellings, one, _ in asked)
            # Beside an owner others only mention it, but for those that begin with it.
            opening = len(name) + 1 if owners and asks_more and not found.topic.account else 0
            others = [
                one
                for one in rarest
                if one in has
                and one not in owners
                and (document := documents[one])
                and (not opening or name.issubset(document.opening[:opening]))
                and name <= document.terms
            ]
            for position in chain(owners, others):
                before = found.named.get(position)
                found.named[position] = before | name if before else name

        # The terms of complete names count in full, in a long text too.
        alike: dict[frozenset[str], list[int]] = {}
        for position, names in found.named.items():
            alike.setdefault(names, []).append(position)
        for names, named in alike.items():
            for spellings, concept, part in asked:
                if names.isdisjoint(spellings):
                    continue
                full = MARK * max(count for term, count in concept.spellings if term in names)
                for position in named:
                    found.scores[position] += concept.weight * max(0.0, full - part.get(position, full))
        for position in found.named:
            found.scores[position] *= GIVEN if position in found.given else NAMED


NOBODY = frozenset[str]()


def _is_evidence(has: Has, topic: Topic, many: int, *, strange: bool) -> bool:
    """Whether what documents have of one of `many` topics is evidence.

    `strange`: the topic names somebody unknown.
    """
    several, most = has.terms.bit_count() > 1, has.covered >= MOST_OF_IT
    if strange and not (has.name or most):
        return False
    alone = many == 1 or topic.asks or topic.account
    return (
        (most and (several or has.specific or alone))
        or (has.specific and has.covered >= (IN_PASSING if many >= MANY else 0.0))
        or (several and has.covered >= TOGETHER)
    )


def _undone(evident: Collection[int], found: _Judged) -> set[int]:
    """The documents that no other one outdoes in a topic."""
    scores, has, named = found.scores, found.has, found.named
    undone = set(evident)
    kinds = {has[one].terms: has[one] for one in evident}.values()
    most = max([one.covered for one in kinds if one.terms.bit_count() > 1], default=0.0)
    if most >= NEARLY_ALL and not found.topic.account:
        best = [one.terms for one in kinds if one.covered >= most - ROUNDING]
        less = {
            one.terms
            for one in kinds
            if one.covered < CLEARLY_LESS * most and not all(one.terms & ~other for other in best)
        }
        undone -= {one for one in evident if has[one].terms in less and one not in found.given}
    if not named:
        return undone
    least = NEARLY * max([scores[position] for position in named])
    by_name = max([has[position].covered for position in named]) + ROUNDING
    return {one for one in undone if one in named or scores[one] >= least or has[one].covered > by_name}
