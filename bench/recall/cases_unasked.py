"""Cases where nothing is asked for, and cases of standing preferences, of which only a few are relevant."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from bench.recall.cases_values import Case, Labelled, Part, background, frames, half, items_of, mixed
from bench.recall.grammar import lines, read

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
