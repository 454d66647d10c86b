"""A summary whose file is gone comes back from the conversation, without what must not come back."""

import json
import shutil
from typing import Any

import pytest

from discoclaw.core.errors import ModelOverloaded
from tests.app.conftest import Start, World
from tests.app.models import Scripted

BEING_REBUILT = "**Summary of this conversation**: being rebuilt."
NONE_YET = "**Summary of this conversation**: none yet"
QUIET = {"extraction_enabled": False, "summary_every": 2}


def rolling(world: World, channel: Any) -> Any:
    """The file of a channel's summary as it is on disk; None if there is none."""
    path = world.folder / "data" / "memory" / "rolling" / f"discord:channel:{channel.id}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


async def lose_summaries(world: World, *, catch_up_hours: int = 0) -> Scripted:
    """Stop the bot, delete the folder of summaries, and start it with a new model.

    Where it catches up, the summaries are made again at once, so most tests switch that off.
    """
    model = Scripted(then="sure")
    await world.settle()
    folder = world.folder / "data" / "memory" / "rolling"
    await world.restart(
        model, meanwhile=lambda: shutil.rmtree(folder, ignore_errors=True), catch_up_hours=catch_up_hours
    )
    if catch_up_hours:
        return model
    assert not folder.exists() or list(folder.iterdir()) == []
    return model


async def shown(world: World, channel: Any) -> str:
    await world.ann.send(channel, "!memory show")
    return world.answer(channel)


def prompts(model: Scripted) -> str:
    return "\n".join(model.structured_prompts)


class TestWhatComesBack:
    async def test_by_itself_after_a_start_that_catches_up(self, start: Start) -> None:
        async with start(Scripted(then="aye"), **QUIET) as world:
            for number in range(4):
                await world.ann.send(world.general, f"boat number {number}.")
            await world.settle()
            model = await lose_summaries(world, catch_up_hours=24)
            await world.settle()
            assert rolling(world, world.general)["summary"] == "They talked."
            assert "boat number 0." in prompts(model)

    @pytest.mark.parametrize("archive", [False, True])
    @pytest.mark.design(314)
    async def test_all_that_was_said_and_until_then_people_are_told(
        self, start: Start, archive: bool
    ) -> None:
        async with start(Scripted(then="aye"), archive_enabled=archive, **QUIET) as world:
            for number in range(24):
                await world.ann.send(world.general, f"boat number {number}.")
            await world.settle()
            assert rolling(world, world.general)["summary"] == "They talked."
            assert "They talked." in await shown(world, world.general)

            model = await lose_summaries(world)
            assert BEING_REBUILT in await shown(world, world.general)
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert rolling(world, world.general)["summary"] == "They talked."
            # The window has 20 messages; the talk had 48.
            for number in range(24):
                assert f"boat number {number}." in prompts(model)
            assert "And now?" in prompts(model)
            told = await shown(world, world.general)
            assert "They talked." in told and BEING_REBUILT not in told

    async def test_in_direct_messages_as_well_and_a_second_time(self, start: Start) -> None:
        async with start(Scripted(then="aye"), **QUIET) as world:
            for number in range(3):
                await world.ann.send_dm(f"boat number {number}.")
            for question in ("And now?", "And again?"):
                model = await lose_summaries(world)
                await world.ann.send_dm(question)
                await world.settle()
                assert "boat number 0." in prompts(model) and question in prompts(model)
            assert "And now?" in prompts(model)

    async def test_nothing_is_made_again_that_is_there(self, start: Start) -> None:
        async with start(Scripted(then="aye"), **QUIET) as world:
            for number in range(4):
                await world.ann.send(world.general, f"boat number {number}.")
            await world.settle()
            model = Scripted(then="sure")
            await world.restart(model)
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert model.structured_prompts == []

    async def test_a_model_that_fails_leaves_it_being_rebuilt(self, start: Start) -> None:
        class Failing(Scripted):
            async def structured(self, **given: Any) -> Any:
                raise ModelOverloaded("down")

        async with start(Scripted(then="aye"), **QUIET) as world:
            for number in range(4):
                await world.ann.send(world.general, f"boat number {number}.")
            await lose_summaries(world)
            await world.restart(Failing(then="sure"))
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert BEING_REBUILT in await shown(world, world.general)
            model = Scripted(then="sure")
            await world.restart(model)
            await world.ann.send(world.general, "And then?")
            await world.settle()
            assert "boat number 0." in prompts(model) and "They talked." in await shown(world, world.general)


