"""What is personal, and what is said where not everybody reads, stays between those who may know it."""

from typing import Any

import discord
import pytest

from tests.contract.brain import sum_up
from tests.contract.cards import said
from tests.contract.world import Start, World

PLAN = "the plan is a zebra"


async def deny(world: World, channel: Any, who: Any, **rights: bool | None) -> None:
    known: Any = world.env.bot.get_channel(channel.id)
    await known.set_permissions(await known.guild.fetch_member(who.id), **rights or {"view_channel": False})
    await world.env.settle()


async def jailed(world: World, *channels: Any, **rights: bool | None) -> None:
    """Some channels deny a role, which nobody has whom the bot knows."""
    guild: Any = world.env.bot.get_channel(channels[0].id).guild  # type: ignore[union-attr]
    role = guild.get_role(world.guild.create_role("jail").id)
    for channel in channels:
        known: Any = world.env.bot.get_channel(channel.id)
        await known.set_permissions(role, **rights)
    await world.env.settle()


async def thread(world: World, channel: Any, **more: Any) -> Any:
    kind = more.pop("type", discord.ChannelType.public_thread)
    parent: Any = world.env.bot.get_channel(channel.id)
    made = await parent.create_thread(name="a talk", type=kind, **more)
    await world.env.settle()
    return next(one for one in channel.threads if one.id == made.id)


async def shows(world: World, here: Any, message: Any, there: Any, person: Any = None) -> bool:
    """Whether the model is shown a linked message when somebody, by default Ann, posts the link."""
    link = f"https://discord.com/channels/{world.guild.id}/{there.id}/{message.id}"
    await world.says(person or world.ann, here, f"see {link}")
    return PLAN in world.prompt


