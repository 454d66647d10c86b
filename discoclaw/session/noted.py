"""What is noted of a tool that the model called for a person: its name, whether it worked, what it answered.

Noted is what is the person's: an answer may also show what others said in a channel, and that part stays
out, since an erasing of theirs would not find it here. Of an answer that may show what is for the person's
direct messages only, it is noted that it is private; what is confidential is not noted at all.
"""

from collections.abc import Iterable

from discoclaw.core.item import Item
from discoclaw.core.message import Inbound
from discoclaw.core.model import ToolCall, ToolResult
from discoclaw.core.privacy import may_show
from discoclaw.session.archive_search import HEADING
from discoclaw.session.parts import Parts, whose

WITHHELD = "(confidential)"


def note(parts: Parts, message: Inbound, call: ToolCall, result: ToolResult) -> None:
    """Note a call made to answer a message; nothing of somebody who wants no memory. Never blocks."""
    subject, place = whose(parts, message), message.place
    if parts.tool_log is None or subject is None:
        return
    content = result.text.partition(f"\n\n{HEADING}")[0]
    secret = _secret(parts, subject)
    shown = [] if secret is None else [item for item in secret if item.text in content]
    confidential = any(not may_show(item, in_dm=True) for item in shown)
    parts.tool_log.note(
        subject,
        tool=call.name,
        ok=not result.failed,
        content=WITHHELD if confidential else content,
        channel=place.channel_id,
        session=message.session_key,
        private=place.private or secret is None or bool(shown),
        said_at=message.sent_at,
    )


def _secret(parts: Parts, subject: str) -> Iterable[Item] | None:
    """The person's items that are not for everybody, on all personas at hand; None when nobody knows."""
    branches = parts.memory.branches_in_ram(subject) if parts.memory is not None else None
    if parts.memory is None or branches is None:
        return None
    views = (parts.memory.view_in_ram(subject, name) for name in branches.all)
    items = (item for view in views if view is not None for item in view.items.values())
    return [item for item in items if not may_show(item, in_dm=False)]
