"""Which documents a query means: what they share with it, sentence by sentence, and what others share. Pure.

Words of different sentences ask for different things, so a document needs evidence in one sentence: a term
that says something about just this document, a name that is named completely, two terms together, or most of
what the sentence asks. Then it is compared with the others:

- Where a document is named completely ("room 9"), one that only shares words with the sentence needs nearly
  its score, or more of what the sentence asks. A name within a longer one that is named too ("Karl Vogt" in
  "Karl-Heinz Vogt") is not meant.
- Where a document has nearly all that a sentence asks, one that has clearly less, and nothing else of it, is
  another matter: the brother who wants to emigrate, when it is asked what the brother wants for his birthday.
  What somebody gave an item as its name, an alias or a key, is never outdone.
- Where a sentence names somebody unknown, a document needs a term of one of its names, or half of what it
  asks.

`recall/score` says what a document has; this says whether it was meant.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from discoclaw.recall.document import Document

MOST_OF_IT = 0.5
"""The share of what a sentence asks that is evidence although no term of it is specific."""
TOGETHER = 0.2
"""The share of what a sentence asks that two terms need to be evidence together."""
MANY = 3
IN_PASSING = 0.3
"""The share of what a sentence asks that one specific term needs, in a message of `MANY` sentences or more.

The more somebody writes, the more words meet a memory by chance.
"""
NAMED, GIVEN = 1.1, 1.25
"""The factors for a document that is named completely, and by a name that somebody gave it."""
NEARLY = 0.9
"""The share of the best named document's score that one needs that is not named itself."""
RARE, RARE_SHARE = 3, 0.1
"""A name in a text needs a term that at most so many documents have, or this share of all.

"Mara" tells little in a memory about Mara. An alias or a key may be of any words, but not of more items.
"""
MOST_NAMES = 100
"""Of more names in one sentence the longest are meant."""
NEARLY_ALL, CLEARLY_LESS = 0.75, 0.7
"""Where the best has so much of what a sentence asks, a document needs this share of that."""
ROUNDING = 1e-9
NO_EVIDENCE, OUTDONE = "no real evidence", "others have more of what was asked"
MARK = 1.0
"""What a name of the whole counts, where a word of a text of mean length counts 1."""


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing asked for: a term, or other spellings of it, with what each counts; `weight` is its rarity.

    `share` is its part of what was asked; `specific`: a document that has it was likely meant. `least` is
    what a document has to have more of, so that it covers the concept.
    """

    name: str
    spellings: tuple[tuple[str, float], ...]
    weight: float
    share: float
    specific: bool
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query asks for among some documents.

    `sentences` are the names of the concepts of each sentence, `total` is the number of all documents.
    `names` are terms that are written as names; `strangers` those among them that no document has.
    """

    concepts: Sequence[Concept]
    sentences: Sequence[frozenset[str]]
    total: int
    names: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()
    terms: frozenset[str] = field(init=False)
    """All spellings of all concepts."""

    def __post_init__(self) -> None:
        found = frozenset(term for concept in self.concepts for term, _ in concept.spellings)
        object.__setattr__(self, "terms", found)


@dataclass(slots=True)
class _Has:
    """What a document has of a sentence: its score, the share of what is asked, the number of terms.

    `terms` has a bit for each concept. `name`: it has a term that is written as a name. `named` are the terms
    of its names that the sentence names completely, `given`: one of them is an alias or a key.
    """

    score: float = 0.0
    covered: float = 0.0
    terms: int = 0
    specific: bool = False
    name: bool = False
    named: frozenset[str] = frozenset()
    given: bool = False


