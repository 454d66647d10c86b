"""The sources of the last answers, so that people can ask why they got them.

Kept in RAM only, and as ids, not texts, of the last answers in each conversation: after a restart, or a day
later, the bot says that it no longer knows.
"""

from dataclasses import dataclass

from discoclaw.core.idle import IdleMap

DAY_MS = 86_400_000
KEPT = 20
"""How many answers to one person are kept in one conversation: people rarely ask about older ones."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The sources of one answer: `items` are (item id, why it was chosen), best first.

    `asked_id` and `answer_id` are messages, `at` is in ms. `summary` says whether there was one, and `window`
    is the number of recent messages. `files` counts the files by kind ("picture").
    """

    asked_id: str
    answer_id: str
    at: int
    branch: str
    items: tuple[tuple[str, str], ...]
    summary: bool
    window: int
    files: tuple[tuple[str, int], ...] = ()


class Explained:
    """The last answers to each person in each conversation."""

    def __init__(self) -> None:
        self._last: IdleMap[IdleMap[list[Shown]]] = IdleMap(lambda _: _people(), idle_ms=DAY_MS)

    def note(self, session_key: str, user_id: str, shown: Shown) -> None:
        """Record what an answer that was sent rested on."""
        people = self._last.use(session_key, shown.at)
        kept = people.use(user_id, shown.at)
        kept.append(shown)
        del kept[:-KEPT]
        people.evict_idle(shown.at)
        self._last.evict_idle(shown.at)

    def last(self, session_key: str, user_id: str) -> Shown | None:
        """The sources of the person's last answer there, or None if they are no longer known."""
        kept = (self._last.peek(session_key) or _people()).peek(user_id)
        return kept[-1] if kept else None

    def answer(self, session_key: str, message_id: str, *, later_part: bool) -> tuple[str, Shown] | None:
        """The user id that one of our messages answered, and what the answer rested on; None if unknown.

        With `later_part`, it may belong to the answer before it: a long answer is several messages.
        """
        people = self._last.peek(session_key) or _people()
        known = [
            (user_id, shown)
            for user_id in people
            for shown in people.peek(user_id) or ()
            if int(shown.answer_id) <= int(message_id)
        ]
        found = max(known, key=lambda one: (int(one[1].answer_id), one[1].at), default=None)
        return found if found is not None and (later_part or found[1].answer_id == message_id) else None

    def forget(self, user_id: str) -> None:
        """Drop everything about a person's answers."""
        for session_key in self._last:
            (self._last.peek(session_key) or _people()).drop(user_id)


def _people() -> IdleMap[list[Shown]]:
    return IdleMap(lambda _: [], idle_ms=DAY_MS)
