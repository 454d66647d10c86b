"""What every memory tool shares: its definition, whose memory it reaches, and how a call is answered.

A tool reaches only the speaker's own ledger. Model output is only a request: inputs are checked, core's rules
decide, and a failure is a clear text the model can act on. Outside the person's DMs, private items are
neither found nor changed. Every write is one commit that names the tool and the message answered. Independent
of any particular tool.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from discoclaw.core.consent import Permission
from discoclaw.core.consolidate import ConsolidationReport
from discoclaw.core.draft import Draft, Origin, find
from discoclaw.core.errors import MemoryFault, MemoryLate, Refused
from discoclaw.core.item import Item
from discoclaw.core.model import SMALL_READS, ToolCall, ToolResult, ToolSpec
from discoclaw.core.ports import ChoiceOffer, Offer, ReminderOffer
from discoclaw.core.privacy import may_show
from discoclaw.core.titles import ShortIds
from discoclaw.core.view import View
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.purge import Purger
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.session.meaning import Question
from discoclaw.session.prepare import ItemSearch
from discoclaw.show.purge import purge_report
from discoclaw.store.threads import in_time

log = logging.getLogger(__name__)

Text = Annotated[str, Field(min_length=1, max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Category = Literal["core", "knowledge", "conversation"]

Tidy = Callable[[str, str | None, Mapping[str, str]], Coroutine[Any, Any, ConsolidationReport]]
"""Consolidates a subject's branch now, with the given commit metadata.

Raises Refused, ModelError or MemoryFault.
"""
TalkSearch = Callable[[str, int, Question | None], Awaitable[str]]
"""Searches the talk in this place for a query: at most so many messages, as a text. Raises MemoryFault.

The question is the same query on its way to be embedded.
"""


async def no_talk(query: str, limit: int, question: Question | None) -> str:
    """The `TalkSearch` of a place whose talk is not archived."""
    return ""


MEMORY_FAILED = "memory cannot be used right now; nothing was changed"
MEMORY_LATE = (
    "memory does not answer in time. If this was to change something, that may still happen: "
    "tell the person to look at it later, and do without memory now"
)


FORGOTTEN = "(forgotten)"
_SHORT_ID = re.compile(r"[\[(]?i\d{1,6}[\])]?", re.IGNORECASE)


class ToolInput(BaseModel):
    """What a model puts into a call: exactly the declared fields. The docstring is what the model is told."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Speaker:
    """The person whose memory the tools work on, and the place they speak in.

    `origin` rests on the message being answered. `branch` is the persona that the place prescribes, or None
    for the person's HEAD. `answered_as` is the persona the answer is made for, even if HEAD moves meanwhile;
    None means whatever HEAD is. `text` is what they said, and `channel_id` where, "" in a DM.
    """

    permission: Permission
    in_dm: bool
    origin: Origin
    branch: str | None = None
    answered_as: str | None = None
    text: str = ""
    channel_id: str = ""

    @property
    def user_id(self) -> str:
        return self.permission.user_id

    @property
    def subject(self) -> str:
        return self.permission.subject


@dataclass(frozen=True, slots=True)
class ToolParts:
    """The parts of memory that tools work on; the same in every turn.

    `zone` is that of people who have told us none.
    """

    memory: AnyMemory
    search: ItemSearch
    choices: Choices
    tidy: Tidy
    purger: Purger
    zone: tzinfo = UTC


