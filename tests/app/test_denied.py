"""A channel that everybody may read but those whom it denies, from the sending of a message to the prompt."""

from typing import Any

import discord
import pytest

from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.previewing import thread
from tests.app.test_archive import search
from tests.app.test_attached import link
from tests.app.test_groups import Agreeing
from tests.app.test_taken_back import Overheard, summaries
from tests.app.test_transparency import mirrored

PLAN = "the plan is a zebra"
FALCON = '{"upserts": [{"kind": "project", "text": "User builds the Falcon rocket."}]}'


async def deny(world: World, channel: Any, who: Any, **rights: bool | None) -> None:
    known: Any = world.env.bot.get_channel(channel.id)
    await known.set_permissions(await known.guild.fetch_member(who.id), **rights or {"view_channel": False})
    await world.env.settle()


async def jailed(world: World, *channels: Any, **rights: bool | None) -> None:
    """Some channels deny a role, which nobody has whom the bot knows."""
    known: Any = world.env.bot.get_channel(channels[0].id)
    role = known.guild.get_role(world.guild.create_role("jail").id)
    for channel in channels:
        await world.env.bot.get_channel(channel.id).set_permissions(role, **rights)  # type: ignore[union-attr]
    await world.env.settle()


class TestALink:
    async def shows(self, world: World, here: Any, told: Any, there: Any) -> bool:
        """Whether the model is shown a linked message when ann posts the link."""
        before = len(world.model.requests)
        text = f"see {link(told, there, server=world.guild)}"
        await (world.ann.send(here, text) if here is not None else world.ann.send_dm(text))
        assert len(world.model.requests) == before + 1
        return PLAN in world.model.prompt

    async def test_to_where_one_person_is_denied_is_read_there_and_in_direct_messages_only(
        self, start: Start
    ) -> None:
        async with start(Scripted("ok"), respond_mode="all") as world:
            told = await world.ann.send(world.dev, PLAN)
            assert await self.shows(world, world.general, told, world.dev)
            inside = await thread(world, world.dev)
            await deny(world, world.dev, world.bob)
            assert not await self.shows(world, world.general, told, world.dev)
            assert "not everybody here may read" in world.answer(world.general)
            for here in (world.dev, inside, None):
                assert await self.shows(world, here, told, world.dev)
            await deny(world, world.general, world.bob)  # who then sees neither
            assert await self.shows(world, world.general, told, world.dev)

    @pytest.mark.parametrize("kind", ["a thread", "a post", "voice", "a stage"])
    async def test_to_another_sort_of_channel_that_denies_somebody_is_not_read(
        self, start: Start, kind: str
    ) -> None:
        async with start(Scripted("ok"), respond_mode="all") as world:
            guild, rights = world.guild, {}
            if kind == "a post":
                parent = guild.create_forum_channel("ideas")
                made: Any = world.env.bot.get_channel(parent.id)
                post = (await made.create_thread(name="An idea", content="?")).thread
                await world.env.settle()
                there = next(one for one in parent.threads if one.id == post.id)
            elif kind == "a thread":
                parent, there = world.dev, await thread(world, world.dev)
            else:
                parent = there = (
                    guild.create_voice_channel("v") if kind == "voice" else guild.create_stage_channel("s")
                )
                rights = {"connect": False}
            told = await world.ann.send(there, PLAN)
            assert await self.shows(world, world.general, told, there)
            await deny(world, parent, world.bob, **rights)
            assert not await self.shows(world, world.general, told, there)

    async def test_to_where_a_role_may_only_not_write_is_read(self, start: Start) -> None:
        async with start(Scripted("ok"), respond_mode="all") as world:
            told = await world.ann.send(world.dev, PLAN)
            await jailed(world, world.dev, send_messages=False)
            assert await self.shows(world, world.general, told, world.dev)
            await jailed(world, world.dev, view_channel=False)
            assert not await self.shows(world, world.general, told, world.dev)
            await jailed(world, world.dev, world.general, view_channel=False)  # another role, in both
            assert not await self.shows(world, world.general, told, world.dev)

    async def test_to_a_private_thread_is_read_for_a_moderator_who_may_look_into_it(
        self, start: Start
    ) -> None:
        async with start(Scripted("ok"), respond_mode="all") as world:
            role = world.guild.create_role("mod", permissions=discord.Permissions(manage_threads=True))
            mod = world.guild.add_member(world.env.create_user("mona"), roles=[role])
            inside = await thread(world, world.dev, type=discord.ChannelType.private_thread)
            known: Any = world.env.bot.get_channel(inside.id)
            await known.add_user(discord.Object(world.ann.id))
            await world.env.settle()
            told = await world.ann.send(inside, PLAN)
            for person, read in ((mod, True), (world.bob, False)):
                await person.send_dm(f"see {link(told, inside, server=world.guild)}")
                assert (PLAN in world.model.prompt) is read


