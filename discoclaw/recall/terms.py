"""What a query asks for among some documents: its terms, their spellings, and what each weighs. Pure.

A term weighs what its rarity among the documents says (BM25: Robertson, Zaragoza: "The Probabilistic
Relevance Framework", 2009). One that no document has is looked for in another spelling, and counts less.
`recall/index` finds the documents, `recall/evidence` judges what was found.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, Protocol

from discoclaw.core.query import Query, Topic
from discoclaw.core.values import dataclass, field
from discoclaw.core.words import is_common, others_for, terms, topics_for

# ----------------------------------------------------------------------
# Similar spellings of a term that no document has: another ending, a typo, one character of a word.

SHORTEST = 4
ENDING = 0.7
"""The weight of a term that is the other one with an ending: "violinist" for "violin"."""
ENDINGS = frozenset(
    """
    a al ala ale ally an ar ation ations e ed ei eer el em en ence ens ent er erin ern ers es est i ia ial
    ian ic ical ie ier ies ig in ing ings innen ion ions ish ism ist ista ity iv ive je ka ki la lich ly ment
    n ness o or os ous r s se ship st sten t te ten ung ungen y ya
    """.split()  # noqa: SIM905 - a list of words is not easier to read
) | {""}
"""Endings that may follow the same beginning: "model" isn't a form of "mode"."""
SLIP = 0.6
"""The weight of a term that differs by a typo."""
LEAST_JOINED = 3
"""Letters of the shortest word that another one is joined with in a compound."""
_HEBREW = frozenset(map(chr, range(0x5D0, 0x5EB)))
_PREFIXED = frozenset("הובלמשכ")
SURE = 6
"""Shorter words are too similar to others: "reach" is not a typo of "react"."""
MOST = 4
ALIKE, LOOSE_ENDING = 0.8, 3
"""How similar a mistyped word is at least (`difflib`): "cofee" and "coffee" are 0.91, "cats" and "cars" 0.75;
and the letters of its longest ending."""


class Vocabulary:
    """The terms of all documents."""

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = terms
        self._alike: dict[object, list[str]] | None = None  # by what an `_alike` one has in common with them

    def with_changes(self, terms: Collection[str], changed: Iterable[str]) -> "Vocabulary":
        """A vocabulary of other documents, whose terms differ from ours only by the `changed` ones."""
        other = Vocabulary(terms)
        if self._alike is not None:
            other._alike = dict(self._alike)
            for term in changed:
                for key in _keys(term):
                    after = [one for one in other._alike.get(key, ()) if one != term]
                    other._alike[key] = [*after, term] if term in terms else after
        return other

    def near(self, term: str) -> tuple[tuple[str, float], ...]:
        """The most similar terms with what each counts (0 to 1), best first; none for what has no letters."""
        if len(term) == 1 and not term.isascii():  # one Han character: part of the pairs that have it
            return tuple((pair, 1.0) for pair in self._terms if len(pair) == 2 and term in pair)
        if term and term[0] in _HEBREW:  # articles and prepositions are written together with the word
            bare = {term, _without_prefix(term)}
            forms = [one for one in self._terms if one != term and _without_prefix(one) in bare]
            return tuple((one, 1.0) for one in forms)
        if len(term) < SHORTEST or not term.isalpha():
            return ()
        if self._alike is None:
            self._alike = {}
            for one in self._terms:
                for key in _keys(one):
                    self._alike.setdefault(key, []).append(one)
        keys = dict.fromkeys(key for more in (-1, 0, 1) for key in _keys(term, more))
        others = dict.fromkeys(one for key in keys for one in self._alike.get(key, ()))
        found = [(other, weight) for other in others if (weight := _alike(term, other))]
        return tuple(
            sorted(found, key=lambda pair: (-pair[1], abs(len(pair[0]) - len(term)), pair[0]))[:MOST]
        )

    def alike(self, term: str) -> list[str]:
        """The terms that one may stand for where a wrong guess does no harm: another ending, or any typos."""
        if len(term) < SHORTEST:
            return []
        long = [one for one in self._terms if len(one) >= SHORTEST]
        begun = [one for one in long if one.startswith(term) or term.startswith(one)]
        endings = [one for one in begun if abs(len(one) - len(term)) <= LOOSE_ENDING]
        return list(dict.fromkeys([*endings, *get_close_matches(term, long, MOST + 1, ALIKE)]))

    def compounds(self, term: str) -> tuple[tuple[str, float], ...]:
        """The terms that end or begin with a term, as German compounds do, with what each counts."""
        if len(term) < SHORTEST:
            return ()
        longer = [one for one in self._terms if len(one) >= len(term) + LEAST_JOINED]
        found = sorted(one for one in longer if one.endswith(term) or one.startswith(term))
        return tuple((one, ENDING) for one in found[:MOST])


