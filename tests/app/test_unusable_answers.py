"""The whole bot with a model that makes nothing of one message: that is tried again, and blocks no other."""

import json
import re
from collections.abc import AsyncIterator, Callable

import pytest

from discoclaw.core import titles
from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.patch import Patch, Summary
from discoclaw.models.anthropic.provider import AnthropicModel, AnthropicProvider
from discoclaw.models.offline.model import OfflineModel
from tests.app.conftest import Start, World
from tests.app.erasing import summaries
from tests.citing import cited, own_of
from tests.servers import messages_api as api
from tests.servers.messages_api import Behaviour, MessagesServer, Received

LIKED = ("snarks", "tea", "cake", "jazz", "chess", "maps", "rain", "bread", "moss", "kites", "wool", "salt")


def opened(server: MessagesServer) -> AnthropicModel:
    """A model at that server, which is asked once. The bot closes it when it stops."""
    provider = AnthropicProvider(base_url=server.base_url, connect_timeout_s=1, max_retries=0)
    return provider.model("haiku", total_timeout_s=10)


@pytest.fixture
async def model(server: MessagesServer) -> AsyncIterator[AnthropicModel]:
    model = opened(server)
    yield model
    await model.close()


def first_prompt(received: Received) -> str:
    """What a loop asked, also when it asks once more."""
    return "".join(block["text"] for block in received.body["messages"][0]["content"])


def new_words(received: Received) -> list[str]:
    """What the messages that a loop reads anew are about."""
    prompt = first_prompt(received)
    new = "\n".join(own_of(prompt).values()) or prompt.rpartition(titles.NEW_MESSAGES)[2]
    return [word for word in LIKED if word in new]


def learning(of_snarks: Behaviour | None = None) -> Callable[[Received], Behaviour]:
    """A model that learns what people like, and says something else where snarks are among it."""

    def answer(received: Received) -> Behaviour:
        if "tools" in received.body:
            return api.text("Noted.")
        words, prompt = new_words(received), first_prompt(received)
        if "snarks" in words and of_snarks is not None:
            return of_snarks
        if titles.NEW_MESSAGES in prompt:
            return api.json_answer({"summary": f"Liked: {', '.join(words)}.", "themes": [], "decisions": []})
        items = [{"kind": "fact", "text": f"User likes {', '.join(words)}."}] if words else []
        return api.json_answer(cited({"upserts": items, "deprecations": []}, prompt))

    return answer


class Paraphrasing(OfflineModel):
    """Writes a summary that tells a codename in other words, but makes nothing of riddles."""

    async def structured(self, *, purpose, system, prompt, shape, max_tokens=2048):
        if shape is not Summary:
            return Patch()
        if "riddle" in prompt:
            raise ModelBadOutput("prose")
        lines = [
            f"{name}: {'the airship, see Zebulon' if 'codename' in text else text}"
            for name, text in re.findall(r"»?\[(\w+)[^\]]*\]: (.+)", prompt)
        ]
        [day, *_] = re.findall(r"\d{4}-\d\d-\d\d", prompt)
        old = re.findall(r"^- .*$", prompt, re.MULTILINE)
        return Summary(summary="\n".join(["Open:", *(f"- {day} {line}" for line in lines), *old]))


UNUSABLE = [
    pytest.param(api.text("They like snarks."), id="prose"),
    pytest.param(api.text('{"upserts": [', stop_reason="max_tokens"), id="cut off"),
    pytest.param(api.tool_use(thought="Snarks?", stop_reason="end_turn"), id="empty"),
]


async def likes(world: World) -> set[str]:
    items = (await world.memory.view(f"user-{world.ann.id}")).active()
    texts = [item.text.removeprefix("User likes ").removesuffix(".") for item in items]
    return {word for text in texts for word in text.split(", ")}


async def say_all(world: World, words: tuple[str, ...] = LIKED) -> None:
    for word in words:
        await world.ann.send(world.general, f"I like {word}.")
        await world.settle()