class TestWhatIsSaidThere:
    @pytest.mark.parametrize("denied", ["a person", "a role", "nobody"])
    async def test_is_learned_for_direct_messages(self, start: Start, denied: str) -> None:
        model = Scripted()
        async with start(model) as world:
            if denied == "a person":
                await deny(world, world.dev, world.bob)
            else:
                await jailed(world, world.dev, view_channel=None if denied == "nobody" else False)
            model.facts = [FALCON]
            await world.ann.send(world.dev, "the Falcon rocket goes well")
            await world.settle()
            await world.ann.send(world.general, "how is the Falcon rocket?")
            assert ("builds the Falcon" in model.prompt) is (denied == "nobody")
            await world.ann.send_dm("how is the Falcon rocket?")
            assert "User builds the Falcon rocket." in model.prompt

    async def test_is_not_found_by_somebody_who_may_not_connect(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all") as world:
            voice = world.guild.create_voice_channel("voice")
            await world.ann.send(voice, PLAN)
            assert PLAN in await search(world, world.bob, "zebra")
            await deny(world, voice, world.bob, connect=False)
            assert PLAN not in await search(world, world.bob, "zebra")
            assert PLAN in await search(world, world.ann, "zebra")

    async def test_is_in_no_summary_and_no_prompt_any_more_when_a_person_makes_it_private(
        self, start: Start
    ) -> None:
        model = Overheard()
        async with start(model, summary_every=1, durable_every=1) as world:
            await world.ann.send(world.general, "I prefer green tea")
            await world.settle()
            await jailed(world, world.general, view_channel=False)
            await world.ann.send(world.general, "What about the zebra crossing?")
            await world.settle()
            assert "green tea" in summaries(world)
            await world.ann.send(world.general, "!memory private User prefers green tea.")
            await world.settle()
            assert "green tea" not in summaries(world)
            assert "zebra crossing" in summaries(world)
            model.asked.clear()
            await world.ann.send(world.general, "And the lemurs?")
            await world.settle()
            await world.restart()
            await world.ann.send(world.general, "Are they awake?")
            assert any("lemurs" in one for one in model.asked)
            assert not any("prefer green tea" in one for one in model.asked)

    async def test_is_in_the_notes_of_the_channel_but_what_a_few_said_before_is_not(
        self, start: Start
    ) -> None:
        model = Agreeing()
        async with start(model) as world:
            known: Any = world.env.bot.get_channel(world.dev.id)
            everybody = known.guild.default_role
            for one in (await known.guild.fetch_member(world.ann.id), known.guild.me):
                await known.set_permissions(one, view_channel=True)
            for view, decision in ((False, "We use tabs."), (True, "We use zebras.")):
                await known.set_permissions(everybody, view_channel=view)
                await jailed(world, world.dev, view_channel=False)
                model.found = {"decisions": [decision]}
                for text in ("which?", "these"):
                    await world.ann.send(world.dev, text)
                    await world.settle()
                await world.ann.send(world.dev, "what did we decide?")
                assert decision in model.place()
                assert not view or "tabs" not in model.place()
                await world.ann.send(world.dev, "thanks")
                await world.settle()

    async def test_is_shown_in_no_transparency_channel_that_they_read(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            for text in ("Let us plan the garden", "with tomatoes"):
                await world.ann.send(world.general, text)
            await world.settle()
            assert "garden" in world.dev.pinned_messages()[0].content
            await deny(world, world.general, world.bob)
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            assert "garden" not in world.dev.pinned_messages()[0].content
            await deny(world, world.dev, world.bob)
            await world.ann.send(world.general, "!memory remember I like cake")
            await world.settle()
            assert "garden" in world.dev.pinned_messages()[0].content
