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

`recall/score` says what a document has; this says whether it was meant.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple, TypeAlias

from discoclaw.core.query import Topic
from discoclaw.core.values import dataclass, field
from discoclaw.recall.document import Document

MOST_OF_IT = 0.5
"""The share of what a sentence asks that is evidence although no term of it is specific."""
ALL_OF_IT = 0.99
"""The share that common words alone need of a topic that is asked about beside others: "where do I live?"."""
TOGETHER = 0.2
"""The share of what a sentence asks that two terms need to be evidence together."""
MANY = 3
IN_PASSING = 0.3
"""The share of what a sentence asks that one specific term needs, in a message of `MANY` sentences or more.

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
"""The most names considered in one sentence: of more, the longest."""
NEARLY_ALL, CLEARLY_LESS = 0.75, 0.7
"""If the best has so much of what a sentence asks, a document needs this share of that."""
ROUNDING = 1e-9
NO_EVIDENCE, OUTDONE = "no real evidence", "others have more of what was asked"
Names: TypeAlias = Mapping[frozenset[str], Sequence[int]]
"""The positions of the documents that have a name, by the name, for names that a query has completely."""
MARK = 1.0
"""Weight of a name of the whole, where a word of a text of mean length counts 1."""


class Concept(NamedTuple):
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
    """The concepts that a query asks for among some documents.

    `topics` have the names of the concepts; `bare`: there are no other words. `total` is the number of all
    documents. `names` are terms that are written as names; `strangers` those among them that no document has.
    """

    concepts: Sequence[Concept]
    topics: Sequence[Topic]
    bare: bool
    total: int
    names: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()
    terms: frozenset[str] = field(init=False)
    """All spellings of all concepts."""

    def __post_init__(self) -> None:
        found = frozenset(term for concept in self.concepts for term, _ in concept.spellings)
        object.__setattr__(self, "terms", found)


class _Has(NamedTuple):
    """Matches of documents that have the same concepts of a sentence; `terms` has a bit for each concept.

    `covered` is the share of what is asked. `name`: one of the terms is written as a name.
    """

    terms: int
    covered: float
    specific: bool
    name: bool


@dataclass(slots=True)
class _Sentence:
    """How well documents match a sentence, by position: `scores`, and the bits of its concepts in `terms`.

    `has` says what those bits mean. `named` has the terms of the names that the sentence names completely;
    of those in `given` one is an alias or a key. Those in `whole` have the only word that tells anything.
    """

    scores: dict[int, float] = field(default_factory=dict)
    terms: dict[int, int] = field(default_factory=dict)
    has: dict[int, _Has] = field(default_factory=dict)
    named: dict[int, frozenset[str]] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)


class Matches:
    """How well documents match a query, by their positions.

    `scores` are above 0. `evident` are the documents that have evidence, `meant` those of them that no other
    document outdoes. Documents that have the same concepts of a sentence are judged together. What matched in
    one of them is worked out when it is asked for: few of many are ever looked at.
    """

    def __init__(
        self,
        asked: Asked,
        parts: Sequence[Mapping[int, float]],
        among: Iterable[int] | None,
        documents: Sequence[Document | None],
        names: Names,
    ) -> None:
        """`parts` has, for each concept, what its best spelling counts in each document that has it.

        If there is an `among`, only those documents are judged.
        """
        self.scores = dict.fromkeys(chain.from_iterable(parts) if among is None else among, 0.0)
        self._all = among is None
        self.evident: set[int] = set()
        self.meant: set[int] = set()
        self.accounts: set[int] = set()
        self._asked = asked
        self._parts = parts
        self._names = names
        self._documents = documents
        self._sentences: list[_Sentence] = []
        self._about_others: dict[int, frozenset[str]] = {}
        self._topics = self._of_a_list() if asked.bare and len(asked.topics) == 1 else asked.topics
        for topic in self._topics:
            self._judge(topic)
        if len(self._topics) == 1 and all(one.name in self._topics[0].terms for one in asked.concepts):
            self.scores.update(self._sentences[0].scores)
        else:
            self._add_up()

    def coverage(self, position: int) -> float:
        """The largest share of what a sentence asked that a document has."""
        return max(
            (one.has[one.terms[position]].covered for one in self._sentences if position in one.terms),
            default=0.0,
        )

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
        return any(position in one.given for one in self._sentences)

    @property
    def naming(self) -> bool:
        """Whether the query names any document completely."""
        return any(one.named for one in self._sentences)

    def matched(self, position: int) -> list[str]:
        """The names of what a document has."""
        both = zip(self._asked.concepts, self._parts, strict=True)
        return [concept.name for concept, part in both if position in part]

    def telling(self, position: int) -> bool:
        """Whether a document has a term that says more than common words do."""
        return any(one.has[one.terms[position]].specific for one in self._sentences if position in one.terms)

    def names(self, position: int) -> Sequence[frozenset[str]]:
        """The names of a document of which nothing else is asked than what it is."""
        document = self._documents[position]
        if document is None or not any(position in one.whole for one in self._sentences):
            return ()
        named = any(position in one.named for one in self._sentences)
        return document.given if named else (*document.given, *document.written)

    # ------------------------------------------------------------------ inside

    def _of_a_list(self) -> Sequence[Topic]:
        """The topics of a few words alone: each its own if no document has two of them ("python llama?")."""
        parts = [part for part in self._parts if part]
        apart = 1 < len(parts) <= LONGEST_LIST and len(set().union(*parts)) == sum(map(len, parts))
        (topic,) = self._asked.topics
        return [topic._replace(terms=frozenset([one])) for one in sorted(topic.terms)] if apart else [topic]

    def _judge(self, topic: Topic) -> None:
        """Add what one topic says about the documents."""
        both = zip(self._asked.concepts, self._parts, strict=True)
        sentence, asks = topic.terms, topic.asks or topic.account
        here = [(concept, part) for concept, part in both if concept.name in sentence]
        found = self._having(here, asks=asks)
        self._sentences.append(found)
        self._name(found, here, account=topic.account)
        for position, lift in _lifts(found.named, here).items():
            factor = GIVEN if position in found.given else NAMED
            found.scores[position] = factor * (found.scores[position] + lift)
        strangers = sentence & self._asked.strangers
        strange = bool(strangers)
        having = found.has.items()
        telling = {one for one, has in having if self._is_evidence(has, strange=strange, asks=asks)}
        evident = [one for one, terms in found.terms.items() if terms in telling or one in found.named]
        self.evident.update(evident)
        if sum(concept.specific for concept, _ in here) == 1:
            found.whole.update(evident)
        self.meant |= _undone(evident, found, account=topic.account)
        if topic.account:
            self.accounts |= self.meant.intersection(evident)
        if strangers:
            about = {one for one, has in having if self._is_evidence(has, strange=False, asks=asks)}
            for position, terms in found.terms.items():
                if terms in about - telling and position not in found.named:
                    self._about_others[position] = self._about_others.get(position, frozenset()) | strangers

    def _having(self, here: Sequence[tuple[Concept, Mapping[int, float]]], *, asks: bool) -> _Sentence:
        """How well each document matches some concepts."""
        found = _Sentence()
        scores, bits = found.scores, found.terms
        for number, (concept, part) in enumerate(here):
            weight, least, bit = concept.weight, concept.least, 1 << number
            for position, best in self._entries(part):
                scores[position] = scores.get(position, 0.0) + weight * best
                bits[position] = bits.get(position, 0) | (bit if best > least else 0)
        # Who asks in common words may use others than those in which it was remembered.
        counted = [concept for concept, part in here if part or concept.specific or not asks]
        whole, names = sum(concept.share for concept in counted) or 1.0, self._asked.names
        for terms in set(bits.values()):
            covered, specific, named = 0.0, False, False
            for number, (concept, _) in enumerate(here):
                if terms >> number & 1:
                    covered += concept.share
                    specific = specific or concept.specific
                    named = named or concept.name in names
            found.has[terms] = _Has(terms, covered / whole, specific, named)
        return found

    def _entries(self, part: Mapping[int, float]) -> Iterable[tuple[int, float]]:
        """The documents of a part that are judged, with their values."""
        if self._all:
            return part.items()
        if len(part) > len(self.scores):
            return [(position, part[position]) for position in self.scores if position in part]
        return [(position, best) for position, best in part.items() if position in self.scores]

    def _name(
        self, found: _Sentence, here: Sequence[tuple[Concept, Mapping[int, float]]], *, account: bool
    ) -> None:
        """Note which documents a sentence names completely: those that have all terms of a name.

        The name is one of theirs, or of another document; the longest that the sentence names are meant.
        """
        terms, telling, rare = set[str](), set[str](), set[str]()
        few = max(RARE, RARE_SHARE * self._asked.total)
        asked = [({term for term, _ in concept.spellings}, concept, part) for concept, part in here]
        for spellings, concept, part in asked:
            terms |= spellings
            telling |= spellings if concept.share else set()
            rare |= spellings if concept.share and len(part) <= few else set()
        complete: dict[frozenset[str], set[int]] = {}
        specific = [spellings for spellings, concept, _ in asked if concept.specific]
        for name, positions in self._names.items():
            if not name <= terms or name.isdisjoint(telling):
                continue
            having = found.terms.keys() & positions
            given = {one for one in having if (known := self._documents[one]) and name in known.given}
            if 0 < len(given) <= few or (len(given) < len(having) and not name.isdisjoint(rare)):
                complete[name] = given
        meant = sorted(complete, key=_longest_first)[:MOST_NAMES]
        for name in [name for name in meant if not any(name < other for other in meant)]:
            found.given |= complete[name]
            asks_more = any(name.isdisjoint(spellings) for spellings in specific)
            # What has all terms of the name has its rarest.
            rarest = min([part for spellings, _, part in asked if not name.isdisjoint(spellings)], key=len)
            others = (found.terms.keys() & rarest) - complete[name]
            written = [one for one in others if (known := self._documents[one]) and known.bag.keys() >= name]
            if complete[name] and asks_more and not account:
                # Others only mention it, but for those that begin with it.
                written = [one for one in written if self._begins(one, name)]
            for position in chain(complete[name], written):
                before = found.named.get(position)
                found.named[position] = name if before is None else before | name

    def _begins(self, position: int, name: frozenset[str]) -> bool:
        """Whether a document's text begins with a name, so that it is about what has that name."""
        document = self._documents[position]
        return document is not None and name <= set(document.opening[: len(name) + 1])

    def _is_evidence(self, has: _Has, *, strange: bool, asks: bool) -> bool:
        if strange and not has.name and has.covered < MOST_OF_IT:
            return False
        many = len(self._topics)
        if has.covered >= MOST_OF_IT and (has.terms.bit_count() > 1 or has.specific or many == 1 or asks):
            return True
        if has.specific and has.covered >= (IN_PASSING if many >= MANY else 0.0):
            return True
        return has.terms.bit_count() > 1 and has.covered >= TOGETHER

    def _add_up(self) -> None:
        """The scores over all sentences: each concept counts once."""
        scores = self.scores = dict.fromkeys(self.scores, 0.0)
        here = list(zip(self._asked.concepts, self._parts, strict=True))
        for concept, part in here:
            for position, best in self._entries(part):
                scores[position] += concept.weight * best
        named: dict[int, frozenset[str]] = {}
        for sentence in self._sentences:
            for position, names in sentence.named.items():
                named[position] = named.get(position, frozenset()) | names
        for position, lift in _lifts(named, here).items():
            scores[position] = (GIVEN if self.given(position) else NAMED) * (scores[position] + lift)


