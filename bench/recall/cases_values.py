"""A case: memories, a message, and what should be found. And what every generator of cases needs.

Cases are made from the texts `cases_*.toml` by seed, the same for the same seed. Nothing here knows a ranker.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

from bench.recall import times
from bench.recall.grammar import lines, read
from discoclaw.core.item import MANUAL, Facets, Item, new_item

Part: TypeAlias = Literal["develop", "final"]
PARTS: tuple[Part, ...] = get_args(Part)
SPLIT_SEED = 411
"""Decides which frames and fillers belong to which part. Another seed would mix the two parts."""
LETTERS_MISTYPED = 6
"""Shorter words are never mistyped: a reader could take them for other words."""


@dataclass(frozen=True, slots=True)
class Case:
    """A message, and what should be found for it among `items`.

    `must` are the ids of the items to find, `must_not` those that don't belong there. Ids in neither set are
    tolerated and count neither way. `first` is the id that has to come before all others, if there is one.
    If `must` is empty, nothing should be found. `frame` says from which texts the case was made, and
    `own_name` what the person who asks is called.
    """

    items: tuple[Item, ...]
    message: str
    now_ms: int
    must: frozenset[str]
    must_not: frozenset[str]
    first: str | None
    name: str
    frame: str
    own_name: str = "Somebody"


@dataclass(frozen=True, slots=True)
class Labelled:
    """The items of a case by label, before they are mixed."""

    must: Sequence[Item] = ()
    must_not: Sequence[Item] = ()
    tolerated: Sequence[Item] = ()
    first: Item | None = None


def mixed(labelled: Labelled, message: str, *, name: str, frame: str, dice: random.Random) -> Case:
    """The case, its items in random order. An item that has two labels keeps the first of them."""
    known: dict[str, Item] = {}
    labels: list[list[str]] = []
    for some in (labelled.must, labelled.tolerated, labelled.must_not):
        new = {item.id: item for item in some if item.id not in known}
        known.update(new)
        labels.append(list(new))
    items = sorted(known.values(), key=lambda item: item.id)
    dice.shuffle(items)
    first = labelled.first.id if labelled.first else None
    must, must_not = frozenset(labels[0]), frozenset(labels[2])
    return Case(tuple(items), message, times.NOW, must, must_not, first, name, frame)


def item_of(line: str, at_ms: int) -> Item:
    """The item of a line "kind: text ## tag, tag @@ key"; tags and key may be missing."""
    line, _, key = line.partition(" @@ ")
    line, _, tags = line.partition(" ## ")
    kind, _, text = line.partition(": ")
    if text.split()[0].isalpha():  # the name of a machine or a file keeps its case
        text = text[:1].upper() + text[1:]
    facets = Facets(key=key.strip() or None)
    return new_item(kind, text, source=MANUAL, now_ms=at_ms, tags=tags.split(","), facets=facets)


def items_of(texts: Iterable[str], dice: random.Random) -> list[Item]:
    """The items of lines, each of some day in the past three years."""
    return [item_of(line, some_time(dice)) for line in texts]


def some_time(dice: random.Random) -> int:
    """A moment in the past three years, in ms since 1970."""
    return times.ms_of(times.some_day(dice), dice.randrange(7, 23))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with `{name}` replaced by the value of that name. Other braces stay."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def frames(file: str, part: Part, *, table: str = "frame") -> list[dict[str, Any]]:
    """The frames of a file that belong to a part: half of those of each language and shape."""
    by_language: dict[str, list[dict[str, Any]]] = {}
    for frame in read(file)[table]:
        shape = frame.get("like", "part" in frame)
        group = f"{frame.get('lang', 'en')} {frame.get('both', False)} {shape}"
        by_language.setdefault(group, []).append(frame)
    found = []
    for number, (group, some) in enumerate(sorted(by_language.items())):
        random.Random(f"{SPLIT_SEED} {file} {group}").shuffle(some)
        found += some[(PARTS.index(part) + number) % 2 :: 2]
    return found


def half(texts: Sequence[str], part: Part, seed: str) -> list[str]:
    """The half of the texts that belongs to a part."""
    some = list(texts)
    random.Random(f"{SPLIT_SEED} {seed}").shuffle(some)
    return some[PARTS.index(part) :: 2]


def rows(frame: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rows of a frame's table, by column. Raises ValueError if a row has too few or too many cells."""
    names = frame["cols"].split()
    cells = [[cell.strip() for cell in row.split(";")] for row in lines(frame["rows"])]
    return [dict(zip(names, row, strict=True)) for row in cells]


@dataclass(frozen=True, slots=True)
class Topic:
    """Memories about one topic, and sentences that mention it in passing."""

    name: str
    items: tuple[str, ...]
    said: tuple[str, ...]


@cache
def topics(part: Part) -> tuple[Topic, ...]:
    """Each topic, with the half of its memories and sentences that belongs to a part."""
    return tuple(
        Topic(
            entry["name"],
            tuple(half(lines(entry["items"]), part, f"items {entry['name']}")),
            tuple(half(lines(entry["said"]), part, f"said {entry['name']}")),
        )
        for entry in read("cases_shared")["topic"]
    )


def background(part: Part, without: Iterable[str], count: int, dice: random.Random) -> list[Item]:
    """At most `count` memories about other topics than those."""
    skipped = set(without)
    texts = [text for topic in topics(part) if topic.name not in skipped for text in topic.items]
    return items_of(dice.sample(texts, min(count, len(texts))), dice)


def among_others(
    message: str, part: Part, without: Iterable[str], dice: random.Random
) -> tuple[str, set[str]]:
    """The message between sentences about five other topics, and the names of these topics."""
    skipped = set(without)
    others = dice.sample([topic for topic in topics(part) if topic.name not in skipped], 5)
    sentences = [dice.choice(topic.said) for topic in others]
    if "_" not in message.split()[0]:  # the name of a key keeps its case
        message = message[:1].upper() + message[1:]
    sentences.insert(dice.randrange(len(sentences) + 1), message if message[-1] in ".?!" else f"{message}.")
    return " ".join(sentences), {topic.name for topic in others}


def mistyped(message: str, name: str, dice: random.Random) -> str | None:
    """The message with a typo in the longest word of a name; None if it has no long word of it."""
    words = sorted(re.findall(r"[^\W\d_]+", name), key=lambda word: (-len(word), word))
    found = (word for word in words if len(word) >= LETTERS_MISTYPED and word in message)
    if (word := next(found, None)) is None:
        return None
    at = dice.choice([n for n in range(1, len(word) - 2) if word[n] != word[n + 1]])
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return message.replace(word, dice.choice((swapped, word[:at] + word[at + 1 :])))


def numbered(kind: str, part: Part, made: Iterator[Case]) -> tuple[Case, ...]:
    """The cases, each with a name that says its kind, part, number and variant."""
    return tuple(
        replace(one, name=f"{kind}/{part}/{number:03} {one.frame}: {one.name}")
        for number, one in enumerate(made)
    )
