"""Finding the items that a person or a model names, by id, by key or by a part of their text.

Also which item says the same as a text that a model proposes as new. Pure.
"""

import re
from collections.abc import Collection, Iterable

from discoclaw.core.item import Item, Kind, by_newest
from discoclaw.core.text import collapse, normalise, utf16_length

MATCH_PERCENT = 60
"""A text names an item if it is at least this share of it, so that one common word does not forget a lot."""


def matches(text: str, needle: str) -> bool:
    """Whether `needle` is part of an item's text, in any case, and at least 60 % of its length."""
    text, needle = normalise(text), normalise(needle)
    return needle in text and utf16_length(needle) * 100 >= utf16_length(text) * MATCH_PERCENT


def find(items: Collection[Item], wanted: str) -> list[Item]:
    """The items somebody names: by id (with or without "durable-"), else active ones by key, else by text."""
    wanted = collapse(wanted)
    if not wanted:
        return []
    by_id = [item for item in items if wanted in (item.id, item.id.removeprefix("durable-"))]
    active = [item for item in items if item.active]
    by_key = [item for item in active if item.facets.key == wanted]
    return by_id or by_key or [item for item in active if matches(item.text, wanted)]


def find_one(items: Collection[Item], wanted: str) -> list[Item]:
    """The items that a person names who means one: a text that is exactly an item's names no longer one."""
    found = find(items, wanted)
    return [item for item in found if normalise(item.text) == normalise(wanted)] or found


# "notes/plan.old" and "ann@x.org" are one word each, so that "notes/plan" and "x.org" are not in them.
_WHOLE_WORD = re.compile(r"\w+(?:[-+.,:/@#&'’]\w+)*")


def spaced(text: str) -> str:
    """A text's words, each between two spaces: another text has it within if it has this within."""
    return f" {' '.join(_WHOLE_WORD.findall(normalise(text)))} "


_WORDS = re.compile(r"[-+]?\d+(?:[.,:/]\d+)*|[^\W\d]\w*|\w+|[^\w\s]")
_SENTENCE = re.compile(r"[.,;:!…\"“”„«»()]")
_LEAD = re.compile(r"^(?:the )?user(?:['’]s)?\s+", re.IGNORECASE)
_ARTICLES = frozenset({"a", "an", "the"})


def says_the_same(text: str, other: str) -> bool:
    """Whether two texts are the same sentence but for case, articles, "User" and the signs of sentences.

    Every other word, number and sign counts, and their order: two true things must never be taken for one.
    """
    return _sentence(text) == _sentence(other)


def kept_words(item: Item, text: str, *, named: bool) -> str:
    """The words that an item has after a model's proposal: its own if the proposal says the same.

    Of an inferred item that the model `named`, it may correct the words.
    """
    corrects = named and item.facets.author == "inferred"
    return item.text if not corrects and says_the_same(item.text, text) else text


def one_saying(items: Iterable[Item], kind: Kind, text: str) -> Item | None:
    """The active item of a kind that says the same as a text; of several the newest."""
    wanted = _sentence(text)
    if not wanted:
        return None
    least, most = sum(map(len, wanted)), len(text) + 20
    # Cutting thousands of items into words would hold up the event loop. Most of them lack one of these.
    alike = [
        item
        for item in items
        if item.active
        and item.kind == kind
        and least <= len(item.text) <= most
        and _has(item.text, wanted)
        and _sentence(item.text) == wanted
    ]
    return min(alike, key=by_newest, default=None)


def without_user(text: str) -> str:
    """An item's text without the "User" or "User's" that most begin with."""
    return _LEAD.sub("", collapse(text))


def _has(text: str, words: tuple[str, ...]) -> bool:
    plain = text.casefold()
    return all(word in plain for word in words)


def _sentence(text: str) -> tuple[str, ...]:
    """A text's words and signs, as far as they make a difference."""
    found = [one for one in _WORDS.findall(without_user(text)) if not _SENTENCE.fullmatch(one)]
    # A lower-case article before another word; "team a" and "vitamin A" keep theirs.
    return tuple(
        one.casefold()
        for place, one in enumerate(found)
        if one not in _ARTICLES or not (place + 1 < len(found) and found[place + 1][:1].isalnum())
    )