class TestAMessageOfWhichAModelMakesNothing:
    @pytest.mark.parametrize("of_snarks", UNUSABLE)
    async def test_blocks_no_other_and_is_learned_by_a_better_model_after_a_restart(
        self, start: Start, server: MessagesServer, model: AnthropicModel, of_snarks: Behaviour
    ) -> None:
        server.default = learning(of_snarks)
        async with start(model, summary_enabled=False) as world:
            await say_all(world)
            assert await likes(world) == {*LIKED} - {"snarks"}
            server.default = learning()
            asked = len(server.requests)
            await world.restart(opened(server))
            await world.ann.send(world.general, "I like fog.")
            await world.settle()
            assert await likes(world) == {*LIKED}
            # Only what waited is read, beside what is new: no other of these words.
            read = [own_of(first_prompt(one)) for one in server.requests[asked:]]
            lines = [line for own in read for line in own.values()]
            assert len(lines) == 2 and "snarks" in lines[0] and "fog" in lines[1]

    async def test_is_tried_again_alone_after_the_others(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.default = learning(api.text("They like snarks."))
        async with start(model, summary_enabled=False) as world:
            await say_all(world)
            asked = len(server.requests)
            await say_all(world, ("rain",))
            # The answer, what is new, and the message that was put off: twice, with the fault named.
            assert [new_words(one) for one in server.requests[asked + 1 :]] == [
                ["rain"],
                ["snarks"],
                ["snarks"],
            ]
            server.default = learning()
            await say_all(world, LIKED[4:])
            assert await likes(world) == {*LIKED}

    async def test_is_tried_ever_more_rarely_and_left_out_in_the_end(
        self, start: Start, server: MessagesServer, model: AnthropicModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.default = learning(api.text("They like snarks."))
        async with start(model, summary_enabled=False) as world:
            await say_all(world)
            calls = []
            for number in range(30):
                asked = len(server.requests)
                await say_all(world, (LIKED[1:][number % 11],))
                calls.append(len(server.requests) - asked)
            # Each turn has an answer and an extraction; a further try takes two requests.
            assert [number for number, count in enumerate(calls) if count > 2] == [0, 8, 24]
            assert set(calls) == {2, 4}
        assert caplog.text.count("it is left out") == 1

    async def test_does_not_keep_a_later_one_in_the_summary_after_its_deletion(self, start: Start) -> None:
        async with start(Paraphrasing(), summary_every=1) as world:
            await world.ann.send(world.general, "A riddle.")
            await say_all(world)
            secret = await world.ann.send(world.general, "our codename: Luftschiff")
            await say_all(world, ("fog",))
            assert "Zebulon" in summaries(world)
            await world.ann.delete(secret)
            await world.settle()
            assert "Zebulon" not in summaries(world)

    async def test_is_in_the_summary_in_the_end_and_keeps_nothing_else_out(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        server.default = learning(api.text("I'm sorry, I can't summarise that."))
        async with start(model, extraction_enabled=False, summary_every=1) as world:
            await say_all(world)
            rolling = world.folder / "data" / "memory" / "rolling"
            [path] = rolling.glob("*.json")
            assert "salt" in json.loads(path.read_text())["summary"]
            server.default = learning()
            asked = len(server.requests)
            await world.ann.send(world.general, "I like fog.")
            await world.settle()
            assert ["snarks"] in [new_words(one) for one in server.requests[asked:]]

    async def test_that_it_refuses_is_left_out_for_good(
        self, start: Start, server: MessagesServer, model: AnthropicModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.default = learning(api.refusal("no snarks"))
        async with start(model, summary_enabled=False) as world:
            await say_all(world)
            assert await likes(world) == {*LIKED} - {"snarks"}
            server.default = learning()
            await world.restart(opened(server))
            await world.ann.send(world.general, "I like fog.")
            await world.settle()
            assert await likes(world) == {*LIKED} - {"snarks"}
        assert "it is left out" in caplog.text

    async def test_that_it_refuses_takes_none_along_that_was_never_refused_alone(
        self, start: Start, server: MessagesServer, model: AnthropicModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.default = learning(api.refusal("no snarks"))
        words = ("tea", "snarks", *LIKED[2:])
        async with start(model, summary_enabled=False, durable_every=2) as world:
            await say_all(world, words * 2)
            assert await likes(world) == {*LIKED} - {"snarks"}
            await say_all(world, LIKED[2:])
        assert "it is left out" in caplog.text


class TestAServerThatRejectsEverythingForAWhile:
    async def test_costs_no_message(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        usual = learning()

        def broken(received: Received) -> Behaviour:
            is_loop = "tools" not in received.body
            return api.failure(400, "invalid_request_error", "no") if is_loop else usual(received)

        server.default = broken
        async with start(model, summary_enabled=False) as world:
            await say_all(world)
            assert await likes(world) == set()
            server.default = usual
            for _ in range(3):
                await say_all(world, ("fog",))
            assert await likes(world) >= {*LIKED}


class TestABatchForWhichAModelIsTooSlow:
    async def test_becomes_smaller_and_is_learned(
        self, start: Start, server: MessagesServer, model: AnthropicModel
    ) -> None:
        quick = learning()

        def slow(received: Received) -> Behaviour:
            return api.failure(504, "timeout_error") if len(new_words(received)) > 3 else quick(received)

        server.default = slow
        async with start(model, summary_enabled=False, durable_every=5) as world:
            for word in LIKED[:10]:
                await world.ann.send(world.general, f"I like {word}. " + "Really! " * 200)
                await world.settle()
            assert await likes(world) == {*LIKED[:10]}
