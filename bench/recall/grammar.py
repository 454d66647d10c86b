"""Phrasings with alternatives and slots, and the two halves they are divided into.

`[a|b|]` is one of its alternatives, `{city}` a filler of the list "city", `{tool~}` another name of the
same filler. Every list of phrasings or fillers has two halves, by position: an even seed draws from one, an
odd seed from the other. What a ranker was made better with can then not be what it is judged with. Knows
nothing about items, turns or rankers.
"""

import random
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "texts"
CLOSED = 11
"""A list with at most this many fillers is not divided."""
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{([A-Za-z_]+)([0-9]?)(~?)\}")


@dataclass(frozen=True, slots=True)
class Filler:
    """What goes into a slot, and what else it is called."""

    text: str
    aliases: tuple[str, ...] = ()


@cache
def read(name: str) -> dict[str, Any]:
    """One file of texts."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def fillers(name: str) -> tuple[Filler, ...]:
    """The whole list `name` of `lists.toml`. Raises KeyError when there is none."""
    made = []
    for entry in read("lists")[name].split("; "):
        text, _, others = entry.partition("=")
        made.append(Filler(text, tuple(others.split("/")) if others else ()))
    return tuple(made)


def lines(text: str) -> list[str]:
    """The phrasings of a block, one a line."""
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def half_of(seed: int) -> int:
    """0 for the seeds of reports (even), 1 for those of development (odd)."""
    return seed % 2


def halved(name: str, half: int) -> list[Filler]:
    """The fillers that a half may use."""
    whole = fillers(name)
    return list(whole) if len(whole) <= CLOSED else list(whole[half::2])


def ways(template: str) -> int:
    """In how many ways the alternatives of `template` can be chosen."""
    count = 1
    for choice in _CHOICE.finditer(template):
        count *= choice[1].count("|") + 1
    return count


def slots(template: str) -> list[str]:
    """The names of the slots in `template`, "~" left off."""
    return [slot[1] + slot[2] for slot in _SLOT.finditer(template)]


def decide(template: str, dice: random.Random) -> str:
    """One of the ways: every alternative chosen, slots still open."""
    return _CHOICE.sub(lambda choice: dice.choice(choice[1].split("|")), template)


def dress(text: str, name: str, half: int, dice: random.Random) -> str:
    """A question or a fact with something around it; its last full stop goes."""
    around = dice.choice(lines(read("manners")[name])[half::2])
    return around.replace("_", text.removesuffix("."))


def fill(template: str, values: dict[str, Filler], dice: random.Random) -> str:
    """The slots of a decided template filled. Raises KeyError for a slot without a value."""

    def put(slot: re.Match[str]) -> str:
        value = values[slot[1] + slot[2]]
        return dice.choice(value.aliases) if slot[3] and value.aliases else value.text

    return re.sub(r"\s+([.,!?;:])(?=\s|$)", r"\1", " ".join(_SLOT.sub(put, template).split()))