def _without_prefix(term: str) -> str:
    return term[1:] if term[0] in _PREFIXED and len(term) > 3 else term


def _keys(term: str, more: int = 0) -> tuple[object, ...]:
    """Keys that a term shares with those it may be another spelling of, which are longer by `more`.

    Terms with a typo also share the second letter, or else the last two: there is only one typo.
    """
    if len(term) < SHORTEST or not term.isalpha():
        return ()
    length = len(term) + more
    return term[:SHORTEST], (length, term[:2]), (length, term[0], term[-2:])


def _alike(term: str, other: str) -> float:
    """The weight of `other` for `term`; 0 if it is a different word."""
    shared = 0
    for one, two in zip(term, other, strict=False):
        if one != two:
            break
        shared += 1
    longer, shorter = max(len(term), len(other)), min(len(term), len(other))
    if shared >= SHORTEST and _endings(term[shared:], other[shared:], shared):
        return ENDING
    return SLIP if longer >= SURE and longer - shorter <= 1 and _one_slip(term, other, shared) else 0.0


def _endings(one: str, other: str, shared: int) -> bool:
    """Whether of two words that begin alike one is the other with an ending.

    A changed last letter is none ("mode", "moda"). Of other scripts only the length of an ending is known.
    """
    if one and other:
        return False
    return (one or other) in ENDINGS or (
        not (one + other).isascii() and len(one + other) <= max(1, shared // 2)
    )


def _one_slip(term: str, other: str, shared: int) -> bool:
    """Whether one letter was missed, added, changed, or two were swapped, behind the `shared` beginning.

    The last letter of a stem is no typo where it is changed: "components" doesn't mean "compose".
    """
    one, two = term[shared:], other[shared:]
    return (
        (one[1:] == two[1:] and len(one) > 1)
        or one[1:] == two
        or one == two[1:]
        or (one[:2] == two[1::-1] and len(one) > 1 and one[2:] == two[2:])
    )


SAME = 0.7
"""Weight of another word for the same."""
NARROWER = 0.6
"""Weight of a word for what a term includes, where somebody names a topic: a Tesla, of a car."""
FEW = 8
"""Among fewer documents than this no term is too frequent to tell something."""
COMMON_WEIGHT = 0.3
"""Weight of a common word beside a specific one."""
MARK = 1.0
"""Weight of a name of the whole, where a word of a text of mean length counts 1."""
DATE_WEIGHT = 0.5
"""When something was said tells which of several is meant, but only the very day tells that any is."""
A_DAY = len("d:2026-01-31")


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


class Corpus(Protocol):
    """Statistics of all documents in a search."""

    @property
    def total(self) -> int:
        """How many documents there are."""
        ...

    @property
    def average(self) -> float:
        """Their mean length, in terms."""
        ...

    def frequency(self, terms: Iterable[str]) -> Mapping[str, int]:
        """How many documents contain each of the terms."""
        ...


@dataclass(frozen=True, slots=True)
class Counted:
    """A corpus that was counted elsewhere; a term without a number is in no document."""

    total: int
    average: float
    frequencies: Mapping[str, int]

    def frequency(self, terms: Iterable[str]) -> Mapping[str, int]:
        return {term: self.frequencies.get(term, 0) for term in terms}


def asked_of(
    query: Query,
    corpus: Corpus,
    vocabulary: Vocabulary | None = None,
    *,
    own_name: str | None = None,
    skip_unknown: bool = True,
    naming: bool = False,
) -> Asked:
    """The concepts of a query, each with its rarity among the documents.

    A term of most documents is evidence only where nothing rarer is asked for; with `skip_unknown`, a term
    that no document has doesn't count as rarer. Without `own_name`, that of the person who asks, nobody is a
    stranger. `naming`: somebody names what is there and is asked which is meant, so other words for a term
    count as it does, narrower ones too ("car": "tesla"), and spellings may be less alike.
    """
    known = corpus.frequency(query.wanted)
    names = frozenset[str]().union(*query.names)
    asked = []
    for term in query.terms:
        spellings, count = [(term, 1.0)], known[term]
        if not count and (forms := [form for form in query.forms.get(term, ()) if known[form]]):
            spellings, count = [(form, 1.0) for form in forms], sum(known[form] for form in forms)
        if naming:
            also = (*query.forms.get(term, ()), *others_for(term))
            spellings += [(one, 1.0) for one in also]
            spellings += [(one, NARROWER) for one in topics_for(term) if one not in also]
            count = max(corpus.frequency(one for one, _ in spellings).values())
            if not count and vocabulary is not None:
                spellings += [(one, 1.0) for one in vocabulary.alike(term)]
                count = max(corpus.frequency(one for one, _ in spellings).values())
            count = max(1, count)  # what nobody has weighs no more than what one has
        if not count:  # nobody put it so: other words for it, and other spellings
            spellings = [(other, SAME) for other in others_for(term)]
            if vocabulary is not None:
                spellings += vocabulary.near(term)
                spellings += vocabulary.compounds(term) if query.compounds else ()
            count = sum(corpus.frequency(name for name, _ in spellings).values())
        common = is_common(term) and term not in names
        asked.append(_Term(term, tuple(spellings), min(count, corpus.total), common=common))
    asked = _without_namesakes(asked, query.names)
    own = frozenset(terms(own_name or ""))
    asked = [one._replace(own=True) if one.name in own else one for one in asked]
    # A day alone is evidence only where nothing else is asked for.
    alone = all(one.common or one.own or one.everywhere(corpus.total) for one in asked)
    for date in sorted(query.dates, key=len, reverse=True):
        common = not naming and (len(date) < A_DAY or not alone)
        asked.append(
            _Term(date, ((date, 1.0),), min(max(known[date], int(naming)), corpus.total), common=common)
        )
    strangers = {one.name for one in asked if not one.having} & names if own_name is not None else set()
    return Asked(
        _weighed(asked, corpus.total, names, skip_unknown=skip_unknown),
        query.topics,
        query.bare,
        corpus.total,
        names,
        frozenset(strangers - own),
    )


def _without_namesakes(asked: Sequence["_Term"], names: Iterable[frozenset[str]]) -> list["_Term"]:
    """The terms; those known of a name that is not known as a whole are not specific: another Albert."""
    known = {one.name for one in asked if one.having}
    half = {term for name in names if not name <= known for term in name & known}
    return [one._replace(common=True) if one.name in half else one for one in asked]


def rarity(containing: int, total: int) -> float:
    """Inverse document frequency, never negative (Lucene's form)."""
    return math.log(1 + (total - containing + 0.5) / (containing + 0.5))


class _Term(NamedTuple):
    """One thing asked for, the number of documents that have it, and whether it is common in any talk.

    `own`: it is part of the name of the person whose documents these are.
    """

    name: str
    spellings: tuple[tuple[str, float], ...]
    having: int
    common: bool
    own: bool = False

    def everywhere(self, total: int) -> bool:
        """Whether so many documents have it that it tells them apart no longer."""
        return self.having * 2 > total >= FEW


def _weighed(
    asked: Sequence[_Term], total: int, names: Collection[str], *, skip_unknown: bool
) -> list[Concept]:
    """The concepts for what is asked.

    What more than half of the documents have is evidence only if nothing rarer is asked for: who asks for
    nothing else means it. Common words beside it then count no more than it does, so that they put documents
    in order but don't push the others out. The person's own name is never evidence, and neither is a name
    that most documents have beside anything else that is asked for, known or not.
    """
    known = [one for one in asked if (one.having or not skip_unknown) and not one.own]
    telling = [one for one in known if not one.common]
    nothing_else = not telling and all(one.everywhere(total) for one in known)
    nothing_rarer = bool(telling) and all(one.everywhere(total) for one in telling)
    most = max((rarity(one.having, total) for one in telling), default=0.0)
    found = []
    for one in asked:
        weight, specific = rarity(one.having, total), not one.common
        if nothing_rarer and one.common:
            weight = min(weight, most)
        share = weight * (COMMON_WEIGHT if one.common else 1.0)
        if one.everywhere(total):
            beside = one.name in names and any(
                other is not one and not (other.common or other.own) for other in asked
            )
            if beside or (not nothing_else and (one.common or not nothing_rarer)):
                share, specific = 0.0, False
        if one.own:
            share, specific = 0.0, False
        least = DATE_WEIGHT if one.name.startswith("d:") and len(one.name) != A_DAY else 0.0
        found.append(Concept(one.name, one.spellings, weight, share, specific, least))
    return found