def names_of(documents: Iterable[tuple[int, Document | None]], terms: Set[str]) -> Names:
    """The names of some documents that these terms have completely."""
    found: dict[frozenset[str], list[int]] = {}
    for position, document in documents:
        for name in (*document.given, *document.written) if document is not None else ():
            if name <= terms:
                found.setdefault(name, []).append(position)
    return found


def _longest_first(name: Collection[str]) -> tuple[int, list[str]]:
    return -len(name), sorted(name)


def _lifts(
    named: Mapping[int, frozenset[str]], here: Sequence[tuple[Concept, Mapping[int, float]]]
) -> dict[int, float]:
    """Weight of the terms of complete names beyond their weight as words.

    `named` has the terms of the names by the position of the document.
    """
    lifts = dict.fromkeys(named, 0.0)
    alike: dict[frozenset[str], list[int]] = {}
    for position, names in named.items():
        alike.setdefault(names, []).append(position)
    for concept, part in here if named else ():
        counts = dict(concept.spellings)
        for names, positions in alike.items():
            if not names.isdisjoint(counts):
                full = MARK * max([count for term, count in concept.spellings if term in names])
                for position in positions:
                    if (has := part.get(position, full)) < full:
                        lifts[position] += concept.weight * (full - has)
    return lifts


def _undone(evident: Collection[int], found: _Sentence, *, account: bool) -> set[int]:
    """The documents that no other one outdoes in a sentence."""
    scores, terms, named = found.scores, found.terms, found.named
    having = [found.has[one] for one in {terms[position] for position in evident}]
    most = max([has.covered for has in having if has.terms.bit_count() > 1], default=0.0)
    best = [has.terms for has in having if has.covered >= most - ROUNDING and most >= NEARLY_ALL]
    undone = set(evident)
    if best and not account:
        less = {
            has.terms
            for has in having
            if has.covered < CLEARLY_LESS * most and not all(has.terms & ~one for one in best)
        }
        undone -= {one for one in evident if terms[one] in less and one not in found.given}
    if not named:
        return undone
    least = NEARLY * max([scores[position] for position in named])
    by_name = max([found.has[one].covered for one in {terms[position] for position in named}]) + ROUNDING
    others = undone - named.keys()
    return undone - {
        one for one in others if scores[one] < least and found.has[terms[one]].covered <= by_name
    }
