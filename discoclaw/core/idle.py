"""A map whose entries are created on first use and evicted after they have been idle for a while.

Pure: the current time is an argument. Knows nothing about its values.
"""

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Generic, TypeVar

V = TypeVar("V")

HOUR_MS = 3_600_000


class IdleMap(Generic[V]):
    """Values by key. `make` builds a missing one.

    `created(key)` is called after a value was built, `evicted(key, value)` before one is removed.
    """

    def __init__(
        self,
        make: Callable[[str], V],
        *,
        idle_ms: int,
        created: Callable[[str], None] = lambda key: None,
        evicted: Callable[[str, V], None] = lambda key, value: None,
    ) -> None:
        self._make = make
        self._idle_ms = idle_ms
        self._created = created
        self._evicted = evicted
        self._entries: dict[str, V] = {}
        self._last_used: dict[str, int] = {}  # in order of use: eviction stops at the first recent entry

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._entries))

    def use(self, key: str, now_ms: int) -> V:
        """The value for a key, built if missing. Restarts its idle time."""
        self._last_used.pop(key, None)  # removed first, so that the key moves to the end
        self._last_used[key] = now_ms
        if key not in self._entries:
            self._entries[key] = self._make(key)
            self._created(key)
        return self._entries[key]

    def put(self, key: str, value: V, now_ms: int) -> None:
        """Replace the value for a key. Restarts its idle time."""
        self._last_used.pop(key, None)
        self._last_used[key] = now_ms
        self._entries[key] = value

    def peek(self, key: str) -> V | None:
        """The value if there is one, without restarting its idle time."""
        return self._entries.get(key)

    def drop(self, key: str) -> None:
        """Evict one entry now. Does nothing for an unknown key."""
        if key in self._entries:
            self._evicted(key, self._entries[key])
            del self._entries[key], self._last_used[key]

    def evict_idle(self, now_ms: int, *, busy: Callable[[V], bool] = lambda value: False) -> list[str]:
        """Evict entries that have been idle longer than the limit and are not busy. Returns their keys."""
        idle = takewhile(lambda used: now_ms - used[1] > self._idle_ms, self._last_used.items())
        gone = [key for key, _ in idle if not busy(self._entries[key])]
        for key in gone:
            self.drop(key)
        return gone
