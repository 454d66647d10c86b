"""An item with its score: what ranking returns, and what each of its steps adds to. Pure."""

from collections.abc import Mapping

from discoclaw.core.item import Item
from discoclaw.recall.evidence import OUTDONE, Matches


class Ranked:
    """An item with its score (> 0, comparable within one query), and what found it.

    `words` is the score by words alone, with which it begins. `dropped` is why it is not returned, or "".
    What found it is computed on demand.
    """

    __slots__ = ("_given", "_matches", "_position", "_reasons", "dropped", "item", "score", "words")

    def __init__(
        self, item: Item, score: float, dropped: str, matches: Matches | None = None, position: int = 0
    ) -> None:
        self.item = item
        self.score = self.words = score
        self.dropped = dropped
        self._matches = matches
        self._position = position
        self._given: dict[str, float] | None = None
        self._reasons: list[str] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranked):
            return NotImplemented
        mine = self.item, self.score, self.dropped, self.why, self.parts
        return mine == (other.item, other.score, other.dropped, other.why, other.parts)

    __hash__ = None  # type: ignore[assignment]

    @property
    def outdone(self) -> bool:
        """Whether others have more of what the words asked, so that this one was not meant."""
        return self.dropped == OUTDONE

    @property
    def named(self) -> bool:
        """Whether its key or one of its aliases is named completely."""
        return self._matches is not None and self._matches.given(self._position)

    @property
    def why(self) -> str:
        """Why it was found, in a few words."""
        matched = self._matches.matched(self._position) if self._matches is not None else ()
        return ", ".join([*matched, *(self._reasons or ())])

    @property
    def parts(self) -> Mapping[str, float]:
        """The contribution of each step."""
        if self._matches is None:
            return self.given
        words, coverage = self._matches.scores[self._position], self._matches.coverage(self._position)
        return {"words": words, "coverage": coverage, **(self._given or {})}

    @property
    def given(self) -> dict[str, float]:
        """The contributions of the steps after the words."""
        if self._given is None:
            self._given = {}
        return self._given

    @property
    def reasons(self) -> list[str]:
        """Why it was found, besides its words."""
        if self._reasons is None:
            self._reasons = []
        return self._reasons
