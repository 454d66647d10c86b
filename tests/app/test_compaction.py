"""Long transcripts in the whole bot, at the settings it has by itself: what leaves them, and what stays."""

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ToolCall,
    Usage,
    UserTurn,
)
from discoclaw.models.anthropic.provider import AnthropicProvider
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.servers import messages_api as api
from tests.servers.messages_api import Answer, MessagesServer, Received

QUIET = {"extraction_enabled": False, "summary_every": 99}


def working(rounds: int, usage: Callable[[int], int] = lambda done: 10) -> Callable[[Received], Answer]:
    """A server whose model looks for something else in each of so many rounds, then answers.

    `usage` is the number of tokens it counts in a request after so many rounds.
    """
    done = iter(range(1000))

    def answer(request: Received) -> Answer:
        number = next(done)
        counted = {"input_tokens": usage(number), "output_tokens": 0}
        if number < rounds and "tool_choice" not in request.body:
            call = (f"t{number}", "memory_search", {"query": f"tea {number}"})
            return api.tool_use(call, usage=counted)
        return api.text("That was long.", usage=counted)

    return answer


def called(message: dict[str, Any]) -> list[str]:
    return [block["id"] for block in message["content"] if block["type"] == "tool_use"]


def answered(message: dict[str, Any]) -> list[str]:
    return [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]


class TestAnAnswerWithManyCalls:
    @pytest.mark.design(149, 150, 151, 152)
    async def test_loses_its_middle_at_more_than_fifty_messages(
        self, start: Start, server: MessagesServer
    ) -> None:
        server.default = working(30)
        provider = AnthropicProvider(api_key="k", base_url=server.base_url)
        async with start(provider.model("haiku"), **QUIET) as world:
            note_old_call(world)
            await world.ann.send_dm("What do you know about my tea?")
            await world.settle()
            assert world.answer(world.ann_dm) == "That was long."
            calls = tool_log(world).read_text(encoding="utf-8")
            assert calls.count("memory_search") == 30
            assert "memory_list" not in calls  # hygiene purged what was too old
        sent = [request.body for request in server.requests]
        assert [len(body["messages"]) for body in sent] == [*range(1, 50, 2), 11, 13, 15, 17, 19, 21]
        assert all(body["system"] == sent[0]["system"] and body["tools"] == sent[0]["tools"] for body in sent)
        first, *rest = sent[25]["messages"]
        prompt, line = first["content"]
        assert prompt["text"] == sent[0]["messages"][0]["content"][0]["text"]
        assert line["text"].startswith("[40 earlier messages left out: 10 calls of tools; memory_search → ")
        assert [called(one) for one in rest[::2]] == [[f"t{n}"] for n in range(20, 25)]
        assert [answered(one) for one in rest[1::2]] == [[f"t{n}"] for n in range(20, 25)]

    @pytest.mark.design(149, 153)
    async def test_loses_it_where_the_provider_counts_over_96000_tokens(
        self, start: Start, server: MessagesServer
    ) -> None:
        # By words, the transcript has far fewer.
        server.default = working(10, usage=lambda done: 14_000 * (done + 1) if done < 8 else 20_000)
        provider = AnthropicProvider(api_key="k", base_url=server.base_url)
        async with start(provider.model("haiku"), **QUIET) as world:
            await world.ann.send_dm("What do you know about my tea?")
            await world.settle()
            assert world.answer(world.ann_dm) == "That was long."
        lengths = [len(request.body["messages"]) for request in server.requests]
        # The seventh request has 13 messages and 98,000 tokens by the provider's count.
        assert lengths == [1, 3, 5, 7, 9, 11, 13, 11, 11, 13, 15]

    @pytest.mark.design(149, 153)
    async def test_loses_it_at_96000_tokens_by_words_where_nobody_counts(self, start: Start) -> None:
        model = Uncounted(rounds=10, words=9_700)
        async with start(model, **QUIET) as world:
            await world.ann.send_dm("What do you know about my tea?")
            await world.settle()
            assert world.answer(world.ann_dm) == "That was long."
        # A call takes 12,610 tokens, the prompt and the tools less than 7,000: eight calls are too much.
        lengths = [len(request.turns) for request in model.asked_with_tools]
        assert lengths == [1, 3, 5, 7, 9, 11, 13, 15, 12, 14, 16]
        line = model.asked_with_tools[8].turns[1]
        assert isinstance(line, UserTurn) and line.text.startswith("[6 earlier messages left out: ")

    @pytest.mark.design(149)
    async def test_of_few_messages_loses_nothing_however_long(
        self, start: Start, server: MessagesServer
    ) -> None:
        server.default = working(7, usage=lambda done: 100_000 if done < 6 else 20_000)
        provider = AnthropicProvider(api_key="k", base_url=server.base_url)
        async with start(provider.model("haiku"), **QUIET) as world:
            await world.ann.send_dm("What do you know about my tea?")
            await world.settle()
            assert world.answer(world.ann_dm) == "That was long."
        assert [len(request.body["messages"]) for request in server.requests] == [1, 3, 5, 7, 9, 11, 11, 13]

    async def test_ends_where_the_model_repeats_itself(self, start: Start, server: MessagesServer) -> None:
        def again(request: Received) -> Answer:
            if "tool_choice" in request.body:
                return api.text("I give up.")
            return api.tool_use(("t", "memory_search", {"query": "tea"}))

        server.default = again
        provider = AnthropicProvider(api_key="k", base_url=server.base_url)
        async with start(provider.model("haiku"), **QUIET) as world:
            await world.ann.send_dm("What do you know about my tea?")
            await world.settle()
            assert world.answer(world.ann_dm) == "I give up."
        assert len(server.requests) == 5


