"""Cases from frames, about names, weak clues, replaced facts, messages that ask for nothing, and standing
preferences; and cases of people, written by hand (`cases_people`).

`cases("names", "develop")` are for developing a ranker. The part "final" is run once, at the end. The parts
have no frame, and hardly any vocabulary, in common.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from bench.recall import cases_people, times
from bench.recall.cases_values import (
    PARTS,
    Case,
    Labelled,
    Part,
    among_others,
    background,
    filled,
    frames,
    half,
    item_of,
    items_of,
    mistyped,
    mixed,
    numbered,
    rows,
)
from bench.recall.grammar import lines, read
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


# ----------------------------------------------------------------------
# Cases where nothing is asked for, and cases of standing preferences, of which only a few are relevant.

FEW, MANY = 12, 60
"""How many memories about other topics a person has for whom nothing should be found."""
PREFERENCES = 60
LONG = 2_000
"""Characters of a long message, about."""
PASSAGES = 4
"""How many domains a long message concerns."""
LONG_EACH = 3
"""How many long messages start from each domain."""


def nothing(part: Part) -> Iterator[Case]:
    """Messages for which nothing should be found, among memories that share common words with them."""
    for frame in frames("cases_nothing", part):
        for text in lines(frame["ask"]):
            for count in (FEW, MANY):
                dice = random.Random(f"nothing {text} {count}")
                items = items_of(lines(frame["near"]), dice)
                items += background(part, frame["topic"].split(), count - len(items), dice)
                message = text.replace("⏎", "\n")
                name = f"among {count}"
                yield mixed(Labelled(must_not=items), message, name=name, frame=frame["name"], dice=dice)


def preferences(part: Part) -> Iterator[Case]:
    """Short and long messages, and 60 preferences, of which those of the message's domains are relevant."""
    domains = frames("cases_preferences", part, table="domain")
    for domain in domains:
        for message in lines(domain["short"]):
            dice = random.Random(f"preferences {domain['name']} {message}")
            yield _standing([domain], domains, message, part, "short", dice)
        for number in range(LONG_EACH):
            dice = random.Random(f"preferences {domain['name']} {number}")
            chosen = _apart(domain, domains, dice)
            message = _long([_passage(one, dice) for one in chosen], part, dice)
            yield _standing(chosen, domains, message, part, "long", dice)


def _apart(
    domain: dict[str, Any], domains: Sequence[dict[str, Any]], dice: random.Random
) -> list[dict[str, Any]]:
    """The domain and a few others that have nothing in common with it or each other."""
    chosen = [domain]
    for other in dice.sample(domains, len(domains)):
        if len(chosen) < PASSAGES and not any(_close(other, one) for one in chosen):
            chosen.append(other)
    return chosen


def _close(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return not set(one["near"].split()).isdisjoint(other["near"].split())


def _passage(domain: dict[str, Any], dice: random.Random) -> str:
    """What a long message says about a domain: its passage, or now and then one of its short messages."""
    text: str = dice.choice(lines(domain["told"]) * 4 + lines(domain["short"]))
    return text[:1].upper() + text[1:] + ("" if text[-1] in ".?!？。" else ".")


def _long(told: list[str], part: Part, dice: random.Random) -> str:
    """The passages in padding, about 2,000 characters. The passages stay in their order."""
    padding = half(lines(read("cases_preferences")["padding"]), part, "padding")
    dice.shuffle(padding)
    sentences = list(told)
    for sentence in padding:
        if sum(len(one) + 1 for one in sentences) + len(sentence) > LONG:
            break
        sentences.insert(dice.randrange(len(sentences) + 1), sentence)
    return " ".join(sentences)


def _standing(
    chosen: Sequence[dict[str, Any]],
    domains: Sequence[dict[str, Any]],
    message: str,
    part: Part,
    name: str,
    dice: random.Random,
) -> Case:
    """A case of 60 preferences; none of them is about a domain close to the chosen ones."""
    texts = read("cases_preferences")
    must = items_of([line for one in chosen for line in lines(one["prefs"])], dice)
    always = items_of(half(lines(texts["always"]), part, "always"), dice)
    noise = [
        line
        for other in domains
        if not any(_close(other, one) for one in chosen)
        for line in lines(other["prefs"])
    ]
    noise += half(lines(texts["more"]), part, "more")
    rest = PREFERENCES - len(must) - len(always)
    must_not = items_of(dice.sample(noise, min(rest, len(noise))), dice)
    labelled = Labelled(must=must, must_not=must_not, tolerated=always)
    frame = " + ".join(one["name"] for one in chosen)
    return mixed(labelled, message, name=name, frame=frame, dice=dice)


# ----------------------------------------------------------------------
# All kinds.

MAKERS: Mapping[str, Callable[[Part], Iterator[Case]]] = MappingProxyType(
    {
        "names": names,
        "clues": clues,
        "replaced": replaced,
        "nothing": nothing,
        "preferences": preferences,
        **cases_people.MAKERS,
    }
)
KINDS = tuple(MAKERS)
OF_PEOPLE = cases_people.KINDS
FRAMED = tuple(kind for kind in KINDS if kind not in OF_PEOPLE)
"""The kinds that are made from frames."""


@cache
def cases(kind: str, part: Part) -> Sequence[Case]:
    """The cases of a kind that belong to a part. Raises KeyError for an unknown kind or part."""
    if part not in PARTS:
        raise KeyError(part)
    return numbered(kind, part, MAKERS[kind](part))
