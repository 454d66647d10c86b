"""What servers of OpenAI's API leave out of their streams or do differently: it costs no answer."""

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import ModelBadOutput, ModelError, ModelRefused, ModelUnreachable
from discoclaw.core.model import Finished, ToolResult, ToolTurn, Usage, UserTurn
from discoclaw.models.asking import ServedModel
from discoclaw.models.openai import OpenAIProvider
from tests.attaching import encoded, pdf
from tests.examples import FEW
from tests.models.conftest import one_dialect
from tests.models.test_odd_streams import NONSENSE, outcomes_of, places
from tests.models.test_provider import CLOCK, answer_to, asking
from tests.servers import chat_api as api
from tests.servers.chat_api import ChatServer
from tests.tables import each_row

SAID = {"content": "Cats sleep."}


def part(**call: Any) -> dict[str, Any]:
    """A delta with a piece of a call; `name` and `arguments` stand in its function."""
    function = {key: call.pop(key) for key in ("name", "arguments") if key in call}
    return {"tool_calls": [{**call, "function": function}]}


BERN, ROME = {"zone": "Bern"}, {"zone": "Rome"}


@one_dialect
class TestCalls:
    @pytest.mark.parametrize(
        "deltas",
        [
            pytest.param(
                [
                    part(id="a", name="clock", arguments=json.dumps(BERN)),
                    part(id="b", name="clock", arguments=json.dumps(ROME)),
                ],
                id="without an index",
            ),
            pytest.param(
                [
                    part(index=0, id="", name="clock", arguments=json.dumps(BERN)),
                    part(index=0, id="", name="clock", arguments=json.dumps(ROME)),
                ],
                id="all with one index and no id",
            ),
            pytest.param(
                [
                    part(index=0, id="a", name="clock", arguments=BERN),
                    part(index=1, id="b", name="clock", arguments=ROME),
                ],
                id="arguments as an object",
            ),
            pytest.param(
                [
                    part(index=0, id="a", name="clock", arguments=""),
                    part(index=0, id="a", name="clock", arguments='{"zone": '),
                    part(index=0, id="a", name="clock", arguments='"Bern"}'),
                    part(index=1, id="a", name="clock", arguments='{"zone": "Rome"}'),
                ],
                id="id and name in each piece, and the same id again",
            ),
            pytest.param(
                [
                    part(index=0, id="a"),
                    part(index=1, id="b"),
                    part(index=1, name="clock", arguments='{"zone": '),
                    part(index=0, name="clock", arguments='{"zone": "Bern'),
                    part(index=1, arguments='"Rome"}'),
                    part(index=0, arguments='"}'),
                ],
                id="names after ids, pieces in turns",
            ),
        ],
    )
    async def test_are_told_apart_and_each_has_an_id(
        self, server: ChatServer, model: ServedModel, deltas: list[Any]
    ) -> None:
        server.script(api.chunks(SAID, *deltas))
        _, last = await answer_to(model, asking(tools=(CLOCK,)))
        assert [(call.name, call.input) for call in last.turn.calls] == [("clock", BERN), ("clock", ROME)]
        assert len({call.id for call in last.turn.calls} - {""}) == 2 and last.stop == "tools"

    async def test_have_no_input_where_none_came(self, server: ChatServer, model: ServedModel) -> None:
        server.script(api.chunks(part(index=0, id="a", name="clock", arguments="")))
        [call] = (await answer_to(model, asking(tools=(CLOCK,))))[1].turn.calls
        assert call.input == {}

    async def test_go_back_with_what_the_server_added_to_them(
        self, server: ChatServer, model: ServedModel
    ) -> None:
        """Gemini refuses its own calls without their signatures."""
        signed = {"google": {"thought_signature": "c2ln"}}
        server.script(api.chunks(part(id="a", name="clock", arguments="{}", extra_content=signed)))
        _, last = await answer_to(model, asking(tools=(CLOCK,)))
        results = ToolTurn((ToolResult("a", "noon"),))
        await answer_to(model, asking(UserTurn("?"), last.turn, results, tools=(CLOCK,)))
        [call] = server.requests[1].body["messages"][1]["tool_calls"]
        assert call["extra_content"] == signed


