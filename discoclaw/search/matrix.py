"""One owner's vectors in RAM, as the rows of a matrix: a question is compared with all of them at once.

Rows have length 1, so a product is a cosine. Needs numpy, an optional extra, which is imported only where
used. Independent of providers, files and ranking.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discoclaw.search.vectors import hash_of

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


class Matrix:
    """Vectors by the hash of their text. `dims` is their length, or 0 while there are none."""

    def __init__(self, vectors: Mapping[bytes, bytes] | None = None) -> None:
        self.dims = 0
        self._places: dict[bytes, int] = {}
        self._rows: NDArray[float32] | None = None
        self._texts: dict[str, int] = {}
        if vectors:
            self.add(vectors)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, text: str) -> bool:
        return self._place(text) is not None

    @property
    def size(self) -> int:
        """The approximate bytes in RAM."""
        return len(self._places) * (4 * self.dims + 200) + 400 * len(self._texts)

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Add vectors in the form of `packed`. Vectors of another length replace all existing ones."""
        import numpy as np

        dims = len(next(iter(vectors.values()))) // 4
        if dims != self.dims:
            self.dims, self._places, self._texts, self._rows = dims, {}, {}, None
        rows = np.frombuffer(b"".join(vectors.values()), np.float32).reshape(-1, dims)
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0)  # of a disk that forgets
        self._rows = rows if self._rows is None else np.concatenate([self._rows, rows])
        begin = self._rows.shape[0] - rows.shape[0]
        self._places.update({key: begin + place for place, key in enumerate(vectors)})

    def cosines(self, question: Sequence[float], texts: Mapping[str, str]) -> dict[str, float]:
        """Return the cosines of a question's vector with the texts that have vectors, by the texts' keys.

        Empty for a question of another length.
        """
        import numpy as np

        asked = np.asarray(question, np.float32)
        if self._rows is None or asked.shape != (self.dims,):
            return {}
        places = {key: place for key, text in texts.items() if (place := self._place(text)) is not None}
        near = np.clip(self._rows @ _normal(asked), -1, 1)
        return dict(zip(places, near[list(places.values())].tolist(), strict=True))

    def _place(self, text: str) -> int | None:
        place = self._texts.get(text)
        if place is None and (place := self._places.get(hash_of(text))) is not None:
            self._texts[text] = place
        return place


def packed(vector: Sequence[float]) -> bytes:
    """A vector scaled to length 1, as bytes; a zero vector stays as it is."""
    import numpy as np

    return _normal(np.asarray(vector, np.float32)).tobytes()


def _normal(vector: "NDArray[float32]") -> "NDArray[float32]":
    """Scale to length 1, in double precision, since the squares of small numbers underflow."""
    import numpy as np

    wide = vector.astype(np.float64)
    length = float(np.linalg.norm(wide))
    return (wide / length if length else wide).astype(np.float32)
