"""Structured answers over the real SDK: exactly one object of the shape, or nothing."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from discoclaw.core.errors import ModelBadOutput, ModelCut, ModelEmpty, ModelOverloaded, ModelTimeout
from discoclaw.models.asking import ServedModel
from discoclaw.models.reading import MAX_TOKENS
from tests.models.conftest import AnyServer, Provider, each_api, every_adapter
from tests.tables import each_row


class Plan(BaseModel):
    """A shape with a list and a number, to be answered with."""

    model_config = ConfigDict(extra="forbid")

    steps: list[str]
    days: int


WEEK: dict[str, Any] = {"steps": ["rest"], "days": 7}


async def planned(model: ServedModel, **how: Any) -> Plan:
    return await model.structured(
        purpose="extraction", system="You plan.", prompt="Plan my week.", shape=Plan, **how
    )


@every_adapter
class TestStructuredAnswers:
    async def test_one_json_object_of_the_shape_is_accepted(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.json_answer({"steps": ["rest", "more rest"], "days": 7}))
        assert await planned(model) == Plan(steps=["rest", "more rest"], days=7)

    @pytest.mark.design(214)
    async def test_the_schema_is_sent_as_parameter_and_to_other_servers_in_words(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.json_answer({"steps": [], "days": 1}))
        await planned(model)
        sent = server.requests[0]
        assert (schema := sent.schema) is not None
        assert schema["additionalProperties"] is False and set(schema["properties"]) == {"steps", "days"}
        assert "exactly one JSON object" in sent.system and '"steps"' in sent.system
        assert not sent.tools


@each_api
class TestWhatAnAnswerMayBe:
    @pytest.mark.design(220)
    @each_row(
        ("what", "answer"),
        [
            ("prose", "I would rest for seven days."),
            ("two objects", '{"steps": [], "days": 1}{"steps": [], "days": 2}'),
            ("a list of two", '[{"steps": [], "days": 1}, {"steps": [], "days": 2}]'),
            ("an object in another one", '{"answer": {"steps": [], "days": 1}}'),
            ("an object in a broken one", '{"note": "a "{"steps": [], "days": 1}" b"}'),
            ("an object behind half of one", '{"steps": ["re {"steps": [], "days": 1}'),
            ("a number as text", '{"steps": [], "days": "1"}'),
            ("text for a list", '{"steps": "rest", "days": 1}'),
            ("a missing field", '{"steps": []}'),
            ("a further field", '{"steps": [], "days": 1, "sudo": true}'),
            ("half an object", '{"steps": ["re'),
            ("null", "null"),
        ],
    )
    async def test_anything_else_is_bad_output(
        self, server: AnyServer, model: ServedModel, api: Any, what: str, answer: str
    ) -> None:
        server.default = lambda _: api.text(answer)
        with pytest.raises(ModelBadOutput):
            await planned(model)

    @each_row(
        ("before", "after"),
        [
            ("```json\n", "\n```"),
            ("```JSON5\n", "\n```\n"),
            ("~~~ title=plan\n", "\n~~~"),
            ("Here is {the plan} you want:\n\n```\n", "\n```\nEnjoy {} it!"),
            ("Sure! ", " Enjoy!"),
            ("[", "]"),
            ("```\n[", "]\n```"),
            ("\ufeff\n", "\n"),
            ('I drafted {"steps": "none"} first. ', ""),
            (f"{json.dumps(WEEK)}\n", ""),
        ],
    )
    async def test_what_is_wrapped_around_the_object_does_not_count(
        self, server: AnyServer, model: ServedModel, api: Any, before: str, after: str
    ) -> None:
        server.requests.clear()
        server.script(api.text(before, json.dumps(WEEK), after))
        assert await planned(model) == Plan(**WEEK)
        assert len(server.requests) == 1

    async def test_an_empty_object_is_an_answer_only_alone(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        class Wishes(BaseModel):
            wishes: list[str] = []

        async def wished() -> Wishes:
            return await model.structured(purpose="extraction", system="s", prompt="p", shape=Wishes)

        for alone in ("{}", "```json\n{}\n```", "[{}]"):
            server.script(api.text(alone))
            assert await wished() == Wishes()
        server.default = lambda _: api.text('They ask about println!("{}").')
        with pytest.raises(ModelBadOutput):
            await wished()

    async def test_the_error_does_not_repeat_what_the_model_said(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.default = lambda _: api.text('{"steps": ["secret diary"], "days": "secret day"}')
        with pytest.raises(ModelBadOutput, match="days: int_type") as caught:
            await planned(model)
        assert "secret" not in str(caught.value) and caught.value.__cause__ is None

    async def test_a_million_characters_are_refused_before_they_are_all_read(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        steps = ["x" * 10_000] * 100
        server.script(
            api.text('{"days": 1, "steps": [', *(json.dumps(step) + "," for step in steps), delay_s=0.001)
        )
        with pytest.raises(ModelBadOutput, match="longer than 200000"):
            await planned(model)
        await asyncio.wait_for(server.left.wait(), 1)

    @pytest.mark.design(214)
    async def test_one_time_limit_covers_the_whole_call(
        self, server: AnyServer, provider: Provider, api: Any
    ) -> None:
        server.script(api.json_answer({"steps": ["x" * 400], "days": 1}, delay_s=0.1))
        with pytest.raises(ModelTimeout):
            await planned(provider.model("haiku", total_timeout_s=0.15))


@each_api
class TestAnAnswerThatIsCutOff:
    async def test_is_asked_for_once_more_with_more_room(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text('{"steps": ["re', stop_reason="max_tokens"), api.json_answer(WEEK))
        assert await planned(model) == Plan(**WEEK)
        first, second = server.requests
        assert (first.room, second.room) == (2_048, 10_048)
        assert first.body["messages"] == second.body["messages"]

    @each_row("whole", [True, False])
    async def test_twice_is_an_error_of_its_own_even_if_it_parses(
        self, server: AnyServer, model: ServedModel, api: Any, whole: bool
    ) -> None:
        server.requests.clear()
        sent = json.dumps(WEEK) if whole else "{"
        server.default = lambda _: api.text(sent, stop_reason="max_tokens")
        with pytest.raises(ModelCut):
            await planned(model)
        assert len(server.requests) == 2

    async def test_is_not_asked_for_again_without_more_room_to_give(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.default = lambda _: api.text("{", stop_reason="max_tokens")
        with pytest.raises(ModelCut):
            await planned(model, max_tokens=MAX_TOKENS)
        assert len(server.requests) == 1

    @each_row(
        "second",
        [
            lambda api: api.silence(),
            lambda api: api.failure(400, "invalid_request_error", "max_tokens: too large"),
        ],
    )
    async def test_is_the_error_too_if_the_second_request_fails_for_its_size(
        self, server: AnyServer, provider: Provider, api: Any, second: Callable[[Any], Any]
    ) -> None:
        server.requests.clear()
        server.script(api.text("{", stop_reason="max_tokens"), second(api))
        with pytest.raises(ModelCut):
            await planned(provider.model("haiku", total_timeout_s=0.5))
        assert len(server.requests) == 2

    async def test_is_not_the_error_of_a_server_that_is_overloaded_meanwhile(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.text("{", stop_reason="max_tokens"))
        server.default = lambda _: api.failure(529, "overloaded_error", retry_after_ms="1")
        with pytest.raises(ModelOverloaded):
            await planned(model)


@every_adapter
class TestAThought:
    @each_row(
        "empty",
        [
            lambda api: api.tool_use(thought="Rest, I think.", stop_reason="end_turn"),
            lambda api: api.text(" \n"),
            lambda api: api.text(""),
        ],
    )
    async def test_without_an_answer_is_asked_for_one_once_more_and_then_an_error_of_its_own(
        self, server: AnyServer, model: ServedModel, api: Any, empty: Callable[[Any], Any]
    ) -> None:
        server.requests.clear()
        server.script(empty(api), api.json_answer(WEEK))
        assert await planned(model) == Plan(**WEEK)
        assert server.requests[0].body["messages"] == server.requests[1].body["messages"]
        assert server.requests[1].room > server.requests[0].room
        server.script(empty(api), empty(api))
        with pytest.raises(ModelEmpty):
            await planned(model)
        assert len(server.requests) == 4

    async def test_nonsense_is_sent_back_with_its_fault_and_with_the_thoughts_it_came_with(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        half = json.dumps({"steps": ["rest"]})
        server.script(
            api.tool_use(said=half, thought="One step will do.", stop_reason="end_turn"),
            api.json_answer(WEEK),
        )
        assert await planned(model) == Plan(**WEEK)
        asked, answered, fault = server.requests[1].talk
        assert [asked] == server.requests[0].talk
        assert answered == ("assistant", half)
        assert "One step will do." in json.dumps(server.requests[1].body["messages"])
        assert "days: missing" in fault[1]
        first, second = server.requests
        assert (first.system, first.room) == (second.system, second.room)


@each_api
class TestNonsense:
    async def test_twice_is_given_up(self, server: AnyServer, model: ServedModel, api: Any) -> None:
        server.default = lambda _: api.text("I would rest.")
        with pytest.raises(ModelBadOutput):
            await planned(model)
        assert len(server.requests) == 2

    async def test_of_a_tool_that_nobody_offered_does_not_go_back(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(api.tool_use(("t", "clock", {})), api.json_answer(WEEK))
        assert await planned(model) == Plan(**WEEK)
        assert {who for who, *_ in server.requests[1].talk} == {"user"}

    async def test_and_a_cut_answer_are_each_asked_for_once_in_one_call(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(
            api.text("I would rest."), api.text("{", stop_reason="max_tokens"), api.json_answer(WEEK)
        )
        assert await planned(model) == Plan(**WEEK)
        assert [len(one.talk) for one in server.requests] == [1, 3, 3]
        assert server.requests[2].room > server.requests[1].room

    async def test_that_goes_on_takes_three_requests_at_most(
        self, server: AnyServer, model: ServedModel, api: Any
    ) -> None:
        server.script(*[api.text("Rest."), api.text("{", stop_reason="max_tokens")] * 4)
        with pytest.raises(ModelBadOutput):
            await planned(model)
        assert len(server.requests) == 3
