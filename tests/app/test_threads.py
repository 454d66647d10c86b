"""Answers in a thread of their own, in channels that are set so: seen in Discord, and by the model."""

import asyncio
import json
from typing import Any

import discord

from discoclaw.bot.answer import NO_THREADS
from discoclaw.bot.threads import DELETED
from discoclaw.core.errors import ModelUnreachable
from discoclaw.core.ports import Shape
from discoclaw.memory.live import FILE
from discoclaw.session.branching import ANSWERED_THERE
from tests.app.conftest import Start, World
from tests.app.models import Scripted

QUESTION = "How do I knead a sourdough without a machine?"


class Namer(Scripted):
    """Names threads `title`, and holds that back while `wait` is not set."""

    def __init__(self, *words: Any, title: str = "Kneading sourdough by hand", **more: Any) -> None:
        super().__init__(*words, **more)
        self.title = title
        self.named: list[str] = []
        self.asked_for_name = asyncio.Event()
        self.wait = asyncio.Event()
        self.wait.set()

    async def structured(self, *, purpose: Any, prompt: str, shape: type[Shape], **more: Any) -> Shape:
        if purpose != "title":
            return await super().structured(purpose=purpose, prompt=prompt, shape=shape, **more)
        self.named.append(prompt)
        self.asked_for_name.set()
        await self.wait.wait()
        if not self.title:
            raise ModelUnreachable("no")
        return shape.model_validate({"title": self.title})


def shown(channel: Any) -> list[str]:
    """What was said in a channel, without Discord's own lines."""
    talk = (discord.MessageType.default, discord.MessageType.reply)
    return [str(message.content) for message in channel.history() if message.type in talk]


def thread_of(world: World, channel: Any) -> Any:
    (thread,) = channel.threads
    return thread


class TestAChannelThatIsSetSo:
    async def test_gets_its_answers_in_a_thread_below_the_question(self, start: Start) -> None:
        async with start(Namer("With wet hands."), threads=True) as world:
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            assert shown(world.general) == [QUESTION]
            assert world.answer(thread_of(world, world.general)) == "With wet hands."

    async def test_is_one_channel_and_no_other(self, start: Start) -> None:
        async with start(Namer()) as world:
            path = world.folder / "data" / "memory" / FILE
            path.write_text(json.dumps({f"group:{world.dev.id}": {"threads": True}}), encoding="utf-8")
            await world.ann.send(world.general, QUESTION)
            await world.ann.send(world.dev, QUESTION)
            assert shown(world.general) == [QUESTION, "ok"]
            assert shown(world.dev) == [QUESTION]
            assert world.answer(thread_of(world, world.dev)) == "ok"

    async def test_is_never_a_direct_message_or_a_thread(self, start: Start) -> None:
        async with start(Namer(), threads=True) as world:
            await world.ann.send_dm("hello")
            assert world.answer(world.ann_dm) == "ok"
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            thread = thread_of(world, world.general)
            await world.ann.send(thread, "and with a machine?")
            assert shown(thread) == ["ok", "and with a machine?", "ok"]
            assert len(world.general.threads) == 1

    async def test_answers_from_what_was_said_in_the_channel(self, start: Start) -> None:
        model = Namer()
        async with start(model, threads=True, respond_mode="mention") as world:
            await world.bob.send(world.general, "My sourdough is a brick again")
            await world.ann.send(world.general, f"<@{world.env.bot.user.id}> what does he do wrong?")
            assert "[bob]: My sourdough is a brick again" in model.prompt

    async def test_shows_the_model_that_an_earlier_question_has_its_answer(self, start: Start) -> None:
        model = Namer()
        async with start(model, threads=True) as world:
            await world.ann.send(world.general, QUESTION)
            await world.bob.send(world.general, "and who brings the flour?")
            assert f"[ann]: {QUESTION}\n  {ANSWERED_THERE}" in model.prompt
            thread = next(one for one in world.general.threads if one.id == world.general.history()[0].id)
            await world.ann.send(thread, "thanks")
            assert ANSWERED_THERE not in model.prompt

    async def test_the_thread_goes_on_from_the_question_without_a_mention(self, start: Start) -> None:
        model = Namer("With wet hands.", "Ten minutes.")
        async with start(model, threads=True, respond_mode="mention") as world:
            await world.ann.send(world.general, f"<@{world.env.bot.user.id}> {QUESTION}")
            await world.settle()
            thread = thread_of(world, world.general)
            await world.bob.send(thread, "for how long?")
            assert f"[ann]: {QUESTION}" in model.prompt
            assert f"[{world.env.bot.user.name}]: With wet hands." in model.prompt
            assert world.answer(thread) == "Ten minutes."

    async def test_what_was_asked_is_learned_once(self, start: Start) -> None:
        model = Namer()
        model.facts = [json.dumps({"upserts": [{"kind": "fact", "text": "User bakes at home."}]})] * 3
        async with start(model, threads=True) as world:
            await world.ann.send(world.general, "I bake at home. " + QUESTION)
            await world.settle()
            asked = [prompt for prompt in model.structured_prompts if "I bake at home" in prompt]
            learned = [prompt for prompt in asked if "m1 " in prompt and "»" in prompt]
            assert len(learned) == 1
            assert (await world.memory.view(f"user-{world.ann.id}")).active()

    async def test_why_is_answered_in_the_thread(self, start: Start) -> None:
        async with start(Namer(), threads=True) as world:
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            await world.ann.send(thread_of(world, world.general), "!memory why")
            assert "last answer" in world.answer(thread_of(world, world.general))


