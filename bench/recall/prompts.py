"""What a prompt of 2,000 characters holds: how much of it was asked for, and how much is there in vain.

The choice is that of a turn (`recall/select`). Two sizes of memory: a small one, and a full one of some
hundred items with tens of preferences. What is added to fill a memory was asked for by nobody, although some
of it may fit a message by chance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.recall.cases import FRAMED
from bench.recall.cases_run import Asked
from bench.recall.data import Person
from bench.recall.data_items import crowd
from bench.recall.score import MAX_CHARS
from bench.recall.systems import Ours
from discoclaw.core.item import Item
from discoclaw.core.privacy import may_show
from discoclaw.core.text import utf16_length
from discoclaw.core.visible import is_standing

CHARS_A_TOKEN = 4
"""A rough measure, which is the same for every model."""
FEW = 30
"""Items of a small memory of the questions about people."""
MORE = 300
"""Items that are added to those of a case to make a full memory."""
STEP = 3
"""Every third question, and every third case: enough for these means."""
ASKED, VAIN = "questions", "no question"


@dataclass(frozen=True, slots=True)
class Message:
    """A message, the memory it meets, and what of it was asked for. Other ids than these are in vain.

    `tolerated` ids count neither way.
    """

    text: str
    items: Sequence[Item]
    must: frozenset[str]
    tolerated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a prompt: what it costs, whether it was asked for (None: counts neither way), and why."""

    characters: int
    asked_for: bool | None
    standing: bool


@dataclass(frozen=True, slots=True)
class Contents:
    """Many prompts in figures. Shares lie in 0…1; those of lines and characters are of all prompts together.

    `memory` is the mean number of items in memory, `found` the share of what was asked for that is there.
    `lines`, `characters` and `tokens_in_vain` are means for a prompt.
    """

    asked: str
    system: str
    count: int
    memory: float
    found: float | None
    of_lines: float | None
    of_characters: float | None
    standing: float | None
    tokens_in_vain: float
    empty: float
    lines: float
    characters: float


def contents(
    systems: Mapping[str, Callable[[], Ours]],
    people: Sequence[Person],
    asked: Asked,
    seed: int,
    say: Callable[[str], None],
) -> list[Contents]:
    """The figures of every kind of message, size of memory and system."""
    thinned = Asked(asked.part, asked.step * STEP)
    found = []
    for kind, sizes in {**of_people(people), **of_cases(thinned, seed)}.items():
        for messages in sizes:
            found += [_measured(kind, name, make(), messages) for name, make in systems.items()]
        say(f"prompts: {kind}")
    return found


def of_people(people: Sequence[Person]) -> dict[str, tuple[list[Message], list[Message]]]:
    """The questions about people, among few of their items and among all of them."""
    made: dict[str, tuple[list[Message], list[Message]]] = {ASKED: ([], []), VAIN: ([], [])}
    for person in people:
        shown = {
            in_dm: [item for item in person.items if item.active and may_show(item, in_dm=in_dm)]
            for in_dm in (True, False)
        }
        for question in person.questions[::STEP]:
            items = shown[question.in_dm]
            small, full = made[ASKED if question.evidence else VAIN]
            wanted = question.evidence | question.forbidden
            others = [item for item in items if item.id not in wanted]
            some = others[:: max(1, len(others) // FEW)][:FEW]
            few = [item for item in items if item.id in wanted] + some
            small.append(Message(question.text, few, question.evidence))
            full.append(Message(question.text, items, question.evidence))
    return made


def of_cases(asked: Asked, seed: int) -> dict[str, tuple[list[Message], list[Message]]]:
    """The cases made from frames by kind, each with its own memory and with a full one."""
    more = crowd(MORE, seed)
    made: dict[str, tuple[list[Message], list[Message]]] = {}
    for kind in FRAMED:
        small, full = made[kind] = [], []
        for case in asked.of(kind):
            own = {item.id for item in case.items}
            items = [*case.items, *(item for item in more if item.id not in own)]
            tolerated = frozenset(own - case.must - case.must_not)
            small.append(Message(case.message, case.items, case.must, tolerated))
            full.append(Message(case.message, items, case.must, tolerated))
    return made


def _measured(kind: str, name: str, system: Ours, messages: Iterable[Message]) -> Contents:
    every = list(messages)
    return figures(kind, name, every, list(_prompts(system, every)))


def _prompts(system: Ours, messages: Iterable[Message]) -> Iterator[list[Line]]:
    loaded: Sequence[Item] = ()
    for message in messages:
        if message.items is not loaded:
            system.load(message.items)
            loaded = message.items
        yield [
            Line(
                utf16_length(one.line) + 1,
                None if one.item.id in message.tolerated else one.item.id in message.must,
                is_standing(one.item),
            )
            for one in system.chosen(message.text, MAX_CHARS)
        ]


def figures(kind: str, name: str, messages: Sequence[Message], prompts: Sequence[Sequence[Line]]) -> Contents:
    """The figures of prompts, each made for the message at the same place."""
    lines = [line for prompt in prompts for line in prompt]
    right = [line for line in lines if line.asked_for]
    wrong = [line for line in lines if line.asked_for is False]
    wanted = sum(len(message.must) for message in messages)
    in_vain, characters = _characters(wrong), _characters(lines)
    return Contents(
        asked=kind,
        system=name,
        count=len(messages),
        memory=fmean(len(message.items) for message in messages),
        found=_ratio(len(right), wanted),
        of_lines=_ratio(len(right), len(right) + len(wrong)) if wanted else None,
        of_characters=_ratio(_characters(right), _characters(right) + in_vain) if wanted else None,
        standing=_ratio(_characters(line for line in lines if line.standing), characters),
        tokens_in_vain=in_vain / CHARS_A_TOKEN / len(messages),
        empty=fmean(not prompt for prompt in prompts),
        lines=len(lines) / len(messages),
        characters=characters / len(messages),
    )


def _characters(lines: Iterable[Line]) -> int:
    return sum(line.characters for line in lines)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
