"""Findings on what works: one shape for `/readyz`, metrics, the admin's page and `discoclaw doctor`.

Below are what an admin is shown of a running bot, and its counts. Pure; knows nothing about Discord,
disks and pages.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from discoclaw.core import errors
from discoclaw.core.errors import ModelKeyRejected, ModelNotFound, meaning
from discoclaw.core.times import span

State: TypeAlias = Literal["good", "off", "unknown", "warning", "bad"]
"""From best to worst. `off`: it isn't used. `unknown`: it was not looked at, or can't be."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and how it is.

    `name` says what ("Discord", "the store"), `text` in one line how it is, `way_out` what to do about it.
    They name no person, channel or file, and quote nobody.
    """

    name: str
    state: State
    text: str
    way_out: str = ""

    def to_json(self) -> dict[str, str]:
        """The finding as JSON."""
        return {"name": self.name, "state": self.state, "text": self.text, "wayOut": self.way_out}


Check: TypeAlias = Callable[[], Iterable[Finding]]
"""Says how something is by what is known already: it neither waits nor asks anybody."""


def healthy(findings: Iterable[Finding]) -> bool:
    """Whether nothing is bad."""
    return all(one.state != "bad" for one in findings)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by how bad they are; those that are alike stay in their order."""
    return sorted(findings, key=lambda one: -get_args(State).index(one.state))


def as_json(findings: Collection[Finding]) -> dict[str, Any]:
    """The findings as `/readyz` says them."""
    return {"ready": healthy(findings), "findings": [one.to_json() for one in findings]}


# ----------------------------------------------------------------------
# The last news of a server that is asked now and then, by what it was asked for.

NEWS_MS: Final = 15 * 60_000
"""For so long a failure says how the server is. If nobody has asked since, it may have recovered."""
MANY: Final = 3
"""After so many calls in a row that brought nothing, it stands still."""
LASTING: Final = (ModelNotFound, ModelKeyRejected)
"""Failures that don't pass by themselves, so that one is enough."""


@dataclass(frozen=True, slots=True)
class Last:
    """When (ms) the server last answered and last failed, 0 for never, and why it failed.

    `fails`: the failure is the last that was heard of it. `row` calls in a row brought nothing, from `since`
    (ms) on, the last one because of an `error` of this kind.
    """

    answered: int = 0
    failed: int = 0
    reason: str = ""
    fails: bool = False
    row: int = 0
    since: int = 0
    error: type[BaseException] = BaseException

    @property
    def stopped(self) -> bool:
        """Whether nothing is made of it any more."""
        return self.row >= MANY or issubclass(self.error, LASTING)


class Seen:
    """Notes how calls of one server end. `clock` returns the time in ms."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._last: dict[str, Last] = {}
        self.watch: Callable[[Any], None] = lambda request: None
        """Is called with each request before it is sent. The demo sets it, to show prompts."""

    def answered(self, what: str) -> None:
        """A call for `what` was answered."""
        self._last[what] = Last(self._clock(), self.of(what).failed)

    def failed(self, what: str, error: BaseException, *, answered: bool = False) -> None:
        """A call for `what` failed; `answered`: the server is well, and its answer of no use."""
        last, now = self.of(what), self._clock()
        times = Last(now, last.failed) if answered else Last(last.answered, now, fails=True)
        self._last[what] = replace(
            times, reason=meaning(error), row=last.row + 1, since=last.since or now, error=type(error)
        )

    def of(self, what: str) -> Last:
        """The last news of calls for `what`."""
        return self._last.get(what, Last())

    @property
    def last(self) -> Mapping[str, Last]:
        """The last news, by what was asked for."""
        return dict(self._last)

    def finding(self, name: str, what: str, way_out: str, *, worst: State = "bad") -> Finding:
        """How the server is for `what`; a failure that is news is `worst`."""
        last, now = self._last.get(what), self._clock()
        if last is None:
            return Finding(name, "unknown", "nobody has asked it yet")
        if last.stopped and not last.fails:
            text = f"its answers have been of no use for {span(now - last.since)}: {last.reason}"
            return Finding(name, "warning", text, way_out)
        if not last.fails:
            return Finding(name, "good", f"it answered {span(now - last.answered)} ago")
        text = f"it failed {span(now - last.failed)} ago: {last.reason}"
        if now - last.failed < NEWS_MS:
            return Finding(name, worst, text, way_out)
        return Finding(name, "warning", f"{text}. Nobody has asked it since", way_out)


# ----------------------------------------------------------------------
# A running bot as its admin is shown it, as values: where it is, what waits, how far it is, whom it knows.


Talks: TypeAlias = Literal["answers", "hears nothing", "can't write", "can't see"]
"""The bot's abilities in a channel."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a server."""

    id: str
    name: str
    talks: Talks


