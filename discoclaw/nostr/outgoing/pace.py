"""How fast a relay is given events: as fast as it takes them, and ever slower while it does not. Pure.

    width   how many events may be on their way at once: halved by a failure, one more for each success
    pause   after a failure, doubled with each further one, less again with each success

What was on its way together and fails together counts as one failure: twenty refusals of one moment say no
more than one. Times are seconds of any clock that never goes back, given by the caller.
"""

from collections.abc import Callable
from typing import Final

WIDEST: Final = 20
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 600.0


class Pace:
    """The pace for one relay. `random` gives 0 to 1: pauses are up to half shorter, so that not all relays,
    and not all bots, come back in one moment."""

    def __init__(
        self,
        *,
        random: Callable[[], float],
        first_pause_s: float = FIRST_PAUSE_S,
        longest_pause_s: float = LONGEST_PAUSE_S,
        widest: int = WIDEST,
    ) -> None:
        self._random = random
        self._first_s = first_pause_s
        self._longest_s = longest_pause_s
        self._widest = widest
        self._failures = 0
        self._pause_s = 0.0
        self._until_s = float("-inf")
        self.width = widest
        self.moment = 0
        """To be noted of whatever is sent: a failure counts unless there was one since."""

    def worked(self) -> None:
        """An event went through."""
        self.width = min(self._widest, self.width + 1)
        self._failures = max(0, self._failures - 1)

    def failed(self, moment: int, now_s: float, *, hold: bool, alone: bool = False) -> float:
        """What was sent at that moment failed. Returns after how many seconds it is to be tried again.

        `hold`: nothing is to be sent meanwhile, as it is once nothing else went through either. `alone`: from
        now on one at a time.
        """
        if moment == self.moment:
            self.moment += 1
            self._failures += 1
            longest_s = min(self._longest_s, self._first_s * 2.0 ** min(self._failures - 1, 30))
            self._pause_s = longest_s * (1.0 - self._random() / 2)
            self.width = 1 if alone else max(1, self.width // 2)
        if hold or self._failures > 1:
            self._until_s = max(self._until_s, now_s + self._pause_s)
        return self._pause_s

    def left_s(self, now_s: float) -> float:
        """How long nothing is to be sent."""
        return max(0.0, self._until_s - now_s)
