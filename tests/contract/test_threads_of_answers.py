"""Answers in a thread of their own, in channels that are set so: seen in Discord, and by the model."""

import asyncio
import json
from typing import Any

import discord

from tests.contract.cards import labels
from tests.contract.meanwhile import until, writes
from tests.contract.prompts import recent
from tests.contract.world import Start, World
from tests.servers.messages_api import json_answer, refusal, text

QUESTION = "How do I knead a sourdough without a machine?"
THERE = "(answered in its thread)"


def talk(place: Any) -> list[str]:
    """What was said in a place, without Discord's own lines."""
    kinds = (discord.MessageType.default, discord.MessageType.reply)
    return [str(message.content) for message in place.history() if message.type in kinds]


def thread_of(place: Any) -> Any:
    (thread,) = place.threads
    return thread


async def asked(world: World) -> Any:
    """The thread of the answer to Ann's question in #general."""
    await world.ann.send(world.general, f"{world.mention} {QUESTION}")
    await world.settle()
    return thread_of(world.general)


class TestAChannelThatIsSetSo:
    async def test_gets_its_answer_below_the_question_and_goes_on_there_with_its_buttons(
        self, start: Start
    ) -> None:
        async with start(threads=True, respond_mode="mention", durable_every=2) as world:
            me = world.env.bot.user.name
            world.brain.says("With wet hands.", about="sourdough")
            world.brain.learns("User bakes at home.", about="sourdough")
            await world.bob.send(world.general, "My bread is a brick again")
            thread = await asked(world)
            assert talk(world.general)[1:] == [f"{world.mention} {QUESTION}"]
            assert talk(thread) == ["With wet hands."]
            assert recent(world.prompt) == ["[bob]: My bread is a brick again"]
            assert await world.says(world.bob, thread, "for how long?") == "ok"  # without a mention
            assert recent(world.prompt) == [f"[ann]: {QUESTION}", f"[{me}]: With wet hands."]
            await world.restart()
            assert await world.says(world.ann, thread, "and then?") == "ok"
            assert f"[{me}]: With wet hands." in recent(world.prompt)
            assert "last answer" in await world.says(world.ann, thread, "!memory why")
            assert world.memories(world.ann) == ["User bakes at home."]
            learned = [one for one in world.background("upserts") if f"»[ann]: {QUESTION}" in one.prompt]
            assert len(learned) == 1
        async with start(threads=True, extraction_enabled=False, summary_enabled=False) as world:
            cut = [text(f"{side} is", stop_reason="max_tokens") for side in ("Heads", "Tails")]
            world.brain.says(*cut, about="sourdough")
            world.brain.says("the winner.", about="go on")
            thread = await asked(world)
            for label in ("Again", "Go on"):
                await world.ann.click(thread.last_message, label=label)
                await world.settle()
            one, two = talk(thread)
            assert one.startswith("Tails is\n\n*(My answer") and two == "the winner."
            assert labels(thread.last_message) == [] and len(world.general.threads) == 1
            assert "Tails is" in world.prompt and "Heads" not in world.prompt

    async def test_is_one_channel_that_shows_what_was_answered_and_says_once_that_it_lets_no_thread_open(
        self, start: Start
    ) -> None:
        async with start(threads=True) as world:
            thread = await asked(world)
            await world.says(world.bob, world.general, "and who brings the flour?")
            assert f"[ann]: {QUESTION}\n  {THERE}" in world.prompt
            await world.says(world.ann, thread, "thanks")
            assert THERE not in world.prompt
        async with start() as world:
            live = world.data / "memory" / "config.json"
            live.parent.mkdir(parents=True, exist_ok=True)
            live.write_text(json.dumps({f"group:{world.general.id}": {"threads": True}}))
            for place in (world.dev, world.ann_dm):
                assert await world.says(world.ann, place, "hello") == "ok"
            thread = await asked(world)
            await world.says(world.ann, thread, "and with a machine?")
            assert talk(thread) == ["ok", "and with a machine?", "ok"]
            assert len(world.general.threads) == 1 and world.dev.threads == []
        async with start(threads=True) as world:
            nobody = discord.PermissionOverwrite(create_public_threads=False)
            room = world.guild.create_text_channel("narrow", overwrites={world.guild.default_role: nobody})
            for note in (
                "\n\n-# I'm set to answer in threads here, but Discord doesn't let me open one.",
                "",
            ):
                assert await world.says(world.ann, room, QUESTION) == f"ok{note}"
            assert room.threads == []


class TestTheName:
    async def test_is_the_question_then_the_models_title_once_unless_a_person_chose_one(
        self, start: Start
    ) -> None:
        async with start(threads=True, extraction_enabled=False, summary_enabled=False) as world:
            goes_on = asyncio.Event()
            title = json_answer({"title": '"**Ping @everyone** https://evil.example\n# now"'}, hold=goes_on)
            world.brain.writes("title", title)
            question = writes(world, world.ann, world.general, QUESTION)
            await until(lambda: world.background("title"))
            thread = thread_of(world.general)
            assert thread.name == QUESTION
            goes_on.set()
            await world.settle()
            assert thread_of(world.general).name == "Ping now"  # without a model's markup
            (asking,) = world.background("title")
            assert QUESTION in asking.prompt and "ok" in asking.prompt
            await world.says(world.ann, thread, "and rye?")
            assert len(world.background("title")) == 1
            await world.ann.delete(question)
            await world.settle()
            assert thread_of(world.general).name == "Deleted question"
        async with start(threads=True, extraction_enabled=False, summary_enabled=False) as world:
            goes_on = asyncio.Event()
            world.brain.writes("title", json_answer({"title": "Kneading"}, hold=goes_on), refusal())
            writes(world, world.ann, world.general, QUESTION)
            await until(lambda: world.background("title"))
            thread = world.env.bot.guilds[0].get_thread(thread_of(world.general).id)
            assert thread is not None
            await thread.edit(name="bread!")
            goes_on.set()
            await world.settle()
            assert thread_of(world.general).name == "bread!"
            await world.ann.send(world.dev, QUESTION)
            await world.settle()
            assert thread_of(world.dev).name == QUESTION
