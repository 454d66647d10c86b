"""What hygiene says about what it removed: the evidence of an event, and the message of its commit. Pure."""

from collections.abc import Mapping

from discoclaw.core.decay import idle_days
from discoclaw.core.draft import Origin
from discoclaw.core.item import Item


def because(now: int, evidence: str) -> Origin:
    """The origin of an event that hygiene makes at a time (ms)."""
    return Origin("inferred", said_at=now, evidence=evidence)


def idle_for(item: Item, used: Mapping[str, int], now: int) -> str:
    """For how long nobody used an item."""
    return f"idle for {days(int(idle_days(item, used, now)))}"


def days(number: int) -> str:
    return f"{number} day" if number == 1 else f"{number} days"


def message(
    max_idle_days: float, *, conversation: int = 0, idle: int = 0, lapsed: int = 0, survivors: int = 0
) -> str:
    """The reason, in counts only, because the log is shown publicly too."""
    parts = [
        *([f"{conversation} of the day"] if conversation else []),
        *([f"{idle} idle for over {max_idle_days:g} days"] if idle else []),
    ]
    late = f"{lapsed} unanswered" if lapsed else ""
    kept = f"{survivors} idle kept by chance" if survivors else ""
    return "hygiene: " + ", ".join(filter(None, [f"{' and '.join(parts)} left" if parts else "", late, kept]))
