"""One owner's vectors in RAM, as the rows of a matrix: a question is compared with all of them at once.

`Rows` are compared with each other. Rows have length 1, so a product is a cosine. Needs numpy, an optional
extra, which is imported only where used. Independent of providers, files and ranking.

Products are made with `vecdot`, which uses one thread. `@` divides such a product among as many threads as
there are cores and waits for each: on a busy machine with two cores, a product of 0.3 ms took 20.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discoclaw.core.query import NEAREST, NO_COSINES, Cosines
from discoclaw.search.vectors import hash_of

if TYPE_CHECKING:
    from numpy import float32, intp
    from numpy.typing import NDArray


# ---------------------------------------------------------------------- vectors among themselves


class Rows:
    """Some vectors by their keys; rows have length 1, so a product is a cosine."""

    def __init__(self, keys: Sequence[str], rows: "NDArray[float32]") -> None:
        self._keys = keys
        self._places = {key: place for place, key in enumerate(keys)}
        self._rows = rows

    def nearest(self, key: str, most: int, floor: float) -> list[str]:
        """The keys of the vectors nearest to one, with a cosine above `floor`; ties by key."""
        import numpy as np

        if key not in self._places:
            return []
        near = np.vecdot(self._rows, self._rows[self._places[key]])
        near[self._places[key]] = -1
        places = np.argpartition(-near, min(most, len(near) - 1))[: most + 1]
        best = sorted((-round(float(near[place]), 6), self._keys[place]) for place in places)
        return [other for cosine, other in best[:most] if other != key and -cosine > floor]


class Matrix:
    """Vectors by the hash of their text. `dims` is their length, or 0 while there are none."""

    def __init__(self, vectors: Mapping[bytes, bytes] | None = None) -> None:
        self.dims = 0
        self._places: dict[bytes, int] = {}
        self._rows: NDArray[float32] | None = None
        self._used = 0
        self._zeros: set[int] = set()
        self._texts: dict[str, int] = {}
        self._lately: tuple[Mapping[str, str], Mapping[str, int], NDArray[intp]] | None = None
        if vectors:
            self.add(vectors)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, text: str) -> bool:
        return self._place(text) is not None

    def copy(self) -> "Matrix":
        """The vectors as they are now, for a thread that compares them while others are added."""
        same = copy.copy(self)
        same._places, same._texts = dict(self._places), dict(self._texts)
        return same

    @property
    def size(self) -> int:
        """The approximate bytes in RAM."""
        rows = len(self._rows) if self._rows is not None else 0
        return rows * 4 * self.dims + 200 * len(self._places) + 400 * len(self._texts)

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Add vectors in the form of `packed`. Vectors of another length replace all existing ones.

        Numbers that a disk has spoiled are passed over, so that the vector counts as missing.
        """
        import numpy as np

        dims = len(next(iter(vectors.values()))) // 4
        if dims != self.dims:
            self.dims, self._places, self._texts, self._rows, self._used = dims, {}, {}, None, 0
            self._zeros = set()
        self._lately = None
        rows = np.frombuffer(b"".join(vectors.values()), np.float32).reshape(-1, dims)
        sound = np.flatnonzero(np.isfinite(rows).all(axis=1))
        names = list(vectors)
        rows, keys = rows[sound], [names[place] for place in sound.tolist()]
        begin, self._used = self._used, self._used + len(keys)
        if self._rows is None or len(self._rows) < self._used:
            grown = np.zeros((max(self._used, 2 * begin), dims), np.float32)
            if self._rows is not None:
                grown[:begin] = self._rows[:begin]
            self._rows = grown
        self._rows[begin : self._used] = rows
        self._places.update({key: place for place, key in enumerate(keys, start=begin)})
        self._zeros.update((begin + np.flatnonzero(~rows.any(axis=1))).tolist())

    def cosines(self, question: Sequence[float], texts: Mapping[str, str]) -> Cosines:
        """Return the cosines of a question's vector with the texts that have vectors, by the texts' keys.

        Vectors of zeros say nothing, and count as missing. Empty for a question of another length. `texts`
        must not change afterwards: the same mapping is not looked through twice.
        """
        import numpy as np

        asked = np.asarray(question, np.float32)
        if self._rows is None or asked.shape != (self.dims,):
            return NO_COSINES
        asked = _normal(asked)
        keys, places = self._among(texts)
        if not len(places) or not asked.any():
            return NO_COSINES
        return _summed(keys, np.clip(np.vecdot(self._rows[: self._used], asked), -1, 1)[places])

    def _among(self, texts: Mapping[str, str]) -> "tuple[Mapping[str, int], NDArray[intp]]":
        """The keys of texts with vectors, numbered, and their rows; kept for the next question."""
        import numpy as np

        if self._lately is None or self._lately[0] is not texts:
            known = {key: place for key, text in texts.items() if (place := self._place(text)) is not None}
            if self._zeros:
                known = {key: place for key, place in known.items() if place not in self._zeros}
            rows = np.fromiter(known.values(), np.intp, len(known))
            self._lately = texts, {key: number for number, key in enumerate(known)}, rows
        return self._lately[1], self._lately[2]

    def rows_of(self, texts: Mapping[str, str]) -> Rows | None:
        """The vectors of those texts that have one, by the texts' keys; None without any."""
        places = {key: place for key, text in texts.items() if (place := self._place(text)) is not None}
        if self._rows is None or not places:
            return None
        return Rows(list(places), self._rows[list(places.values())])

    def _place(self, text: str) -> int | None:
        place = self._texts.get(text)
        if place is None and (place := self._places.get(hash_of(text))) is not None:
            self._texts[text] = place
        return place


