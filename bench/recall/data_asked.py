"""What is asked about a made-up person: questions with their evidence, and messages that want nothing.

A question's kind comes from its frame where that says one, else from what it shares with its evidence.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator

from bench.recall import data, times
from bench.recall.data import Person, Question
from bench.recall.data_items import Life, live
from bench.recall.frames import Fact, frames
from bench.recall.grammar import Filler, decide, dress, fill, halved, lines, read, slots
from bench.recall.words import mistype, shares
from discoclaw.core.item import Item
from discoclaw.core.privacy import may_show

PEOPLE = 6
MOST = 12
"""At most so many questions of one kind a person; languages have one for each of their facts."""
MOST_MUST_NOT = 7
DRESSED = 0.4
"""How often a question has something around it."""


def people(seed: int) -> tuple[Person, ...]:
    """The people of a seed, with their items and questions."""
    spoken = list(data.LANGUAGES)
    found = []
    for number in range(PEOPLE):
        life = live(seed, number, spoken[number::PEOPLE])
        dice = random.Random(f"asked {seed} {number}")
        asked = limit(_answered(life, dice), MOST, dice) + limit(_must_not(life, dice), MOST_MUST_NOT, dice)
        found.append(Person(f"person {number + 1}", tuple(life.items()), tuple(asked)))
    return tuple(found)


def limit(questions: Iterable[Question], most: int, dice: random.Random) -> list[Question]:
    """At most `most` of each kind, each text once, in an order that says nothing."""
    kinds: dict[str, list[Question]] = defaultdict(list)
    for question in {question.text: question for question in questions}.values():
        kinds[question.kind].append(question)
    return [one for some in kinds.values() for one in dice.sample(some, min(most, len(some)))]


def _answered(life: Life, dice: random.Random) -> Iterator[Question]:
    plain = [question for fact in life.facts for question in _about_fact(life, fact, dice)]
    yield from plain
    yield from worse(plain, life.half, dice)
    yield from _several(life, dice)
    yield from _dated(life, dice)
    for number, (language, texts, item) in enumerate(life.spoken):
        text = decide(texts[2 + (number + life.half) % 2], dice)
        yield Question(text, data.LANGUAGES[language], frozenset({item.id}))


def _about_fact(life: Life, fact: Fact, dice: random.Random) -> Iterator[Question]:
    """Two questions about one fact."""
    unclear = "rel" in fact.values and fact.values["rel"].text == "friend"
    asks = [
        ask
        for ask in fact.frame.asks(fact.number, life.half)
        if "{name" in ask or not (unclear and "{rel" in ask)
    ]
    for ask in dice.sample(asks, min(2, len(asks))):
        template = decide(ask, dice)
        if any(slot not in fact.values for slot in slots(template)):
            continue
        text = fill(template, fact.values, dice)
        older = life.older.get(fact.item.id)
        forbidden = frozenset({older.id}) if older else frozenset()
        kind = _kind(life, fact, template, text)
        if dice.random() < DRESSED:
            text = dress(text, "asked", life.half, dice)
        yield Question(text, kind, frozenset({fact.item.id}), forbidden)


def _kind(life: Life, fact: Fact, template: str, text: str) -> str:
    labels = {"negation": data.NEGATION, "code": data.CODE}
    if fact.item.id in life.older:
        return data.CORRECTION
    if "~" in template and any(value.aliases for value in fact.values.values()):
        return data.ALIAS
    if fact.frame.label:
        return labels[fact.frame.label]
    if "{name}" in template:
        return data.NAME
    known = [fact.values[slot].text for slot in slots(template)]
    shared = shares(text, fact.item.text, known=" ".join(known))
    return {"exact": data.EXACT, "inflected": data.INFLECTED}.get(
        shared, data.PARAPHRASE if known else data.NOTHING_SHARED
    )


def worse(questions: list[Question], half: int, dice: random.Random) -> Iterator[Question]:
    """Some of the questions again, mistyped or in the middle of chatter."""
    texts = read("lists_must_not")
    sound = [one for one in questions if one.kind in (data.EXACT, data.INFLECTED, data.NAME, data.PARAPHRASE)]
    for one in dice.sample(sound, min(2 * MOST, len(sound))):
        text = mistype(one.text, dice, count=dice.choice((1, 1, 2)))
        if text != one.text:
            yield Question(text, data.TYPOS, one.evidence, one.forbidden)
    for one in dice.sample(sound, min(MOST, len(sound))):
        before = decide(dice.choice(lines(texts["before"])[half::2]), dice)
        after = dice.choice(lines(texts["after"])[half::2])
        yield Question(f"{before} {one.text} {after}", data.NOISY, one.evidence, one.forbidden)


def _several(life: Life, dice: random.Random) -> Iterator[Question]:
    """What two to four items answer together."""
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in life.facts:
        groups[fact.frame.group].append(fact)
    for frame in frames():
        ids = frozenset(fact.item.id for fact in groups[frame.group])
        if frame.all and 2 <= len(ids) <= 4:
            kind = data.NEGATION if frame.label else data.MULTI
            yield Question(decide(frame.all, dice), kind, ids)
    about = lines(read("lists_must_not")["about"])[life.half :: 2]
    old = {item.id for item in life.older.values()}
    for _, name in life.cast:
        found = [item for item in life.items() if name.text in item.text]
        ids = frozenset(item.id for item in found if item.active and item.id not in old)
        if 2 <= len(ids) <= 4:
            text = fill(decide(dice.choice(about), dice), {"name": name}, dice)
            yield Question(text, data.MULTI, ids, frozenset(item.id for item in found) - ids)


def _dated(life: Life, dice: random.Random) -> Iterator[Question]:
    """What one day or month answers."""
    texts = read("lists_must_not")
    dated = [fact for fact in life.facts if fact.day]
    for fact in dated:
        assert fact.day is not None
        if fact.exact:
            same = [one for one in dated if one.day == fact.day and one.exact]
            template = dice.choice(lines(texts["on_date"])[life.half :: 2])
            value = {"on": Filler(times.asked(fact.day, dice))}
        else:
            month = fact.day.replace(day=1)
            same = [one for one in dated if one.day and one.day.replace(day=1) == month]
            template = dice.choice(lines(texts["in_month"])[life.half :: 2])
            value = {"month": Filler(f"{fact.day:%B %Y}")}
        if len(same) <= 4:
            text = fill(decide(template, dice), value, dice)
            yield Question(text, data.DATE, frozenset(one.item.id for one in same))


def _must_not(life: Life, dice: random.Random) -> Iterator[Question]:
    yield from plain_must_not(life.half, dice)
    for frame in life.lacking:
        for ask in frame.ask[life.half :: 2]:
            yield Question(decide(ask, dice), data.UNKNOWN)
    yield from _unknown_things(life, dice)
    yield from (Question(text, data.SENSE, forbidden=frozenset({item.id})) for item, text in life.senses)
    yield from _in_the_open(life, dice)


def plain_must_not(half: int, dice: random.Random) -> Iterator[Question]:
    """Chit-chat, and questions about what no frame is about."""
    texts = read("lists_must_not")
    for name, kind in (("chat", data.CHAT), ("unknown", data.UNKNOWN), ("common", data.COMMON)):
        for line in lines(texts[name])[half::2]:
            yield Question(decide(line, dice), kind)


def _unknown_things(life: Life, dice: random.Random) -> Iterator[Question]:
    """Questions as about known things, with the name of one that no item names."""
    said = " ".join(item.text for item in life.items()).lower()
    for frame in frames():
        if not frame.key:
            continue
        slot = frame.key[0]
        names = halved(dice.choice(("female", "male")) if slot == "name" else slot, life.half)
        spare = [one for one in names if one.text.lower() not in said]
        asks = [ask for ask in frame.ask[life.half :: 2] if set(slots(ask)) == {slot} and "~" not in ask]
        if spare and asks:
            text = fill(decide(dice.choice(asks), dice), {slot: dice.choice(spare)}, dice)
            yield Question(text, data.OTHER_PERSON if slot == "name" else data.UNKNOWN_THING)


def _in_the_open(life: Life, dice: random.Random) -> Iterator[Question]:
    """Questions whose only answer is private, asked where others read."""
    for fact in life.facts:
        if fact.item.facets.sensitivity != "private" or not fact.frame.key:
            continue
        asks = [ask for ask in fact.frame.asks(fact.number, life.half) if "~" not in ask]
        thing = fact.values[fact.frame.key[0]].text.lower()
        if asks and not _told(thing, [item for item in life.items() if may_show(item, in_dm=False)]):
            text = fill(decide(dice.choice(asks), dice), fact.values, dice)
            yield Question(text, data.PRIVATE, forbidden=frozenset({fact.item.id}), in_dm=False)


def _told(thing: str, items: list[Item]) -> bool:
    return any(thing in item.text.lower() for item in items)
