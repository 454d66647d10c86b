"""What is noted about a tool that the model called for a person: its name, whether it worked, its answer.

Only what is the person's own is noted. An answer may also show what others said in a channel; that part
stays out, since an erasing of theirs would not find it here. An answer that may show what is for the person's
direct messages only is noted as private. Confidential text is not noted at all.
"""

from collections.abc import Iterable

from discoclaw.core.item import Item
from discoclaw.core.model import ToolCall, ToolResult
from discoclaw.core.privacy import may_show
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.subjects.store import Memory
from discoclaw.session.archive_search import HEADING
from discoclaw.session.arrival import Arrival

WITHHELD = "(confidential)"


class CallLog:
    """Notes calls in the tool log, given what `memory` has to be kept private."""

    def __init__(self, memory: Memory, tool_log: ToolLog) -> None:
        self._memory = memory
        self._tool_log = tool_log

    def note(self, arrival: Arrival, call: ToolCall, result: ToolResult) -> None:
        """Note a call made to answer a message, if the message may be kept. Never blocks."""
        if not arrival.permission.holds:
            return
        content = result.text.partition(f"\n\n{HEADING}")[0]
        secret = self._secret(arrival.subject)
        shown = [] if secret is None else [item for item in secret if item.text in content]
        confidential = any(not may_show(item, in_dm=True) for item in shown)
        self._tool_log.note(
            arrival.subject,
            tool=call.name,
            ok=not result.failed,
            content=WITHHELD if confidential else content,
            channel=arrival.place.channel_id,
            session=arrival.session_key,
            private=arrival.place.private or secret is None or bool(shown),
            said_at=arrival.message.sent_at,
        )

    def _secret(self, subject: str) -> Iterable[Item] | None:
        """The person's items that are not for everybody, on all personas at hand; None when nobody knows."""
        branches = self._memory.branches_in_ram(subject)
        if branches is None:
            return None
        views = (self._memory.view_in_ram(subject, name) for name in branches.all)
        items = (item for view in views if view is not None for item in view.items.values())
        return [item for item in items if not may_show(item, in_dm=False)]
