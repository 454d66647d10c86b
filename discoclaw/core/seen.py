"""What was last heard of a server that is asked now and then, by what it was asked for. Pure.

Nobody asks it only to find out, so a failure is news for a while, and afterwards nobody knows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.errors import meaning
from discoclaw.core.health import Finding, State
from discoclaw.core.times import span

NEWS_MS: Final = 15 * 60_000
"""For so long a failure says how the server is. If nobody has asked since, it may have recovered."""


@dataclass(frozen=True, slots=True)
class Last:
    """When (ms) the server last answered and last failed, 0 for never, and why it failed.

    `fails`: the failure is the last that was heard of it.
    """

    answered: int = 0
    failed: int = 0
    reason: str = ""
    fails: bool = False


class Seen:
    """Notes how calls of one server end. `clock` returns the time in ms."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._last: dict[str, Last] = {}

    def answered(self, what: str) -> None:
        """A call for `what` was answered."""
        last = self._last.get(what, Last())
        self._last[what] = replace(last, answered=self._clock(), fails=False)

    def failed(self, what: str, error: BaseException) -> None:
        """A call for `what` failed, and it is not what was asked that is wrong."""
        last = self._last.get(what, Last())
        self._last[what] = replace(last, failed=self._clock(), fails=True, reason=meaning(error))

    @property
    def last(self) -> Mapping[str, Last]:
        """What was last heard, by what was asked for."""
        return dict(self._last)

    def finding(self, name: str, what: str, way_out: str, *, worst: State = "bad") -> Finding:
        """How the server is for `what`; a failure that is news is `worst`."""
        last, now = self._last.get(what), self._clock()
        if last is None:
            return Finding(name, "unknown", "nobody has asked it yet")
        if not last.fails:
            return Finding(name, "good", f"it answered {span(now - last.answered)} ago")
        text = f"it failed {span(now - last.failed)} ago: {last.reason}"
        if now - last.failed < NEWS_MS:
            return Finding(name, worst, text, way_out)
        return Finding(name, "warning", f"{text}. Nobody has asked it since", way_out)
