"""What the last answers rested on, so that people can ask why they were answered as they were.

Kept in RAM only, and as ids, not texts: after a restart, or a day later, the bot says that it no longer
knows.
"""

from dataclasses import dataclass

from discoclaw.core.idle import IdleMap

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Shown:
    """What one answer rested on: `items` are (item id, why it was chosen), best first.

    `asked_id` and `answer_id` are messages, `at` is in ms. `summary` says whether there was one, and `window`
    is the number of recent messages.
    """

    asked_id: str
    answer_id: str
    at: int
    branch: str
    items: tuple[tuple[str, str], ...]
    summary: bool
    window: int


class Explained:
    """The last answer of each person in each conversation."""

    def __init__(self) -> None:
        self._last: IdleMap[list[Shown]] = IdleMap(lambda key: [], idle_ms=DAY_MS)

    def note(self, session_key: str, user_id: str, shown: Shown) -> None:
        """Record what an answer that was sent rested on."""
        self._last.use(f"{session_key} {user_id}", shown.at)[:] = [shown]
        self._last.evict_idle(shown.at)

    def last(self, session_key: str, user_id: str) -> Shown | None:
        """What the person's last answer there rested on, or None if that is no longer known."""
        kept = self._last.peek(f"{session_key} {user_id}")
        return kept[0] if kept else None

    def forget(self, user_id: str) -> None:
        """Drop everything about a person's answers."""
        for key in self._last:
            if key.endswith(f" {user_id}") and (kept := self._last.peek(key)) is not None:
                kept.clear()
