"""The Anthropic provider: the real SDK against a real server on the loopback address."""

import pytest

from discoclaw.core.model import (
    Finished,
    ModelRequest,
    SystemBlock,
    TextDelta,
    ToolResult,
    ToolSpec,
    ToolTurn,
    Turn,
    Usage,
    UserTurn,
)
from discoclaw.core.patch import Patch
from discoclaw.models.anthropic import (
    ALIASES,
    MODELS,
    AnthropicModel,
    AnthropicProvider,
    known,
    resolve,
)
from discoclaw.models.asking import ServedModel
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer
from tests.tables import each_row

CLOCK = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})


def asking(
    *turns: Turn, system: tuple[SystemBlock, ...] = (), tools: tuple[ToolSpec, ...] = ()
) -> ModelRequest:
    return ModelRequest(system=system, turns=turns or (UserTurn("Hello"),), tools=tools, max_tokens=100)


async def answer_to(model: ServedModel, request: ModelRequest | None = None) -> tuple[list[str], Finished]:
    """All pieces and the last event, which must be the only one of its kind."""
    events = [event async for event in model.stream(request or asking())]
    *pieces, last = events
    assert isinstance(last, Finished)
    return [piece.text for piece in pieces if isinstance(piece, TextDelta)], last


class TestRequests:
    async def test_tokens_are_counted_as_the_server_counts_them(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        usage = {
            "input_tokens": 7,
            "output_tokens": 9,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
        }
        server.script(api.text("hi", usage=usage))
        assert (await answer_to(model))[1].usage == Usage(7, 9, 100, 20)

    async def test_cache_breakpoints_stand_behind_their_blocks(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        system = (SystemBlock("Who you are"), SystemBlock("The house", cache=True), SystemBlock("Today"))
        await answer_to(model, asking(system=system))
        assert server.requests[0].body["system"] == [
            {"type": "text", "text": "Who you are"},
            {"type": "text", "text": "The house", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Today"},
        ]

    async def test_one_stands_behind_the_tools_that_every_turn_has(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        tools = (
            ToolSpec("search", "Search.", {"type": "object"}, cache=True),
            ToolSpec("link", "Link.", {"type": "object"}),
        )
        await answer_to(model, asking(tools=tools))
        sent = server.requests[0].body["tools"]
        assert [tool.get("cache_control") for tool in sent] == [{"type": "ephemeral"}, None]

    async def test_the_breakpoint_of_a_blank_block_moves_to_the_block_before(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        await answer_to(model, asking(system=(SystemBlock("Who you are"), SystemBlock(" \n", cache=True))))
        assert server.requests[0].body["system"] == [
            {"type": "text", "text": "Who you are", "cache_control": {"type": "ephemeral"}}
        ]

    async def test_at_most_four_breakpoints_are_sent_and_the_last_ones_win(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        await answer_to(model, asking(system=tuple(SystemBlock(f"{i}", cache=True) for i in range(6))))
        blocks = server.requests[0].body["system"]
        assert [block["text"] for block in blocks if "cache_control" in block] == ["2", "3", "4", "5"]

    async def test_a_model_near_its_end_is_a_line_in_the_log_and_no_error(
        self, server: MessagesServer, provider: AnthropicProvider, caplog: pytest.LogCaptureFixture
    ) -> None:
        await answer_to(provider.model("claude-2.1"))
        assert "claude-2.1" in caplog.text


class TestTools:
    async def test_what_the_model_said_goes_back_as_it_came_with_the_results_in_order(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        calls = (("toolu_1", "clock", {"zone": "Europe/Bern"}), ("toolu_2", "clock", {}))
        server.script(api.tool_use(*calls, said="Let me see.", thought="Two clocks."), api.text("Noon."))
        question = UserTurn("What time is it?")
        _, first = await answer_to(model, asking(question, tools=(CLOCK,)))
        assert first.stop == "tools"
        assert [(call.id, call.name, call.input) for call in first.turn.calls] == list(calls)

        results = ToolTurn((ToolResult("toolu_1", "12:00"), ToolResult("toolu_2", "", failed=True)))
        _, second = await answer_to(model, asking(question, first.turn, results, tools=(CLOCK,)))

        assert (second.turn.text, second.stop) == ("Noon.", "end")
        sent = server.requests[1].body
        assert sent["tools"] == [
            {"name": "clock", "description": "Tells the time.", "input_schema": CLOCK.schema}
        ]
        assert sent["messages"][1] == {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Two clocks.", "signature": "c2lnbmVk"},
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {"zone": "Europe/Bern"}},
                {"type": "tool_use", "id": "toolu_2", "name": "clock", "input": {}},
            ],
        }
        assert sent["messages"][2] == {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "12:00", "is_error": False},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "(no output)", "is_error": True},
            ],
        }


class TestThoughts:
    async def test_of_a_paused_turn_go_back_to_that_model_alone(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        server.script(
            api.tool_use(said="I look. ", thought="Where?", stop_reason="pause_turn"), api.text("Here.")
        )
        _, last = await answer_to(provider.model("opus"))
        turns = (UserTurn("hi"), last.turn, UserTurn("And then?"))
        for name in ("opus", "haiku"):
            await answer_to(provider.model(name), ModelRequest((), turns))
        resumed, theirs, others = (one.body["messages"][1]["content"] for one in server.requests[1:])
        assert [block["type"] for block in resumed] == ["thinking", "text"]
        assert [block["type"] for block in theirs] == ["thinking", "text", "text"]
        assert others == theirs[1:]


class TestRoomForThinking:
    @each_row(
        "name", [*ALIASES, *MODELS, "claude-haiku-4-5-20251001", "claude-tomorrow-7", "at another address"]
    )
    async def test_and_an_effort_are_for_models_of_anthropics_own_address_that_know_them(
        self, server: MessagesServer, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        ours = name != "at another address"
        server.requests.clear()
        monkeypatch.setattr(AnthropicProvider, "own_url", server.base_url if ours else "http://127.0.0.1:9")
        where = {} if ours else {"base_url": server.base_url}
        provider = AnthropicProvider(api_key="sk-ant-of-this-test", connect_timeout_s=1, **where)
        model = provider.model(name if ours else "haiku")
        server.script(api.text("Noted."), api.json_answer({"upserts": [], "deprecations": []}))
        await answer_to(model)
        await model.structured(
            purpose="extraction", system="Learn.", prompt="m1", shape=Patch, max_tokens=200
        )
        await provider.close()
        answer, learned = (one.body for one in server.requests)
        about = known(resolve(name)) if ours else None
        thinks, efforts = (about.thinks, about.efforts) if about else (False, ())
        assert answer.get("output_config", {}) == ({"effort": "medium"} if efforts else {})
        assert learned.get("output_config", {}).get("effort") == ("low" if efforts else None)
        assert (answer["max_tokens"], learned["max_tokens"]) == (
            (100 + 16_000, 200 + 8_000) if thinks else (100, 200)
        )
        by_schema = "format" in learned.get("output_config", {})
        assert by_schema == (about is not None or not ours)
        assert ("JSON schema" in str(learned["system"])) == (about is None)
        forbidden = {"thinking", "temperature", "top_p", "top_k", "tool_choice"}
        assert not (answer.keys() | learned.keys()) & forbidden

    async def test_is_not_for_a_longer_answer(
        self, server: MessagesServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(AnthropicProvider, "own_url", server.base_url)
        provider = AnthropicProvider(api_key="sk-ant-of-this-test", connect_timeout_s=1)
        server.script(api.text(*["tea and cake " * 10] * 12))
        pieces, last = await answer_to(provider.model("haiku"))
        await provider.close()
        assert 500 <= len("".join(pieces)) <= 650 and last.stop == "length"