class ToolContext:
    """One turn's access to memory. `offers` are what the model proposes, and the person decides about.

    `talk` searches what was said where the person speaks. `shown` has the short ids under which the model was
    shown items in this turn, in the prompt and by tools. `late`: a call didn't end in time, so that no other
    is tried. `names` are those of the people in the talk.
    """

    def __init__(
        self,
        parts: ToolParts,
        speaker: Speaker,
        shown: ShortIds,
        talk: TalkSearch = no_talk,
        names: Collection[str] = (),
    ) -> None:
        self.offers: list[Offer | ChoiceOffer | ReminderOffer] = []
        self.late = False
        self.speaker = speaker
        self.memory = parts.memory
        self.items = parts.search
        self.choices = parts.choices
        self.tidy = parts.tidy
        self.purger = parts.purger
        self.zone = parts.zone
        self.talk = talk
        self.names = names
        self.shown = shown
        self.branch = speaker.branch or speaker.answered_as

    def check_wanted(self) -> None:
        """Raise Refused if the person opted out, or erased everything, while being answered."""
        if self.speaker.permission.opted_out:
            raise Refused("the person wants no memory; do without")
        if self.speaker.permission.erased:
            raise Refused("the person had their memory erased meanwhile; do without")

    def why(self, tool: str) -> dict[str, Any]:
        """The commit metadata that says who made a change."""
        return {"by": tool, "message": str(self.speaker.origin.source)}

    async def change(self, tool: str, edit: Callable[[Draft], str]) -> str:
        """Let `edit` draft a change, and record it as one commit. Returns what `edit` returns."""
        return await self.memory.change(
            self.speaker.subject,
            f"{tool} during a talk",
            edit,
            branch=self.branch,
            begin=self.speaker.branch is not None,
            **self.why(tool),
        )

    async def view(self) -> View:
        """The speaker's memory on the persona the answer is for."""
        return await self.memory.view(self.speaker.subject, self.branch)

    async def branch_name(self) -> str:
        """The name of the persona the answer is for."""
        return self.branch or (await self.memory.branches(self.speaker.subject)).current

    def ask(self, query: str, *, of_talk: bool = False) -> Question | None:
        """Begin to embed a query, for memories and, with `of_talk`, for the talk in this place."""
        return self.items.meaning.ask(
            self.speaker.subject,
            query,
            private=self.speaker.origin.private,
            names=self.names,
            always=of_talk and self.talk is not no_talk,
        )

    async def found(
        self, query: str, items: Sequence[Item], limit: int, question: Question | None
    ) -> tuple[list[Item], list[Item], int]:
        """The items that the query finds among these, best first; those possibly related; how many more fit.

        Those found count as used now. `question` is the query, from `ask`.
        """
        branch = await self.branch_name()
        return await self.items.find(
            self.speaker.subject, branch, query, items, limit=limit, question=question
        )

    def visible(self, items: Iterable[Item]) -> list[Item]:
        """The items that may be shown where the person speaks."""
        return [item for item in items if may_show(item, in_dm=self.speaker.in_dm)]

    def name(self, item: Item) -> str:
        """The short id of an item in this turn; a new one if it has none yet."""
        return self.shown.of(item.id)

    def the_one(self, items: Iterable[Item], wanted: str) -> Item:
        """Return the one visible item that is meant. Raises Refused if there is none, or more than one.

        A short id of this turn stands for the item that was shown under it. Other words are a key, or at
        least 60 % of a text.
        """
        found = find(self.visible(items), self.shown.meant(wanted) or wanted)
        if not found and self.shown.meant(wanted) is None and _SHORT_ID.fullmatch(wanted.strip()):
            raise Refused(f"no item was shown as {wanted!r}; memory_search shows items with their ids")
        if not found:
            raise Refused(f"no item matches {wanted!r}; memory_search shows items with their ids")
        if len(found) > 1:
            known = ((item.text if item.active else FORGOTTEN, self.name(item)) for item in found[:10])
            names = "; ".join(f"{text} [{short}]" for text, short in known)
            raise Refused(f"{wanted!r} matches {len(found)} items, name one by its id: {names}")
        return found[0]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, the shape of its input, and its function.

    `more`: a model that reads little at once does without it. `waits`: it limits by itself how long it takes.
    The others have as long as a reply waits for a disk.
    """

    name: str
    shape: type[ToolInput]
    run: Callable[[ToolContext, Any], Coroutine[Any, Any, str]]
    more: bool = False
    waits: bool = False

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return ToolSpec(
            self.name, " ".join((self.shape.__doc__ or "").split()), lean(self.shape.model_json_schema())
        )


class Toolbox:
    """All tools by name. `specs` describes them to the model, `fewer` those that each model is offered.

    Neither depends on what is said: whatever stands behind the tools in a request, a server would have to
    read again.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(sorted(tools, key=lambda tool: tool.more))
        self.specs = _cached(self.tools)
        self.fewer = _cached([tool for tool in self.tools if not tool.more])
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}

    def offered(self, reads: int) -> tuple[ToolSpec, ...]:
        """The tools for a model that reads so many tokens at once."""
        return self.fewer if reads < SMALL_READS else self.specs

    async def call(self, context: ToolContext, call: ToolCall) -> ToolResult:
        """Run one call. Never raises: a failure becomes a result the model can read."""
        tool = self._tools.get(call.name)
        if tool is None:
            offered = ", ".join(spec.name for spec in self.specs)
            return ToolResult(call.id, f"there is no tool {call.name!r}; use {offered}", failed=True)
        try:
            context.check_wanted()
            if not isinstance(call.input, Mapping):
                odd = "its input is not a JSON object that can be read; try again"
                return ToolResult(call.id, f"{call.name} was not called correctly: {odd}", failed=True)
            wanted = tool.shape.model_validate(dict(call.input))
            if context.late:
                return ToolResult(call.id, MEMORY_LATE, failed=True)
            return ToolResult(call.id, await _told(context, tool, wanted))
        except ValidationError as error:
            return ToolResult(call.id, f"{call.name} was not called correctly: {faults(error)}", failed=True)
        except Refused as refusal:
            return ToolResult(call.id, str(refusal), failed=True)
        except MemoryLate as late:
            context.late = True
            log.warning("%s for %s goes on by itself: %s", call.name, context.speaker.subject, late)
            return ToolResult(call.id, MEMORY_LATE, failed=True)
        except MemoryFault as fault:
            log.warning("%s for %s failed: %s", call.name, context.speaker.subject, fault)
            return ToolResult(call.id, MEMORY_FAILED, failed=True)