@one_dialect
class TestEnds:
    @each_row(
        "how",
        [{"finish": "stop", "done": False}, {"finish": None}, {"finish": ""}, {"finish": "load"}],
    )
    async def test_that_are_odd_end_the_answer(
        self, server: ChatServer, model: ServedModel, how: dict[str, Any]
    ) -> None:
        server.script(api.chunks(SAID, **how))
        _, last = await answer_to(model)
        assert (last.turn.text, last.stop) == ("Cats sleep.", "end")

    async def test_that_go_on_and_on_end_the_answer_too(self, server: ChatServer, model: ServedModel) -> None:
        server.script(api.chunks(SAID, *[part(id=str(at), name="clock") for at in range(1500)]))
        _, last = await answer_to(model)
        assert (last.turn.calls, last.stop) == ((), "length")

    async def test_without_any_mark_are_none(self, server: ChatServer, model: ServedModel) -> None:
        server.script(api.chunks(SAID, finish=None, done=False))
        with pytest.raises(ModelUnreachable):
            await answer_to(model)

    @each_row("finish", ["content_filter", "content_filter: PROHIBITED_CONTENT", "SAFETY"])
    async def test_by_a_filter_are_refusals(
        self, server: ChatServer, model: ServedModel, finish: str
    ) -> None:
        server.script(api.chunks(SAID, finish=finish))
        with pytest.raises(ModelRefused):
            await answer_to(model)

    async def test_with_an_endless_reason_say_its_beginning(
        self, server: ChatServer, model: ServedModel
    ) -> None:
        server.script(api.chunks(*[{"refusal": "No. " * 100}] * 10))
        with pytest.raises(ModelRefused) as refused:
            await answer_to(model)
        assert len(str(refused.value)) < 1_100

    @each_row("finish", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
    async def test_at_a_limit_say_so(self, server: ChatServer, model: ServedModel, finish: str) -> None:
        server.script(api.chunks(SAID, finish=finish))
        assert (await answer_to(model))[1].stop == "length"

    async def test_are_found_in_an_answer_that_comes_whole(
        self, server: ChatServer, model: ServedModel
    ) -> None:
        calls = (("a", "clock", BERN),)
        server.script(api.Answer(("I ", "look."), calls=calls, whole=True))
        pieces, last = await answer_to(model, asking(tools=(CLOCK,)))
        assert (pieces, last.stop, last.usage) == (["I look."], "tools", Usage(10, 5))
        assert [(call.id, call.name, call.input) for call in last.turn.calls] == list(calls)


@one_dialect
class TestTexts:
    async def test_in_parts_are_read_without_the_thoughts(
        self, server: ChatServer, model: ServedModel
    ) -> None:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "About cats."}]}
        server.script(
            api.chunks({"content": [thought]}, {"content": [{"type": "text", "text": "They sleep."}]})
        )
        assert (await answer_to(model))[1].turn.text == "They sleep."

    @each_row(
        ("counted", "usage"),
        [
            (
                {
                    "prompt_tokens": 120,
                    "completion_tokens": 9,
                    "prompt_tokens_details": {"cached_tokens": 100},
                },
                Usage(20, 9, 100),
            ),
            (
                {"prompt_tokens": 120, "completion_tokens": 9, "prompt_cache_hit_tokens": 100},
                Usage(20, 9, 100),
            ),
            ({"prompt_tokens": 7, "completion_tokens": 9, "prompt_tokens_details": None}, Usage(7, 9)),
            ({"prompt_tokens": "many", "completion_tokens": -1}, Usage()),
            (None, Usage()),
        ],
    )
    async def test_are_counted_as_the_server_counts_them(
        self, server: ChatServer, model: ServedModel, counted: Any, usage: Usage
    ) -> None:
        server.script(api.text("hi", usage=counted))
        assert (await answer_to(model))[1].usage == usage


