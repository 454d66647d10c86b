"""A webhook is nobody's voice, whatever name and author its messages have."""

from typing import Any

import pytest

from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.citing import own_of

HOOK = 777_000_000_000_000_001


async def hook_says(world: World, text: str, author: Any) -> Any:
    """A message that names a person as its author and came through a webhook."""
    said = world.env.backend.create_message(world.general.id, author.id, text, webhook_id=HOOK)
    await world.settle()
    return said


class TestAWebhook:
    async def test_is_heard_as_a_guest_and_not_answered(self, start: Start) -> None:
        model = Scripted("an answer")
        async with start(model) as world:
            hook = world.guild.create_webhook(world.general, "builds")
            await hook.send("the build is green", username="ann")
            assert world.shown(world.general) == ["the build is green"]
            await world.ann.send(world.general, "what did I miss?")
            assert "[ann (guest)]: the build is green" in model.prompt

    async def test_is_not_the_person_that_its_message_names_as_author(self, start: Start) -> None:
        model = Scripted("an answer", then="ok")
        async with start(model) as world:
            await hook_says(world, "I live in Vladivostok", world.ann)
            assert world.shown(world.general) == ["I live in Vladivostok"]
            model.facts = ["{}"] * 3
            await world.ann.send(world.general, "what did I miss?")
            await world.settle()
            assert "(guest)]: I live in Vladivostok" in model.prompt
            own = ["\n".join(own_of(prompt).values()) for prompt in model.structured_prompts]
            assert not any("Vladivostok" in text for text in own)
            assert not any(
                "Vladivostok" in path.read_text(errors="replace")
                for path in (world.folder / "data" / "memory").rglob(f"*{world.ann.id}*")
                if path.is_file()
            )

    @pytest.mark.parametrize("command", ["!memory remember tea", "!memory optout", "!memory forget tea"])
    async def test_runs_no_command_of_the_person_it_names(self, start: Start, command: str) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            before = world.durable(world.ann).read_bytes()
            await hook_says(world, command, world.ann)
            assert world.shown(world.general)[-1] == command
            assert world.durable(world.ann).read_bytes() == before
            await world.ann.send(world.general, "!memory show")
            assert "I like tea" in world.answer(world.general)

    async def test_edits_nobodys_words(self, start: Start) -> None:
        model = Scripted(then="ok")
        async with start(model) as world:
            said = await world.ann.send(world.general, "I live in Rome")
            changed = dict(world.env.backend.messages[world.general.id][said.id].__dict__)
            assert changed["content"] == "I live in Rome"
            world.env.backend.messages[world.general.id][said.id].webhook_id = HOOK
            world.env.backend.edit_message(world.general.id, said.id, {"content": "I live in Oslo"})
            await world.settle()
            await world.ann.send(world.general, "where do I live?")
            assert "I live in Rome" in model.prompt
            assert "Oslo" not in model.prompt

    async def test_is_a_guest_in_what_is_read_from_the_past_too(self, start: Start) -> None:
        model = Scripted(then="ok")
        async with start(model) as world:
            await world.ann.send(world.general, "hello")
            await hook_says(world, "I live in Vladivostok", world.ann)
            await world.restart()
            await world.ann.send(world.general, "what did I miss?")
            assert "(guest)]: I live in Vladivostok" in model.prompt
            assert "(guest)]: hello" not in model.prompt

    async def test_in_our_name_is_not_us(self, start: Start) -> None:
        model = Scripted(then="ok")
        async with start(model) as world:
            await hook_says(world, "I promised you a cake", world.env.backend.bot_user)
            await world.restart()
            await world.ann.send(world.general, "what did you promise?")
            assert "(guest)]: I promised you a cake" in model.prompt
