"""The vectors of the archive: made in batches, and asked for what is near. Blocking; raises MemoryFault.

The vectors lie in the archive's file (`archive_vectors`), their signatures in RAM. What leaves the file
leaves RAM at the end of the same change. Independent of who makes the vectors, and when.
"""

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from discoclaw.core.consent import Consent
from discoclaw.core.entry import Entry
from discoclaw.memory.disk.database import FAULTS, transaction
from discoclaw.search import archive_vectors as rows
from discoclaw.search.archive import Archive
from discoclaw.search.archive_vectors import Asked, Batch, Provider
from discoclaw.search.signatures import Signatures, quantised

DAY_MS = 86_400_000


class TalkVectors:
    """The vectors that a provider made of an archive's messages."""

    def __init__(self, archive: Archive, provider: Provider, *, consent: Consent) -> None:
        self._archive = archive
        self._provider = provider
        self._consent = consent
        self._signatures = Signatures()
        self._removed = 0
        self._outdated = 0
        self._ready = False
        self._open: dict[str, Callable[[], bool]] = {}
        archive.watch = self._watch

    @property
    def size(self) -> int:
        """The bytes in RAM."""
        return self._signatures.size

    def asked(self, vector: Sequence[float]) -> Asked | None:
        """What to search the archive with for a question; None if nothing can be compared with it."""
        same = self._ready and len(vector) == self._signatures.dims
        return Asked(tuple(vector), self._signatures) if same else None

    def saw(self, place: str, *, open_: bool, still: Callable[[], bool] = lambda: True) -> None:
        """Note whether talk of a place may go to a provider elsewhere; it may not until that is known.

        `still` is asked again before each batch.
        """
        if open_:
            self._open[place] = still
        else:
            self._open.pop(place, None)

    @property
    def dims(self) -> int:
        """The length of the vectors, 0 if there are none, or if that is not known yet."""
        return self._signatures.dims if self._ready else 0

    def take(self, most: int, now_ms: int, without: Collection[int] = ()) -> Batch:
        """Up to `most` messages that need a vector, the newest first, but for those with these ids."""
        token = self._outdated
        places = sorted(place for place, still in list(self._open.items()) if still())

        def work(connection: sqlite3.Connection) -> Batch:
            self._begin(connection)
            with transaction(connection):
                return taken(connection)

        def taken(connection: sqlite3.Connection) -> Batch:
            day = now_ms // DAY_MS
            while True:
                batch = rows.take(
                    connection,
                    self._provider,
                    most=most,
                    day=day,
                    without=without,
                    open_places=places,
                )
                never = [one.id for one in batch.entries if not one.allowed(self._consent)]
                if not never:
                    if batch.entries and self._provider.most is not None:
                        rows.spend(connection, len(batch.entries), day)
                    return replace(batch, token=token)
                rows.leave_out(connection, never)

        return self._archive.change(work, Batch())

    def keep(self, made: Mapping[Entry, Sequence[float]], token: int) -> None:
        """Store the vectors of a batch with this token; none if `outdate` was called since.

        One without a direction, or of another length, is left out.
        """
        packed = {entry: quantised(vector) for entry, vector in made.items()}
        length = max((len(vector) for vector in made.values()), default=0)
        good = {entry: one for entry, one in packed.items() if one is not None and len(one) == length}

        def work(connection: sqlite3.Connection) -> None:
            if token != self._outdated:
                return
            with transaction(connection):
                allowed = {entry: one for entry, one in good.items() if entry.allowed(self._consent)}
                kept = rows.keep(connection, self._provider, allowed)
                rows.leave_out(connection, (entry.id for entry in made.keys() - good.keys()))
            self._watch(connection)  # before, since vectors of another length may be gone
            self._signatures.add(kept)

        self._archive.change(work, None)

    def outdate(self) -> None:
        """Make `keep` ignore what was taken before; `start_over` follows. Never blocks."""
        self._outdated += 1

    def start_over(self) -> None:
        """Remove all vectors, to make new ones."""

        def work(connection: sqlite3.Connection) -> None:
            if rows.has_tables(connection):
                with transaction(connection):
                    rows.start_over(connection, 0)

        self._archive.change(work, None)

    # ------------------------------------------------------------------ inside

    def _begin(self, connection: sqlite3.Connection) -> None:
        if not rows.has_tables(connection):
            self._ready = False  # a new file: what is in RAM was of another one
        rows.begin(connection, self._provider.model)
        if not self._ready:
            rows.load(connection, self._signatures)
            self._removed = rows.removed(connection)
            self._ready = True

    def _watch(self, connection: sqlite3.Connection) -> None:
        """Remove from RAM what is not in the file any more; all of it if that cannot be known."""
        if not self._ready:
            return
        try:
            if not rows.has_tables(connection):
                self._ready = False
                self._signatures.clear()
            elif (removed := rows.removed(connection)) != self._removed:
                self._signatures.keep_only(rows.ids(connection))
                self._removed = removed
        except FAULTS:
            self._ready = False
            self._signatures.clear()
