"""Editing a message replaces what was learned from it by what the new words say."""

import asyncio
from typing import Any

from simcord.backend import serializers

from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_deleted import Repeating, commits, known, summaries
from tests.contract.cards import said as told


async def edit(world: World, message: Any, text: str) -> None:
    """Ann edits a message, some time after everything before it."""
    await world.settle()
    await world.env.advance_time(60)
    await world.ann.edit(message, text)
    await world.settle()


class TestAnEdit:
    async def test_replaces_what_was_learned(self, start: Start) -> None:
        async with start(Repeating(), summary_every=1) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.ann.send(world.general, "Which tea is good?")
            assert await known(world, world.ann) == ["User likes zebras."]
            assert "zebra" in summaries(world)
            await edit(world, said, "I like otters.")
            assert await known(world, world.ann) == ["User likes otters."]
            assert "zebra" not in summaries(world)
            assert "otter" in summaries(world)

    async def test_back_to_the_old_text_brings_the_old_memory_back(self, start: Start) -> None:
        async with start(Repeating()) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await edit(world, said, "I like otters.")
            await edit(world, said, "I like zebras.")
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_that_leaves_the_words_takes_nothing_back(self, start: Start) -> None:
        async with start(Repeating()) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await edit(world, said, "I like zebras!!")
            assert await known(world, world.ann) == ["User likes zebras."]
            assert await commits(world, world.ann, "edit") == 0

    async def test_leaves_what_another_message_says(self, start: Start) -> None:
        async with start(Repeating()) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.ann.send(world.dev, "I like zebras.")
            await edit(world, said, "never mind")
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_of_what_was_forgotten_before_counts_as_said_now(self, start: Start) -> None:
        async with start(Repeating()) as world:
            said = await world.ann.send(world.general, "I like lions.")
            await world.settle()
            await world.ann.send(world.general, "!memory remember User likes zebras.")
            await world.ann.send(world.general, "!memory forget User likes zebras.")
            await edit(world, said, "I like zebras.")
            await world.ann.send(world.general, "Hello!")
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_a_preview_that_discord_adds_is_none(self, start: Start) -> None:
        async with start(Repeating(), summary_every=1) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            stored = world.env.backend.messages[world.general.id][said.id]
            stored.embeds.append({"type": "link", "title": "Otters", "url": "http://localhost/"})
            payload = serializers.message_payload(world.env.backend, stored)
            world.env.backend.emit("MESSAGE_UPDATE", dict(payload))
            await world.settle()
            assert await known(world, world.ann) == ["User likes zebras."]
            assert await commits(world, world.ann, "edit") == 0

    async def test_while_it_is_being_learned_only_the_new_words_are(self, start: Start) -> None:
        model = Repeating()
        async with start(model) as world:

            async def edited() -> None:
                (said,) = [one for one in world.general.history() if one.content == "I like zebras."]
                heard = world.app.client.wait_for("raw_message_edit")
                world.env.backend.edit_message(world.general.id, said.id, {"content": "I like otters."})
                await heard

            model.meanwhile = edited
            await world.ann.send(world.general, "I like zebras.")
            assert await known(world, world.ann) == ["User likes otters."]

    async def test_in_a_direct_message(self, start: Start) -> None:
        async with start(Repeating()) as world:
            said = await world.ann.user.send_dm("I like zebras.")
            await world.settle()
            await world.env.advance_time(60)
            await world.ann.user.edit(said, "I like otters.")
            assert await known(world, world.ann) == ["User likes otters."]

    async def test_by_somebody_who_opted_out_teaches_nothing(self, start: Start) -> None:
        async with start(Repeating()) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.ann.send(world.general, "!memory optout")
            await edit(world, said, "I like otters.")
            assert "User likes otters." not in await known(world, world.ann)

    async def test_many_in_a_row_end_with_the_last_words(self, start: Start) -> None:
        async with start(Repeating()) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.env.advance_time(60)
            for number in range(200):
                text = f"I like animal{number}."
                world.env.backend.edit_message(world.general.id, said.id, {"content": text})
            await world.env.settle()
            assert await known(world, world.ann) == ["User likes animal199."]
            assert await commits(world, world.ann, "edit") < 10

    async def test_again_and_again_does_not_keep_the_model_busy(self, start: Start) -> None:
        model = Repeating()
        async with start(model) as world:
            tries = 0

            async def edited() -> None:
                nonlocal tries
                tries += 1
                said = next(one for one in world.general.history() if one.author.id == world.ann.id)
                heard = world.app.client.wait_for("raw_message_edit")
                text = f"I like animal{tries}."
                world.env.backend.edit_message(world.general.id, said.id, {"content": text})
                await heard
                await asyncio.sleep(0)
                model.meanwhile = edited if tries < 50 else None

            model.meanwhile = edited
            await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            assert tries < 10


class TestAGap:
    async def test_what_was_edited_while_the_bot_was_away_is_replaced_once(self, start: Start) -> None:
        model = Repeating()
        async with start(model) as world:
            await world.ann.send(world.general, "Hello!")
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.env.advance_time(60)

            def meanwhile() -> None:
                world.env.backend.edit_message(world.general.id, said.id, {"content": "I like otters."})

            await world.restart(meanwhile=meanwhile)
            assert await known(world, world.ann) == ["User likes otters."]
            await world.restart()
            assert await known(world, world.ann) == ["User likes otters."]
            assert await commits(world, world.ann, "edit") == 1


class TestAQuote:
    async def test_of_what_was_taken_back_is_not_shown_to_the_model(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            model.facts = [
                '{"upserts": [{"kind": "preference", "text": "User likes zebras.", "source": null}]}'
            ]
            said = await world.ann.send(world.general, "I like zebras.")
            assert await known(world, world.ann) == ["User likes zebras."]
            await world.env.advance_time(60)
            await world.bob.send(world.general, "Why?", reply_to=said)
            assert "zebras" in model.prompt
            await world.ann.send(world.general, "!memory forget User likes zebras.")
            await world.env.advance_time(60)
            await world.bob.send(world.general, "Why on earth?", reply_to=said)
            assert "Why on earth?" in model.prompt
            assert "zebras" not in model.prompt.replace("Why?", "")


class TestAReceipt:
    async def test_counts_and_quotes_nothing_and_can_be_taken_back(self, start: Start) -> None:
        async with start(Repeating(), receipts=True) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.ann.delete(said)
            await world.settle()
            line = world.general.last_message
            assert told(line) == "-# forgotten, because a message was deleted: 1 memory"
            await world.ann.click(line, label="Undo")
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_of_an_edit_says_so(self, start: Start) -> None:
        async with start(Repeating(), receipts=True) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await edit(world, said, "never mind")
            shown = world.shown(world.general)
            assert "-# forgotten, because a message was edited: 1 memory" in shown
