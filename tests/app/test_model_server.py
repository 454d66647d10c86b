"""The whole bot and a server of the Messages API: what people see when the server answers oddly."""

import json
from typing import Any

import pytest

from discoclaw.models.anthropic.provider import AnthropicModel
from tests.app.conftest import Start
from tests.citing import cited
from tests.servers import messages_api as api
from tests.servers.messages_api import Behaviour, MessagesServer, Received

QUIET = {"extraction_enabled": False, "summary_enabled": False}
DONE = "Done."


def called(*inputs: str, ids: tuple[object, ...] = (), name: object = "memory_search") -> Behaviour:
    """Calls with these inputs, letter by letter as the server sends them; an id of None is left out."""
    names = ids or tuple(f"toolu_{number}" for number in range(len(inputs)))
    blocks = tuple({"type": "tool_use", "id": one, "name": name, "input": {}} for one in names)
    kept = tuple({key: value for key, value in block.items() if value is not None} for block in blocks)
    return api.Answer(kept, tuple((given,) for given in inputs), stop_reason="tool_use")


def results(received: Received) -> list[dict[str, Any]]:
    """The tool results that a request brings."""
    blocks = received.body["messages"][-1]["content"]
    return [block for block in blocks if block["type"] == "tool_result"]


DEEP = '{"query":' * 5_000 + "1" + "}" * 5_000


class TestAToolInputThatMakesNoSense:
    @pytest.mark.design(123)
    @pytest.mark.parametrize(
        "given",
        [
            pytest.param("null", id="null"),
            pytest.param('["cats"]', id="a list"),
            pytest.param('"cats"', id="a text"),
            pytest.param("7", id="a number"),
            pytest.param('{"query": cats}', id="no JSON"),
            pytest.param(DEEP, id="five thousand objects in one another"),
            pytest.param('{"query":' * 100 + "1" + "}" * 100, id="a hundred objects in one another"),
            pytest.param(json.dumps({"query": "cats " * 50_000}), id="a quarter of a million characters"),
            pytest.param(json.dumps({"query": "cats " * 1_000}), id="a query that is too long"),
            pytest.param('{"query": "\\ud83d"}{', id="two values"),
        ],
    )
    async def test_is_reported_to_the_model_which_goes_on(
        self, start: Start, server: MessagesServer, model: AnthropicModel, given: str
    ) -> None:
        server.script(called(given), api.text(DONE))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "what about my cats?")
            assert world.answer(world.general) == DONE
        [result] = results(server.requests[1])
        assert result["is_error"] and "memory_search was not called correctly" in result["content"]
        assert len(result["content"]) < 500

    async def test_takes_the_other_calls_with_it_only_where_they_cannot_be_told_apart(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(
            called("null", '{"query": "cats"}'),
            called('{"query": "cats"}', '{"query": cats}'),
            api.text(DONE),
        )
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "what about my cats?")
            assert world.answer(world.general) == DONE
        assert [one["is_error"] for one in results(server.requests[1])] == [True, False]
        assert [one["is_error"] for one in results(server.requests[2])] == [True, True]


class TestACall:
    @pytest.mark.parametrize("name", ["memory_serch", "rm -rf /", "", None])
    async def test_of_a_tool_that_does_not_exist_is_told_which_ones_do(
        self, start: Start, server: MessagesServer, model: AnthropicModel, name: str | None
    ) -> None:
        server.script(called("{}", name=name), api.text(DONE))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "what about my cats?")
            assert world.answer(world.general) == DONE
        [result] = results(server.requests[1])
        assert result["is_error"] and "memory_search" in result["content"]

    @pytest.mark.parametrize("ids", [("a", "a"), (None, None), ("", "a"), (7, 7)])
    async def test_without_an_id_of_its_own_gets_one(
        self, start: Start, server: MessagesServer, model: AnthropicModel, ids: tuple[object, ...]
    ) -> None:
        server.script(called('{"query": "cats"}', '{"query": "dogs"}', ids=ids), api.text(DONE))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "what about my cats?")
            assert world.answer(world.general) == DONE
        both = results(server.requests[1])
        assert len({one["tool_use_id"] for one in both}) == 2
        assert [one["is_error"] for one in both] == [False, False]


