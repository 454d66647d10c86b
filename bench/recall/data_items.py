"""People with about 250 items each, as an extraction writes them, and crowds of items for latency.

A person lacks a few kinds of facts, so that there is something to ask that nobody told. Facts that change
leave their older version behind: mostly deprecated, sometimes still active and merely older.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from bench.recall import times
from bench.recall.frames import CAST, Drawer, Fact, Frame, cast_of, frames, make_fact
from bench.recall.grammar import Filler, decide, half_of, read
from discoclaw.core.item import MANUAL, Facets, Item, new_item

MAY_LACK = frozenset(
    """flat born vehicle colour drink fear collects vet sleep doctor meeting commute studied own_music
    volunteers won editor_pref""".split()  # noqa: SIM905 - names are read as names
)
LACKING = 5
LEFT_OLD = 0.45
"""Of the facts that can change, the share that has an older version."""
STILL_ACTIVE = 0.25
"""Of these, the share that nobody deprecated."""


@dataclass(slots=True)
class Life:
    """All that is known of a made-up person while questions are thought up.

    `older` leads from an item's id to the older version it replaced; `lacking` are the frames of which
    nothing is known; `spoken` are the facts in other languages as (language, texts, id); `senses` pairs of
    an item's id and a message that uses its word otherwise.
    """

    half: int
    drawer: Drawer
    cast: list[tuple[Filler, Filler]]
    facts: list[Fact] = field(default_factory=list)
    older: dict[str, Item] = field(default_factory=dict)
    lacking: list[Frame] = field(default_factory=list)
    spoken: list[tuple[str, list[str], Item]] = field(default_factory=list)
    senses: list[tuple[Item, str]] = field(default_factory=list)

    def items(self) -> list[Item]:
        """Every item, as a view has them: in no order that means something."""
        every = [fact.item for fact in self.facts] + list(self.older.values())
        every += [item for *_, item in self.spoken] + [item for item, _ in self.senses]
        return sorted(every, key=lambda item: item.id)


def live(seed: int, number: int, languages: list[str]) -> Life:
    """Person `number` of a seed, who also speaks `languages`."""
    dice = random.Random(f"items {seed} {number}")
    drawer = Drawer(half_of(seed), dice)
    life = Life(half_of(seed), drawer, cast_of(drawer))
    single = [frame for frame in frames() if frame.name in MAY_LACK]
    life.lacking = dice.sample(single, LACKING)
    for frame in frames():
        if frame not in life.lacking:
            life.facts += _facts(frame, life)
    life.facts = _unlike(life.facts)
    for fact in life.facts:
        if fact.frame.changes and dice.random() < LEFT_OLD:
            _leave_older(fact, life)
    for language in languages:
        _speak(language, life)
    for kind, text, other in dice.sample(read("lists_must_not")["senses"][life.half :: 2], 5):
        life.senses.append((_plain(kind, text, dice), other))
    _link(life)
    return life


def crowd(count: int, seed: int) -> list[Item]:
    """`count` different items of one person, for latency; more than anybody's life has kinds of facts for."""
    dice = random.Random(f"crowd {seed} {count}")
    made: dict[str, Item] = {}
    while len(made) < count:
        drawer = Drawer(len(made) % 2, dice)
        cast = cast_of(drawer)
        for frame in frames():
            for number in range(frame.times):
                given = dict(zip(("rel", "name"), cast[number % len(cast)], strict=True))
                item = make_fact(frame, drawer, cast, given=given).item
                made[item.id] = item
    return list(made.values())[:count]


def _facts(frame: Frame, life: Life) -> list[Fact]:
    """As many facts of one kind as somebody has."""
    made = []
    people = life.drawer.dice.sample(life.cast, min(frame.times, len(life.cast)))
    for number in range(frame.times):
        given: dict[str, Filler] = {}
        if CAST & set(frame.key):
            given = dict(zip(("rel", "name"), people[number], strict=True))
        elif frame.of:
            things = [fact.values for fact in life.facts if fact.frame.name == frame.of]
            if number >= len(things):
                break
            given = {slot: things[number][slot] for slot in frame.key}
        elif not all(life.drawer.has(slot) for slot in frame.key):
            break
        made.append(make_fact(frame, life.drawer, life.cast, given=given))
    return made


def _unlike(facts: list[Fact]) -> list[Fact]:
    return list({fact.item.id: fact for fact in facts}.values())


def _leave_older(fact: Fact, life: Life) -> None:
    """Leave behind what was true before, said in other words or the same."""
    dice = life.drawer.dice
    same = {slot: fact.values[slot] for slot in (*fact.frame.key, "rel", "name") if slot in fact.values}
    old = make_fact(fact.frame, life.drawer, life.cast, given=same, before=_learned_on(fact.item)).item
    if old.id == fact.item.id:
        return
    if dice.random() >= STILL_ACTIVE:
        old = replace(old, status="deprecated", updated_at=fact.item.created_at)
    life.older[fact.item.id] = old


def _learned_on(item: Item) -> date:
    return datetime.fromtimestamp(item.created_at / 1000, UTC).date()


def _speak(language: str, life: Life) -> None:
    dice = life.drawer.dice
    for texts in languages_of(language):
        life.spoken.append((language, texts, _plain("fact", decide(texts[0], dice), dice)))


def languages_of(language: str) -> list[list[str]]:
    """The facts of a language: as an item, as said, two questions, a question about {A}."""
    found: list[list[str]] = {**read("languages_west"), **read("languages_east")}[language]
    return found


def _plain(kind: str, text: str, dice: random.Random) -> Item:
    at = times.ms_of(times.some_day(dice), dice.randrange(7, 23))
    return new_item(kind, text, source=MANUAL, now_ms=at, facets=Facets())


def _link(life: Life) -> None:
    """Link what is about the same person, as the model's tools do for some; a few items are touched later."""
    dice = life.drawer.dice
    groups: dict[str, list[int]] = defaultdict(list)
    for number, fact in enumerate(life.facts):
        if "name" in fact.values:
            groups[fact.values["name"].text].append(number)
    for numbers in groups.values():
        if len(numbers) > 1 and dice.random() < 0.5:
            for one, other in (numbers[:2], numbers[1::-1]):
                _add_link(life, one, life.facts[other].item.id)
    for number, fact in enumerate(life.facts):
        if dice.random() < 0.12:
            newest = times.NOW - dice.randrange(14 * times.DAY)
            later = fact.item.updated_at + dice.randrange(1, 300) * times.DAY
            item = replace(fact.item, updated_at=max(fact.item.updated_at, min(later, newest)))
            life.facts[number] = replace(fact, item=item)


def _add_link(life: Life, number: int, other_id: str) -> None:
    fact = life.facts[number]
    facets = replace(fact.item.facets, links=fact.item.facets.links | {other_id})
    life.facts[number] = replace(fact, item=replace(fact.item, facets=facets))
