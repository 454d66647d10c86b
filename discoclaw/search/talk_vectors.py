"""The vectors of talk: made in batches, and compared with questions. Blocking; raises MemoryFault.

They lie with the archive (`archive_vectors`). Independent of who makes the vectors, and when.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from discoclaw.core.consent import Consent
from discoclaw.core.entry import Entry
from discoclaw.search.archive import Archive
from discoclaw.search.archive_vectors import Batch, Provider, VectorWriter, keep, take
from discoclaw.search.signatures import quantised

DAY_MS = 86_400_000


class TalkVectors:
    """The vectors that a provider made of an archive's messages."""

    def __init__(self, archive: Archive, provider: Provider, *, consent: Consent) -> None:
        self._stored = archive.vectors
        self._provider = provider
        self._consent = consent
        self._outdated = 0
        self._open: dict[str, Callable[[], bool]] = {}

    @property
    def size(self) -> int:
        """The bytes in RAM."""
        return self._stored.size

    @property
    def dims(self) -> int:
        """The length of the vectors, 0 if there are none, or if that is not known yet."""
        return self._stored.dims

    def asked(self, vector: Sequence[float]) -> Sequence[float] | None:
        """The vector to search the archive with for a question; None if nothing can be compared with it."""
        return tuple(vector) if self._stored.compares(len(vector)) else None

    def saw(self, place: str, *, open_: bool, still: Callable[[], bool] = lambda: True) -> None:
        """Note whether talk of a place may go to a provider elsewhere; it may not until that is known.

        `still` is asked again before each batch.
        """
        if open_:
            self._open[place] = still
        else:
            self._open.pop(place, None)

    def take(self, most: int, now_ms: int, without: Collection[int] = ()) -> Batch:
        """Up to `most` messages that need a vector, the newest first, but for those with these ids."""
        outdated, day = self._outdated, now_ms // DAY_MS
        places = sorted(place for place, still in list(self._open.items()) if still())

        def work(writer: VectorWriter) -> Batch:
            while True:
                batch = take(writer, self._provider, most=most, day=day, without=without, open_places=places)
                never = [one.id for one in batch.entries if not one.allowed(self._consent)]
                if not never:
                    if batch.entries and self._provider.most is not None:
                        writer.spend(len(batch.entries), day)
                    # Both only grow, so that the sum tells whether either did.
                    return replace(batch, token=outdated + writer.starts())
                writer.leave_out(never)

        return self._stored.change(work, Batch(), model=self._provider.model)

    def keep(self, made: Mapping[Entry, Sequence[float]], token: int) -> None:
        """Store the vectors of a batch with this token; none if the model was replaced since.

        One without a direction, or of another length, is left out.
        """
        packed = {entry: quantised(vector) for entry, vector in made.items()}
        length = max((len(vector) for vector in made.values()), default=0)
        good = {entry: one for entry, one in packed.items() if one is not None and len(one) == length}

        def work(writer: VectorWriter) -> None:
            if token != self._outdated + writer.starts():
                return
            allowed = {entry: one for entry, one in good.items() if entry.allowed(self._consent)}
            keep(writer, self._provider, allowed)
            writer.leave_out(entry.id for entry in made.keys() - good.keys())

        self._stored.change(work, None)

    def outdate(self) -> None:
        """Make `keep` ignore what was taken before; `start_over` follows. Never blocks."""
        self._outdated += 1

    def start_over(self) -> None:
        """Remove all vectors, to make new ones."""
        self._stored.change(lambda writer: writer.start_over(0), None)
