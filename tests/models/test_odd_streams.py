"""Streams of a server that has gone wrong: whatever it sends, the result is an answer or a `ModelError`."""

import asyncio
import copy
import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import ModelBadOutput, ModelError
from discoclaw.core.model import Finished, ModelRequest, TextDelta, ToolSpec, UserTurn
from discoclaw.models.anthropic import AnthropicProvider
from discoclaw.models.asking import ServedModel
from discoclaw.models.openai import OpenAIProvider
from tests.examples import FEW
from tests.servers import messages_api as api
from tests.servers.chat_api import ChatServer
from tests.servers.messages_api import MessagesServer
from tests.tables import each_row

Event = dict[str, Any]
REQUEST = ModelRequest((), (UserTurn("Hello"),), (ToolSpec("clock", "Tells the time.", {"type": "object"}),))


def delta(index: int, kind: str, **given: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **given}}


def begun(index: int, **block: Any) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def ended(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


START: Event = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    },
}
STOP: Event = {"type": "message_stop"}
STREAM: tuple[Event, ...] = (
    START,
    {"type": "ping"},
    begun(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Hm."),
    delta(0, "signature_delta", signature="c2ln"),
    ended(0),
    begun(1, type="text", text=""),
    delta(1, "text_delta", text="Let me "),
    delta(1, "text_delta", text="see."),
    delta(1, "citations_delta", citation={"type": "char_location", "cited_text": "see"}),
    ended(1),
    begun(2, type="tool_use", id="toolu_1", name="clock", input={}),
    delta(2, "input_json_delta", partial_json='{"zone": '),
    delta(2, "input_json_delta", partial_json='"Bern"}'),
    ended(2),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 9},
    },
    STOP,
)
"""A thought, a text and a call, all as they should be."""

NONSENSE = st.sampled_from(
    [None, True, 0, -1, 7, 10**30, 1.5, "", "tomorrow", "\ud83d", [], [None], ["text"], {}, {"type": "text"}]
)
NEW: tuple[Event, ...] = (
    {"type": "message_thought", "index": 0, "delta": None},
    begun(3, type="hologram", light=[1, 2]),
    delta(1, "colour_delta", colour="red"),
    delta(9, "text_delta", text="nowhere"),
    {"type": "error", "error": None},
    {},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a JSON value, its own included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, one in inner for found in places(one, (*path, key)))]


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """The good stream, with one to four things done to its events."""
    events: list[Any] = list(copy.deepcopy(STREAM))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(events) - 1))
        match draw(st.sampled_from(["drop", "double", "swap", "insert", "spoil", "spoil", "remove"])):
            case "drop" if len(events) > 1:
                del events[at]
            case "double":
                events.insert(draw(st.integers(0, len(events))), copy.deepcopy(events[at]))
            case "swap":
                events.insert(draw(st.integers(0, len(events) - 1)), events.pop(at))
            case "insert":
                events.insert(at, copy.deepcopy(draw(st.sampled_from(NEW))))
            case "spoil" | "remove" as how:
                inside = [path for path in places(events[at]) if path]
                if inside:
                    *way, last = draw(st.sampled_from(inside))
                    target = events[at]
                    for key in way:
                        target = target[key]
                    if how == "spoil":
                        target[last] = draw(NONSENSE)
                    else:
                        del target[last]
    return events


def body(events: list[Event]) -> bytes:
    """The events as they are sent."""
    parts = []
    for event in events:
        name = event.get("type") if isinstance(event, dict) else None
        shown = name if isinstance(name, str) and name.isascii() else "message"
        parts.append(f"event: {shown}\ndata: {json.dumps(event)}\n\n")
    return "".join(parts).encode()


async def outcome(model: ServedModel) -> Finished | ModelError:
    """How a stream ends; anything else than an answer or one of our errors is raised."""
    last = None
    try:
        async for last in model.stream(REQUEST):
            assert isinstance(last, TextDelta | Finished)
    except ModelError as error:
        return error
    assert isinstance(last, Finished)
    return last


async def outcomes_of(
    server: MessagesServer | ChatServer,
    adapter: type[AnthropicProvider | OpenAIProvider],
    bodies: Iterable[bytes],
) -> list[Finished | ModelError]:
    """How each of these streams of a server ends. Checks that what an answer ends with can be sent back."""
    async with server:
        provider = adapter(base_url=server.base_url, max_retries=0)
        model, found = provider.model("haiku", total_timeout_s=5), []
        for sent in bodies:
            server.default = lambda _, sent=sent: api.raw(sent)  # type: ignore[misc]
            found.append(await outcome(model))
        await provider.close()
        for last in found:
            if isinstance(last, Finished):
                ids = [call.id for call in last.turn.calls]
                assert all(ids) and len(set(ids)) == len(ids)
                assert all(call.name for call in last.turn.calls)
        return found


def outcomes(*sent: list[Event]) -> list[Finished | ModelError]:
    return asyncio.run(outcomes_of(MessagesServer(), AnthropicProvider, map(body, sent)))


def test_the_stream_that_is_spoiled_below_is_a_good_one() -> None:
    [last] = outcomes(list(STREAM))
    assert isinstance(last, Finished)
    assert (last.turn.text, last.stop) == ("Let me see.", "tools")
    assert [(call.name, call.input) for call in last.turn.calls] == [("clock", {"zone": "Bern"})]


@FEW
@given(st.lists(streams(), min_size=10, max_size=10))
def test_whatever_happens_to_a_stream_it_is_an_answer_or_an_error_of_ours(sent: list[list[Event]]) -> None:
    assert len(outcomes(*sent)) == len(sent)


@each_row(
    "events",
    [
        [STOP],
        [STREAM[6], STREAM[7], STOP],
        [START, STREAM[7], STOP],
        [START, begun(0, type="text", text=None), delta(0, "text_delta", text="x")],
        [START, begun(0, type="text", text=""), delta(0, "text_delta", text=7)],
        [{**START, "message": {**START["message"], "content": None}}, STOP],
        [{**START, "message": {**START["message"], "content": ["x"]}}, STOP],
        [START, begun(0, type="text", text=""), delta(10**30, "text_delta", text="")],
    ],
)
def test_a_stream_that_lacks_parts_and_says_no_reason_to_end_is_bad_output(events: list[Event]) -> None:
    assert [type(last) for last in outcomes(events)] == [ModelBadOutput]
