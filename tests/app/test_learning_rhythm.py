"""When and from what the bot learns: the beat, what forces it, what the small model reads, and links."""

import json

import pytest

from discoclaw.models.anthropic.provider import AnthropicProvider
from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer

QUIET = {"summary_enabled": False}
PASTED = "[Memory context]\n- pet: User has a red dog. [links: vet]\n[/Memory context]\n\n"


class TestTheBeat:
    @pytest.mark.design(140, 164)
    @pytest.mark.parametrize("every", [5, 10])
    async def test_is_so_many_messages_of_a_person(self, start: Start, every: int) -> None:
        model = Scripted()
        async with start(model, durable_every=every, **QUIET) as world:
            for number in range(1, 2 * every + 1):
                await world.ann.send(world.general, f"message {number}")
                await world.settle()
                assert len(model.structured_prompts) == number // every

    @pytest.mark.design(141)
    async def test_does_not_count_where_something_leaves_the_window(self, start: Start) -> None:
        model = Scripted()
        async with start(model, durable_every=1000, context_history=4, **QUIET) as world:
            for number in range(2):
                await world.ann.send(world.general, f"message {number}")
                await world.settle()
            assert model.structured_prompts == []
            await world.ann.send(world.general, "message 2")
            await world.settle()
            (prompt,) = model.structured_prompts
            assert "message 0" in prompt


class TestARestart:
    @pytest.mark.parametrize("hours", [0, 72])
    async def test_loses_no_talk_from_learning_though_others_talk_on(self, start: Start, hours: int) -> None:
        model = Scripted()
        more = {"durable_every": 4, "summary_every": 4, "respond_mode": "mention", "catch_up_hours": hours}
        async with start(model, **more) as world:
            us = f"<@{world.app.client.me().id}>"
            for number in range(3):
                await world.ann.send(world.general, f"{us} I keep goat number {number}.")
            await world.restart()
            for number in range(60):
                await world.bob.send(world.general, f"chatter {number}")
            await world.settle()
            await world.ann.send(world.general, f"{us} And a cow.")
            await world.settle()
            summed = [prompt for prompt in model.structured_prompts if "Previous summary" in prompt]
            learned = [prompt for prompt in model.structured_prompts if "Previous summary" not in prompt]
            for number in range(3):
                assert any(f"goat number {number}" in prompt for prompt in summed)
                assert any(f"goat number {number}" in prompt for prompt in learned)


class TestWhatIsLearned:
    @pytest.mark.design(142)
    async def test_is_from_both_sides_without_pasted_memory(
        self, start: Start, server: MessagesServer
    ) -> None:
        server.script(api.text("It is green."), api.text("{}"))
        provider = AnthropicProvider(api_key="k", base_url=server.base_url)
        async with start(provider.model("haiku"), durable_every=1, **QUIET) as world:
            await world.ann.send(world.general, f"{PASTED}What colour is tea?")
            await world.settle()
        learning = server.requests[-1].body
        read = str(learning["messages"])
        assert "What colour is tea?" in read and "It is green." in read
        assert "red dog" not in read and "[Memory context]" not in read
        assert "temperature" not in learning

    @pytest.mark.design(143)
    async def test_has_its_links_both_ways(self, start: Start) -> None:
        model = Scripted()
        notes = [
            {"kind": "fact", "text": "User has a vet called Moe.", "key": "vet:name"},
            {"kind": "fact", "text": "User has a cat called Miso.", "key": "pet:name", "links": ["vet:name"]},
        ]
        model.facts = [json.dumps({"upserts": notes})]
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "My cat Miso sees Moe, the vet.")
            await world.settle()
            items = (await world.memory.view(f"user-{world.ann.id}")).active()
            found = {str(item.facets.key): item for item in items}
            assert set(found) == {"vet:name", "pet:name"}
            assert found["pet:name"].facets.links == {found["vet:name"].id}
            assert found["vet:name"].facets.links == {found["pet:name"].id}
