"""What is asked about conversations: questions with the turns that answer, and messages that want nothing."""

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from bench.recall import data
from bench.recall.data import Question, Talk
from bench.recall.data_asked import DRESSED, limit, plain_must_not, worse
from bench.recall.data_talk import TALKS, Played, Scene, Stage, as_talk, scenes, stage
from bench.recall.grammar import Filler, decide, dress, fill, halved, slots
from bench.recall.words import shares

MOST = 12
MOST_MUST_NOT = 7


def talks(seed: int) -> tuple[Talk, ...]:
    """The conversations of a seed, with their questions."""
    found = []
    for number in range(TALKS):
        set_up = stage(seed, number)
        dice = random.Random(f"talk asked {seed} {number}")
        asked = limit(_answered(set_up, dice), MOST, dice)
        asked += limit(_must_not(set_up, dice), MOST_MUST_NOT, dice)
        found.append(as_talk(set_up, tuple(asked)))
    return tuple(found)


def _answered(set_up: Stage, dice: random.Random) -> Iterator[Question]:
    last = {(played.scene.name, played.who): played for played in set_up.played}
    plain = []
    for played in set_up.played:
        if played.scene.key or last[played.scene.name, played.who] is played:
            plain += list(_about(set_up, played, dice))
    yield from plain
    yield from worse(plain, set_up.half, dice)
    yield from _together(set_up, dice)
    for language, texts, who, turn in set_up.spoken:
        text = texts[4].replace("{A}", who)
        yield Question(text, data.LANGUAGES[language], frozenset({turn}))


def _about(set_up: Stage, played: Played, dice: random.Random) -> Iterator[Question]:
    """Two questions about a scene, in the words of one half."""
    asks = played.scene.ask[set_up.half :: 2]
    values = {**played.values, "A": Filler(played.who)}
    for ask in dice.sample(asks, min(2, len(asks))):
        template = decide(ask, dice)
        if any(slot not in values for slot in slots(template)):
            continue
        text = fill(template, values, dice)
        kind = _kind(set_up, played, template, text)
        if dice.random() < DRESSED:
            text = dress(text, "asked", set_up.half, dice)
        yield Question(text, kind, frozenset(played.answers))


def _kind(set_up: Stage, played: Played, template: str, text: str) -> str:
    twice = [one for one in set_up.played if (one.scene, one.who) == (played.scene, played.who)]
    if played.scene.changes and not played.scene.key and len(twice) > 1:
        return data.CORRECTION
    if "~" in template and any(played.values[slot].aliases for slot in played.scene.key):
        return data.ALIAS
    if played.scene.label:
        return {"negation": data.NEGATION, "code": data.CODE}[played.scene.label]
    names = " ".join(set_up.speakers)
    numbers = [number for number, turn in enumerate(set_up.turns) if turn.id in played.answers]
    said = " ".join(set_up.turns[number].text for number in numbers)
    if found := shares(text, said, known=names):
        return data.EXACT if found == "exact" else data.INFLECTED
    near = [set_up.turns[number + step].text for number in numbers for step in (-1, 1)]
    return data.NEIGHBOUR if shares(text, " ".join(near), known=names) else data.NOTHING_SHARED


def _together(set_up: Stage, dice: random.Random) -> Iterator[Question]:
    """What several scenes answer together, and what only its month tells from others."""
    groups: dict[tuple[str, str], list[Played]] = defaultdict(list)
    for played in set_up.played:
        groups[played.scene.name, played.who].append(played)
    for (_, who), some in groups.items():
        scene = some[0].scene
        values = {"A": Filler(who)}
        if scene.all and 2 <= len(some) <= 4:
            text = fill(decide(scene.all, dice), values, dice)
            yield Question(text, data.MULTI, frozenset(one.named for one in some))
        if scene.month:
            yield from _in_months(scene, some, values, dice)


def _in_months(
    scene: Scene, some: list[Played], values: dict[str, Filler], dice: random.Random
) -> Iterator[Question]:
    months: dict[str, set[str]] = defaultdict(set)
    for one in some:
        months[f"{datetime.fromtimestamp(one.at_ms / 1000, UTC):%B %Y}"].add(one.named)
    for month, ids in months.items():
        text = fill(decide(scene.month, dice), {**values, "month": Filler(month)}, dice)
        yield Question(text, data.DATE, frozenset(ids))


def _must_not(set_up: Stage, dice: random.Random) -> Iterator[Question]:
    yield from plain_must_not(set_up.half, dice)
    said = " ".join(turn.text for turn in set_up.turns).lower()
    names = [one.text for sex in ("female", "male") for one in halved(sex, set_up.half)]
    strangers = [name for name in names if name not in set_up.speakers and name.lower() not in said]
    for scene in scenes():
        asks = [
            ask
            for ask in scene.ask[set_up.half :: 2]
            if "~" not in ask and set(slots(ask)) <= {"A", *scene.key}
        ]
        if not asks:
            continue
        ask = decide(dice.choice(asks), dice)
        if not scene.key:
            stranger = Filler(dice.choice(strangers))
            yield Question(fill(ask, {"A": stranger}, dice), data.OTHER_PERSON)
        elif scene.key != ("rel",) and scene.key[0] in slots(ask):
            spare = [one for one in halved(scene.key[0], set_up.half) if one.text.lower() not in said]
            if spare:
                values = {"A": Filler(dice.choice(set_up.speakers)), scene.key[0]: dice.choice(spare)}
                yield Question(fill(ask, values, dice), data.UNKNOWN_THING)
