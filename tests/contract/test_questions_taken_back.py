"""A question that is answered in a thread, and then deleted or edited: no thread and no name tells it."""

import asyncio
from typing import Any

import discord
import pytest

from tests.contract.brain import sum_up
from tests.contract.meanwhile import until, writes
from tests.contract.world import Start, World
from tests.servers.messages_api import json_answer

SECRET = "The password of the safe is ostrich"
ASKED = f"{SECRET}. Is that good?"
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "threads": True}


def newest(world: World) -> Any:
    return world.general.threads[-1]


async def asks(world: World, words: str = ASKED) -> discord.Message:
    message = await world.ann.send(world.general, words)
    await world.settle()
    return message


class TestTheThread:
    async def test_is_read_as_the_question_is_now_also_if_its_person_wants_no_memory(
        self, start: Start
    ) -> None:
        async with start(threads=True, extraction_enabled=False, summary_every=1) as world:
            world.brain.writes("summary", sum_up)
            await world.env.advance_time(1)
            for memory in (True, False):
                if not memory:
                    await world.ann.slash(world.general, "memory data optout")
                for now in ("Is that good?", ""):
                    message = await asks(world)
                    thread = newest(world)
                    await world.says(world.bob, thread, "Who knows?")
                    assert bool(world.files_with("ostrich")) is memory
                    if now:
                        await world.ann.edit(message, now)
                    else:
                        await world.ann.delete(message)
                    await world.settle()
                    assert world.files_with("ostrich") == []
                    await world.says(world.bob, thread, "What was it about?")
                    assert "ostrich" not in world.prompt


class TestItsName:
    async def test_tells_nothing_that_was_deleted_edited_away_or_hidden(self, start: Start) -> None:
        async with start(**QUIET) as world:
            world.brain.says("||The butler||, again.", about="butler")
            world.brain.writes("title", "Ostrich as a password")
            await asks(world, "Is ||the butler|| the murderer?")
            (named,) = world.background("title")
            assert "Is … the murderer?" in named.prompt and "butler" not in named.prompt
            message = await asks(world)
            await world.ann.edit(message, f"{ASKED} Thanks")
            await world.settle()
            assert newest(world).name == "Ostrich as a password"  # nothing of it was taken away
            await world.ann.edit(message, "Is that password good?")
            await world.settle()
            assert newest(world).name == "Is that password good?"
            bulk, away = await asks(world), await asks(world)
            other = await world.bob.send(world.dev, "x")
            channel = world.env.bot.get_channel(world.general.id)
            assert isinstance(channel, discord.TextChannel)
            await channel.delete_messages([discord.Object(bulk.id), discord.Object(other.id)])
            await world.settle()
            channels = world.env.backend.channels
            assert channels[bulk.id].name == "Deleted question"
            await world.restart(
                meanwhile=lambda: world.env.backend.delete_message(world.general.id, away.id) and None
            )
            await world.settle()
            assert channels[away.id].name == "Deleted question"

    @pytest.mark.parametrize("how", ["edited", "erased"])
    async def test_is_not_made_of_what_goes_while_it_is_made(self, start: Start, how: str) -> None:
        goes_on = asyncio.Event()
        async with start(**QUIET) as world:
            world.brain.writes("title", json_answer({"title": "An ostrich"}, hold=goes_on))
            question = writes(world, world.ann, world.general, f"Is it good? {'x' * 70} ostrich")
            await until(lambda: world.background("title"))
            if how == "edited":
                backend = world.env.backend
                backend.edit_message(world.general.id, question.id, {"content": "Is it good?"})
                await until(lambda: "Is it good?" in world.shown(world.general))
            else:
                writes(world, world.ann, world.dev, "!memory erase --yes")
                await until(lambda: len(world.shown(world.dev)) > 1)
            goes_on.set()
            await world.settle()
            assert "ostrich" not in newest(world).name
