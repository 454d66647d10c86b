"""Who is shown a preview, about which channels, and what asking for one leaves behind: nothing."""

import discord

from discoclaw.core.item import Kind, Sensitivity
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.app.previewing import (
    ITEMS,
    SENTENCES,
    agrees,
    below,
    closed,
    knows,
    left_out,
    memories,
    places,
    preview,
    shown,
    text_of,
)
from tests.app.test_hatching import begun, owned
from tests.contract.cards import every_page

NO_CHANNEL = "I can't preview that: there is no such channel, you can't read it, or I don't listen there."


class TestWhoSeesIt:
    async def test_in_the_open_there_are_numbers_only(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            await world.bob.send(world.general, "the build is broken")
            for text in ("", f"<#{world.general.id}>", "where does my sister live?"):
                await world.ann.send(world.general, f"!memory preview {text}")
                answer = world.answer(world.general)
                assert answer.startswith("Here I would use: ")
                assert answer.endswith("use `/memory preview` here, or ask me in a DM.")
                assert "would be left out" in answer
                for secret in ("teapot", "Oslo", "Maria", "PIN", "short answers", "broken"):
                    assert secret not in answer

    async def test_the_numbers_are_those_of_the_list(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.ann, *ITEMS)
            await world.bob.send(world.general, "the build is broken")
            await world.settle()
            await world.ann.send(world.general, "!memory preview")
            assert world.answer(world.general).splitlines()[:2] == [
                "Here I would use: 3 memories, 5 memories when they fit what you write, 2 recent messages.",
                "3 memories would be left out.",
            ]

    async def test_in_the_open_other_channels_are_not_spoken_of(self, start: Start) -> None:
        async with start(Scripted()) as world:
            answers = set()
            for name in (f"<#{world.dev.id}>", "#dev", f"<#{world.hidden.id}>", "#nowhere", "dm"):
                await world.ann.send(world.general, f"!memory preview {name}")
                answers.add(world.answer(world.general))
            assert answers == {"Only you may see that; use `/memory preview` here, or ask me in a DM."}

    async def test_the_dm_lists_what_is_private_about_an_open_channel(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await knows(world, world.ann, *ITEMS)
            for name in (f"<#{world.general.id}>", str(world.general.id), "#general", "#General"):
                before = len(world.ann_dm.history())
                await world.ann.send_dm(f"!memory preview {name} where does my sister live?")
                answer = await text_of(world.ann_dm.history()[before + 1 :])
                assert answer.startswith("**What I could say about you in #general** if you wrote “where")
                private = left_out(answer)["Private: I use these in our DMs only"]
                assert sorted(private) == [
                    "[fact] Your sister lives in Oslo.",
                    "[person] Your boss is called Maria.",
                ]

    async def test_a_channel_that_one_cannot_read_is_as_one_that_does_not_exist(self, start: Start) -> None:
        async with start(Scripted()) as world:
            silent = discord.PermissionOverwrite(read_message_history=False)
            present = world.guild.create_text_channel("now", overwrites={world.guild.default_role: silent})
            forum = world.guild.create_forum_channel("ideas")
            secret = await closed(world, world.bob)
            await world.bob.send_dm("my secret")
            theirs = world.bob.user.dm_channel
            await world.bob.send(secret, "our plan")
            asked = await world.bob.slash(world.general, "memory preview", channel="dm")
            assert "my secret" in await every_page(world.bob, asked.response)
            assert world.env.bot.get_channel(theirs.id) is not None
            places = (world.hidden.id, present.id, forum.id, secret.id, theirs.id, 4_711, 10**17)
            for one in places:
                asked = await world.ann.slash(world.general, "memory preview", channel=str(one))
                assert await shown(asked) == NO_CHANNEL
                await world.ann.send_dm(f"!memory preview <#{one}>")
                assert world.answer(world.ann_dm) == NO_CHANNEL
            for name in ("#hidden", "hidden", "#nowhere", "#now"):
                asked = await world.ann.slash(world.general, "memory preview", channel=name)
                assert await shown(asked) == NO_CHANNEL
            assert "our plan" in await preview(world, secret, person=world.bob)

    async def test_a_channel_off_the_list_is_not_previewed(self, start: Start) -> None:
        async with start(Scripted(), channels=frozenset({"1"})) as world:
            assert await preview(world) == NO_CHANNEL
            assert (await preview(world, "dm")).startswith("**What I could say about you in our direct mess")

    async def test_nobody_is_shown_what_is_remembered_about_others(self, start: Start) -> None:
        async with start(Scripted(), extraction_enabled=False) as world:
            await knows(world, world.bob, *ITEMS)
            for place in (world.general, world.dev, "dm"):
                for about in ("", "where does bob's sister live?", "what do you know about me?"):
                    text = await preview(world, place, about)
                    assert memories(text.splitlines()) == []
                    assert "Oslo" not in text

    async def test_strangers_are_not_answered(self, start: Start) -> None:
        async with start(Scripted(), allow_roles=frozenset(), allow_users=frozenset({"1"})) as world:
            asked = await world.ann.slash(world.general, "memory preview")
            assert (await shown(asked)).startswith("You aren't on my allowlist.")

    async def test_only_channels_that_one_can_read_are_offered(self, start: Start) -> None:
        async with start(Scripted()) as world:
            choices = await world.ann.autocomplete(world.general, "memory preview", "channel", "")
            assert choices == [
                {"name": "our direct messages", "value": "dm"},
                {"name": "#general", "value": str(world.general.id)},
                {"name": "#dev", "value": str(world.dev.id)},
            ]
            (one,) = await world.ann.autocomplete(world.general, "memory preview", "channel", "#de")
            assert one["value"] == str(world.dev.id)


class TestWhereThereIsLittleToSay:
    async def test_nobody_is_known_yet(self, start: Start) -> None:
        async with start(Scripted()) as world:
            text = await preview(world)
            assert "**Always** (0)" in text
            assert "**Summary of the conversation**: none yet" in text
            assert below(text, "Left out") is None
            assert "- name: ann" in text

    async def test_somebody_who_opted_out_is_told_that_nothing_is_used(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await knows(world, world.ann, *ITEMS[:4])
            await world.ann.send(world.general, "!memory optout")
            text = await preview(world, about="what colour is my teapot?")
            assert "**You have opted out**" in text
            assert memories(below(text, "From your memory")) == []
            assert len(left_out(text)["Not used, because you have opted out"]) == 4
            assert "The model can also search" not in text
            await world.ann.send(world.general, "what colour is my teapot?")
            agrees(text, model)

    async def test_a_memory_that_is_switched_off_is_said_to_be(self, start: Start) -> None:
        async with start(Scripted(), durable_enabled=False, summary_enabled=False) as world:
            await world.bob.send(world.general, "the build is broken")
            text = await preview(world)
            assert "I use nothing I remember: my memory is switched off here" in text
            assert "**Summary of the conversation**: switched off" in text
            assert "the build is broken" in text
            await world.ann.send(world.general, "!memory preview")
            assert "my memory is switched off here" in world.answer(world.general)

    async def test_where_the_bot_does_not_answer_it_says_so(self, start: Start) -> None:
        async with start(Scripted(), respond_mode="none") as world:
            assert "I don't answer you there" in await preview(world)
        async with start(Scripted(), respond_mode="mention") as world:
            assert "I don't answer you there" not in await preview(world)

    async def test_in_an_interview_nothing_is_used(self, start: Start) -> None:
        async with start(Scripted()) as world:
            await owned(world)
            await begun(world)
            assert (await preview(world, "dm")).startswith("You are in the interview about my personality")
            assert (await preview(world)).startswith("**What I could say about you in #general**")

    async def test_a_long_answer_is_a_file(self, start: Start) -> None:
        async with start(Scripted()) as world:
            many = [
                ("fact", f"User owns teapot number {n}. " + "It is old. " * 20, "normal") for n in range(60)
            ]
            await knows(world, world.ann, *many)  # type: ignore[arg-type]
            await world.ann.send_dm("!memory preview")
            (file,) = world.ann_dm.last_message.attachments
            assert file.filename == "memory.md"
            assert len(memories((await file.read()).decode().splitlines())) == 60


class TestIt:
    async def test_leaves_no_trace(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False, context_history=3) as world:
            await knows(world, world.ann, *ITEMS)
            for text in ("one", "two", "three"):
                await world.ann.send(world.general, text)
            await world.settle()
            asked, subject = len(model.requests), user_subject(str(world.ann.id))
            before = await world.memory.history(subject)
            used = dict(await world.app.storage.people.last_used.load(subject))
            for about in ("", *SENTENCES):
                await preview(world, world.general, about)
            await world.settle()
            assert len(model.requests) == asked
            assert (await world.memory.history(subject)).records == before.records
            assert dict(await world.app.storage.people.last_used.load(subject)) == used
            await world.ann.send(world.general, "four")
            for about in SENTENCES:
                assert about not in model.prompt
            assert "[ann]: three" in model.prompt

    async def test_opens_no_window_that_forgets_whether_its_talk_is_private(self, start: Start) -> None:
        model = Scripted()
        async with start(model, extraction_enabled=False) as world:
            item: tuple[Kind, str, Sensitivity] = ("preference", "User prefers green tea.", "normal")
            await knows(world, world.ann, item)
            few = (await places(world))["few"]
            await world.ann.send(few, "I prefer green tea")
            await world.env.advance_time(10 * 3600)
            assert "green tea" in await preview(world, few)
            await world.ann.send_dm(f"!memory private {item[1]}")  # which may still be said where few read it
            await world.settle()
            await world.ann.send(few, "and biscuits")
            assert "[ann]: I prefer green tea" in model.prompt

    async def test_takes_secrets_out_of_what_one_would_write(self, start: Start) -> None:
        async with start(Scripted()) as world:
            secret = "ghp_" + "a1B2" * 9
            assert secret not in await preview(world, about=f"my token is {secret}")
