"""Questions to somebody about a memory, as the custom ids of buttons have them. Values only.

A memory is named by its stamp, which fits into a custom id whatever the memory's id is, and which is another
one as soon as the memory says something else: nobody forgets by an old question what they were not shown.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from discoclaw.core.item import Item

_ID, _TEXT = 10, 8
"""Hex digits of a stamp for the id and for the text."""
STAMP = rf"[0-9a-f]{{{_ID + _TEXT}}}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was answered: the command (`verb`), the memory's stamp, the persona it is in.

    `item` may have several stamps, with commas. `text` is what the memory shall say, for `edit`.
    """

    verb: str
    item: str
    branch: str
    text: str = ""

    def each(self) -> Iterator["Asked"]:
        """One question for each memory that was chosen, with that one's stamp."""
        return (replace(self, item=one) for one in self.item.split(","))

    def names(self, item: Item) -> bool:
        """Whether an item is the memory that was asked about, whatever it says by now."""
        return stamp(item)[:_ID] == self.item[:_ID]


def stamp(item: Item) -> str:
    """A short stamp of an item and its text."""
    return _digest(item.id)[:_ID] + _digest(item.text)[:_TEXT]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
