"""The memory tools a model may call while it answers. They reach the speaker's own ledger and no other.

A model's word is a wish: inputs are checked, core's rules decide, and a failure is a clear text the model
can act on. Private items are neither found nor touched outside the person's DMs.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from discoclaw.core.draft import Draft, Origin, find
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.item import Item, Kind, by_newest, durable_line
from discoclaw.core.model import ToolCall, ToolResult, ToolSpec
from discoclaw.core.ports import Clock, Recall
from discoclaw.core.privacy import may_show
from discoclaw.core.text import collapse
from discoclaw.memory.store import Memory

log = logging.getLogger(__name__)

Text = Annotated[str, Field(min_length=1, max_length=2000)]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Search(_Input):
    """Search what you remember of the person you are talking to, beyond what is in front of you."""

    query: Text = Field(description="What to look for, in the person's words.")
    limit: int = Field(default=10, ge=1, le=50, description="How many items at most.")


class Store(_Input):
    """Remember something the person asked you to remember, as one short sentence in the third person."""

    text: Text = Field(description='One fact, for example "User prefers tabs over spaces."')
    kind: Kind = Field(default="fact", description="What kind of memory it is.")
    tags: list[str] = Field(default=[], description="Lower-case words by which it will be named.")
    private: bool = Field(default=False, description="Keep it between you: use it in DMs only.")


class Update(_Input):
    """Correct something you remember of the person."""

    id: Text = Field(description='The item\'s id, such as "durable-2ed36192"; memory_search shows it.')
    text: Text = Field(description="The sentence as it is right now.")


class Forget(_Input):
    """Forget something the person asked you to forget. It stays in the history and can be brought back."""

    item: Text = Field(description="The item's id, or at least 60 % of its text.")


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose memory the tools work on, and from where. `origin` rests on the message being answered."""

    subject: str
    in_dm: bool
    origin: Origin


class MemoryTools:
    """The tools for one turn."""

    def __init__(self, memory: Memory, recall: Recall, clock: Clock, speaker: Speaker) -> None:
        self._memory = memory
        self._recall = recall
        self._clock = clock
        self._speaker = speaker

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call; whatever goes wrong is a result the model can read."""
        entry = _TOOLS.get(call.name)
        if entry is None:
            return ToolResult(
                call.id, f"there is no tool {call.name!r}; use {', '.join(_TOOLS)}", failed=True
            )
        shape, work = entry
        try:
            return ToolResult(call.id, await work(self, shape.model_validate(dict(call.input))))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'input'}: {e['msg']}" for e in error.errors()
            )
            return ToolResult(call.id, f"{call.name} was not called correctly: {faults}", failed=True)
        except Refused as refusal:
            return ToolResult(call.id, str(refusal), failed=True)
        except MemoryFault as fault:
            log.warning("%s for %s failed: %s", call.name, self._speaker.subject, fault)
            return ToolResult(call.id, "memory can not be used right now; nothing was changed", failed=True)

    async def _search(self, wanted: Search) -> str:
        view = await self._memory.view(self._speaker.subject)
        items = self._visible(view.active())
        if not items:
            return "Nothing is remembered of this person yet."
        found = [hit.item for hit in self._recall.rank(wanted.query, items, now_ms=self._clock())]
        head = [] if found else ["No item has these words. The newest items, should one of them be meant:"]
        shown = (found or sorted(items, key=by_newest))[: wanted.limit]
        return "\n".join([*head, *(f"{durable_line(item)} [{item.id}]" for item in shown)])

    async def _store(self, wanted: Store) -> str:
        def add(draft: Draft) -> str:
            item, done = draft.upsert(
                wanted.kind,
                wanted.text,
                self._speaker.origin,
                tags=wanted.tags,
                marked="private" if wanted.private else "normal",
            )
            if not may_show(item, in_dm=self._speaker.in_dm) and item.text != collapse(wanted.text):
                return f"{_SAID[done]}."  # the item meant is private, and this place is not
            where = (
                " It is private: used in DMs with this person only."
                if not may_show(item, in_dm=False)
                else ""
            )
            return f"{_SAID[done]}: {item.text} [{item.id}].{where}"

        return await self._change("memory_store", add)

    async def _update(self, wanted: Update) -> str:
        def update(draft: Draft) -> str:
            item = self._the_one(draft, wanted.id)
            item, done = draft.upsert(
                item.kind, wanted.text, self._speaker.origin, given_id=item.id, marked=item.facets.sensitivity
            )
            return f"{_SAID[done]}: {item.text} [{item.id}]."

        return await self._change("memory_update", update)

    async def _forget(self, wanted: Forget) -> str:
        def forget(draft: Draft) -> str:
            item = self._the_one(draft, wanted.item)
            draft.remove(item, replace(self._speaker.origin, author="stated"))
            return f"Forgotten: {item.text} [{item.id}]."

        return await self._change("memory_forget", forget)

    async def _change(self, tool: str, wish: Callable[[Draft], str]) -> str:
        source = self._speaker.origin.source
        return await self._memory.change(
            self._speaker.subject, f"{tool} during a talk", wish, by=tool, message=str(source)
        )

    def _visible(self, items: list[Item]) -> list[Item]:
        return [item for item in items if may_show(item, in_dm=self._speaker.in_dm)]

    def _the_one(self, draft: Draft, wanted: str) -> Item:
        """The one visible item that is meant. Raises Refused when there is none, or more than one."""
        found = find(self._visible(list(draft.items.values())), wanted)
        if not found:
            raise Refused(f"no item matches {wanted!r}; memory_search shows items with their ids")
        if len(found) > 1:
            names = "; ".join(f"{item.text} [{item.id}]" for item in found[:10])
            raise Refused(f"{wanted!r} matches {len(found)} items, name one by its id: {names}")
        return found[0]


_SAID: Mapping[str, str] = {
    "added": "Remembered",
    "updated": "Updated",
    "restored": "Remembered again",
    "unchanged": "Already remembered",
    "ignored": "Not changed, the person has said otherwise since",
    "conflict": (
        "Not changed, since the person set this with a command; the contradiction is noted, and they can "
        "settle it with /memory remember or /memory forget"
    ),
}

_Work = Callable[[MemoryTools, "_Input"], Awaitable[str]]
_TOOLS: Mapping[str, tuple[type[_Input], _Work]] = {
    "memory_search": (Search, MemoryTools._search),  # type: ignore[dict-item]
    "memory_store": (Store, MemoryTools._store),  # type: ignore[dict-item]
    "memory_update": (Update, MemoryTools._update),  # type: ignore[dict-item]
    "memory_forget": (Forget, MemoryTools._forget),  # type: ignore[dict-item]
}

SPECS: tuple[ToolSpec, ...] = tuple(
    ToolSpec(name, " ".join((shape.__doc__ or "").split()), shape.model_json_schema())
    for name, (shape, _) in _TOOLS.items()
)
"""What the model is told of the tools."""
