"""Conversations of two or three people over many days, and what is asked about them.

A conversation is scenes of talk with small talk between them, in sessions. The turn that answers a question
often repeats none of its words, while the turn before it does; people mistype; some tell things in other
languages.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

from bench.recall import data, times
from bench.recall.data import Talk, Turn
from bench.recall.data_items import languages_of
from bench.recall.frames import Drawer, names_for
from bench.recall.grammar import Filler, decide, fill, fillers, half_of, halved, lines, read, slots
from bench.recall.words import mistype

TALKS = 8
SESSIONS = 22
SCENES = 100
MISTYPED = 0.05
"""The share of turns with a slip in them."""
SEASONED = 0.25
"""The share of turns with a filler word before or behind."""
INTERRUPTED = 0.12
"""How often somebody throws something in before an answer."""
ECHOED = 0.35
"""How often an answer repeats what it is about: "The tent? Under the stairs"."""
TWICE = 0.7
"""How often somebody tells a second time what can change."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of talk: each take a way it went, `ask` the questions about who has the role A."""

    name: str
    takes: tuple[str, ...]
    ask: tuple[str, ...]
    key: tuple[str, ...]
    times: int
    all: str
    month: str
    label: str
    changes: bool


@dataclass(slots=True)
class Played:
    """A scene as it went. `answers` are ids of turns that answer, `named` of the one that names its key."""

    scene: Scene
    who: str
    values: dict[str, Filler]
    answers: list[str] = field(default_factory=list)
    named: str = ""
    at_ms: int = 0


@dataclass(slots=True)
class Stage:
    """A conversation in the making. `spoken` are things told in a language: (language, texts, who, turn)."""

    number: int
    half: int
    dice: random.Random
    speakers: list[str]
    turns: list[Turn] = field(default_factory=list)
    played: list[Played] = field(default_factory=list)
    spoken: list[tuple[str, list[str], str, str]] = field(default_factory=list)
    now_ms: int = 0

    def say(self, speaker: str, text: str) -> str:
        """One more turn, a little later; its id."""
        if self.dice.random() < SEASONED:
            text = _seasoned(text, self.dice)
        if self.dice.random() < MISTYPED:
            text = mistype(text, self.dice)
        self.now_ms += self.dice.randrange(5, 180) * 1000
        name = f"t{self.number}-{len(self.turns):04}"
        self.turns.append(Turn(name, speaker, text, self.now_ms))
        return name


@cache
def scenes() -> tuple[Scene, ...]:
    """Every kind of talk."""
    return tuple(_scene(entry) for name in ("talk_days", "talk_things") for entry in read(name)["scene"])


def _scene(entry: dict[str, Any]) -> Scene:
    return Scene(
        name=entry["name"],
        takes=tuple(entry["takes"]),
        ask=tuple(lines(entry["ask"])),
        key=tuple(entry.get("key", ())),
        times=entry.get("times", 1),
        all=entry.get("all", ""),
        month=entry.get("month", ""),
        label=entry.get("label", ""),
        changes=entry.get("changes", False),
    )


def stage(seed: int, number: int) -> Stage:
    """Conversation `number` of a seed, played."""
    dice = random.Random(f"talk {seed} {number}")
    half = half_of(seed)
    names = [one.text for sex in ("female", "male") for one in halved(sex, half)]
    set_up = Stage(number, half, dice, dice.sample(names, 2 + number % 2))
    drawer = Drawer(half, dice)
    script = _script(set_up, drawer)
    told = _told(set_up, number)
    gaps = [dice.randrange(3, 28) for _ in range(SESSIONS)]
    day = times.TODAY - timedelta(days=sum(gaps) + dice.randrange(1, 5))
    for session, gap in enumerate(gaps):
        day += timedelta(days=gap)
        set_up.now_ms = times.ms_of(day, dice.randrange(7, 22))
        _small(set_up, "open")
        for scene, who, values in script[session::SESSIONS]:
            _play(set_up, scene, who, values)
            for _ in range(dice.randrange(0, 3)):
                _small(set_up, "between")
        for language, texts, who in told[session::SESSIONS]:
            said = set_up.say(who, decide(texts[1], dice))
            set_up.spoken.append((language, texts, who, said))
            _small(set_up, "between")
        _small(set_up, "close")
    return set_up


