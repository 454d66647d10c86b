"""The last news of a server that is asked now and then, by what it was asked for. Pure.

Nobody asks it only to find out, so a failure is news for a while, and afterwards nobody knows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from discoclaw.core.errors import ModelKeyRejected, ModelNotFound, meaning
from discoclaw.core.health import Finding, State
from discoclaw.core.times import span

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
