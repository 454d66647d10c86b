"""The lists of memories that people were shown, so that "1 3" can name two of them. Only in RAM.

Knows nothing about memories and their words: it keeps what stands for them.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

MOST: Final = 1_000
_NUMBERS = re.compile(r"\d{1,3}(?:(?:\s*,\s*|\s+)(?:and\s+)?\d{1,3})*")

Where = tuple[str, str]
"""A person and a conversation."""


class Listed:
    """The list that each person was shown last in each conversation; of very many the oldest are dropped."""

    def __init__(self) -> None:
        self._lists: OrderedDict[Where, list[str]] = OrderedDict()

    def keep(self, where: Where, stamps: Iterable[str]) -> None:
        """Note what a person is shown now, in its order."""
        self._lists.pop(where, None)
        self._lists[where] = list(stamps)
        if len(self._lists) > MOST:
            self._lists.popitem(last=False)

    def numbered(self, where: Where, typed: str) -> list[str] | None:
        """What the numbers in a text name; None unless it is numbers of the list that was shown last."""
        stamps = self._lists.get(where, [])
        if not _NUMBERS.fullmatch(typed.strip()):
            return None
        numbers = dict.fromkeys(map(int, re.findall(r"\d+", typed)))
        return (
            [stamps[one - 1] for one in numbers] if all(0 < one <= len(stamps) for one in numbers) else None
        )