class TestWhatStaysAway:
    async def test_what_somebody_said_who_opted_out_and_the_answers_to_them(self, start: Start) -> None:
        def answer(request: Any) -> str:
            return "Bob has a yacht. " * 150 if "yacht" in request.turns[0].text else "aye"

        async with start(Scripted(then=answer), **QUIET) as world:
            await world.ann.send(world.general, "I have a boat.")
            await world.bob.send(world.general, "I have a yacht.")
            await world.settle()
            assert rolling(world, world.general) is not None
            await world.bob.send(world.general, "!memory optout")
            model = await lose_summaries(world)
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert rolling(world, world.general) is not None
            assert "I have a boat." in prompts(model) and "yacht" not in prompts(model)

    async def test_what_was_said_before_a_reset(self, start: Start) -> None:
        async with start(Scripted(then="aye"), **QUIET) as world:
            for number in range(4):
                await world.ann.send(world.general, f"yacht number {number}.")
            await world.ann.send(world.general, "!memory reset rolling")
            model = await lose_summaries(world)
            assert NONE_YET in await shown(world, world.general)
            for number in range(4):
                await world.ann.send(world.general, f"boat number {number}.")
            await world.settle()
            assert "boat number 0." in prompts(model) and "yacht" not in prompts(model)

            model = await lose_summaries(world)
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert "boat number 0." in prompts(model) and "yacht" not in prompts(model)

    async def test_what_was_said_before_a_reset_that_comes_after_the_loss(self, start: Start) -> None:
        async with start(Scripted(then="aye"), **QUIET) as world:
            for number in range(4):
                await world.ann.send(world.general, f"yacht number {number}.")
            await lose_summaries(world)
            await world.ann.send(world.general, "!memory reset rolling")
            assert NONE_YET in await shown(world, world.general)
            for number in range(4):
                await world.ann.send(world.general, f"boat number {number}.")
            model = await lose_summaries(world)
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert "boat number 0." in prompts(model) and "yacht" not in prompts(model)

    async def test_what_was_said_before_somebody_was_erased(self, start: Start) -> None:
        async with start(Scripted(then="aye"), **QUIET) as world:
            await world.bob.send(world.general, "I have a yacht.")
            await world.ann.send(world.general, "So Bob has a yacht.")
            await world.settle()
            await world.bob.send(world.general, "!memory erase --yes")
            model = await lose_summaries(world)
            assert NONE_YET in await shown(world, world.general)
            await world.env.advance_time(1)
            for number in range(4):
                await world.ann.send(world.general, f"boat number {number}.")
            await world.settle()
            model = await lose_summaries(world)
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert "boat number 0." in prompts(model) and "yacht" not in prompts(model)

    async def test_what_was_said_elsewhere_or_deleted(self, start: Start) -> None:
        async with start(Scripted(then="aye"), **QUIET) as world:
            for number in range(2):
                await world.ann.send(world.general, f"boat number {number}.")
                await world.ann.send(world.dev, f"yacht number {number}.")
                await world.ann.send_dm(f"yacht number {number}, between us.")
            gone = await world.ann.send(world.general, "The sloop is sunk.")
            await world.settle()
            await world.ann.delete(gone)
            model = await lose_summaries(world)
            await world.ann.send(world.general, "And now?")
            await world.settle()
            assert "boat number 0." in prompts(model)
            assert "yacht" not in prompts(model) and "sloop" not in prompts(model)
            assert rolling(world, world.dev) is None
