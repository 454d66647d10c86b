"""Vectors that are compared with each other, and not with a question. Needs numpy, like `search/matrix`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


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
