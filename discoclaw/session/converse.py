"""The talk with the model within one turn: it streams into the reply and calls tools, until it answered."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

from discoclaw.core.draft import Origin
from discoclaw.core.errors import ModelError
from discoclaw.core.item import Source
from discoclaw.core.message import Inbound
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolTurn,
)
from discoclaw.core.ports import Model, Reply
from discoclaw.session.archive_rules import visible_at
from discoclaw.session.archive_search import section
from discoclaw.session.compact import Transcript
from discoclaw.session.noted import note
from discoclaw.session.parts import Parts
from discoclaw.session.tools import MemoryTools, Speaker, TalkSearch

TOOL_ROUNDS = 6
NO_TOOLS = "there are no tools here; answer without"
CUT_ANSWER = "\n\n*(My answer reached its length limit here. Say “go on” for the rest.)*"


async def converse(
    parts: Parts, tools: MemoryTools | None, request: ModelRequest, reply: Reply, message: Inbound
) -> str:
    """Stream the answer to a message into the reply, running tools as the model asks. Returns its text."""
    transcript = Transcript(request, parts.context_tokens)
    text: list[str] = []
    for round_number in range(TOOL_ROUNDS + 2):
        # The last rounds may not call tools, so that the model has to say something.
        may_call = bool(request.tools) and round_number < TOOL_ROUNDS
        if transcript.compact() and request.subject is not None:
            asyncio.get_running_loop().call_soon(parts.compacted, request.subject)
        finished = await _stream(parts.model, transcript.request(may_call=may_call), reply, text)
        if finished.stop == "length":
            await reply.push(CUT_ANSWER)
        if finished.stop != "tools" or not finished.turn.calls:
            break
        if not may_call and (text or round_number > TOOL_ROUNDS):
            break
        if text and not text[-1].endswith("\n"):
            text.append("\n\n")  # what is said before and after a tool are two paragraphs
            await reply.push("\n\n")
        if may_call and tools is not None:
            calls = finished.turn.calls
            results = ToolTurn(tuple([await _called(parts, tools, call, message) for call in calls]))
        else:
            results = _refused(finished.turn)
        transcript.add(finished, results)
    return "".join(text)


async def _called(parts: Parts, tools: MemoryTools, call: ToolCall, message: Inbound) -> ToolResult:
    """What a tool answers. What the model puts in may be stored, so no secret is in it."""
    result = await tools.call(replace(call, input=parts.redactor.value(call.input)))
    note(parts, message, call, result)
    return result


def _refused(turn: AssistantTurn) -> ToolTurn:
    """For calls though none were allowed, as some local models make them."""
    return ToolTurn(tuple(ToolResult(call.id, NO_TOOLS, failed=True) for call in turn.calls))


async def _stream(model: Model, request: ModelRequest, reply: Reply, text: list[str]) -> Finished:
    finished: Finished | None = None
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                text.append(event.text)
                await reply.push(event.text)
            else:
                finished = event
    if finished is None:
        raise ModelError("the model's stream ended without an end")
    return finished


def tools_for(parts: Parts, message: Inbound, recalled: str | None) -> MemoryTools | None:
    """The memory tools for this turn; none for somebody of whom nothing is to be remembered.

    `recalled` is the branch that the prompt was made of.
    """
    if parts.memory is None or not parts.remembers(message.author.id):
        return None
    place = message.place
    origin = Origin(
        "inferred",
        Source("discord", place.channel_id, message.id),
        said_at=message.sent_at,
        private=place.private,
        evidence="asked for during a talk",
        dm_privacy=parts.dm_privacy,
    )
    speaker = Speaker(message.author.id, place.kind == "dm", origin, parts.personas.of(place), recalled)
    return MemoryTools(
        parts.memory,
        parts.recall,
        parts.clock,
        speaker,
        choices=parts.choices,
        tidy=parts.tidy,
        access=parts.access,
        recall_limit=parts.recall_limit,
        meaning=parts.meaning,
        finder=parts.finder,
        talk=_talk_of(parts, message),
    )


def _talk_of(parts: Parts, message: Inbound) -> TalkSearch | None:
    """How the model searches what was said where it answers, beyond the talk it sees; None: it can not."""
    archiving, place = parts.archiving, message.place
    if archiving is None or not archiving.on(place):
        return None

    async def search(query: str, limit: int) -> str:
        seen = {message.id, *(said.id for said in parts.windows.use(message.session_key).recent())}
        visible = visible_at(place, message.author.id)
        found = await archiving.search(query, visible, limit=limit, without=seen)
        return section(found, place)

    return search