class TestARefusal:
    async def test_is_a_sentence_below_what_was_said_before(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.refusal("", "First you take"))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "how do I build it?")
            *_, said, why = world.shown(world.general)
        assert said == "First you take"
        assert why == "The model declined to answer that. Please put it another way."

    async def test_alone_is_the_same_sentence(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.refusal("It could do harm."))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "how do I build it?")
            assert world.answer(world.general).startswith("The model declined to answer that.")


class TestAnAnswerAtItsLengthLimit:
    async def test_says_so_below_what_was_said(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text("Once upon", stop_reason="max_tokens"))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "tell me a story")
            assert world.answer(world.general).startswith("Once upon\n\n*(My answer reached its length limit")

    async def test_of_thoughts_alone_is_asked_for_once_more_with_more_room(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.tool_use(thought="A story, then.", stop_reason="max_tokens"), api.text("Once."))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "tell me a story")
            assert world.answer(world.general) == "Once."
        first, second = (one.body for one in server.requests)
        assert (first.pop("max_tokens"), second.pop("max_tokens")) == (4_096, 12_096)
        assert first == second

    async def test_of_thoughts_alone_twice_is_no_answer_that_could_go_on(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(*[api.tool_use(thought="A story, then.", stop_reason="max_tokens")] * 2)
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "tell me a story")
            assert world.answer(world.general).startswith("The model reached its length limit before it said")
        assert len(server.requests) == 2

    async def test_of_thoughts_alone_says_so_too_if_the_model_takes_no_larger_request(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(
            api.tool_use(thought="A story, then.", stop_reason="max_tokens"),
            api.failure(400, "invalid_request_error", "max_tokens: 12096 > 8192"),
        )
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "tell me a story")
            assert world.answer(world.general).startswith("The model reached its length limit before it said")


class TestAPausedAnswer:
    async def test_is_one_answer_without_a_word_about_its_length(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.script(api.text("I look it up. ", stop_reason="pause_turn"), api.text("It is noon."))
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "what time is it?")
            assert world.answer(world.general) == "I look it up. It is noon."


TALK_SO_FAR = "Ann and the bot talk about a trip to Bern. She wants to go by train."


class TestAServerThatAnswersInProse:
    """It ignores the schema, as local servers do."""

    @staticmethod
    def prose(summary: str, learned: str = "The user wants to go to Bern by train.") -> Any:
        def answer(received: Received) -> Behaviour:
            if "output_config" not in received.body:
                return api.text(DONE)
            return api.text(summary if "summary" in received.system.partition("\n")[0] else learned)

        return answer

    @pytest.mark.design(220)
    async def test_still_gives_a_summary_that_the_next_answer_rests_on(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.default = self.prose(f"Here is the summary:\n\n{TALK_SO_FAR}")
        async with start(model, summary_every=2, durable_every=1) as world:
            for text in ("let's go to Bern", "by train", "when?"):
                await world.ann.send(world.general, text)
                await world.settle()
            asked = [one.prompt for one in server.requests if "output_config" not in one.body]
            assert ["rolling summary" in prompt for prompt in asked] == [False, False, True]
            assert f"(rolling summary; may be empty):\n{TALK_SO_FAR}\n" in asked[2]
            assert not world.durable(world.ann).exists()  # extraction takes nothing but its JSON

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("```json\n", "\n```"),
            ("Here is what I learned:\n", "\nAnything else?"),
            ("[", "]"),
            ('<think>Maybe {"upserts": []}?</think>\n', ""),
        ],
    )
    async def test_around_its_json_is_learned_from_all_the_same(
        self, start: Start, server: MessagesServer, model: AnthropicModel, before: str, after: str
    ) -> None:
        def answer(received: Received) -> Behaviour:
            if "output_config" not in received.body:
                return api.text(DONE)
            items = [{"kind": "fact", "text": "User goes to Bern."}]
            learned = cited({"upserts": items, "deprecations": []}, received.prompt)
            return api.text(f"{before}{json.dumps(learned)}{after}")

        server.default = answer
        async with start(model, summary_enabled=False) as world:
            await world.ann.send(world.general, "let's go to Bern")
            await world.settle()
            assert "User goes to Bern." in world.durable(world.ann).read_text()
        assert len(server.requests) == 2

    async def test_gives_none_where_it_only_apologises(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.default = self.prose("I'm sorry, but I can't summarise this conversation.")
        async with start(model, summary_every=1, extraction_enabled=False) as world:
            for text in ("let's go to Bern", "by train"):
                await world.ann.send(world.general, text)
                await world.settle()
            assert "rolling summary" not in server.requests[-1].prompt
