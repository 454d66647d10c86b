"""`OfflineModel`: the port `Model` without a network, a key or a language model. For the demo and for tests.

It repeats what the prompt holds, understands simple sentences, and gives the same answer to the same prompt.
This module has its turns and structured answers. What it says is in `talk`, what it understands in `facts`.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence

from discoclaw.core import titles
from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.models.offline import facts, talk
from discoclaw.models.structured import checked

STORE_TOOL = "memory_store"
SEARCH_TOOL = "memory_search"
MOST_FOUND = 50
"""The most memories that a search shows it."""

_WORDS_PER_PIECE = 6


class OfflineModel:
    """`name` is the bot's name in a conversation. `pause_s` is the pause between two pieces of an answer.

    `stands_in`: for a language model that may not be asked for now, so it says only what is in the memory.
    """

    def __init__(self, *, name: str = "DiscoClaw", pause_s: float = 0.0, stands_in: bool = False) -> None:
        self._name = name
        self._pause_s = pause_s
        self._stands_in = stands_in

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer in pieces of a few words, or a call of the tool that stores or finds memories."""
        if call := _store_call(request) or _search_call(request):
            yield Finished(AssistantTurn("", (call,)), "tools")
            return
        text = self._text(request)
        for piece in re.findall(rf"(?:\S+\s*){{1,{_WORDS_PER_PIECE}}}|\s+", text):
            yield TextDelta(piece)
            await asyncio.sleep(self._pause_s)
        yield Finished(AssistantTurn(text), "end")

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """Fill the shape of an extraction, a summary, a consolidation or a suggestion.

        A shape is recognised by a field that only it has, so that this module doesn't import the loops'
        shapes. Raises ModelBadOutput for any other shape.
        """
        fields = shape.model_fields.keys()
        if "upserts" in fields:
            found: dict[str, object] = dict(facts.extract(prompt))
        elif "summary" in fields:
            found = {
                "summary": talk.summary(prompt, name=self._name),
                "themes": talk.themes(prompt, name=self._name),
                "decisions": talk.decisions(prompt, name=self._name),
            }
        elif "duplicates" in fields:
            found = dict(facts.consolidate(prompt))
        elif "how" in fields:
            found = dict(facts.suggest(prompt))
        else:
            raise ModelBadOutput(f"the offline model cannot fill a {shape.__name__}")
        return checked(json.dumps({name: value for name, value in found.items() if name in fields}), shape)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _text(self, request: ModelRequest) -> str:
        last = request.turns[-1] if request.turns else UserTurn("")
        turn = talk.parse(_last_message(request))
        if isinstance(last, ToolTurn):
            if not _searched(request):
                return "\n".join(talk.from_tool(one.text, failed=one.failed) for one in last.results)
            turn = talk.with_found(turn, "\n".join(one.text for one in last.results if not one.failed))
        if request.system and request.system[0].text.startswith(titles.HATCHING):
            return talk.interview(_answers(request.turns))
        return talk.from_memory(turn) if self._stands_in else talk.answer(turn, name=self._name)


def _last_message(request: ModelRequest) -> str:
    """The newest user turn, "" if there is none."""
    return next((turn.text for turn in reversed(request.turns) if isinstance(turn, UserTurn)), "")


def _answers(turns: Sequence[Turn]) -> list[str]:
    """The person's answers in an interview. The first turn is the request to begin it, not an answer."""
    return [turn.text for turn in turns[1:] if isinstance(turn, UserTurn)]


def _store_call(request: ModelRequest) -> ToolCall | None:
    """The tool call for "remember that …", made once and only when the tool is offered."""
    if not _may_call(request, STORE_TOOL):
        return None
    text = talk.asked_to_remember(talk.parse(_last_message(request)).message)
    if not text:
        return None
    # The words that extraction would use, so that it later finds this item instead of adding another.
    read = [one for one in facts.read(text) if not one.ended]
    stored = {"text": read[0].text, "kind": read[0].rule.topic.kind} if len(read) == 1 else {"text": text}
    return ToolCall(f"offline_{len(request.turns)}", STORE_TOOL, stored)


def _search_call(request: ModelRequest) -> ToolCall | None:
    """The search for what the prompt doesn't answer, made once and only when the tool is offered."""
    hatching = request.system and request.system[0].text.startswith(titles.HATCHING)
    if hatching or not _may_call(request, SEARCH_TOOL):
        return None
    query = talk.to_look_up(talk.parse(_last_message(request)))
    wanted = {"query": query, "limit": MOST_FOUND}
    return ToolCall(f"offline_{len(request.turns)}", SEARCH_TOOL, wanted) if query else None


def _may_call(request: ModelRequest, tool: str) -> bool:
    """Whether a tool is offered, and the person said something since it was last called."""
    offered = any(one.name == tool for one in request.tools)
    return offered and bool(request.turns) and isinstance(request.turns[-1], UserTurn)


def _searched(request: ModelRequest) -> bool:
    """Whether the last calls were searches."""
    calls = next((turn.calls for turn in reversed(request.turns) if isinstance(turn, AssistantTurn)), ())
    return bool(calls) and all(call.name == SEARCH_TOOL for call in calls)
