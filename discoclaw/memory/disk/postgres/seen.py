"""Which version of each text this process has seen, so that it notices what others wrote.

    seen   the version that was last read or written here
    stale  texts of which a read found another version than was seen before: RAM may have the older one

Knows nothing about databases. For any number of threads.
"""

import threading
from collections.abc import Mapping

MOST = 100_000
"""Names that are kept, about 15 MB. If there are more, those that were left out count as changed."""


class Seen:
    """The versions that this process knows. 0 is the version of a text that does not exist."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._versions: dict[str, int] = {}
        self._stale: set[str] = set()
        self._forgot = False

    def read(self, name: str, version: int) -> None:
        """Note the version that a read found."""
        with self._lock:
            if self._versions.get(name, version) != version:
                self._stale.add(name)
            self._note(name, version)

    def wrote(self, name: str, version: int) -> None:
        """Note the version that was written here."""
        with self._lock:
            self._note(name, version)

    def differing(self, versions: Mapping[str, int]) -> set[str]:
        """Those of these texts that have another version than was seen here, or that were never seen.

        What was never seen may be known not to exist, such as what somebody chose.
        """
        with self._lock:
            return {
                name
                for name, version in versions.items()
                if self._versions.get(name, None if self._forgot else 0) != version
            }

    def unseen(self, versions: Mapping[str, int]) -> set[str]:
        """Those of these texts that were not seen here in just this version."""
        with self._lock:
            return {name for name, version in versions.items() if self._versions.get(name) != version}

    def names(self) -> set[str]:
        """All texts of which a version is known."""
        with self._lock:
            return set(self._versions)

    def take_stale(self) -> set[str]:
        """The stale texts; the next call returns only those that became stale since."""
        with self._lock:
            stale, self._stale = self._stale, set()
            return stale

    def _note(self, name: str, version: int) -> None:
        self._versions.pop(name, None)  # so that it counts as the newest
        self._versions[name] = version
        if len(self._versions) > self._most:
            del self._versions[next(iter(self._versions))]
            self._forgot = True
