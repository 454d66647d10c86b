"""The signs of many vectors in RAM: which of 100,000 may be near a question, in about two milliseconds.

A vector's signature has one bit for each of its numbers: whether that is above 0. The fewer bits differ, the
smaller the angle (Charikar: "Similarity Estimation Techniques from Rounding Algorithms", 2002). That is
inexact, so the caller compares the nearest again by their vectors. A message takes about 60 bytes of RAM
where the vectors themselves would take 400, or 1,500 as floats. Needs numpy, an optional extra, which is
imported only where used. Independent of files and of ranking.
"""

import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float32, uint64
    from numpy.typing import NDArray

FEWEST_TERMS = 2
"""A message of fewer terms gets no vector: "haha" and "me too" are near to everything that is as short."""
MOST_BITS = 1_024
"""The bits of a signature; of longer vectors only the first numbers count, enough to choose candidates."""
FURTHEST = 2 * MOST_BITS
"""More bits than can differ: what may not be seen is never among the nearest."""
MIXING = 0x9E3779B97F4A7C15
"""An odd number by which ids are multiplied, modulo 2**64, to have them in another order (by Knuth)."""

Row = tuple[int, str, bytes]
"""The id of a message, its place, and its vector in the form of `quantised`."""


class Signatures:
    """Signatures by id. Safe to use from several threads. `dims` is the vectors' length, 0 without any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self.dims = 0
        self._places: dict[str, int] = {}
        self._rows: tuple[NDArray[Any], ...] | None = None
        """Ids, the numbers of their places, and a column of bits for each."""

    def __len__(self) -> int:
        return 0 if self._rows is None else len(self._rows[0])

    @property
    def size(self) -> int:
        """The bytes in RAM."""
        return sum(one.nbytes for one in self._rows or ())

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._clear()

    def add(self, rows: Sequence[Row]) -> None:
        """Add signatures, or replace those of the same ids. Vectors of another length replace all."""
        import numpy as np

        if not rows:
            return
        with self._lock:
            dims = len(rows[0][2])
            if dims != self.dims:
                self._clear()
                self.dims = dims
            places = [self._places.setdefault(row[1], len(self._places)) for row in rows]
            vectors = np.frombuffer(b"".join(row[2] for row in rows), np.int8).reshape(-1, dims)
            new = np.array([row[0] for row in rows], np.int64), np.array(places, np.int32), _bits(vectors)
            if self._rows is not None:
                kept = ~np.isin(self._rows[0], new[0])
                both = zip(self._rows, new, strict=True)
                self._rows = tuple(np.concatenate([old[..., kept], one], axis=-1) for old, one in both)
            else:
                self._rows = new

    def keep_only(self, ids: Collection[int]) -> None:
        """Remove all others; with the last one also their length, which the next ones need not have."""
        import numpy as np

        with self._lock:
            if self._rows is None:
                return
            kept = np.isin(self._rows[0], np.fromiter(ids, np.int64, len(ids)))
            if not kept.any():
                self._clear()
                return
            numbers, where, bits = (one[..., kept] for one in self._rows)
            # A place that is left behind may be the direct messages of somebody who was erased.
            used, where = np.unique(where, return_inverse=True)
            self._rows = numbers, where.astype(np.int32), bits
            names = list(self._places)
            self._places = {names[number]: position for position, number in enumerate(used)}

    def nearest(self, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        """The ids of the signatures at these places that differ least from a question's; ties by id."""
        import numpy as np

        asked = np.asarray(question, np.float32)
        with self._lock:
            if self._rows is None or asked.shape != (self.dims,):
                return []
            ids, _, bits = self._rows
            apart = np.zeros(len(ids), np.uint16)
            for word, own in zip(bits, _bits(asked[None, :]), strict=True):
                apart += np.bitwise_count(word ^ own)
            seen = self._seen(places)
            apart[~seen] = FURTHEST
            most = min(most, int(seen.sum()))
            if not most:
                return []
            near = np.flatnonzero(apart <= np.partition(apart, most - 1)[most - 1])
            ids, apart = ids[near], apart[near]
        found: list[int] = ids[np.lexsort((-ids, apart))][:most].tolist()
        return found

    def some(self, places: Sequence[str], most: int) -> list[int]:
        """At most so many ids at these places, spread over all of them; the same ones for the same ids."""
        import numpy as np

        with self._lock:
            if self._rows is None:
                return []
            ids = self._rows[0][self._seen(places)]
        if len(ids) > most:  # those that come first in an order that has nothing to do with time
            ids = ids[np.argpartition(ids.astype(np.uint64) * np.uint64(MIXING), most)[:most]]
        chosen: list[int] = ids.tolist()
        return sorted(chosen)

    def _seen(self, places: Sequence[str]) -> "NDArray[Any]":
        """Which rows are at these places. The caller holds the lock."""
        import numpy as np

        assert self._rows is not None
        allowed = np.zeros(len(self._places), np.bool_)
        allowed[[self._places[place] for place in places if place in self._places]] = True
        seen: NDArray[Any] = allowed[self._rows[1]]
        return seen


def bits_of(vector: Sequence[float] | bytes) -> str:
    """The signature of a vector, or of one in the form of `quantised`, as a text of 0 and 1."""
    import numpy as np

    numbers = np.frombuffer(vector, np.int8) if isinstance(vector, bytes) else np.asarray(vector, np.float32)
    return ((numbers[:MOST_BITS] > 0) + np.uint8(ord("0"))).tobytes().decode("ascii")


def quantised(vector: Sequence[float]) -> bytes | None:
    """A vector as one signed byte for each number; None if it has no direction (zeros, NaN, infinite).

    Only the direction matters, so the largest number becomes 127. The cosine of two such vectors differs
    from the exact one by less than 0.01.
    """
    import numpy as np

    wide = np.asarray(vector, np.float64)
    largest = float(np.abs(wide).max()) if wide.ndim == 1 and wide.size else 0.0
    if not 0 < largest < float("inf"):
        return None
    return np.rint(wide / largest * 127).astype(np.int8).tobytes()


def cosines(question: Sequence[float], vectors: Sequence[bytes]) -> list[float]:
    """The cosines of a question's vector with vectors in the form of `quantised`, all of its length."""
    import numpy as np

    if not vectors:
        return []
    asked = np.asarray(question, np.float64)
    asked = (asked / (np.linalg.norm(asked) or 1.0)).astype(np.float32)
    rows: NDArray[float32] = (
        np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.float32)
    )
    lengths = np.linalg.norm(rows, axis=1)
    found: list[float] = np.clip(rows @ asked / np.where(lengths, lengths, 1), -1, 1).tolist()
    return found


def _bits(vectors: "NDArray[Any]") -> "NDArray[uint64]":
    """The signatures of vectors: a column for each, a row for each 64 of their numbers.

    That way round a question is compared nine times as fast.
    """
    import numpy as np

    signs = np.packbits(vectors[:, :MOST_BITS] > 0, axis=1)
    words = -(-signs.shape[1] // 8)
    padded = np.zeros((len(vectors), 8 * words), np.uint8)
    padded[:, : signs.shape[1]] = signs
    return np.ascontiguousarray(padded.view(np.uint64).T)
