"""Step 1 of a turn: collects everything known for a message, before later steps choose what matters.

What is in RAM is taken from there, without a task; the rest is read concurrently, with a short deadline. No
failure here prevents a reply. Independent of prompts and of how items are ranked.
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from discoclaw.core.item import Item
from discoclaw.core.values import dataclass, field, replace
from discoclaw.core.view import EMPTY, View
from discoclaw.prompt.assemble import PersonaNote
from discoclaw.session.arrival import Arrival
from discoclaw.session.content import Texts
from discoclaw.session.deadline import read_in_time
from discoclaw.soul.soul import Soul, exists, of_view

# ----------------------------------------------------------------------
# Who the bot is to the person it answers: its own memory, overridden by the personality's files.


@dataclass(frozen=True, slots=True)
class Who:
    """The soul shown to one person. `hatched`: there is one, or that is unknown."""

    soul: Soul = field(default=Soul())
    hatched: bool = True


def who_for(arrival: Arrival, files: Soul, view: View | None) -> Who:
    """The bot as a message's author sees it. `view`: the bot's own memory, None if it can't be read."""
    author, kept = arrival.message.author, view or EMPTY
    soul = files.over(of_view(kept, with_whom=author.id, in_dm=arrival.in_dm))
    if soul.user and (not author.is_owner or arrival.permission.opted_out):
        soul = replace(soul, user="")
    return Who(soul, view is None or bool(files) or exists(kept))


T = TypeVar("T")

Owners = tuple[tuple[str, str], ...]
"""Names and ids; a name is "" if it is unknown."""


@dataclass(frozen=True, slots=True)
class Items:
    """A person's active items that may be shown where they speak, and the branch they come from.

    `branch` is None if nothing could be read. `persona` is what the model is told about the branch, if
    anything.
    """

    active: tuple[Item, ...] = ()
    branch: str | None = None
    persona: PersonaNote | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything known for one message.

    `used` has the times (ms) items were last used, by id, where that counts. `summary` is the conversation's,
    `names` what people are called in it, by id, `group` the notes about the channel, `texts` the context
    files.
    """

    items: Items = field(default=Items())
    who: Who = field(default=Who())
    used: Mapping[str, int] = field(default_factory=dict)
    summary: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    owners: Owners = ()
    texts: Texts = ((), ())


class Source(Protocol[T]):
    """The source of one field. `name` is for the log, `nothing` is the value after a failure."""

    name: str
    nothing: T

    def in_ram(self, arrival: Arrival) -> T | None:
        """The value if it is in RAM; None if it has to be read first."""
        ...

    def read(self, arrival: Arrival) -> Coroutine[Any, Any, T]:
        """Read the value from disk. Raises MemoryFault or OSError."""
        ...


class Always(Generic[T]):
    """A source with a constant value: stands in for one that is switched off."""

    name = "nothing"

    def __init__(self, nothing: T) -> None:
        self.nothing = nothing

    def in_ram(self, arrival: Arrival) -> T | None:
        return self.nothing

    async def read(self, arrival: Arrival) -> T:
        return self.nothing


class Gatherer:
    """Queries its sources, keyed by the field of `Gathered` that each fills."""

    def __init__(self, **sources: Source[Any]) -> None:
        self._sources: Sequence[tuple[str, Source[Any]]] = tuple(sources.items())

    async def gather(self, arrival: Arrival) -> Gathered:
        """Return everything known for a message."""
        found: dict[str, Any] = {name: source.in_ram(arrival) for name, source in self._sources}
        late = [(name, source) for name, source in self._sources if found[name] is None]
        if late:
            readings = [(source.name, source.read(arrival), source.nothing) for _, source in late]
            values = await read_in_time(readings)
            found.update(zip((name for name, _ in late), values, strict=True))
        return Gathered(**found)
