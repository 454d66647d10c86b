"""What every model adapter does, whichever API its server speaks and in which dialect: one contract for all.

Structured answers are in `test_structured`, what a server refuses in `test_refused`, errors in `test_errors`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from discoclaw.core.errors import ModelBadOutput, ModelNotFound, ModelRefused, ModelTimeout, ModelUnreachable
from discoclaw.core.message import Encoded
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    SystemBlock,
    TextDelta,
    ToolResult,
    ToolTurn,
    Usage,
    UserTurn,
)
from discoclaw.models.asking import ServedModel
from discoclaw.models.reading import BROKE_OFF
from tests.attaching import encoded, noise
from tests.models.conftest import KEY, Adapter, AnyServer, Provider, each_api, every_adapter
from tests.models.test_provider import CLOCK, answer_to, asking
from tests.tables import each_row

PHOTO = Encoded("photo.png", "image/png", encoded(noise(300, 300)), tokens=120, label="Picture 1")
CALL = '<tool_call>{"name": "clock", "arguments": {"zone": "Bern"}}</tool_call>'


@every_adapter
class TestStreaming:
    async def test_an_answer_arrives_in_pieces_and_ends_with_the_whole(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("Hel", "lo ", "Ann 🎉"))
        pieces, last = await answer_to(model)
        assert pieces == ["Hel", "lo ", "Ann 🎉"]
        assert (last.turn.text, last.turn.calls, last.stop) == ("Hello Ann 🎉", (), "end")

    async def test_a_piece_is_there_before_the_answer_is_complete(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        more = asyncio.Event()
        server.script(api.text("first", " second", hold=more))
        events = model.stream(asking())
        assert await anext(events) == TextDelta("first")
        more.set()
        assert await anext(events) == TextDelta(" second")
        assert isinstance(await anext(events), Finished)

    async def test_half_a_surrogate_pair_does_not_leave_the_door(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("a\ud83d", "b"))
        pieces, last = await answer_to(model)
        assert "".join(pieces) == last.turn.text == "a\ufffdb"

    async def test_two_calls_share_one_connection(self, server: AnyServer, provider: Provider) -> None:
        await answer_to(provider.model("sonnet"))
        await answer_to(provider.model("haiku"))
        assert len(server.connections) == 1


@each_api
class TestTimeLimits:
    async def test_a_server_that_never_answers_is_given_up(
        self, server: AnyServer, provider: Provider, api: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.script(api.silence())
        loop = asyncio.get_running_loop()
        asked = asyncio.create_task(answer_to(provider.model("haiku", total_timeout_s=60)))
        await server.wait_for_requests(1)  # a limit of real time may strike before the request is sent
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + 60)
        with pytest.raises(ModelTimeout, match="60 s"):
            await asked
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_a_stream_that_stalls_is_given_up(
        self, server: AnyServer, provider: Provider, api: Any
    ) -> None:
        server.script(api.text("one", "two", hold=asyncio.Event()))
        with pytest.raises(ModelTimeout):
            await answer_to(provider.model("haiku", total_timeout_s=0.15))

    async def test_the_limit_never_strikes_while_the_caller_is_at_work(
        self, server: AnyServer, provider: Provider, api: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.script(api.text("one", "two", hold=asyncio.Event()))
        events = provider.model("haiku", total_timeout_s=60).stream(asking())
        assert await anext(events) == TextDelta("one")
        now = asyncio.get_running_loop().time
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now() + 60)
        await asyncio.sleep(0.01)  # a cancelled task would end here
        with pytest.raises(ModelTimeout):
            await anext(events)


@each_api
class TestEndingEarly:
    async def opened(self, server: AnyServer, model: ServedModel, api: Any) -> AsyncGenerator[object, None]:
        server.script(api.text("one", "two", hold=asyncio.Event()))
        events = model.stream(asking())
        assert await anext(events) == TextDelta("one")
        return events

    async def test_closing_the_generator_closes_the_connection(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        events = await self.opened(server, model, api)
        await events.aclose()
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_cancelling_the_reader_closes_the_connection(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        events = await self.opened(server, model, api)
        reader = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.02)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_cancelling_before_the_answer_begins_closes_the_connection(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.silence())
        task = asyncio.create_task(answer_to(model))
        await server.wait_for_requests(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_a_closed_door_is_unreachable_and_may_be_closed_again(self, once: Provider) -> None:
        model = once.model("haiku")
        await model.close()
        await once.close()
        with pytest.raises(ModelUnreachable):
            await answer_to(model)


@each_api
class TestRequests:
    async def test_blank_texts_are_never_sent_and_neighbours_of_one_role_are_one(
        self, server: AnyServer, model: ServedModel
    ) -> None:
        turns = (UserTurn("Hi"), AssistantTurn(""), UserTurn("  \n"), UserTurn("there"))
        await answer_to(model, asking(*turns, system=(SystemBlock(""), SystemBlock("Be kind."))))
        [received] = server.requests
        assert (received.system, received.tools) == ("Be kind.", {})
        assert "".join(said for _, said in received.talk).replace("\n", "") == "Hithere"

    async def test_the_room_is_bounded(self, server: AnyServer, model: ServedModel) -> None:
        for asked in (-3, 500, 10**9):
            await answer_to(model, ModelRequest((), (UserTurn("Hi"),), max_tokens=asked))
        assert [request.room for request in server.requests] == [1, 500, 32_000]

    async def test_temperature_is_sent_only_when_it_is_set(
        self, server: AnyServer, provider: Provider
    ) -> None:
        await answer_to(provider.model("haiku"))
        await answer_to(provider.model("haiku", temperature=0.2))
        assert [request.body.get("temperature") for request in server.requests] == [None, 0.2]

    async def test_a_picture_arrives_whole_with_its_length_also_when_it_is_sent_again(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.failure(529, retry_after_ms="1"), api.text("A photo."))
        _, last = await answer_to(model, asking(UserTurn("What is it?", media=(PHOTO,))))
        assert (last.turn.text, last.unseen) == ("A photo.", ())
        first, second = server.requests
        assert first.body == second.body and second.files == ["image"]
        assert PHOTO.data in json.dumps(second.body) and second.prompt == "Picture 1:What is it?"
        assert "transfer-encoding" not in second.headers

    async def test_the_beginning_is_the_same_bytes_in_the_next_turn(
        self, server: AnyServer, model: ServedModel
    ) -> None:
        system = (SystemBlock("Who you are", cache=True), SystemBlock("The house"))
        for text in ("Hi", "And now?"):
            await answer_to(model, asking(UserTurn(text), system=system, tools=(CLOCK,)))
        first, second = (json.dumps(one.body) for one in server.requests)
        assert first.replace("Hi", "And now?") == second


@every_adapter
class TestTools:
    async def test_what_the_model_called_goes_back_with_the_results_in_order(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        calls = (("call_1", "clock", {"zone": "Europe/Bern"}), ("call_2", "clock", {}))
        server.script(api.tool_use(*calls, said="Let me see.", thought="Two clocks."), api.text("Noon."))
        question = UserTurn("What time is it?")
        pieces, first = await answer_to(model, asking(question, tools=(CLOCK,)))
        assert (pieces, first.stop) == (["Let me see."], "tools")
        assert [(call.id, call.name, call.input) for call in first.turn.calls] == list(calls)

        results = ToolTurn((ToolResult("call_1", "12:00"), ToolResult("call_2", "", failed=True)))
        _, second = await answer_to(model, asking(question, first.turn, results, tools=(CLOCK,)))
        assert (second.turn.text, second.stop) == ("Noon.", "end")
        sent = server.requests[1]
        assert sent.tools == {"clock": CLOCK.schema} and sent.may_call
        assert sent.talk[1:] == [
            ("assistant", "Let me see."),
            *(("call", *call) for call in calls),
            ("result", "call_1", "12:00"),
            ("result", "call_2", "(no output)"),
        ]

    async def test_thoughts_go_back_to_the_model_that_had_them_and_to_no_other(
        self, server: AnyServer, provider: Provider, api: Any
    ) -> None:
        server.script(api.tool_use(("t", "clock", {}), thought="The time?"))
        _, last = await answer_to(provider.model("opus"), asking(tools=(CLOCK,)))
        turns = (UserTurn("hi"), last.turn, ToolTurn((ToolResult("t", "noon"),)))
        for name in ("opus", "haiku"):
            await answer_to(provider.model(name), asking(*turns, tools=(CLOCK,)))
        _, theirs, others = (json.dumps(one.body) for one in server.requests)
        assert "The time?" in theirs and "The time?" not in others

    async def test_a_turn_of_another_adapter_is_sent_as_text_and_calls(
        self, server: AnyServer, model: ServedModel
    ) -> None:
        await answer_to(
            model, asking(UserTurn("Hi"), AssistantTurn("Hello", raw=["not ours"]), UserTurn("?"))
        )
        assert server.requests[0].talk == [("user", "Hi"), ("assistant", "Hello"), ("user", "?")]

    async def test_the_last_round_names_the_tools_and_forbids_to_call_them(
        self, server: AnyServer, model: ServedModel
    ) -> None:
        await answer_to(model, ModelRequest((), (UserTurn("hi"),), (CLOCK,), may_call=False))
        [received] = server.requests
        assert received.tools and not received.may_call

    async def test_a_call_cut_at_the_length_limit_is_not_made(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        cut_call = api.tool_use(("t", "clock", {"zone": "Eu"}), said="Let me", stop_reason="max_tokens")
        server.script(cut_call)
        _, last = await answer_to(model, asking(tools=(CLOCK,)))
        assert (last.stop, last.turn.calls) == ("length", ())
        await answer_to(model, asking(UserTurn("a"), last.turn, UserTurn("b")))
        assert server.requests[1].talk == [("user", "a"), ("assistant", "Let me"), ("user", "b")]

    async def test_a_server_that_ends_a_turn_with_calls_wants_their_results(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.tool_use(("t", "clock", {}), stop_reason="end_turn"))
        assert (await answer_to(model, asking(tools=(CLOCK,))))[1].stop == "tools"

    async def test_a_call_that_is_written_as_text_is_a_call(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("I look. ", CALL))
        pieces, last = await answer_to(model, asking(tools=(CLOCK,)))
        assert ("".join(pieces).strip(), last.stop) == ("I look.", "tools")
        [call] = last.turn.calls
        assert (call.name, call.input) == ("clock", {"zone": "Bern"})
        results = ToolTurn((ToolResult(call.id, "12:00"),))
        await answer_to(model, asking(UserTurn("?"), last.turn, results, tools=(CLOCK,)))
        assert ("result", call.id, "12:00") in server.requests[1].talk


@every_adapter
class TestAnswers:
    async def test_a_thought_in_tags_is_not_said(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("<think>They ask", " about cats.</think>\n\n", "Cats sleep."))
        pieces, last = await answer_to(model)
        assert "".join(pieces) == last.turn.text == "Cats sleep."

    async def test_a_thought_in_its_own_field_is_not_said(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(
            api.tool_use(said="Cats sleep.", thought="They ask about cats.", stop_reason="end_turn")
        )
        pieces, last = await answer_to(model)
        assert pieces == [last.turn.text] == ["Cats sleep."]

    async def test_what_the_server_does_not_count_is_nothing_and_no_error(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("hi", usage={}))
        assert (await answer_to(model))[1].usage == Usage()

    async def test_an_answer_cut_at_its_length_says_so(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("Once upon", stop_reason="max_tokens"))
        assert (await answer_to(model))[1].stop == "length"

    async def test_one_cut_before_its_first_word_is_asked_for_once_more_with_more_room(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.tool_use(thought="Hm, well", stop_reason="max_tokens"), api.text("Cats sleep."))
        assert (await answer_to(model))[1].turn.text == "Cats sleep."
        assert [one.room for one in server.requests] == [100, 8_100]

    async def test_a_reason_to_stop_of_tomorrow_ends_the_answer(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("Done.", stop_reason="satisfied"))
        _, last = await answer_to(model)
        assert (last.turn.text, last.stop) == ("Done.", "end")

    async def test_a_refusal_is_raised_with_its_reason(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.refusal("That could do harm.", "I "))
        with pytest.raises(ModelRefused, match=r"That could do harm\."):
            await answer_to(model)


@each_api
class TestBrokenAnswers:
    @each_row("how", ["cut", "ended"])
    async def test_one_that_breaks_off_is_no_short_answer(
        self, server: AnyServer, model: ServedModel, api: Any, how: str
    ) -> None:
        server.script(getattr(api, how)("Hel", "lo"))
        with pytest.raises(ModelUnreachable) as caught:
            await answer_to(model)
        assert caught.value.user_message == BROKE_OFF

    @each_row(
        ("body", "kind"),
        [
            (b"data: {not json\n\n", "text/event-stream"),
            (b"data: [1, 2]\n\n", "text/event-stream"),
            (b"data: \xff\xfe\n\n", "text/event-stream"),
            (b"Down for maintenance", "text/plain"),
            (b"[]", "application/json"),
            (b'{"choices": [], "content": null}', "application/json"),
        ],
    )
    async def test_nonsense_is_bad_output(
        self, server: AnyServer, model: ServedModel, api: Any, body: bytes, kind: str
    ) -> None:
        server.script(api.raw(body, content_type=kind))
        with pytest.raises(ModelBadOutput):
            await answer_to(model)

    @each_row(
        ("status", "kind"), [(200, "text/event-stream"), (200, "application/json"), (400, "application/json")]
    )
    async def test_what_never_ends_is_not_held_in_ram(
        self, server: AnyServer, model: ServedModel, api: Any, status: int, kind: str
    ) -> None:
        server.script(*[api.raw(b"data: " + b"x" * 5_000_000, status=status, content_type=kind)] * 3)
        with pytest.raises(ModelBadOutput, match="more than 4,000,000 bytes at once"):
            await answer_to(model)

    async def test_a_stream_of_short_events_may_be_longer(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text(*["🐈" * 10_000] * 40))  # 4.8 MB, as twelve bytes for each
        pieces, last = await answer_to(model)
        assert (len("".join(pieces)), last.stop) == (400_000, "end")

    async def test_a_web_page_is_not_found(self, server: AnyServer, model: ServedModel, api: Any) -> None:
        server.script(api.raw(b"<html>Please sign in</html>", content_type="text/html"))
        with pytest.raises(ModelNotFound):
            await answer_to(model)


@each_api
class TestKeys:
    @pytest.fixture
    def environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for vendor in ("ANTHROPIC", "OPENAI"):
            monkeypatch.setenv(f"{vendor}_API_KEY", "sk-other")
            monkeypatch.setenv(f"{vendor}_BASE_URL", "http://127.0.0.1:9")
            monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", "Authorization: Bearer sk-third")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "sk-other")
        for name in ("ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
            monkeypatch.setenv(f"OPENAI_{name}", "sk-other")

    @pytest.mark.usefixtures("environment")
    @each_row("key", [KEY, None])
    async def test_the_key_that_was_given_is_sent_whatever_the_environment_says(
        self, server: AnyServer, adapter: Adapter, key: str | None
    ) -> None:
        provider = adapter.open(api_key=key, base_url=server.base_url)
        await answer_to(provider.model("haiku"))
        await provider.close()
        headers = server.requests[-1].headers
        assert headers["authorization"] == f"Bearer {key or 'no-key'}"
        assert not any("sk-other" in value or "sk-third" in value for value in headers.values())

    @pytest.mark.usefixtures("environment")
    async def test_without_an_address_it_is_the_vendors_whatever_the_environment_says(
        self, adapter: Adapter
    ) -> None:
        provider = adapter.open(api_key=KEY)
        assert str(provider.sdk.base_url).startswith(
            ("https://api.anthropic.com", "https://api.openai.com/v1")
        )
        await provider.close()

    async def test_a_server_that_sends_us_elsewhere_is_not_followed_with_the_key_and_the_prompt(
        self, server: AnyServer, adapter: Adapter, model: ServedModel, api: Any
    ) -> None:
        async with adapter.serve() as elsewhere:
            server.script(api.failure(307, location=f"{elsewhere.base_url}/chat/completions"))
            with pytest.raises(Exception, match="307"):
                await answer_to(model)
            assert not elsewhere.requests
