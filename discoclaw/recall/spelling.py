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
"""Endings that may follow the same beginning: "model" is no form of "mode"."""
SLIP = 0.6
"""The weight of a term that differs by a typo."""
SURE = 6
"""Shorter words are too similar to others: "reach" is not a typo of "react"."""
MOST = 4


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
        if len(term) < SHORTEST or not term.isalpha():
            return ()
        found = [(other, weight) for other in self._candidates(term) if (weight := _alike(term, other))]
        return tuple(
            sorted(found, key=lambda pair: (-pair[1], abs(len(pair[0]) - len(term)), pair[0]))[:MOST]
        )

    def _candidates(self, term: str) -> Iterable[str]:
        if self._alike is None:
            self._alike = {}
            for one in self._terms:
                for key in _keys(one):
                    self._alike.setdefault(key, []).append(one)
        keys = dict.fromkeys(key for more in (-1, 0, 1) for key in _keys(term, more))
        return dict.fromkeys(one for key in keys for one in self._alike.get(key, ()))


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
    """Whether one letter was missed, added, changed, or two were swapped, behind the `shared` beginning."""
    one, two = term[shared:], other[shared:]
    return (
        one[1:] == two[1:]
        or one[1:] == two
        or one == two[1:]
        or (one[:2] == two[1::-1] and len(one) > 1 and one[2:] == two[2:])
    )