class Matches:
    """What documents have of a query, by their positions.

    `scores` are above 0. `evident` are the documents that have evidence, `meant` those of them that no other
    document outdoes. What matched in one of them is worked out when it is asked for: few of many are ever
    looked at.
    """

    def __init__(
        self,
        asked: Asked,
        parts: Sequence[Mapping[int, float]],
        among: Iterable[int],
        documents: Sequence[Document | None],
    ) -> None:
        """`parts` has, for each concept, what its best spelling counts in each document that has it."""
        self.scores = dict.fromkeys(among, 0.0)
        self.evident: set[int] = set()
        self.meant: set[int] = set()
        self._asked = asked
        self._parts = parts
        within = ((position, _names_within(documents[position], asked.terms)) for position in self.scores)
        self._names = {position: names for position, names in within if names}
        self._documents = documents
        self._named: dict[int, frozenset[str]] = {}
        self._given: set[int] = set()
        self._about_others: dict[int, frozenset[str]] = {}
        self._coverage: dict[int, float] = {}
        for sentence in asked.sentences:
            self._judge(sentence)
        if len(asked.sentences) != 1 or any(one.name not in asked.sentences[0] for one in asked.concepts):
            self._add_up()  # else the scores are those of the sentence

    def coverage(self, position: int) -> float:
        """The largest share of what a sentence asked that a document has."""
        return self._coverage.get(position, 0.0)

    def verdict(self, position: int) -> str:
        """Why a document is not meant; "" if it is."""
        if position in self.meant:
            return ""
        if position in self.evident:
            return OUTDONE
        strangers = ", ".join(sorted(self._about_others.get(position, ())))
        return f"about others than {strangers}" if strangers else NO_EVIDENCE

    def given(self, position: int) -> bool:
        """Whether an alias or key of a document is named completely."""
        return position in self._given

    def matched(self, position: int) -> list[str]:
        """The names of what a document has."""
        both = zip(self._asked.concepts, self._parts, strict=True)
        return [concept.name for concept, part in both if position in part]

    # ------------------------------------------------------------------ inside

    def _judge(self, sentence: frozenset[str]) -> None:
        """Add what one sentence says about the documents."""
        both = zip(self._asked.concepts, self._parts, strict=True)
        here = [(concept, part) for concept, part in both if concept.name in sentence]
        found = self._having(here)
        self._name(found, here)
        whole = sum(concept.share for concept, _ in here) or 1.0
        strangers = sentence & self._asked.strangers
        lifts = _lifts({position: has.named for position, has in found.items() if has.named}, here)
        evident: dict[int, _Has] = {}
        for position, has in found.items():
            has.covered /= whole
            if has.named:
                has.score = (GIVEN if has.given else NAMED) * (has.score + lifts[position])
                self._named[position] = self._named.get(position, frozenset()) | has.named
                if has.given:
                    self._given.add(position)
            self.scores[position] = has.score
            self._coverage[position] = max(self._coverage.get(position, 0.0), has.covered)
            if has.named or self._is_evidence(has, strange=bool(strangers)):
                evident[position] = has
            elif strangers and self._is_evidence(has, strange=False):
                self._about_others[position] = self._about_others.get(position, frozenset()) | strangers
        self.evident |= evident.keys()
        self.meant |= _undone(evident)

    def _having(self, here: Sequence[tuple[Concept, Mapping[int, float]]]) -> dict[int, _Has]:
        """What each document has of some concepts."""
        found: dict[int, _Has] = {}
        for number, (concept, part) in enumerate(here):
            weight, share, least, bit = concept.weight, concept.share, concept.least, 1 << number
            named = concept.name in self._asked.names
            for position, best in _among(part, self.scores):
                has = found.get(position)
                if has is None:
                    has = found[position] = _Has()
                has.score += weight * best
                if best > least:
                    has.covered += share
                    has.terms |= bit
                    if concept.specific:
                        has.specific = True
                    if named:
                        has.name = True
        return found

    def _name(self, found: Mapping[int, _Has], here: Sequence[tuple[Concept, Mapping[int, float]]]) -> None:
        """Note which documents a sentence names completely: those that have all terms of a name.

        The name is one of theirs, or of another document; the longest that the sentence names are meant.
        """
        terms, telling, rare = set[str](), set[str](), set[str]()
        few = max(RARE, RARE_SHARE * self._asked.total)
        for concept, part in here:
            spellings = {term for term, _ in concept.spellings}
            terms |= spellings
            telling |= spellings if concept.share else set()
            rare |= spellings if concept.share and len(part) <= few else set()
        given: Counter[frozenset[str]] = Counter()
        written: dict[frozenset[str], None] = {}
        for position in found.keys() & self._names.keys():
            aliases, names = self._names[position]
            given.update(name for name in aliases if name <= terms and not name.isdisjoint(telling))
            written |= dict.fromkeys(name for name in names if name <= terms and not name.isdisjoint(rare))
        complete = [name for name in {**given, **written} if name in written or given[name] <= few]
        if len(complete) > MOST_NAMES:
            complete = sorted(complete, key=_longest_first)[:MOST_NAMES]
        longest = [name for name in complete if not any(name < other for other in complete)]
        for name in longest:
            for position in self._having_all(name, here, found):
                document, has = self._documents[position], found[position]
                assert document is not None  # it has a term
                if name in document.given:
                    has.given = True
                elif not all(term in document.bag for term in name):
                    continue
                has.named |= name

    def _having_all(
        self,
        name: frozenset[str],
        here: Sequence[tuple[Concept, Mapping[int, float]]],
        found: Mapping[int, _Has],
    ) -> Iterable[int]:
        """The positions of those found that may have all terms of a name: those that have its rarest."""
        parts = [part for concept, part in here if any(term in name for term, _ in concept.spellings)]
        return [position for position in min(parts, key=len) if position in found]

    def _is_evidence(self, has: _Has, *, strange: bool) -> bool:
        if strange and not has.name and has.covered < MOST_OF_IT:
            return False
        many = len(self._asked.sentences)
        if has.covered >= MOST_OF_IT and (has.terms.bit_count() > 1 or has.specific or many == 1):
            return True
        if has.specific and has.covered >= (IN_PASSING if many >= MANY else 0.0):
            return True
        return has.terms.bit_count() > 1 and has.covered >= TOGETHER

    def _add_up(self) -> None:
        """The scores over all sentences: each concept counts once."""
        scores = self.scores = dict.fromkeys(self.scores, 0.0)
        here = list(zip(self._asked.concepts, self._parts, strict=True))
        for concept, part in here:
            for position, best in _among(part, scores):
                scores[position] += concept.weight * best
        for position, lift in _lifts(self._named, here).items():
            scores[position] = (GIVEN if position in self._given else NAMED) * (scores[position] + lift)


