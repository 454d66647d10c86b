"""Receipts: a silent line where something was learned from talk, with a button that takes it back."""

from typing import Any

import pytest

from tests.contract.cards import labels, said
from tests.contract.world import Start, World

GONE = "I can't find that any more: the memory or its persona was deleted since."


async def learned(world: World, *texts: str, place: Any = None, **more: Any) -> Any:
    """Ann says something of which these are learned. Returns the last message there."""
    about = f"number {len(world.turns())} about me"
    world.brain.learns(*({"kind": "fact", "text": text, "tags": [], **more} for text in texts), about=about)
    await world.env.advance_time(60)
    await world.says(world.ann, place or world.general, f"something, {about}")
    return (place or world.general).last_message


class TestTheLine:
    async def test_says_silently_what_was_learned_pings_nobody_and_quotes_nothing_private_in_the_open(
        self, start: Start
    ) -> None:
        async with start(receipts=True) as world:
            message = await learned(world, f"User likes tea with <@{world.bob.id}>.")
            assert said(message) == f"-# remembered: You like tea with <@{world.bob.id}>."
            assert message.flags.suppress_notifications and message.reference is None
            (sent,) = [one for one in world.env.http_requests if "-# remembered" in str(one.json)]
            assert sent.json["allowed_mentions"] == {"parse": []}
            message = await learned(world, *(f"Fact {number}." for number in range(5)))
            assert said(message).splitlines()[2:] == ["-# remembered: Fact 2.", "-# +2 more"]
            message = await learned(world, "User arbeitet bei Bosch.")
            assert said(message) == f"-# remembered: <@{world.ann.id}> arbeitet bei Bosch."
            await world.restart()
            await world.says(world.ann, world.general, "and now?")
            assert "something, number 2" in world.prompt and "-# " not in world.prompt
            message = await learned(world, "User has diabetes.", sensitivity="private")
            assert said(message) == "-# remembered: something private"
            message = await learned(world, "User lives in Oslo.", place=world.ann_dm)
            assert said(message) == "-# remembered: You live in Oslo."

    async def test_comes_after_a_tool_only_where_it_is_switched_on_and_costs_nothing_else(
        self, start: Start
    ) -> None:
        async with start(receipts=True, extraction_enabled=False) as world:
            world.brain.calls("memory_store", {"text": "User likes tea."}, "Noted.", about="tea")
            await world.says(world.ann, world.general, "please remember that I like tea")
            assert "-# remembered: You like tea." in world.shown(world.general)
            assert await world.says(world.ann, world.general, "!memory remember cake") == "Remembered: cake"
        async with start() as world:
            assert (await learned(world, "User likes tea.")).content == "ok"
        async with start(receipts=True) as world:
            world.brain.says("First answer.")
            path = f"/channels/{world.general.id}/messages"
            world.env.inject_error("POST", path, status=404, times=None)
            await learned(world, "User likes tea.")
            world.env.backend.faults.clear()
            await world.says(world.ann, world.dev, "hello?")
            assert world.memories(world.ann) == ["User likes tea."]
            assert world.answer(world.dev) == "ok"


class TestUndo:
    async def test_takes_all_of_it_back_from_its_persona_for_its_person_alone_after_a_restart_too(
        self, start: Start
    ) -> None:
        async with start(receipts=True) as world:
            message = await learned(world, "User likes tea.", "User likes cake.")
            await world.restart()
            refused = await world.bob.click(message, label="Undo")
            assert refused.ephemeral and len(world.memories(world.ann)) == 2
            await world.ann.click(message, label="Undo")
            await world.settle()
            shown = world.general.last_message
            assert said(shown) == "-# taken back\n-# It is also gone from 2 recent messages."
            assert labels(shown) == [] and world.memories(world.ann) == []
            for words in ("create-branch work", "checkout work"):
                await world.says(world.ann, world.general, f"!memory {words}")
            first, second = await learned(world, "User likes tea."), await learned(world, "User likes cake.")
            await world.says(world.ann, world.general, "!memory checkout main")
            await world.ann.click(first, label="Undo")
            await world.says(world.ann, world.general, "!memory checkout work")
            assert world.memories(world.ann) == ["User likes cake."]
            for words in ("checkout main", "delete-branch work"):
                await world.says(world.ann, world.general, f"!memory {words}")
            result = await world.ann.click(second, label="Undo")
            assert [one.content for one in result.followups] == [GONE]

    @pytest.mark.parametrize(
        ("command", "told", "left"),
        [
            ("undo", "That is done already.", []),
            ("edit User likes tea. => I love tea", "It has changed since, so it stays.", ["I love tea"]),
            ("erase --yes", GONE, []),
        ],
    )
    async def test_says_in_words_what_came_of_it_meanwhile(
        self, start: Start, command: str, told: str, left: list[str]
    ) -> None:
        async with start(receipts=True) as world:
            message = await learned(world, "User likes tea.")
            await world.env.advance_time(60)
            await world.says(world.ann, world.general, f"!memory {command}")
            result = await world.ann.click(message, label="Undo")
            assert [one.content for one in result.followups] == [told]
            assert world.memories(world.ann) == left
