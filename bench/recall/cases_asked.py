"""Cases that ask for something: names among look-alikes, several weak clues, and facts replaced over time."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.recall import times
from bench.recall.cases_values import (
    Case,
    Labelled,
    Part,
    among_others,
    background,
    filled,
    frames,
    item_of,
    items_of,
    mistyped,
    mixed,
    rows,
)
from bench.recall.grammar import lines
from discoclaw.core.item import Item

FEWEST_OTHERS, MOST_OTHERS = 20, 45
"""How many memories about other topics lie around those of a case."""
LONGEST_SERIES = 5
OTHER_FACTS = 8
"""How many facts about the same person, from other frames, lie around a series."""


def names(part: Part) -> Iterator[Case]:
    """Names in full, in part and mistyped, in short messages and in long ones, among look-alikes."""
    for frame in frames("cases_names", part):
        for row in rows(frame):
            column = frame["cols"].split()[0]
            dice = random.Random(f"names {frame['name']} {row[column]}")
            asks = [filled(ask, row) for ask in lines(frame["ask"])]
            for ask in asks:
                yield _named(frame, row, ask, part, "in full", dice)
            for ask in lines(frame.get("part", "")):
                yield _named(frame, row, filled(ask, row), part, "in part", dice)
            wrong = mistyped(asks[0], row[column], dice) if frame.get("typos", True) else None
            if wrong:
                yield _named(frame, row, wrong, part, "mistyped", dice)
            if _english(frame):
                yield _named(frame, row, asks[-1], part, "among six topics", dice)


def clues(part: Part) -> Iterator[Case]:
    """Messages that share only common words with what answers them."""
    for frame in frames("cases_clues", part):
        for row in rows(frame):
            dice = random.Random(f"clues {frame['name']} {sorted(row.values())}")
            asks = [filled(ask, row) for ask in lines(frame["ask"])]
            for ask in asks:
                yield _named(frame, row, ask, part, "alone", dice)
            if _english(frame):
                yield _named(frame, row, dice.choice(asks), part, "among six topics", dice)
            else:
                yield _named(frame, row, " ".join(asks), part, "asked twice", dice)


def replaced(part: Part) -> Iterator[Case]:
    """Facts that replace each other, where the newest counts, and facts that are true together."""
    for frame in frames("cases_replaced", part):
        dice = random.Random(f"replaced {frame['name']}")
        values = [value.strip() for value in frame["values"].split(";")]
        most = min(LONGEST_SERIES, len(values) - ("{x}" in frame["near"]), frame.get("most", LONGEST_SERIES))
        for length in range(2, most + 1):
            for ask in lines(frame["ask"]):
                yield _series(frame, _order(frame, values, length, dice), length, ask, part, dice)
        for ask in lines(frame.get("before", "")):
            for length in range(2, most + 1):
                order = _order(frame, values, length, dice)
                yield _series(frame, order, length, ask, part, dice, every=True)


def _order(frame: Mapping[str, Any], values: Sequence[str], length: int, dice: random.Random) -> list[str]:
    """The values in random order; the first `length` of them fall if the frame's values rise over time."""
    order = dice.sample(values, len(values))
    if frame.get("rising"):
        order[:length] = sorted(order[:length], key=values.index, reverse=True)
    return order


def _other_facts(frame: Mapping[str, Any], part: Part, dice: random.Random) -> list[Item]:
    """What the frames of other topics say about the same person: one fact each."""
    topics = set(frame["topic"].split())
    others = [one for one in frames("cases_replaced", part) if topics.isdisjoint(one["topic"].split())]
    texts = []
    for other in dice.sample(others, min(OTHER_FACTS, len(others))):
        value = dice.choice(other["values"].split(";")).strip()
        texts.append(filled(dice.choice(lines(other["said"])), {"v": value}))
    return items_of(texts, dice)


def _english(frame: Mapping[str, Any]) -> bool:
    return "lang" not in frame


def _named(
    frame: Mapping[str, Any], row: Mapping[str, str], message: str, part: Part, name: str, dice: random.Random
) -> Case:
    """A case of one row. The other rows' answers are look-alikes, unless the frame says otherwise."""
    avoided = set(frame["topic"].split())
    if name == "among six topics":
        message, others = among_others(message, part, avoided, dice)
        avoided |= others
    count = dice.randrange(FEWEST_OTHERS, MOST_OTHERS + 1)
    must_not = background(part, avoided, count, dice)
    must_not += items_of([filled(line, row) for line in lines(frame.get("never", ""))], dice)
    if frame.get("siblings", True):
        must_not += items_of([filled(frame["must"], other) for other in rows(frame) if other != row], dice)
    near = items_of([filled(line, row) for line in lines(frame.get("near", ""))], dice)
    in_part = name == "in part"
    labelled = Labelled(
        must=items_of([filled(frame["must"], row)], dice),
        must_not=must_not if in_part else must_not + near,
        tolerated=near if in_part else (),
    )
    return mixed(labelled, message, name=name, frame=frame["name"], dice=dice)


def _series(
    frame: Mapping[str, Any],
    order: Sequence[str],
    length: int,
    message: str,
    part: Part,
    dice: random.Random,
    *,
    every: bool = False,
) -> Case:
    """A case of the first `length` values, the newest first. `every`: the older ones have to be found too."""
    both = frame.get("both", False)
    at = times.NOW - dice.randrange(2, 200) * times.DAY - dice.randrange(times.DAY)
    series = []
    for value in order[:length]:
        series.append(item_of(filled(dice.choice(lines(frame["said"])), {"v": value}), at))
        at -= dice.randrange(12, 220) * times.DAY
    near = items_of([filled(line, {"x": order[-1]}) for line in lines(frame["near"])], dice)
    near += _other_facts(frame, part, dice)
    count = dice.randrange(FEWEST_OTHERS, MOST_OTHERS + 1)
    wanted = series if both or every else series[:1]
    labelled = Labelled(
        must=wanted,
        must_not=near + background(part, frame["topic"].split(), count, dice),
        tolerated=() if wanted is series else series[1:],
        first=series[0] if len(wanted) == 1 else None,
    )
    name = f"{length} true together" if both else f"all of {length}" if every else f"newest of {length}"
    return mixed(labelled, message, name=name, frame=frame["name"], dice=dice)
