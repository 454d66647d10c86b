"""Short names for what a model is shown, such as i1 and m12: it copies them right, and code maps them back.

A name that was never given means nothing; whoever maps it back refuses it. Knows nothing about prompts.
"""

from collections.abc import Iterable


class ShortIds:
    """Names things in the order in which they are first named: `letter` and a number from 1."""

    def __init__(self, letter: str, ids: Iterable[str] = ()) -> None:
        self._letter = letter
        self._short: dict[str, str] = {}
        self._long: dict[str, str] = {}
        for one in ids:
            self.of(one)

    def of(self, long: str) -> str:
        """The short name of an id; a new one, if it has none."""
        if long not in self._short:
            short = f"{self._letter}{len(self._short) + 1}"
            self._short[long], self._long[short] = short, long
        return self._short[long]

    def meant(self, short: str) -> str | None:
        """The id that a short name stands for; None if it was never given."""
        return self._long.get(short.strip().strip("[]()").casefold())

    def knows(self, long: str) -> bool:
        """Whether an id has a short name."""
        return long in self._short