def _names_within(document: Document | None, terms: Set[str]) -> tuple[list[frozenset[str]], ...]:
    """The given and the written names of a document that these terms have completely; none for no such."""
    if document is None:
        return ()
    # Most documents have no name with any of the terms, which is told much faster.
    given = [] if document.marks.isdisjoint(terms) and document.parts.isdisjoint(terms) else document.given
    if not given and not document.written:
        return ()
    found = tuple([name for name in names if name <= terms] for names in (given, document.written))
    return found if any(found) else ()


def _longest_first(name: Collection[str]) -> tuple[int, list[str]]:
    return -len(name), sorted(name)


def _among(part: Mapping[int, float], scores: Mapping[int, float]) -> Iterable[tuple[int, float]]:
    """The entries of a part at the positions that have scores."""
    if len(part) > len(scores):
        return [(position, part[position]) for position in scores if position in part]
    return [(position, best) for position, best in part.items() if position in scores]


def _lifts(
    named: Mapping[int, frozenset[str]], here: Sequence[tuple[Concept, Mapping[int, float]]]
) -> dict[int, float]:
    """What the terms of complete names count beyond what they count as words, or as parts of a name.

    `named` has the terms of the names by the position of the document.
    """
    known: dict[frozenset[str], list[tuple[Mapping[int, float], float, float]]] = {}
    lifts = {}
    for position, names in named.items():
        if (rows := known.get(names)) is None:
            rows = known[names] = [
                (part, concept.weight, MARK * max(counts))
                for concept, part in here
                if (counts := [count for term, count in concept.spellings if term in names])
            ]
        lift = 0.0
        for part, weight, full in rows:
            if (has := part.get(position, full)) < full:
                lift += weight * (full - has)
        lifts[position] = lift
    return lifts


def _undone(evident: Mapping[int, _Has]) -> set[int]:
    """The documents that no other one outdoes in a sentence."""
    named = NEARLY * max((has.score for has in evident.values() if has.named), default=0.0)
    by_name = max((has.covered for has in evident.values() if has.named), default=0.0) + ROUNDING
    most = max((has.covered for has in evident.values() if has.terms.bit_count() > 1), default=0.0)
    best = {has.terms for has in evident.values() if has.covered >= most - ROUNDING and most >= NEARLY_ALL}
    return {
        position
        for position, has in evident.items()
        if has.given
        or (
            (has.named or has.score >= named or has.covered > by_name)
            and (has.covered >= CLEARLY_LESS * most or all(has.terms & ~terms for terms in best))
        )
    }
