"""Kinds of facts, read from the texts, and single facts made of them. Knows nothing about questions' kinds.

A frame is one kind of fact with its phrasings and those of its questions. The first questions of a frame
belong to its phrasings one by one; those behind them fit every phrasing.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from typing import Any

from bench.recall import times
from bench.recall.grammar import Filler, decide, dress, fill, fillers, halved, lines, read, slots
from discoclaw.core.item import MANUAL, Facets, Item, Source, new_item

FILES = ("items_home", "items_people", "items_body", "items_work", "items_play")
CAST = frozenset({"rel", "name"})
DRESSED = 0.25
"""How often an extraction adds something to a fact."""
TAGGED = 0.85
"""How often an extraction thinks of the aliases."""
_WOMEN = frozenset({"sister", "mother", "grandmother", "aunt", "niece", "wife", "daughter", "mother-in-law"})
_MEN = frozenset({"brother", "father", "grandfather", "uncle", "nephew", "husband", "son"})


@dataclass(frozen=True, slots=True)
class Frame:
    """One kind of fact. `key` are the slots without which a question about it is ambiguous.

    `of` names the frame whose things it says more about: their keys are its keys.
    """

    name: str
    kind: str
    facts: tuple[str, ...]
    ask: tuple[str, ...]
    key: tuple[str, ...]
    all: str
    times: int
    tags: str
    label: str
    group: str
    changes: bool
    private: float
    of: str

    @property
    def single(self) -> bool:
        return not self.key and not self.all

    def asks(self, fact: int, half: int) -> list[str]:
        """The questions that a half may ask about an item made of phrasing number `fact`."""
        own = len(self.facts)
        return [
            text
            for number, text in enumerate(self.ask)
            if number % 2 == half and (number >= own or number == fact)
        ]


@cache
def frames() -> tuple[Frame, ...]:
    """Every kind of fact."""
    return tuple(_frame(entry) for name in FILES for entry in read(name)["frame"])


def _frame(entry: Mapping[str, Any]) -> Frame:
    return Frame(
        name=entry["name"],
        kind=entry["kind"],
        facts=tuple(lines(entry["facts"])),
        ask=tuple(lines(entry["ask"])),
        key=tuple(entry.get("key", ())),
        all=entry.get("all", ""),
        times=entry.get("times", 1),
        tags=entry.get("tags", ""),
        label=entry.get("label", ""),
        group=entry.get("group", entry["name"]),
        changes=entry.get("changes", False),
        private=entry.get("private", 0.06),
        of=entry.get("of", ""),
    )


@dataclass(slots=True)
class Drawer:
    """Draws fillers, each at most once for a person while there are others."""

    half: int
    dice: random.Random
    left: dict[str, list[Filler]] = field(default_factory=dict)

    def draw(self, name: str) -> Filler:
        """A filler that was not drawn before; when all were, any of the half."""
        if not self.left.get(name):
            if name in self.left:
                return self.dice.choice(halved(name, self.half))
            self.left[name] = self.dice.sample(halved(name, self.half), len(halved(name, self.half)))
        return self.left[name].pop()

    def spare(self, name: str) -> list[Filler]:
        """The fillers of the half that were never drawn."""
        return self.left.get(name, halved(name, self.half))

    def has(self, name: str) -> bool:
        return name not in self.left or bool(self.left[name])


@dataclass(frozen=True, slots=True)
class Fact:
    """An item, and what it was made of. `day` is the one its text names, `exact` when with its day."""

    frame: Frame
    number: int
    values: dict[str, Filler]
    item: Item
    day: date | None = None
    exact: bool = False


def make_fact(
    frame: Frame,
    drawer: Drawer,
    cast: list[tuple[Filler, Filler]],
    *,
    given: Mapping[str, Filler] | None = None,
    before: date | None = None,
) -> Fact:
    """One fact. `given` are values it must have; `before` is a day on which it was already known."""
    dice = drawer.dice
    number = dice.choice(range(drawer.half, len(frame.facts), 2))
    template = decide(frame.facts[number], dice)
    day = times.some_day(dice) if before is None else before - timedelta(days=dice.randrange(60, 500))
    values, exact = dict(given or {}), dice.random() < 0.5
    wanted = dict.fromkeys([*slots(template), *slots(frame.tags), *frame.key])
    for slot in wanted:
        if slot not in values:
            values[slot] = _value(slot, drawer, cast, day, exact)
    text = fill(template, values, dice)
    if dice.random() < DRESSED:
        text = dress(text, "noted", drawer.half, dice)
    item = _item(frame, text[0].upper() + text[1:], values, day, drawer)
    dated = "when" in slots(template) or "date" in slots(template)
    return Fact(frame, number, values, item, day if dated else None, dated and (exact or "date" in wanted))


def _value(slot: str, drawer: Drawer, cast: list[tuple[Filler, Filler]], day: date, exact: bool) -> Filler:
    dice = drawer.dice
    match slot:
        case "rel0":
            rel, name = dice.choice([*cast[:1] * 10, *cast[1:2] * 6, *cast])  # some are in many stories
            return Filler(f"their {rel.text} {name.text}")
        case "when":
            return Filler(f"on {times.whole(day, dice)}" if exact else f"in {day:%B %Y}")
        case "date":
            return Filler(times.whole(day, dice))
        case "day":
            return Filler(times.yearly(dice))
        case "price":
            return Filler(
                str(dice.choice((9, 15, 24, 39, 55, 80, 129, 240, 399, 650, 1150)) + dice.randrange(9))
            )
        case "port":
            return Filler(str(dice.randrange(3000, 9999)))
        case _:
            return drawer.draw(slot)


def _item(frame: Frame, text: str, values: Mapping[str, Filler], day: date, drawer: Drawer) -> Item:
    dice = drawer.dice
    learned = min(times.ms_of(day + timedelta(days=dice.randrange(0, 20)), dice.randrange(7, 23)), times.NOW)
    private = "private" if dice.random() < frame.private else "normal"
    stated = "stated" if dice.random() < 0.3 else "inferred"
    return new_item(
        frame.kind,
        text,
        source=MANUAL if stated == "stated" else Source("discord", "100200300", str(learned)),
        now_ms=learned,
        tags=_tags(frame, values, drawer),
        facets=Facets(author=stated, sensitivity=private),  # type: ignore[arg-type]
    )


def _tags(frame: Frame, values: Mapping[str, Filler], drawer: Drawer) -> list[str]:
    """The aliases of what the item is about, and the frame's own tags."""
    tags: list[str] = []
    for entry in frame.tags.split(", ") if frame.tags else ():
        named = slots(entry)
        if not named:
            tags.append(entry)
        if drawer.dice.random() < TAGGED:
            tags += [alias for slot in named for alias in values[slot].aliases]
        tags += [word for word in entry.split() if "{" not in word and named]
    return tags


def cast_of(drawer: Drawer, relatives: int = 12, friends: int = 6) -> list[tuple[Filler, Filler]]:
    """The people around a person: who they are, and a name that nobody else has."""
    dice = drawer.dice
    relations = dice.sample(fillers("relation"), relatives) + [Filler("friend")] * friends
    return [(rel, drawer.draw(names_for(rel, dice))) for rel in relations]


def names_for(rel: Filler, dice: random.Random) -> str:
    """The list that a relation's name comes from."""
    if rel.text in _WOMEN:
        return "female"
    return "male" if rel.text in _MEN else dice.choice(("female", "male"))
