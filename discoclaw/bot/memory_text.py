"""What people are shown of their memory: texts only, no Discord objects."""

from collections.abc import Sequence

from discoclaw.core.item import Item
from discoclaw.core.text import clip, utf16_length
from discoclaw.core.times import date_of, iso_ms
from discoclaw.core.view import View
from discoclaw.memory.rolling import Rolling

HELP = """\
**What I remember, and how you change it** (each also works as a slash command, `/memory …`)
`!memory show` – what I remember of you, and this conversation's summary
`!memory remember <text>` – remember something
`!memory forget <text or id>` – no longer use it (at least 60 % of its text, or its id)
`!memory share <text or id>` – let me use a private item outside our DMs
`!memory private <text or id>` – use an item in our DMs only
`!memory reset rolling` – clear the summary of this conversation
`!memory help` – this text
Ordinary talk works too: “please remember that …”."""

MORE = "({count} more items on disk)"


def show(view: View, rolling: Rolling, *, in_private: bool) -> str:
    """Everything a person may see of their memory here. `in_private`: nobody else reads the answer."""
    items = view.active()
    shown = [item for item in items if in_private or item.facets.sensitivity == "normal"]
    lines = [f"**Durable memory** ({_count(len(items))})"]
    lines += [line_of(item) for item in shown] or [
        "Nothing yet. Try `!memory remember I prefer short answers`."
    ]
    if hidden := len(items) - len(shown):
        lines.append(f"({_count(hidden, 'private item')}: use `/memory show`, or ask me in a DM)")
    deprecated = sum(1 for item in view.items.values() if not item.active)
    if deprecated:
        lines.append(f"({deprecated} forgotten, kept on disk; `!memory remember <text>` brings one back)")
    lines += _conflicts(view, shown, in_private=in_private)
    lines.append("")
    if rolling.summary:
        lines += [f"**Conversation memory** (updated {iso_ms(rolling.updated_at)[:16]}Z)", rolling.summary]
    else:
        lines.append("**Conversation memory**: no summary of this conversation yet")
    return "\n".join(lines)


def _count(number: int, thing: str = "item") -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def line_of(item: Item) -> str:
    """One item with its id: `- [fact] text (id 2ed36192, updated 2026-02-09, private)`."""
    secret = "" if item.facets.sensitivity == "normal" else f", {item.facets.sensitivity}"
    short = item.id.removeprefix("durable-")
    return f"- [{item.kind}] {item.text} (id {short}, updated {date_of(item.updated_at)}{secret})"


def _conflicts(view: View, shown: Sequence[Item], *, in_private: bool) -> list[str]:
    """What later talk says against something the person stated."""
    by_id = {item.id: item for item in shown}
    lines = []
    for conflict in view.conflicts:
        item = by_id.get(conflict.item_id)
        if item is None or (conflict.sensitivity != "normal" and not in_private):
            continue
        later = f"“{conflict.text}”" if conflict.text else "that it no longer holds"
        lines.append(
            f"- You told me “{item.text}”; later talk suggests {later}. I keep yours until you "
            f"`!memory remember` or `!memory forget {item.id.removeprefix('durable-')}`."
        )
    return ["", "**To settle**", *lines] if lines else []


def snapshot(name: str, user_id: str, view: View, rolling: Rolling, place: str, *, limit: int = 2000) -> str:
    """A person's memory for the transparency channel, at most `limit` UTF-16 units, never split.

    Only what may be shown to anybody. When there is no room for all, the newest items stay and the summary
    is cut to what half of the message leaves it.
    """
    items = [item for item in view.active() if item.facets.sensitivity == "normal"]
    items.sort(key=lambda item: -item.updated_at)
    head = [f"**Memory of {name}** ({user_id})", f"updated {iso_ms(view.updated_at)[:16]}Z", ""]
    head.append("**Durable memory (active)**")
    lines = [f"- [{item.kind}] {item.text} (updated {date_of(item.updated_at)})" for item in items]
    tail: list[str] = []
    if rolling.summary:
        tail = ["", f"**Conversation memory** ({place}, updated {iso_ms(rolling.updated_at)[:16]}Z)"]
        used = _size([*head, *tail]) + min(_size(lines), limit // 2)
        tail.append(clip(rolling.summary, max(0, limit - used - 60)))
    room = limit - _size(head) - _size(tail) - utf16_length(MORE.format(count=len(lines))) - 1
    kept = 0
    while kept < len(lines) and (room := room - utf16_length(lines[kept]) - 1) >= 0:
        kept += 1
    more = [MORE.format(count=len(lines) - kept)] if kept < len(lines) else []
    return "\n".join([*head, *(lines[:kept] if lines else ["nothing yet"]), *tail, *more])


def _size(lines: Sequence[str]) -> int:
    return sum(utf16_length(line) + 1 for line in lines)
