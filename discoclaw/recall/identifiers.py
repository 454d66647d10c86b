"""Identifiers in what somebody typed, and the items that have them, however they are written. Pure.

A number is the same with and without separators, case and country code ("0170 / 12-34 567"), and with its
digits spelled out. A mail address is the same as "name at x dot org". A name with a sign inside it, such as
`report_v2` or `notes/plan`, isn't part of a longer one. With characters masked ("na**@x.org") it only may be.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from discoclaw.core.item import Item
from discoclaw.core.languages import DIGITS
from discoclaw.core.words import fold

FEWEST_DIGITS = 3
_SHORTEST = 4
"""Characters of a number, without separators."""

_BETWEEN = r"[\s().,/:_-]{0,3}"
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_KINDS = (
    (("mail", "email", "address"), _MAIL),
    (
        ("phone", "telephon", "mobil", "number"),
        re.compile(r"(?<![\w.])\+?\(?\d(?:[\s()/-]?\d){6,14}(?![\w-])"),
    ),
    (("iban", "bank", "account"), re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z\d]{4}){3,7}")),
)
_WRITTEN_OUT = re.compile(
    r"([\w.+-]+)\s*[\[({]?\s*(?:@|\bat\b)\s*[\])}]?\s*([\w-]+(?:\s*[\[({]?\s*(?:\.|\bdot\b|\bpunkt\b)\s*[\])}]?\s*[\w-]+)+)"
)
_DOT = re.compile(r"\s*[\[({]?\s*(?:\bdot\b|\bpunkt\b|\.)\s*[\])}]?\s*")
_SIGNED = re.compile(r"[^\W_]+(?:[-./@:_#+]+[^\W_]+)+")
_MASKED = re.compile(r"[\w.@+-]*[*•]{2,}[\w.@+*•-]*")
_TOKEN = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"(?:19|20)\d\d(?:(?:19|20)?\d\d)?")
_GAP = re.compile(r"[\s().,/:+_-]{1,3}")


@dataclass(frozen=True, slots=True)
class Known:
    """`exact` have all identifiers, `near` may mean one of them: it is masked, or written alike.

    `others` are the ids of items that only have longer ones. `unknown`: no item has what was named.
    """

    exact: tuple[Item, ...] = ()
    near: tuple[Item, ...] = ()
    others: frozenset[str] = frozenset()
    unknown: bool = False


def find(typed: str, items: Collection[Item]) -> Known:
    """The items that have the identifiers of a request."""
    plain = _plain(typed)
    masks = [re.compile(_mask(one)) for one in _MASKED.findall(plain)]
    names = dict.fromkeys([*_MAIL.findall(plain), *_signed(plain)])
    forms = [re.compile(_written(one)) for one in _numbers(plain)]
    if not (masks or names or forms):
        return Known()
    texts = {item.id: _plain(f"{item.text} {item.facets.key or ''} {' '.join(item.tags)}") for item in items}
    if masks:
        near = tuple(item for item in items if any(mask.search(texts[item.id]) for mask in masks))
        return Known(near=near, unknown=True)
    whole = {key: _whole(text) for key, text in texts.items()}
    has = {
        key: [name in whole[key] for name in names] + [bool(form.search(text)) for form in forms]
        for key, text in texts.items()
    }
    exact = tuple(item for item in items if all(has[item.id]))
    longer = {key for key, text in texts.items() if not any(has[key]) and any(one in text for one in names)}
    alike = tuple(
        item
        for item in items
        if names and not exact and any(get_close_matches(one, whole[item.id], 1, 0.8) for one in names)
    )
    return Known(exact, alike, frozenset(longer), unknown=bool(names) and not exact)


def kinds(text: str) -> frozenset[str]:
    """The words by which people ask for the identifiers of a text: "my phone number", "my mail address"."""
    return frozenset(word for words, form in _KINDS if form.search(text) for word in words)


def _plain(text: str) -> str:
    """A text folded, with mail addresses and digits as they are usually written."""
    folded = fold(text)
    if "at" in folded or "@" in folded:
        folded = _WRITTEN_OUT.sub(lambda found: f"{found[1]}@{_DOT.sub('.', found[2])}", folded)
    words = folded.split()
    if sum(word.strip(".,") in DIGITS for word in words) >= FEWEST_DIGITS:
        folded = " ".join(DIGITS.get(word.strip(".,"), word) for word in words)
    return folded


def _signed(plain: str) -> Iterator[str]:
    """Names with a sign inside them. Those with a digit and no letter are numbers."""
    for found in _SIGNED.finditer(plain):
        if any(char.isalpha() for char in found[0]) and not _numbers(found[0]):
            yield found[0]


def _whole(plain: str) -> set[str]:
    return {
        *_MAIL.findall(plain),
        *(one.rstrip(".") for one in _SIGNED.findall(plain)),
        *_TOKEN.findall(plain),
    }


def _numbers(plain: str) -> list[str]:
    """The numbers of a text without their separators: neighbouring groups with digits, or between such."""
    found: list[list[str]] = []
    group: list[str] = []
    end = 0
    tokens = list(_TOKEN.finditer(plain))
    for token in tokens:
        if group and _GAP.fullmatch(plain, end, token.start()) is None:
            found.append(group)
            group = []
        word = token[0]
        if any(char.isdigit() for char in word) or (group and len(word) == 4):  # a bank's letters in an IBAN
            group.append(word)
        elif group:
            found.append(group)
            group = []
        end = token.end()
    found.append(group)
    joined = ("".join(one) for one in found)
    return [
        one
        for one in joined
        if len(one) >= _SHORTEST and sum(map(str.isdigit, one)) >= FEWEST_DIGITS and not _YEAR.fullmatch(one)
    ]


def _written(number: str) -> str:
    """A pattern for a number with any separators, and not within a longer one."""
    forms = [number]
    if number.isdigit() and len(number) > 8:
        national = number.removeprefix("00") if number.startswith("00") else number.removeprefix("0")
        forms += [national, f"0{number[2:]}", f"0{national}"]
    bodies = (_BETWEEN.join(map(re.escape, form)) for form in dict.fromkeys(forms))
    ahead = r"(?:\+?\d{1,3}[\s-]?(?:\(0\))?)?" if number.isdigit() and len(number) > 8 else ""
    return rf"(?<![^\W_]){ahead}(?:{'|'.join(bodies)})(?![^\W_])(?![\s-]\d{{2}})"


def _mask(typed: str) -> str:
    """A pattern for a name of which some characters are masked."""
    return r"(?<!\w)" + re.sub(r"(?:\\\*|•)+", r"[\\w.+-]+", re.escape(typed)) + r"(?!\w)"