@one_dialect
class TestRequests:
    async def test_have_documents_as_files_without_their_own_name(
        self, server: ChatServer, model: ServedModel
    ) -> None:
        from discoclaw.core.message import Encoded

        paper = Encoded("Ann's.pdf", "application/pdf", encoded(pdf()), tokens=9, label="Document 1", pages=1)
        await answer_to(model, asking(UserTurn("Read it.", media=(paper,))))
        [file, text] = server.requests[0].body["messages"][0]["content"]
        url = f"data:application/pdf;base64,{paper.data}"
        assert file == {"type": "file", "file": {"filename": "Document 1.pdf", "file_data": url}}
        assert text == {"type": "text", "text": "Read it."}

    async def test_to_openai_itself_say_how_hard_its_thinking_models_think(
        self, server: ChatServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(OpenAIProvider, "own_url", server.base_url)
        provider = OpenAIProvider(api_key="sk-x")
        for name in ("gpt-5-mini", "o3", "gpt-4.1", "gpt-5-chat-latest"):
            await answer_to(provider.model(name))
        await provider.close()
        sent = [
            (one.body.get("reasoning_effort"), one.body["max_completion_tokens"]) for one in server.requests
        ]
        assert sent == [("medium", 16_100)] * 2 + [(None, 100)] * 2


STREAM: tuple[dict[str, Any], ...] = (
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]},
    {"choices": [{"index": 0, "delta": {"content": "Let me see."}}]},
    {"choices": [{"index": 0, "delta": part(index=0, id="a", name="clock", arguments='{"zone": ')}]},
    {"choices": [{"index": 0, "delta": part(index=0, arguments='"Bern"}')}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 9}},
)


def sent(events: list[Any]) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def outcomes(*streams: list[Any]) -> list[Finished | ModelError]:
    return asyncio.run(outcomes_of(ChatServer(), OpenAIProvider, map(sent, streams)))


@st.composite
def spoiled(draw: st.DrawFn) -> list[Any]:
    """The good stream, with one to four things done to it."""
    events: list[Any] = list(copy.deepcopy(STREAM))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(events) - 1))
        way = draw(st.sampled_from([path for path in places(events[at]) if path] or [()]))
        match draw(st.sampled_from(["drop", "double", "spoil", "spoil", "remove"])):
            case "drop" if len(events) > 1:
                del events[at]
            case "double":
                events.insert(draw(st.integers(0, len(events))), copy.deepcopy(events[at]))
            case "spoil" | "remove" as how if way:
                *path, last = way
                target = events[at]
                for key in path:
                    target = target[key]
                if how == "spoil":
                    target[last] = draw(NONSENSE)
                else:
                    del target[last]
    return events


def test_the_stream_that_is_spoiled_below_is_a_good_one() -> None:
    [last] = outcomes(list(STREAM))
    assert isinstance(last, Finished)
    assert (last.turn.text, last.stop, last.usage) == ("Let me see.", "tools", Usage(10, 9))
    assert [(call.name, call.input) for call in last.turn.calls] == [("clock", BERN)]


@FEW
@given(streams=st.lists(spoiled(), min_size=10, max_size=10))
def test_whatever_happens_to_a_stream_it_is_an_answer_or_an_error_of_ours(
    streams: list[list[Any]],
) -> None:
    assert len(outcomes(*streams)) == len(streams)


@each_row("events", [[{"choices": [{"delta": {"content": 7}}]}], [{"choices": 7}], [{"choices": [7]}]])
def test_a_stream_of_nonsense_is_bad_output(events: list[Any]) -> None:
    assert [type(last) for last in outcomes(events)] == [ModelBadOutput]