class TestPersonalMatters:
    MATTERS = (
        ("Übrigens nehme ich Sertralin.", "Der User nimmt Sertralin.", "Was weißt du über Sertralin?"),
        ("実は借金があります。", "ユーザーには借金がある。", "私の借金は?"),
    )

    async def test_that_are_learned_in_a_channel_are_used_in_dms_only(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            for words, learned, asked in self.MATTERS:
                world.brain.learns({"kind": "fact", "text": learned, "sensitivity": "normal"}, about=words)
                await world.says(world.ann, world.general, words)
                for place in (world.general, world.dev):
                    await world.says(world.ann, place, asked)
                    assert learned not in world.prompt
                await world.says(world.ann, world.ann_dm, asked)
                assert learned in world.prompt
            shown = await world.says(world.ann, world.general, "!memory show")
            assert f"({len(self.MATTERS)} private memories" in shown
            assert not any(learned in shown for _, learned, _ in self.MATTERS)
            wife = "Żona użytkownika to Ewa; jego żona lubi jazz."
            world.brain.calls("memory_store", {"text": wife}, "Done.", about="please")
            await world.says(world.ann, world.general, "please")
            assert "It is private: used in DMs with this person only." in str(world.turns()[-1].talk)
            await world.says(world.ann, world.dev, "Kto lubi jazz?")
            assert wife not in world.prompt
            await world.says(world.ann, world.ann_dm, "Kto lubi jazz?")
            assert wife in world.prompt

    @pytest.mark.parametrize("how", ["where they live and work", "shared", "stated", "an open bot"])
    async def test_are_used_everywhere_if(self, start: Start, how: str) -> None:
        texts = {"where they live and work": ("User wohnt in Hamburg.", "User arbeitet bei Bosch.")}
        learned = texts.get(how, ("User nimmt Sertralin.",))
        async with start(summary_enabled=False, **{"dm_privacy": "open"} if "open" in how else {}) as world:
            if how == "stated":
                await world.remember(world.ann, *learned)
            else:
                world.brain.learns(*learned, about="Übrigens")
                await world.says(world.ann, world.general, "Übrigens, so ist es.")
            if how == "shared":
                await world.ann.slash(world.general, "memory share", memory=learned[0])
                await world.says(world.ann, world.general, "Übrigens, sie helfen mir.")
            await world.says(world.ann, world.dev, "Sertralin, Hamburg, Bosch?")
            assert [one for one in learned if one not in world.prompt] == []

    async def test_that_a_channel_decided_are_told_there(self, start: Start) -> None:
        async with start() as world:
            decided = "We meet in the church on Friday."
            world.brain.writes("summary", {"summary": "They met.", "decisions": [decided]})
            for words in ("shall we meet?", "on Friday", "and now?"):
                await world.says(world.ann, world.general, words)
            assert decided in world.prompt
            await world.says(world.ann, world.dev, "and here?")
            assert decided not in world.prompt

    async def test_that_are_private_are_no_help_to_guess(self, start: Start) -> None:
        """A model that names what it was not shown links and removes nothing."""
        async with start(summary_enabled=False) as world:
            secret = "User likes raven swan tern."
            await world.says(world.ann, world.ann_dm, f"!memory remember {secret}")
            daisies = {"kind": "fact", "text": "User likes daisies.", "links": [secret]}
            gone = [{"matchText": secret, "reason": "old"}, {"id": secret, "reason": "old"}]
            world.brain.learns(daisies, about="daisy", deprecations=gone)
            await world.says(world.ann, world.general, "I like the daisy")
            assert set(world.memories(world.ann)) == {secret, "User likes daisies."}
            why = await world.says(world.ann, world.ann_dm, "!memory why User likes daisies.")
            assert "raven" not in why
            assert not any("raven" in str(one.body) for one in world.server.requests)


class TestALink:
    async def test_is_read_only_where_all_may_read_what_it_leads_to(self, start: Start) -> None:
        async with start(extraction_enabled=False, summary_enabled=False) as world:
            plan = await world.ann.send(world.dev, PLAN)
            assert await shows(world, world.general, plan, world.dev)
            await jailed(world, world.dev, send_messages=False)  # who may only not write
            assert await shows(world, world.general, plan, world.dev)
            inside = await thread(world, world.dev)
            await deny(world, world.dev, world.bob)
            fresh = world.guild.create_text_channel("fresh")
            assert not await shows(world, fresh, plan, world.dev)
            assert "not everybody here may read" in world.answer(fresh)
            for here in (inside, world.ann_dm):
                assert await shows(world, here, plan, world.dev)
            other = world.guild.create_text_channel("other")
            await deny(world, other, world.bob)  # who then sees neither
            assert await shows(world, other, plan, world.dev)

    @pytest.mark.parametrize("kind", ["a role", "a thread", "a post", "voice", "a stage"])
    async def test_to_another_sort_of_channel_that_denies_somebody_is_not_read(
        self, start: Start, kind: str
    ) -> None:
        async with start(extraction_enabled=False, summary_enabled=False) as world:
            guild, rights = world.guild, {}
            if kind == "a post":
                parent = guild.create_forum_channel("ideas")
                made: Any = world.env.bot.get_channel(parent.id)
                post = (await made.create_thread(name="An idea", content="?")).thread
                await world.env.settle()
                there = next(one for one in parent.threads if one.id == post.id)
            elif kind == "a thread":
                parent, there = world.dev, await thread(world, world.dev)
            elif kind == "a role":
                parent = there = world.dev
            else:
                make = guild.create_voice_channel if kind == "voice" else guild.create_stage_channel
                parent = there = make("v")
                rights = {"connect": False}
            plan = await world.ann.send(there, PLAN)
            assert await shows(world, world.general, plan, there)
            if kind == "a role":
                await jailed(world, parent, view_channel=False)
            else:
                await deny(world, parent, world.bob, **rights)
            fresh = guild.create_text_channel("fresh")
            assert not await shows(world, fresh, plan, there)
            if kind == "a role":  # another role, in both
                await jailed(world, fresh, view_channel=False)
                assert not await shows(world, fresh, plan, there)


class TestAChannelThatDeniesSomebody:
    @pytest.mark.parametrize("denied", ["a person", "a role", "nobody"])
    async def test_is_where_things_are_learned_for_dms(self, start: Start, denied: str) -> None:
        async with start(summary_enabled=False) as world:
            if denied == "a person":
                await deny(world, world.dev, world.bob)
            else:
                await jailed(world, world.dev, view_channel=None if denied == "nobody" else False)
            world.brain.learns("User builds the Falcon rocket.", about="goes well", kind="project")
            await world.says(world.ann, world.dev, "the Falcon rocket goes well")
            await world.says(world.ann, world.general, "how is the Falcon rocket?")
            assert ("builds the Falcon" in world.prompt) is (denied == "nobody")
            await world.says(world.ann, world.ann_dm, "how is the Falcon rocket?")
            assert "User builds the Falcon rocket." in world.prompt

    async def test_is_not_searched_for_who_may_not_connect(self, start: Start) -> None:
        async with start(auto_save="all", extraction_enabled=False, summary_enabled=False) as world:
            voice = world.guild.create_voice_channel("voice")
            await world.says(world.ann, voice, PLAN)

            async def finds(person: Any) -> bool:
                result = await person.slash(world.general, "search", query="zebra")
                assert result.ephemeral
                return PLAN in said(result.response)

            assert await finds(world.bob)
            await deny(world, voice, world.bob, connect=False)
            assert not await finds(world.bob) and await finds(world.ann)

    async def test_uses_no_more_what_was_made_private_or_what_a_few_said_before(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            world.brain.writes("summary", sum_up)
            world.brain.learns("User prefers green tea.", about="prefer green tea", kind="preference")
            await world.says(world.ann, world.general, "I prefer green tea")
            await jailed(world, world.general, view_channel=False)
            await world.says(world.ann, world.general, "What about the zebra crossing?")
            await world.says(world.ann, world.general, "!memory private User prefers green tea.")
            rolling = world.data / "memory" / "rolling"
            summaries = "".join(path.read_text() for path in rolling.glob("*.json"))
            assert "green tea" not in summaries and "zebra crossing" in summaries
            asked = len(world.server.requests)
            await world.says(world.ann, world.general, "And the lemurs?")
            await world.restart()
            await world.says(world.ann, world.general, "Are they awake?")
            told = str([one.body for one in world.server.requests[asked:]])
            assert "lemurs" in told and "prefer green tea" not in told

    async def test_has_notes_of_its_own_for_as_long_as_it_is_read_by_the_same(self, start: Start) -> None:
        async with start() as world:
            known: Any = world.env.bot.get_channel(world.dev.id)
            for one in (await known.guild.fetch_member(world.ann.id), known.guild.me):
                await known.set_permissions(one, view_channel=True)
            decisions = {"decisions": ["We use tabs."]}
            world.brain.writes("summary", lambda _: {"summary": "They talked.", **decisions})
            for view, decision in ((False, "We use tabs."), (True, "We use zebras.")):
                await known.set_permissions(known.guild.default_role, view_channel=view)
                await jailed(world, world.dev, view_channel=False)
                decisions["decisions"] = [decision]
                for words in ("which?", "these", "what did we decide?"):
                    await world.says(world.ann, world.dev, words)
                assert decision in world.prompt
                assert not view or "tabs" not in world.prompt
                await world.says(world.ann, world.dev, "thanks")

    async def test_is_shown_in_no_transparency_channel_that_they_read(self, start: Start) -> None:
        async with start() as world:
            await world.restart(memory_channel=str(world.dev.id))
            world.brain.writes("summary", sum_up)
            for words in ("Let us plan the garden", "with tomatoes"):
                await world.says(world.ann, world.general, words)
            assert "garden" in world.dev.pinned_messages()[0].content
            await deny(world, world.general, world.bob)
            await world.remember(world.ann, "I like tea")
            assert "garden" not in world.dev.pinned_messages()[0].content
            await deny(world, world.dev, world.bob)
            await world.remember(world.ann, "I like cake")
            assert "garden" in world.dev.pinned_messages()[0].content
