"""Records a tool call that the model made for a person: its name, whether it worked, its answer.

Only the person's own information is recorded. An answer may also show what others said in a channel; that
part stays out, since an erasing of those people would not find it here. An answer that may show something
meant only for the person's direct messages is marked private. Confidential text is not recorded. Nor is an
answer with what the person took back: it may be the answer to that very request.
"""

from collections.abc import Iterable, Iterator

from discoclaw.core.item import Item
from discoclaw.core.model import ToolCall, ToolResult
from discoclaw.core.privacy import may_show
from discoclaw.core.view import View
from discoclaw.memory.off import AnyMemory, NoToolLog
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.session.archive_search import HEADING
from discoclaw.session.arrival import Arrival

WITHHELD = "(confidential)"
TAKEN_BACK = "(taken back)"


class CallLog:
    """Records calls in the tool log; `memory` says which text is private."""

    def __init__(self, memory: AnyMemory, tool_log: ToolLog | NoToolLog) -> None:
        self._memory = memory
        self._tool_log = tool_log

    def note(self, arrival: Arrival, call: ToolCall, result: ToolResult) -> None:
        """Record a call made to answer a message, if the message may be stored. Never blocks."""
        if not arrival.permission.holds:
            return
        content = result.text.partition(f"\n\n{HEADING}")[0]
        secret = self._secret(arrival.subject)
        shown = [] if secret is None else [item for item in secret if item.text in content]
        confidential = any(not may_show(item, in_dm=True) for item in shown)
        if confidential:
            content = WITHHELD
        elif self._was_taken_back(arrival.subject, content, private=arrival.place.private):
            content = TAKEN_BACK
        self._tool_log.note(
            arrival.subject,
            tool=call.name,
            ok=not result.failed,
            content=content,
            channel=arrival.place.channel_id,
            session=arrival.session_key,
            private=arrival.place.private or secret is None or bool(shown),
            said_at=arrival.message.sent_at,
        )

    def _secret(self, subject: str) -> Iterable[Item] | None:
        """The person's items that are not public, from all personas in RAM; None if that is unknown."""
        if self._memory.branches_in_ram(subject) is None:
            return None
        items = (item for view in self._views(subject) for item in view.items.values())
        return [item for item in items if not may_show(item, in_dm=False)]

    def _was_taken_back(self, subject: str, content: str, *, private: bool) -> bool:
        taken = (one for view in self._views(subject) for one in view.purges(subject))
        return any(one.words.hold(content) for one in taken if not (one.open_only and private))

    def _views(self, subject: str) -> Iterator[View]:
        """The personas that are in RAM."""
        branches = self._memory.branches_in_ram(subject)
        for name in branches.all if branches is not None else ():
            if (view := self._memory.view_in_ram(subject, name)) is not None:
                yield view