class TestTheName:
    async def test_is_first_the_questions_and_then_the_models_title(self, start: Start) -> None:
        model = Namer()
        model.wait.clear()
        async with start(model, threads=True) as world:
            sending = asyncio.ensure_future(world.ann.send(world.general, QUESTION))
            await model.asked_for_name.wait()
            assert thread_of(world, world.general).name == QUESTION
            model.wait.set()
            await sending
            await world.settle()
            assert thread_of(world, world.general).name == "Kneading sourdough by hand"
            assert QUESTION in model.named[0]
            assert "ok" in model.named[0]

    async def test_stays_as_a_person_chose_it(self, start: Start) -> None:
        model = Namer()
        model.wait.clear()
        async with start(model, threads=True) as world:
            sending = asyncio.ensure_future(world.ann.send(world.general, QUESTION))
            await model.asked_for_name.wait()
            (guild,) = world.env.bot.guilds
            thread = guild.get_thread(thread_of(world, world.general).id)
            assert thread is not None
            await thread.edit(name="bread!")
            model.wait.set()
            await sending
            await world.settle()
            assert thread_of(world, world.general).name == "bread!"

    async def test_is_given_once(self, start: Start) -> None:
        model = Namer()
        async with start(model, threads=True) as world:
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            await world.ann.send(thread_of(world, world.general), "and rye?")
            await world.settle()
            assert len(model.named) == 1

    async def test_stays_the_questions_if_the_model_has_none(self, start: Start) -> None:
        async with start(Namer(title=""), threads=True) as world:
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            assert thread_of(world, world.general).name == QUESTION

    async def test_has_no_markup_of_a_model(self, start: Start) -> None:
        title = '"**Ping @everyone** https://evil.example\n# now"'
        async with start(Namer(title=title), threads=True) as world:
            await world.ann.send(world.general, QUESTION)
            await world.settle()
            assert thread_of(world, world.general).name == "Ping now"

    async def test_no_longer_tells_a_question_that_was_deleted(self, start: Start) -> None:
        async with start(Namer(), threads=True) as world:
            asked = await world.ann.send(world.general, QUESTION)
            await world.settle()
            await world.ann.delete(asked)
            await world.settle()
            assert thread_of(world, world.general).name == DELETED


class TestWhereThereCanBeNone:
    async def test_the_answer_comes_in_the_channel_and_says_so_once(self, start: Start) -> None:
        async with start(Namer("one", "two"), threads=True) as world:
            nobody = discord.PermissionOverwrite(create_public_threads=False)
            room = world.guild.create_text_channel("narrow", overwrites={world.guild.default_role: nobody})
            await world.ann.send(room, QUESTION)
            await world.ann.send(room, "and rye?")
            assert shown(room) == [QUESTION, f"one{NO_THREADS}", "and rye?", "two"]
            assert room.threads == []


class TestAfterARestart:
    async def test_the_thread_goes_on(self, start: Start) -> None:
        model = Namer("With wet hands.", "Ten minutes.")
        async with start(model, threads=True, respond_mode="mention") as world:
            await world.ann.send(world.general, f"<@{world.env.bot.user.id}> {QUESTION}")
            await world.settle()
            await world.restart()
            await world.ann.send(thread_of(world, world.general), "for how long?")
            await world.settle()
            assert QUESTION in model.prompt
            assert "With wet hands." in model.prompt
