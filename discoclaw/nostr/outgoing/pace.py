"""How fast events go to one relay: as fast as it accepts them, and ever slower while it fails. Pure.

    width   how many events may be in flight: one more after a success, half after a failure (as in TCP's
    AIMD) pause   after a failure; it doubles with each further failure and shrinks with each success

Events that were in flight together and fail together count as one failure: twenty refusals at the same moment
say no more than one. Times are in seconds of any monotonic clock, passed in by the caller.
"""

from collections.abc import Callable
from typing import Final

MAX_WIDTH: Final = 20
FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 600.0


class Pace:
    """The pace for one relay. `random` returns 0 to 1.

    Pauses are up to half shorter at random, so that not all relays and bots come back at the same moment.
    """

    def __init__(
        self,
        *,
        random: Callable[[], float],
        first_pause_s: float = FIRST_PAUSE_S,
        max_pause_s: float = MAX_PAUSE_S,
        max_width: int = MAX_WIDTH,
    ) -> None:
        self._random = random
        self._first_s = first_pause_s
        self._max_s = max_pause_s
        self._max_width = max_width
        self._failures = 0
        self._pause_s = 0.0
        self._until_s = float("-inf")
        self.width = max_width
        self.round = 0
        """The number of failures so far.

        Store it with each event sent: only the first failure of a round counts.
        """

    def succeeded(self) -> None:
        """An event was accepted or definitely refused: the relay does its work."""
        self.width = min(self._max_width, self.width + 1)
        self._failures = max(0, self._failures - 1)

    def failed(self, round_: int, now_s: float, *, hold: bool, alone: bool = False) -> float:
        """An event that was sent in this round failed. Returns after how many seconds to try it again.

        `hold`: send nothing until then, as after a second failure in a row. `alone`: one event at a time from
        now on.
        """
        if round_ == self.round:
            self.round += 1
            self._failures += 1
            longest_s = min(self._max_s, self._first_s * 2.0 ** min(self._failures - 1, 30))
            self._pause_s = longest_s * (1.0 - self._random() / 2)
            self.width = 1 if alone else max(1, self.width // 2)
        if hold or self._failures > 1:
            self._until_s = max(self._until_s, now_s + self._pause_s)
        return self._pause_s

    def remaining_s(self, now_s: float) -> float:
        """How long (s) nothing may be sent."""
        return max(0.0, self._until_s - now_s)
