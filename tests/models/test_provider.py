"""The Anthropic provider: the real SDK against a real server on the loopback address."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from discoclaw.core.errors import ModelTimeout, ModelUnreachable
from discoclaw.core.model import (
    AssistantTurn,
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
from discoclaw.models.anthropic.provider import AnthropicModel, AnthropicProvider
from tests.models.conftest import KEY
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer

CLOCK = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})


def asking(
    *turns: Turn, system: tuple[SystemBlock, ...] = (), tools: tuple[ToolSpec, ...] = ()
) -> ModelRequest:
    return ModelRequest(system=system, turns=turns or (UserTurn("Hello"),), tools=tools, max_tokens=100)


async def answer_to(model: AnthropicModel, request: ModelRequest | None = None) -> tuple[list[str], Finished]:
    """All pieces and the last event, which must be the only one of its kind."""
    events = [event async for event in model.stream(request or asking())]
    *pieces, last = events
    assert isinstance(last, Finished)
    return [piece.text for piece in pieces if isinstance(piece, TextDelta)], last


class TestStreaming:
    async def test_an_answer_arrives_in_pieces_and_ends_with_the_whole(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text("Hel", "lo ", "Ann 🎉"))
        pieces, last = await answer_to(model)
        assert pieces == ["Hel", "lo ", "Ann 🎉"]
        assert (last.turn.text, last.turn.calls, last.stop) == ("Hello Ann 🎉", (), "end")

    async def test_a_piece_is_there_before_the_answer_is_complete(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        more = asyncio.Event()
        server.script(api.text("first", " second", hold=more))
        events = model.stream(asking())
        assert await anext(events) == TextDelta("first")
        more.set()
        assert await anext(events) == TextDelta(" second")
        assert isinstance(await anext(events), Finished)

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

    async def test_half_a_surrogate_pair_does_not_leave_the_door(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text("a\ud83d", "b"))
        pieces, last = await answer_to(model)
        assert "".join(pieces) == last.turn.text == "a\ufffdb"

    async def test_two_calls_share_one_connection(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        await answer_to(provider.model("sonnet"))
        await answer_to(provider.model("haiku"))
        assert len(server.connections) == 1


class TestRequests:
    async def test_an_alias_is_sent_as_the_model_it_stands_for(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        for name in ("haiku", "fast", "sonnet", "opus", "llama3.2:3b"):
            await answer_to(provider.model(name))
        assert [request.body["model"] for request in server.requests] == [
            "claude-haiku-5-5",
            "claude-haiku-5-5",
            "claude-sonnet-5-5",
            "claude-opus-5-5",
            "llama3.2:3b",
        ]

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

    async def test_blank_texts_are_never_sent(self, server: MessagesServer, model: AnthropicModel) -> None:
        turns = (UserTurn("Hi"), AssistantTurn(""), UserTurn("  \n"), UserTurn("there"))
        await answer_to(model, asking(*turns, system=(SystemBlock(""),)))
        body = server.requests[0].body
        assert "system" not in body and "tools" not in body
        said = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]
        assert body["messages"] == [{"role": "user", "content": said}]  # two neighbours of one role are one

    async def test_max_tokens_is_bounded(self, server: MessagesServer, model: AnthropicModel) -> None:
        for asked in (-3, 500, 10**9):
            await answer_to(model, ModelRequest((), (UserTurn("Hi"),), max_tokens=asked))
        assert [request.body["max_tokens"] for request in server.requests] == [1, 500, 32_000]

    async def test_temperature_is_sent_only_when_it_is_set(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        await answer_to(provider.model("haiku"))
        await answer_to(provider.model("haiku", temperature=0.2))
        assert [request.body.get("temperature") for request in server.requests] == [None, 0.2]

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

    async def test_a_turn_of_another_door_is_sent_as_text_and_calls(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        await answer_to(
            model, asking(UserTurn("Hi"), AssistantTurn("Hello", raw=["not ours"]), UserTurn("?"))
        )
        assert server.requests[0].body["messages"][1]["content"] == [{"type": "text", "text": "Hello"}]

    async def test_a_call_cut_at_the_length_limit_is_not_made(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        cut_call = api.tool_use(("t", "clock", {"zone": "Eu"}), said="Let me", stop_reason="max_tokens")
        server.script(cut_call)
        _, last = await answer_to(model, asking(tools=(CLOCK,)))
        assert (last.stop, last.turn.calls) == ("length", ())
        await answer_to(model, asking(UserTurn("a"), last.turn, UserTurn("b")))
        assert server.requests[1].body["messages"][1]["content"] == [{"type": "text", "text": "Let me"}]

    async def test_a_server_that_ends_a_turn_with_calls_wants_their_results(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.tool_use(("t", "clock", {}), stop_reason="end_turn"))
        assert (await answer_to(model, asking(tools=(CLOCK,))))[1].stop == "tools"


class TestTimeLimits:
    async def test_a_server_that_never_answers_is_given_up(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        server.script(api.silence())
        with pytest.raises(ModelTimeout, match=r"0\.1 s"):
            await answer_to(provider.model("haiku", total_timeout_s=0.1))
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_a_stream_that_stalls_is_given_up(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        server.script(api.text("one", "two", hold=asyncio.Event()))
        with pytest.raises(ModelTimeout):
            await answer_to(provider.model("haiku", total_timeout_s=0.15))

    async def test_the_limit_never_strikes_while_the_caller_is_at_work(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        server.script(api.text("one", "two", hold=asyncio.Event()))
        events = provider.model("haiku", total_timeout_s=0.1).stream(asking())
        assert await anext(events) == TextDelta("one")
        await asyncio.sleep(0.2)  # a cancelled task would end here
        with pytest.raises(ModelTimeout):
            await anext(events)


class TestEndingEarly:
    async def opened(self, server: MessagesServer, model: AnthropicModel) -> AsyncGenerator[object, None]:
        server.script(api.text("one", "two", hold=asyncio.Event()))
        events = model.stream(asking())
        assert await anext(events) == TextDelta("one")
        return events

    async def test_closing_the_generator_closes_the_connection(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        events = await self.opened(server, model)
        await events.aclose()
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_cancelling_the_reader_closes_the_connection(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        events = await self.opened(server, model)
        reader = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.02)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_cancelling_before_the_answer_begins_closes_the_connection(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.silence())
        task = asyncio.create_task(answer_to(model))
        await server.wait_for_requests(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_a_closed_door_is_unreachable_and_may_be_closed_again(self, server: MessagesServer) -> None:
        provider = AnthropicProvider(base_url=server.base_url, max_retries=0)
        model = provider.model("haiku")
        await model.close()
        await provider.close()
        with pytest.raises(ModelUnreachable):
            await answer_to(model)


class TestKeys:
    async def test_the_key_that_was_given_is_sent_whatever_the_environment_says(
        self, server: MessagesServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-other")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other-token")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer sk-third")
        provider = AnthropicProvider(api_key=KEY, base_url=server.base_url)
        await answer_to(provider.model("haiku"))
        await provider.close()
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert not {"sk-other", "other-token"} & set(server.requests[0].headers.values())

    async def test_a_local_server_gets_a_dummy_key(
        self, server: MessagesServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-other")
        provider = AnthropicProvider(base_url=server.base_url)
        await answer_to(provider.model("llama3.2"))
        await provider.close()
        assert server.requests[0].headers["authorization"] == "Bearer no-key"

    async def test_without_a_base_url_the_address_is_anthropics_whatever_the_environment_says(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        provider = AnthropicProvider(api_key=KEY)
        assert str(provider.sdk.base_url).rstrip("/") == "https://api.anthropic.com"
        await provider.close()


class TestTheLastRound:
    async def test_names_the_tools_and_forbids_to_call_them(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text("Enough."))
        await answer_to(model, ModelRequest((), (UserTurn("hi"),), (CLOCK,), may_call=False))
        body = server.requests[0].body
        assert body["tools"] and body["tool_choice"] == {"type": "none"}


class TestThoughts:
    async def test_go_back_to_the_model_that_had_them_and_to_no_other(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        server.script(api.tool_use(("t", "clock", {}), said="I look.", thought="The time?"))
        _, last = await answer_to(provider.model("opus"))
        turns = (UserTurn("hi"), last.turn, ToolTurn((ToolResult("t", "noon"),)))
        for name in ("opus", "haiku"):
            await answer_to(provider.model(name), ModelRequest((), turns, (CLOCK,)))
        theirs, others = (one.body["messages"][1]["content"] for one in server.requests[1:])
        assert [block["type"] for block in theirs] == ["thinking", "text", "tool_use"]
        assert others == theirs[1:]

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