def _summed(keys: Mapping[str, int], near: "NDArray[float32]") -> Cosines:
    """Cosines with what is asked of all of them. `near` has one for each key, in the order of the keys."""
    import numpy as np

    count, names, numbers = min(NEAREST, len(near)), list(keys), near.tolist()
    least = np.partition(near, -count)[-count]
    nearest = [names[place] for place in np.flatnonzero(near >= least).tolist()]
    nearest.sort(key=lambda key: (-numbers[keys[key]], key))
    return Cosines(
        keys,
        numbers,
        nearest[:count],
        low=float(near.min()),
        high=float(near.max()),
        mean=float(near.mean(dtype=np.float64)),
        spread=float(near.std(dtype=np.float64)),
    )


def packed(vector: Sequence[float]) -> bytes:
    """A vector scaled to length 1, as bytes; one of zeros stays as it is."""
    import numpy as np

    return _normal(np.asarray(vector, np.float32)).tobytes()


def cosines_of(ones: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> list[list[float]]:
    """The cosines of vectors with other vectors: a row for each of `ones`. All have the same length."""
    import numpy as np

    rows = np.stack([_normal(np.asarray(one, np.float32)) for one in ones])
    columns = np.stack([_normal(np.asarray(one, np.float32)) for one in others])
    found: list[list[float]] = np.vecdot(rows[:, None, :], columns[None, :, :]).tolist()
    return found


def alike(one: bytes, other: bytes, least: float) -> bool:
    """Whether two vectors in the form of `packed` are the same, or have a cosine of at least `least`."""
    import numpy as np

    if one == other or len(one) != len(other):
        return one == other
    return bool(np.vecdot(np.frombuffer(one, np.float32), np.frombuffer(other, np.float32)) >= least)


def _normal(vector: "NDArray[float32]") -> "NDArray[float32]":
    """Scale to length 1, in double precision, since the squares of small numbers underflow.

    A vector with anything that is not a finite number becomes one of zeros.
    """
    import numpy as np

    wide = vector.astype(np.float64)
    length = float(np.linalg.norm(wide))
    return (wide / length if length and np.isfinite(length) else np.zeros_like(wide)).astype(np.float32)
