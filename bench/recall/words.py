"""How much a question shares with what answers it, and how questions get worse: typos and chatter.

The kind of a question is measured, not claimed: from the words that question and evidence share. The
measure is made for this only, so that no ranker's idea of a word decides what counts as hard.
"""

import random
import re

_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    """a about again all am an and any are as at be been by can could did do does doing down for from get go
    going got had has have how i in into is it its just know like me might my no nor not now of off on one or
    our out over put s say she should so some such t tell than that the their them then there these they thing
    things this those to too up us user users was we were what when where which who why will with would you
    your whom whose m re ve ll d don doesn didn isn wasn""".split()  # noqa: SIM905 - words are read as words
)
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEAR = {key: (row[at - 1 : at] or "") + row[at + 1 : at + 2] for row in _ROWS for at, key in enumerate(row)}
"""Keys beside each other."""


def content_words(text: str) -> list[str]:
    """Lower-case runs of letters and digits, without those that say nothing."""
    return [word for word in _WORD.findall(text.lower()) if word not in _STOP]


def shares(question: str, evidence: str, *, known: str = "") -> str:
    """What they share besides the words of `known`: "exact", "inflected" or "" for nothing."""
    aside = set(content_words(known))
    asked = set(content_words(question)) - aside
    said = set(content_words(evidence)) - aside
    if asked & said:
        return "exact"
    return "inflected" if any(_kin(one, other) for one in asked for other in said) else ""


def _kin(one: str, other: str) -> bool:
    """Whether two words look like forms of one: four letters in common, and little behind them."""
    common = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        common += 1
    return common >= 4 and max(len(one), len(other)) - common <= 4


def mistype(text: str, dice: random.Random, *, count: int = 1) -> str:
    """`text` with `count` of its longer words mistyped, if it has any."""
    long = list(re.finditer(r"[A-Za-z]{5,}", text))
    for found in sorted(dice.sample(long, min(count, len(long))), key=lambda one: -one.start()):
        text = text[: found.start()] + _slip(found[0], dice) + text[found.end() :]
    return text


def _slip(word: str, dice: random.Random) -> str:
    """One slip of the fingers, never in the first letter."""
    at = dice.randrange(1, len(word) - 1)
    kind = dice.choice(("swap", "drop", "double", "beside"))
    if kind == "swap" and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind == "drop":
        return word[:at] + word[at + 1 :]
    if kind == "beside":
        return word[:at] + dice.choice(_NEAR[word[at].lower()]) + word[at + 1 :]
    return word[:at] + word[at] + word[at:]
