"""The transparency channel: one pinned message a person, edited in place."""

import re

import pytest

from tests.app.conftest import Start, World


async def mirrored(world: World) -> World:
    """The world again, with the channel `dev` as its transparency channel."""
    await world.restart(memory_channel=str(world.dev.id))
    return world


class TestTheMirror:
    @pytest.mark.design(235)
    async def test_one_pinned_message_for_each_person_edited_in_place(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.bob.send(world.general, "!memory remember I like coffee")
            await world.ann.send(world.general, "!memory remember I like cake")
            await world.settle()
            pinned = {message.content for message in world.dev.pinned_messages()}
            assert len(pinned) == 2
            (ann,) = [text for text in pinned if "tea" in text]
            assert ann.startswith(f"**Memory of ann** ({world.ann.id})")
            assert "- [fact] I like cake" in ann
            assert "coffee" not in ann

    async def test_of_a_person_without_memories_it_names_no_date(self, start: Start) -> None:
        async with start(durable_every=100) as world:
            await mirrored(world)
            await world.ann.send(world.general, "Let us plan the garden")
            await world.ann.send(world.general, "With tomatoes and beans")
            await world.settle()
            (text,) = [message.content for message in world.dev.pinned_messages()]
            head, _, summary = text.partition("\n\n**Summary of the conversation** (")
            assert head.splitlines() == [
                f"**Memory of ann** ({world.ann.id})",
                "no changes yet",
                "",
                "**What I remember**",
                "nothing yet",
            ]
            assert "garden" in summary
            assert "<t:0:R>" not in text

    async def test_a_restart_goes_on_with_the_same_message_and_shows_what_changed_meanwhile(
        self, start: Start
    ) -> None:
        async with start() as world:
            await mirrored(world)
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            path = world.durable(world.ann)
            await world.restart()
            path.write_text(path.read_text().replace("like tea", "love tea"))
            await world.ann.send(world.general, "!memory show")
            await world.settle()
            assert [message.content.count("I love tea") for message in world.dev.pinned_messages()] == [1]

    @pytest.mark.design(318)
    async def test_private_items_and_summaries_of_private_talk_are_left_out(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await world.ann.send_dm("!memory remember my PIN word is zebra")
            await world.ann.send_dm("we plan a surprise for bob")
            await world.ann.send_dm("with balloons")
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            (text,) = [message.content for message in world.dev.pinned_messages()]
            assert "zebra" not in text
            assert "surprise" not in text
            assert "tea" in text

    async def test_the_summary_of_the_open_channel_is_shown(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await world.ann.send(world.general, "Let us plan the garden")
            await world.ann.send(world.general, "I prefer tomatoes")
            await world.settle()
            (text,) = [message.content for message in world.dev.pinned_messages()]
            assert "**Summary of the conversation** (#general" in text
            assert "garden" in text

    @pytest.mark.design(237)
    async def test_what_does_not_fit_is_counted_and_never_split(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            for number in range(40):
                await world.ann.send(world.general, f"!memory remember {number} " + "many words " * 12)
            await world.settle()
            (text,) = [message.content for message in world.dev.pinned_messages()]
            assert len(text) <= 2000
            assert re.search(r"\n\(and \d+ more memories\)$", text)
            assert "39 many words" in text

    async def test_the_message_is_found_again_when_our_notes_of_it_are_lost(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            for path in (world.folder / "data" / "memory" / "cursors").iterdir():
                path.unlink()
            await world.restart()
            await world.settle()
            await world.ann.send(world.general, "!memory remember I like cake")
            await world.settle()
            (text,) = [message.content for message in world.dev.pinned_messages()]
            assert "cake" in text

    async def test_a_deleted_message_is_made_anew(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            (message,) = world.dev.pinned_messages()
            await message.delete()
            await world.ann.send(world.general, "!memory remember I like cake")
            await world.settle()
            (text,) = [message.content for message in world.dev.pinned_messages()]
            assert "cake" in text

    @pytest.mark.design(256)
    async def test_a_failing_mirror_delays_nobody_and_is_tried_again(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            world.env.inject_error("POST", f"/channels/{world.dev.id}/messages", status=403, times=1)
            await world.ann.send(world.general, "!memory remember I like tea")
            assert world.answer(world.general) == "Remembered: I like tea"
            await world.settle()
            assert world.dev.pinned_messages() == []
            await world.env.advance_time(40)
            await world.settle()
            assert len(world.dev.pinned_messages()) == 1
