"""The memory block: items found, in a form that a model knows for what it is and that can be taken out again.

    [Memory context]
    - key: content [links: a, b]
    [/Memory context]

A key is the item's, or else its id. What is stored can not close the block or open another one. Whoever
pastes one into the chat has not said what stands in it, so it is taken out before talk is learned from.
Knows nothing about who asks.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from discoclaw.core.item import Item
from discoclaw.prompt.quote import quote_entry

OPEN = "[Memory context]"
CLOSE = "[/Memory context]"

_GAP = r"[^\S\n]*"
_OPENED = rf"\[{_GAP}memory{_GAP}context{_GAP}\]"
_CLOSED = rf"\[{_GAP}/{_GAP}memory{_GAP}context{_GAP}\]"
_MARK = re.compile(rf"\[({_GAP}/?{_GAP}memory{_GAP}context{_GAP})\]", re.IGNORECASE)
_BLOCK = re.compile(rf"{_OPENED}.*?{_CLOSED}", re.IGNORECASE | re.DOTALL)
# One that nobody closed ends with its entries: what comes behind is what somebody said.
_UNCLOSED = re.compile(rf"{_OPENED}{_GAP}(?:-[^\n]*)?(?:\n{_GAP}-[^\n]*|\n[^\S\n]+\S[^\n]*)*", re.IGNORECASE)
_STRAY = re.compile(_CLOSED, re.IGNORECASE)


def memory_block(items: Iterable[Item], named: Mapping[str, str]) -> str:
    """The block of these items; "" without any. `named` are the links that may be shown: key or id, by id."""
    lines = [_line(item, named) for item in items]
    return "\n".join([OPEN, *lines, CLOSE]) if lines else ""


def names(items: Collection[Item]) -> dict[str, str]:
    """Each item's key, or else its id, by id."""
    return {item.id: item.facets.key or item.id for item in items}


def strip_memory_context(text: str) -> str:
    """A text without memory blocks, those included that are not closed, and without their marks.

    All else stays as it is, but for the blank ends of a text from which something was taken.
    """
    if _MARK.search(text) is None:
        return text
    without = _BLOCK.sub("\n", text)
    without = _STRAY.sub("\n", _UNCLOSED.sub("\n", without))
    return re.sub(r"\n{3,}", "\n\n", without).strip()


def _line(item: Item, named: Mapping[str, str]) -> str:
    linked = sorted(named[one] for one in item.facets.links if one in named)
    links = f" [links: {', '.join(linked)}]" if linked else ""
    return quote_entry(f"- {_unmarked(item.facets.key or item.id)}: {_unmarked(item.text)}{_unmarked(links)}")


def _unmarked(text: str) -> str:
    """Text in which nothing looks like an end of the block."""
    return _MARK.sub(r"(\1)", text)
