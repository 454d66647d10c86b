"""Findings on what works: one shape for `/readyz`, metrics, the admin's page and `discoclaw doctor`."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args

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
    return {
        "ready": healthy(findings),
        "findings": [
            {"name": one.name, "state": one.state, "text": one.text, "wayOut": one.way_out}
            for one in findings
        ],
    }


# ----------------------------------------------------------------------
# The last news of a server that is asked now and then, by what it was asked for. Pure.

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
