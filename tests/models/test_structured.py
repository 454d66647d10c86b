"""Structured answers over the real SDK: exactly one object of the shape, or nothing."""

import asyncio
import json

import pytest
from pydantic import BaseModel, ConfigDict

from discoclaw.core.errors import ModelBadOutput, ModelTimeout
from discoclaw.models.anthropic.provider import AnthropicModel, AnthropicProvider
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer


class Plan(BaseModel):
    """A shape with a list and a number, to be answered with."""

    model_config = ConfigDict(extra="forbid")

    steps: list[str]
    days: int


async def planned(model: AnthropicModel) -> Plan:
    return await model.structured(
        purpose="extraction", system="You plan.", prompt="Plan my week.", shape=Plan
    )


class TestStructuredAnswers:
    async def test_one_json_object_of_the_shape_is_accepted(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.json_answer({"steps": ["rest", "more rest"], "days": 7}))
        assert await planned(model) == Plan(steps=["rest", "more rest"], days=7)

    @pytest.mark.design(214)
    async def test_the_schema_is_sent_as_parameter_and_to_other_servers_in_words(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.json_answer({"steps": [], "days": 1}))
        await planned(model)
        sent = server.requests[0]
        schema = sent.body["output_config"]["format"]["schema"]
        assert schema["additionalProperties"] is False and set(schema["properties"]) == {"steps", "days"}
        assert "exactly one JSON object" in sent.system and '"steps"' in sent.system
        assert "tools" not in sent.body

    @pytest.mark.design(220)
    @pytest.mark.parametrize(
        ("what", "answer"),
        [
            ("prose", "I would rest for seven days."),
            ("prose around JSON", 'Here you are: {"steps": [], "days": 1}'),
            ("text behind JSON", '{"steps": [], "days": 1} Enjoy!'),
            ("a code fence", '```json\n{"steps": [], "days": 1}\n```'),
            ("two objects", '{"steps": [], "days": 1}{"steps": [], "days": 1}'),
            ("a list", '[{"steps": [], "days": 1}]'),
            ("a number as text", '{"steps": [], "days": "1"}'),
            ("text for a list", '{"steps": "rest", "days": 1}'),
            ("a missing field", '{"steps": []}'),
            ("a further field", '{"steps": [], "days": 1, "sudo": true}'),
            ("half an object", '{"steps": ["re'),
            ("nothing", ""),
            ("null", "null"),
        ],
    )
    async def test_anything_else_is_bad_output(
        self, server: MessagesServer, model: AnthropicModel, what: str, answer: str
    ) -> None:
        server.script(api.text(answer))
        with pytest.raises(ModelBadOutput):
            await planned(model)

    async def test_the_error_does_not_repeat_what_the_model_said(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text('{"steps": ["secret diary"], "days": "secret day"}'))
        with pytest.raises(ModelBadOutput, match="days: int_type") as caught:
            await planned(model)
        assert "secret" not in str(caught.value) and caught.value.__cause__ is None

    async def test_a_million_characters_are_refused_before_they_are_all_read(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        steps = ["x" * 10_000] * 100
        server.script(
            api.text('{"days": 1, "steps": [', *(json.dumps(step) + "," for step in steps), delay_s=0.001)
        )
        with pytest.raises(ModelBadOutput, match="longer than 200000"):
            await planned(model)
        await asyncio.wait_for(server.left.wait(), 1)

    async def test_an_answer_cut_at_its_length_is_bad_even_if_it_parses(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.json_answer({"steps": [], "days": 1}, stop_reason="max_tokens"))
        with pytest.raises(ModelBadOutput, match="incomplete"):
            await planned(model)

    async def test_a_tool_call_is_no_structured_answer(
        self, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.tool_use(("t", "clock", {})))
        with pytest.raises(ModelBadOutput):
            await planned(model)

    @pytest.mark.design(214)
    async def test_one_time_limit_covers_the_whole_call(
        self, server: MessagesServer, provider: AnthropicProvider
    ) -> None:
        server.script(api.json_answer({"steps": ["x" * 400], "days": 1}, delay_s=0.05))
        with pytest.raises(ModelTimeout):
            await planned(provider.model("haiku", total_timeout_s=0.15))
