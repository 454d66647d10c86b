"""The memory block: found items in a form that a model recognises as memory and that can be removed again.

    [Memory context]
    - key: content [links: a, b]
    [/Memory context]

The key is the item's key, or else its short id. Stored text cannot close the block or open another one.
Somebody who pastes a block into the chat did not say what is in it, so blocks are removed before the bot
learns from a message. Knows nothing about who asks.
"""

import re
from collections.abc import Iterable, Mapping

from discoclaw.core.item import Item
from discoclaw.core.own_words import split_added
from discoclaw.prompt.quote import quote_entry

OPEN = "[Memory context]"
CLOSE = "[/Memory context]"

_GAP = r"[^\S\n]*"
_OPENED = rf"\[{_GAP}memory{_GAP}context{_GAP}\]"
_CLOSED = rf"\[{_GAP}/{_GAP}memory{_GAP}context{_GAP}\]"
_MARK = re.compile(rf"\[({_GAP}/?{_GAP}memory{_GAP}context{_GAP})\]", re.IGNORECASE)
_BLOCK = re.compile(rf"{_OPENED}.*?{_CLOSED}", re.IGNORECASE | re.DOTALL)
# An unclosed block ends with its last entry; the text after that is what somebody said.
_UNCLOSED = re.compile(rf"{_OPENED}{_GAP}(?:-[^\n]*)?(?:\n{_GAP}-[^\n]*|\n[^\S\n]+\S[^\n]*)*", re.IGNORECASE)
_STRAY = re.compile(_CLOSED, re.IGNORECASE)


def memory_block(items: Iterable[Item], named: Mapping[str, str]) -> str:
    """The block for these items, "" if there are none.

    `named` has what the items are called, and those of their links that may be shown, by id; other links are
    left out.
    """
    lines = [_line(item, named) for item in items]
    return "\n".join([OPEN, *lines, CLOSE]) if lines else ""


def strip_memory_context(text: str) -> str:
    """The text without memory blocks, including unclosed ones and stray marks.

    A text without any is returned unchanged. In others, blank lines left behind are collapsed too. A block
    ends before a forward at the latest: what is forwarded must not become the person's own words.
    """
    if _MARK.search(text) is None:
        return text
    return "\n".join(filter(None, map(_stripped, split_added(text))))


def _stripped(text: str) -> str:
    # Whole blocks before unclosed ones, which would end a block at its first line without a dash.
    without = _BLOCK.sub("\n", text)
    without = _STRAY.sub("\n", _UNCLOSED.sub("\n", without))
    return re.sub(r"\n{3,}", "\n\n", without).strip()


def _line(item: Item, named: Mapping[str, str]) -> str:
    linked = sorted(named[one] for one in item.facets.links if one in named)
    links = f" [links: {', '.join(linked)}]" if linked else ""
    return quote_entry(f"- {_unmarked(named[item.id])}: {_unmarked(item.text)}{_unmarked(links)}")


def _unmarked(text: str) -> str:
    """Text with every mark of a block turned into parentheses."""
    return _MARK.sub(r"(\1)", text)
