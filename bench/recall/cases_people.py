"""Cases of nine made-up people: each has one memory, of two years, and is asked everything against it.

A person is a file `person_*.toml`. Memories are written down by the day of the talk they were learned in, as
"id kind: text ## tag, tag @@ key -> id id", where "->" leads to linked ones. A question is a line
"message => ids to find ~ ids tolerated"; an id with "*" has to come first, and whatever isn't named must not
be found. The files are written by hand, so a line says exactly what a reader would want. Knows no ranker.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, partial

from bench.recall import times
from bench.recall.cases_values import Case, Labelled, Part, item_of, mixed
from bench.recall.grammar import FOLDER, lines, read
from discoclaw.core.item import Item, Source

KINDS = ("topics", "gathered", "owners", "oneself", "unanswerable", "inflected", "latest")
MINUTE = 60_000
CHANNEL = "700100200300400500"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody's memories, by the ids that the questions use, and the questions by kind."""

    file: str
    name: str
    part: Part
    memories: Mapping[str, Item]
    asked: Mapping[str, tuple[str, ...]]


@cache
def people(part: Part) -> tuple[Person, ...]:
    """The people of a part, in the order of their files' names."""
    files = sorted(path.stem for path in FOLDER.glob("person_*.toml"))
    return tuple(_person(file) for file in files if read(file)["part"] == part)


def of_people(kind: str, part: Part) -> Iterator[Case]:
    """The questions of a kind, each among all memories of the person who asks.

    Raises KeyError if a question names an unknown id.
    """
    for person in people(part):
        for line in person.asked[kind]:
            message, _, labels = line.partition("=>")
            wanted, _, tolerated = labels.partition("~")
            first = [one.removeprefix("*") for one in wanted.split() if one.startswith("*")]
            must = [person.memories[one.removeprefix("*")] for one in wanted.split()]
            labelled = Labelled(
                must=must,
                tolerated=[person.memories[one] for one in tolerated.split()],
                must_not=list(person.memories.values()),
                first=person.memories[first[0]] if first else None,
            )
            message = message.strip()
            dice = random.Random(f"{person.file} {message}")
            case = mixed(labelled, message, name="by hand", frame=person.file, dice=dice)
            yield replace(case, own_name=person.name)


MAKERS = {kind: partial(of_people, kind) for kind in KINDS}


def _person(file: str) -> Person:
    text = read(file)
    asked = {kind: tuple(lines(text["asked"][kind])) for kind in KINDS}
    return Person(file, text["name"], text["part"], _memories(text["memories"]), asked)


def _memories(text: str) -> dict[str, Item]:
    """The memories by id. Raises ValueError if an id is there twice, and KeyError for an unknown link.

    Those of a day were learned in one talk, two from a message, with some minutes between the messages.
    """
    found: dict[str, Item] = {}
    links: dict[str, list[str]] = {}
    begin, number = 0, 0
    for line in lines(text):
        if _DAY.fullmatch(line):
            begin, number = times.ms_of(date.fromisoformat(line), random.Random(line).randrange(8, 22)), 0
            continue
        name, _, told = line.partition(" ")
        told, _, linked = told.partition(" -> ")
        if name in found:
            raise ValueError(f"two memories are called {name}")
        message = number // 2
        at_ms = begin + message * 4 * MINUTE
        found[name] = replace(item_of(told, at_ms), source=Source("discord", CHANNEL, str(at_ms)))
        links[name] = linked.split()
        number += 1
    for name, others in links.items():
        linked_ids = frozenset(found[other].id for other in others)
        found[name] = replace(found[name], facets=replace(found[name].facets, links=linked_ids))
    return found
