"""`OfflineModel`: the port `Model` without a network, a key or a language model.

For the demo and for tests. It is honest about what it is: it repeats what the prompt holds, understands
simple sentences, and always answers the same to the same. Here are its turns and shapes; what it says is in
`offline_talk`, what it understands in `offline_facts`.
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
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.models.offline import facts as offline_facts
from discoclaw.models.offline import talk as offline_talk
from discoclaw.models.shapes import checked

STORE_TOOL = "memory_store"

_WORDS_PER_PIECE = 6


class OfflineModel:
    """`name` is ours in conversations; `pause_s` between two pieces lets a person see them arrive."""

    def __init__(self, *, name: str = "DiscoClaw", pause_s: float = 0.0) -> None:
        self._name = name
        self._pause_s = pause_s

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer in pieces of a few words, or one call of the tool that stores a memory."""
        call = _wished(request)
        if call:
            yield Finished(AssistantTurn("", (call,)), "tools")
            return
        text = self._text(request)
        for piece in re.findall(rf"(?:\S+\s*){{1,{_WORDS_PER_PIECE}}}|\s+", text):
            yield TextDelta(piece)
            await asyncio.sleep(self._pause_s)
        yield Finished(AssistantTurn(text), "end")

    async def structured(
        self, *, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """Fill the shape of an extraction (`upserts`), a summary (`summary`, with what is new for a channel's
        own memory), a consolidation (`duplicates`) or a suggestion (`how`).

        Raises ModelBadOutput for any other.
        """
        fields = shape.model_fields.keys()
        if "upserts" in fields:
            found: dict[str, object] = dict(offline_facts.extract(prompt))
        elif "summary" in fields:
            found = {
                "summary": offline_talk.summary(prompt, name=self._name),
                "themes": offline_talk.themes(prompt, name=self._name),
                "decisions": offline_talk.decisions(prompt, name=self._name),
            }
        elif "duplicates" in fields:
            found = dict(offline_facts.tidy(prompt))
        elif "how" in fields:
            found = dict(offline_facts.suggest(prompt))
        else:
            raise ModelBadOutput(f"offline, there is no way to fill a {shape.__name__}")
        return checked(json.dumps({name: value for name, value in found.items() if name in fields}), shape)

    async def close(self) -> None:
        """Nothing is open."""

    def _text(self, request: ModelRequest) -> str:
        last = request.turns[-1] if request.turns else UserTurn("")
        if isinstance(last, ToolTurn):
            return "\n".join(
                f"That did not work: {result.text}" if result.failed else f"Done. {result.text}"
                for result in last.results
            )
        if request.system and request.system[0].text.startswith(titles.HATCHING):
            return offline_talk.interview(_answers(request.turns))
        return offline_talk.answer(offline_talk.hear(_asked(request)), name=self._name)


def _asked(request: ModelRequest) -> str:
    """What the person said last."""
    return next((turn.text for turn in reversed(request.turns) if isinstance(turn, UserTurn)), "")


def _answers(turns: Sequence[Turn]) -> list[str]:
    """What the person answered, in an interview that we began."""
    return [turn.text for turn in turns[1:] if isinstance(turn, UserTurn)]


def _wished(request: ModelRequest) -> ToolCall | None:
    """The call for "remember that …", made once and only when the tool is offered."""
    offered = any(tool.name == STORE_TOOL for tool in request.tools)
    if not offered or not request.turns or not isinstance(request.turns[-1], UserTurn):
        return None
    wish = offline_talk.wish(offline_talk.hear(_asked(request)).message)
    if not wish:
        return None
    # In the words extraction would use, so that it finds the item again instead of adding another.
    said = [one for one in offline_facts.read(wish) if isinstance(one, offline_facts.Statement)]
    stored = {"text": said[0].text, "kind": said[0].kind} if len(said) == 1 else {"text": wish}
    return ToolCall(f"offline_{len(request.turns)}", STORE_TOOL, stored)