def as_talk(set_up: Stage, questions: tuple[data.Question, ...]) -> Talk:
    name = f"talk {set_up.number + 1}"
    return Talk(name, tuple(set_up.speakers), tuple(set_up.turns), questions)


def _script(set_up: Stage, drawer: Drawer) -> list[tuple[Scene, str, dict[str, Filler]]]:
    """Who plays which scenes, in the order they come. What changes comes twice for some."""
    dice = set_up.dice
    found = []
    for scene in scenes():
        for who in set_up.speakers:
            again = 1 if scene.changes and not scene.key and dice.random() < TWICE else 0
            found += [(scene, who)] * (scene.times + again)
    dice.shuffle(found)
    found.sort(key=lambda one: bool(one[0].key))  # what comes once for each speaker is never left out
    script: list[tuple[Scene, str, dict[str, Filler]]] = []
    for scene, who in found:
        if len(script) < SCENES and (values := _key(scene, who, drawer, script)) is not None:
            script.append((scene, who, values))
    dice.shuffle(script)
    return script


def _key(
    scene: Scene, who: str, drawer: Drawer, script: list[tuple[Scene, str, dict[str, Filler]]]
) -> dict[str, Filler] | None:
    """Values for what a question has to name, clear among what this speaker plays; None without any."""
    if scene.key == ("rel",):
        taken = {values["rel"].text for one, name, values in script if name == who and "rel" in values}
        free = [one for one in fillers("relation") if one.text not in taken]
        return {"rel": drawer.dice.choice(free)} if free else None
    if not all(drawer.has(slot) for slot in scene.key):
        return None
    return {slot: drawer.draw(slot) for slot in scene.key}


def _told(set_up: Stage, number: int) -> list[tuple[str, list[str], str]]:
    """Things that one of the speakers tells in one of two languages; each half has its own."""
    spoken = list(data.LANGUAGES)
    both = (spoken[(2 * number) % len(spoken)], spoken[(2 * number + 1) % len(spoken)])
    told = []
    for language, who in zip(both, set_up.speakers, strict=False):
        told += [(language, texts, who) for texts in languages_of(language)]
    set_up.dice.shuffle(told)
    return told


def _play(set_up: Stage, scene: Scene, who: str, given: dict[str, Filler]) -> None:
    dice = set_up.dice
    others = [name for name in set_up.speakers if name != who]
    roles = {"A": who, "B": others[0], "C": others[-1]}
    played = Played(scene, who, dict(given), at_ms=set_up.now_ms)
    for line in lines(scene.takes[set_up.half]):
        role, _, template = line.partition(": ")
        template = decide(template, dice)
        if role.endswith("*") and dice.random() < INTERRUPTED:
            set_up.say(dice.choice(others), dice.choice(lines(read("talk_small")["thrown_in"])))
        for slot in slots(template):
            if slot not in played.values:
                played.values[slot] = _value(slot, set_up, played.values)
        text = fill(template, played.values, dice)
        if role.endswith("*") and scene.key and dice.random() < ECHOED:
            text = f"{played.values[scene.key[0]].text}? {text}"
        said = set_up.say(roles[role[0]], text)
        if role.endswith("*"):
            played.answers.append(said)
        if not played.named and set(scene.key) & set(slots(template)):
            played.named = said
    set_up.played.append(played)


def _value(slot: str, set_up: Stage, values: dict[str, Filler]) -> Filler:
    dice = set_up.dice
    match slot:
        case "name":
            return dice.choice(halved(names_for(values["rel"], dice), set_up.half))
        case "price":
            return Filler(f"{dice.choice((12, 30, 75, 140, 260, 480)) + dice.randrange(9)} euros")
        case "port":
            return Filler(str(dice.randrange(3000, 9999)))
        case "day":
            return Filler(times.yearly(dice))
        case _:
            return dice.choice(halved(slot, set_up.half))


def _small(set_up: Stage, name: str) -> None:
    """Some small talk, among whoever is there."""
    dice = set_up.dice
    turns = decide(dice.choice(lines(read("talk_small")[name])), dice).split(" / ")
    order: Iterator[str] = iter(dice.sample(set_up.speakers, len(set_up.speakers)) * 2)
    for text in turns:
        set_up.say(next(order), text)


def _seasoned(text: str, dice: random.Random) -> str:
    words = read("talk_small")
    if dice.random() < 0.5:
        return f"{dice.choice(lines(words['ahead']))} {text}"
    return f"{text} {dice.choice(lines(words['behind']))}"
