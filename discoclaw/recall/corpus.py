"""Document statistics that were counted elsewhere: see the port `Corpus`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Counted:
    """A corpus of given numbers; a term without one is in no document.

    `nearest` are other spellings of such terms, with what each counts, best first.
    """

    total: int
    average: float
    frequencies: Mapping[str, int] = field(default_factory=dict)
    nearest: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)

    def frequency(self, terms: Iterable[str]) -> Mapping[str, int]:
        return {term: self.frequencies.get(term, 0) for term in terms}

    def near(self, term: str) -> tuple[tuple[str, float], ...]:
        """Other spellings of a term; see `spelling.Vocabulary`."""
        return self.nearest.get(term, ())
