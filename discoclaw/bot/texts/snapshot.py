"""What the transparency channel shows of one person's memory: one message, never split."""

import re
from collections.abc import Sequence

from discoclaw.bot.texts.markup import ago, words
from discoclaw.core.item import Item
from discoclaw.core.text import clip, utf16_length
from discoclaw.core.view import View
from discoclaw.core.yours import named
from discoclaw.memory.conversations.rolling import Rolling
from discoclaw.show.words import count

_ABOUT = re.compile(r"\*\*Memory of .*\((\d+)\)")
_SUMMARIES = ("**Summary of the conversation** (", "**Conversation memory** (")
"""How the part with a summary begins: now, and in messages of older versions."""


def snapshot(name: str, user_id: str, view: View, rolling: Rolling, place: str, *, limit: int = 2000) -> str:
    """A person's memory, at most `limit` UTF-16 units: only what may be shown to anybody.

    When there is no room for all, the newest items stay and the summary is cut to what half of the message
    leaves it.
    """
    items = [item for item in view.active() if item.facets.sensitivity == "normal"]
    items.sort(key=lambda item: -item.updated_at)
    changed = f"updated {ago(view.updated_at)}" if view.updated_at else "no changes yet"
    head = [f"**Memory of {name}** ({user_id})", changed, ""]
    head.append("**What I remember**")
    lines = [_line(item, name) for item in items]
    tail: list[str] = []
    if rolling.summary:
        tail = ["", f"{_SUMMARIES[0]}{place}, updated {ago(rolling.updated_at)})"]
        used = _size([*head, *tail]) + min(_size(lines), limit // 2)
        tail.append(clip(rolling.summary, max(0, limit - used - 60)))
    room = limit - _size(head) - _size(tail) - utf16_length(_more(len(lines))) - 1
    kept = 0
    while kept < len(lines) and (room := room - utf16_length(lines[kept]) - 1) >= 0:
        kept += 1
    more = [_more(len(lines) - kept)] if kept < len(lines) else []
    return "\n".join([*head, *(lines[:kept] if lines else ["nothing yet"]), *tail, *more])


def nothing_of(name: str, user_id: str) -> str:
    """What the channel shows of somebody who wants no memory."""
    return f"**Memory of {name}** ({user_id})\nwants no memory: I learn and use nothing"


def about(content: str) -> str | None:
    """The user id of whom a message of the channel is about; None for any other message."""
    found = _ABOUT.fullmatch(content.partition("\n")[0])
    return found[1] if found is not None else None


def has_summary(content: str) -> bool:
    """Whether a message of the channel shows the summary of a conversation."""
    return any(summary in content for summary in _SUMMARIES)


def _line(item: Item, name: str) -> str:
    return f"- [{item.kind}] {words(named(item.text, name))} (updated {ago(item.updated_at)})"


def _more(number: int) -> str:
    return f"(and {count(number, 'more memory')})"


def _size(lines: Sequence[str]) -> int:
    return sum(utf16_length(line) + 1 for line in lines)