class TestALongInterview:
    @pytest.mark.design(149, 150)
    async def test_loses_its_middle_too_and_can_be_finished(self, start: Start) -> None:
        model = Scripted(then="And why?")
        async with start(model, **QUIET) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.ann.user.slash("hatch start")
            for number in range(24):
                await world.ann.send_dm(f"Because {number}.")
            soul = {"identity": "You are Mog.", "user": "Ann.", "philosophy": "Be kind."}
            model.then = f"Thank you.<soul>{json.dumps(soul)}</soul>"
            await world.ann.send_dm("That is all.")
            await world.settle()
            assert world.answer(world.ann_dm).startswith("Thank you.")
            stored = (world.folder / "data" / "memory" / "ledger" / "bot.jsonl").read_text(encoding="utf-8")
            assert "You are Mog." in stored
        before, request = model.requests[-2:]
        assert len(before.turns) == 49 and len(request.turns) == 12
        assert request.system[0] == before.system[0]
        first, line, *rest = request.turns
        assert first == before.turns[0]
        assert isinstance(line, UserTurn) and line.text == "[40 earlier messages left out]"
        assert rest == [*before.turns[-8:], AssistantTurn("And why?"), UserTurn("That is all.")]


class Uncounted(Scripted):
    """A model that counts no tokens: so many rounds of a call of so many words, then an answer."""

    def __init__(self, rounds: int, words: int) -> None:
        super().__init__()
        self.asked_with_tools: list[ModelRequest] = []
        self._rounds = rounds
        self._query = "w " * words

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.asked_with_tools.append(request)
        number = len(self.asked_with_tools)
        if number > self._rounds:
            yield TextDelta("That was long.")
            yield Finished(AssistantTurn("That was long."), "end")
            return
        call = ToolCall(f"t{number}", "memory_search", {"query": f"{number} {self._query}"})
        yield Finished(AssistantTurn("", (call,)), "tools", Usage())


def note_old_call(world: World) -> None:
    """Put a call of forty days ago into the log of tools."""
    call = {
        "id": "0123456789abcdef",
        "at": int(world.env.now().timestamp() * 1000) - 40 * 86_400_000,
        "tool": "memory_list",
        "ok": True,
        "content": "nothing",
        "channel": None,
        "session": f"discord:dm:{world.ann.id}",
        "private": True,
    }
    tool_log(world).parent.mkdir(parents=True, exist_ok=True)
    tool_log(world).write_text(json.dumps(call) + "\n", encoding="utf-8")


def tool_log(world: World) -> Path:
    return world.folder / "data" / "memory" / "tools" / f"user-{world.ann.id}.jsonl"