def faults(error: ValidationError) -> str:
    """What is wrong with the input of a call, for the model."""
    return "; ".join(
        f"{'.'.join(map(str, e['loc'])) or 'input'}: {e['msg'].removeprefix('Value error, ')}"
        for e in error.errors()
    )


def _cached(tools: Sequence[Tool]) -> tuple[ToolSpec, ...]:
    """The specs of these tools; a provider may cache them up to the last one."""
    specs = [tool.spec for tool in tools]
    return (*specs[:-1], *(replace(spec, cache=True) for spec in specs[-1:]))


async def _told(context: ToolContext, tool: Tool, wanted: ToolInput) -> str:
    """Run a tool: its result, and below it from where what the person took back was removed."""
    work = tool.run(context, wanted)
    text, report = await context.purger.told(context.speaker.subject, work if tool.waits else in_time(work))
    return f"{text}\n{purge_report(report)}".rstrip("\n")


# ---------------------------------------------------------------------- lean schemas

_NEEDLESS = frozenset({"title", "minLength", "maxLength"})


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an input, with what a call consists of and its limits in numbers."""
    fields = {name: _field(field) for name, field in schema["properties"].items()} if schema else {}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": fields, **required, "additionalProperties": False}


def _field(given: Mapping[str, Any]) -> dict[str, Any]:
    field = {name: value for name, value in given.items() if name not in _NEEDLESS}
    kinds = [kind for kind in field.pop("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        field = {**_field(kinds[0]), **field}
    elif kinds:
        field["anyOf"] = [_field(kind) for kind in kinds]
    if field.get("default", "") in (None, "", []):
        field.pop("default", None)
    if isinstance(field.get("items"), Mapping):
        field["items"] = _field(field["items"])
    return field
