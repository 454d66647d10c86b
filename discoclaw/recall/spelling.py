"""Similar spellings of a term that no document has: another ending, a typo, one character of a word.

It is used only for terms that no document has, so it can find something where there was nothing, and never
outweighs an exact match. A stemmer knows the endings of one language; this knows none, and so works for all.
Pure.
"""

from collections.abc import Collection, Iterable

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
"""What may follow the same beginning: "model" is no form of "mode"."""
SLIP = 0.6
"""The weight of a term that differs by a typo."""
SURE = 6
"""Shorter words are too similar to others: "reach" is not a typo of "react"."""
MOST = 4


class Vocabulary:
    """The terms of all documents."""

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = terms
        self._by_beginning: dict[str, list[str]] | None = None

    def with_changes(self, terms: Collection[str], changed: Iterable[str]) -> "Vocabulary":
        """That of other documents, whose terms are the same but for the `changed` ones."""
        other = Vocabulary(terms)
        if self._by_beginning is not None:
            other._by_beginning = dict(self._by_beginning)
            for term in filter(_has_neighbours, changed):
                before = other._by_beginning.get(term[0], [])
                after = [one for one in before if one != term]
                other._by_beginning[term[0]] = [*after, term] if term in terms else after
        return other

    def near(self, term: str) -> tuple[tuple[str, float], ...]:
        """The most similar terms with what each counts (0 to 1), best first; none for what has no letters."""
        if len(term) == 1 and not term.isascii():  # one Han character: part of the pairs that have it
            return tuple((pair, 1.0) for pair in self._terms if len(pair) == 2 and term in pair)
        if len(term) < SHORTEST or not term.isalpha():
            return ()
        found = [(other, weight) for other in self._same_beginning(term) if (weight := _alike(term, other))]
        return tuple(
            sorted(found, key=lambda pair: (-pair[1], abs(len(pair[0]) - len(term)), pair[0]))[:MOST]
        )

    def _same_beginning(self, term: str) -> list[str]:
        if self._by_beginning is None:
            self._by_beginning = {}
            for one in self._terms:
                if _has_neighbours(one):
                    self._by_beginning.setdefault(one[0], []).append(one)
        return self._by_beginning.get(term[0], [])


def _has_neighbours(term: str) -> bool:
    """Whether a term is long enough to be another one's spelling."""
    return len(term) >= SHORTEST - 1 and term.isalpha()


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
    """Whether one letter was missed, added, changed, or two were swapped, behind the `shared` beginning."""
    one, two = term[shared:], other[shared:]
    return (
        one[1:] == two[1:]
        or one[1:] == two
        or one == two[1:]
        or (one[:2] == two[1::-1] and len(one) > 1 and one[2:] == two[2:])
    )