@dataclass(frozen=True, slots=True)
class Server:
    """A server that the bot is in. `members` is None if Discord has not said how many there are.

    `channels` are at most as many as are shown, `more` the number of the others.
    """

    id: str
    name: str
    members: int | None
    available: bool
    channels: tuple[Channel, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Shard:
    """A connection to Discord. `latency_ms` is None as long as nothing was measured."""

    id: int
    connected: bool
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class Connected:
    """The bot's servers. `total` counts servers, `servers` are those of the page `number` of `pages`."""

    ready: bool
    shards: tuple[Shard, ...]
    total: int
    servers: tuple[Server, ...] = ()
    number: int = 1
    pages: int = 1

    @property
    def down(self) -> int:
        """How many shards are not connected."""
        return sum(not one.connected for one in self.shards)


@dataclass(frozen=True, slots=True)
class Queue:
    """Work that waits. `about` says of what, `running` how much of it is under way (None: not known).

    `oldest` is when (ms) the oldest began to wait, `trouble` what is wrong with it.
    """

    name: str
    about: str
    waiting: int
    running: int | None = None
    oldest: int | None = None
    state: State = "good"
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Work with an end: `done` of `total` by now. `total` is None if that is not known."""

    name: str
    text: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A person, and how much the bot remembers about them. None: it was not counted.

    `changed` is when (ms) it last changed, `faults` whether the person's history has faults.
    """

    id: str
    name: str
    memories: int | None = None
    forgotten: int | None = None
    personas: int | None = None
    changes: int | None = None
    changed: int | None = None
    faults: bool = False
    opted_out: bool = False


@dataclass(frozen=True, slots=True)
class People:
    """Some of the people, those whose memory changed last first, and how many there are."""

    total: int
    shown: Sequence[Known]
    number: int
    """The number of the page, from 1 on."""
    pages: int


# ----------------------------------------------------------------------
# Counts made while the bot works: messages, answers and how long they took. Times are given.
#
# Counting is adding to a number in RAM; whoever wants to know reads it. Every label comes from a list that is
# written down in the program, so none names anybody.


Ended: TypeAlias = Literal["whole", "cut", "stopped", "interview"]
"""How an answer ended: the model's end, at its length limit, by its person, or as a step of an interview."""
Why: TypeAlias = Literal["busy", "late", "empty", "closing", "bug"]
"""Why there was none, if it wasn't our error: the queue was full, the question too old when it was read,
the model said nothing, the bot was stopped, or something unforeseen failed."""

SECONDS: Final = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""The upper bounds of what answers are sorted into: people notice a second, and give up after a minute."""


class Histogram:
    """Values sorted into ranges. `bounds` are the upper ends, the last range has none."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self._counts)

    def up_to(self) -> Iterator[tuple[float, int]]:
        """Each bound, the last one infinite, with the number of values up to it."""
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self._counts, strict=True):
            total += count
            yield bound, total


@dataclass(slots=True)
class Counts:
    """The counts of one process since it started.

    `heard` are people's messages in channels that the bot listens to, `asked` those of them that are to be
    answered. `shown` is the time (s) from a message to the first that is shown of its answer, `told` to the
    answer's end. `unanswered` is by the name of one of our errors, or `Why`.
    """

    heard: int = 0
    asked: int = 0
    commits: int = 0
    answers: Counter[Ended] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    shown: Histogram = field(default_factory=Histogram)
    told: Histogram = field(default_factory=Histogram)


class Asked:
    """One message that waits for its answer, since a time (s)."""

    def __init__(self, counts: Counts, now_s: float) -> None:
        counts.asked += 1
        self._counts = counts
        self._since = now_s
        self._shown: float | None = None

    def shown(self, now_s: float) -> None:
        """Something of the answer is shown."""
        if self._shown is None:
            self._shown = now_s

    def answered(self, how: Ended, now_s: float) -> None:
        """The answer has ended."""
        self._counts.answers[how] += 1
        self._counts.told.add(now_s - self._since)
        if self._shown is not None:
            self._counts.shown.add(self._shown - self._since)

    def unanswered(self, why: BaseException | Why) -> None:
        """There is no answer."""
        self._counts.unanswered[why if isinstance(why, str) else kind_of(why)] += 1


def kind_of(error: BaseException) -> str:
    """The name of our error that an exception is one of: there are as many as `core/errors` has."""
    ours = (one for one in type(error).__mro__ if one.__module__ == errors.__name__)
    return next((one.__name__ for one in ours), "bug")
