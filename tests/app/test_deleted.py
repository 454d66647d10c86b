"""Deleting a message in Discord withdraws what was learned from that message alone."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import discord
import pytest

from discoclaw.core.model import Purpose
from discoclaw.core.patch import Patch
from discoclaw.core.ports import ModelRequest, Shape, StreamEvent
from discoclaw.core.subject import user_subject
from discoclaw.models.offline.model import OfflineModel
from discoclaw.session.retracted import CURSOR
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.citing import own_of
from tests.session.scene import ScriptedModel, calls

_LIKES = re.compile(r"^I like (.+?)\.?$", re.MULTILINE)


class Repeating(OfflineModel):
    """Learns "User likes …" from each message that says so, also where that is known already.

    What happens `meanwhile` happens once, while it learns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        if not issubclass(shape, Patch):
            return await super().structured(
                purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
            )
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        said = [
            {
                "kind": "preference",
                "text": f"User likes {what}.",
                "source": line,
                "quote": f"I like {what}",
            }
            for line, text in own_of(prompt).items()
            for what in _LIKES.findall(text)
        ]
        return shape.model_validate({"upserts": said})


class Interrupted(ScriptedModel):
    """Something happens `meanwhile`, once, while it answers."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        async for event in super().stream(request):
            yield event


async def known(world: World, person: Any, branch: str | None = None) -> list[str]:
    """What is remembered about a person, sorted."""
    await world.settle()
    view = await world.memory.view(user_subject(str(person.id)), branch)
    return sorted(item.text for item in view.active())


def summaries(world: World) -> str:
    """The words of all summaries on disk."""
    folder = world.folder / "data" / "memory" / "rolling"
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.json")))


async def commits(world: World, person: Any, by: str) -> int:
    """How many commits were made by one cause."""
    history = await world.memory.history(user_subject(str(person.id)))
    return sum(one.metadata.get("by") == by for one in history.commits.values())


async def delete_at_once(world: World, channel: Any, messages: list[discord.Message]) -> None:
    """Delete messages with one event, as moderators do."""
    world.env.backend.bulk_delete_messages(channel.id, [one.id for one in messages])
    await world.env.settle()


class TestOneMessage:
    @pytest.mark.every_store
    async def test_what_only_it_said_is_not_remembered_any_more(self, start: Start, store: str) -> None:
        async with start(store=store, summary_every=1) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.ann.send(world.general, "I use vim.")
            assert await known(world, world.ann) == ["User likes zebras.", "User uses vim."]
            await world.ann.delete(said)
            assert await known(world, world.ann) == ["User uses vim."]
            if store == "files":
                assert "zebra" not in summaries(world)
                assert "vim" in summaries(world)

    async def test_what_another_message_says_too_stays_until_that_is_deleted(self, start: Start) -> None:
        async with start(Repeating()) as world:
            one = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            other = await world.ann.send(world.dev, "I like zebras.")
            await world.settle()
            await world.ann.delete(one)
            assert await known(world, world.ann) == ["User likes zebras."]
            await world.ann.delete(other)
            assert await known(world, world.ann) == []

    async def test_a_moderator_may_delete_it(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.send(world.general, "I like zebras.")
            assert await known(world, world.ann)
            role = world.guild.create_role("mods", permissions=discord.Permissions(manage_messages=True))
            await world.guild.add_member(world.env.create_user("mod"), roles=[role]).delete(said)
            assert await known(world, world.ann) == []

    async def test_a_direct_message_may_be_deleted(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.user.send_dm("I like zebras.")
            assert await known(world, world.ann) == ["User likes zebras."]
            await world.ann.user.delete(said)
            assert await known(world, world.ann) == []

    async def test_what_was_stated_or_confirmed_by_hand_stays(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            command = await world.ann.send(world.general, "!memory remember User likes zebras.")
            await world.settle()
            await world.ann.delete(said)
            await world.ann.delete(command)
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_undo_brings_it_back_for_good(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.ann.delete(said)
            assert await known(world, world.ann) == []
            await world.ann.send(world.general, "!memory undo")
            assert await known(world, world.ann) == ["User likes zebras."]
            await world.restart()
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_what_is_said_again_is_learned_again(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.ann.delete(said)
            assert await known(world, world.ann) == []
            await world.ann.send(world.general, "I like zebras.")
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_every_persona_gives_it_up(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.ann.send(world.general, "!memory persona create work")
            await world.ann.send(world.general, "!memory persona switch work")
            assert await known(world, world.ann, "work") == ["User likes zebras."]
            await world.ann.delete(said)
            assert await known(world, world.ann, "work") == []
            assert await known(world, world.ann, "main") == []
            assert await commits(world, world.ann, "deletion") == 2

    async def test_deleted_twice_is_taken_back_once(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            for _ in range(2):
                world.app.client.dispatch(
                    "raw_message_delete",
                    discord.RawMessageDeleteEvent(
                        {
                            "id": str(said.id),
                            "channel_id": str(world.general.id),
                            "guild_id": str(world.guild.id),
                        }
                    ),
                )
                await world.settle()
            assert await known(world, world.ann) == []
            assert await commits(world, world.ann, "deletion") == 1

    async def test_while_it_is_being_learned_nothing_is_learned_from_it(self, start: Start) -> None:
        model = Repeating()
        async with start(model) as world:

            async def deleted() -> None:
                heard = asyncio.create_task(world.app.client.wait_for("raw_message_delete"))
                await asyncio.sleep(0)
                (said,) = [one for one in world.general.history() if one.content == "I like zebras."]
                world.env.backend.delete_message(world.general.id, said.id)
                await heard
                await asyncio.sleep(0)

            model.meanwhile = deleted
            await world.ann.send(world.general, "I like zebras.")
            await world.ann.send(world.general, "I like tea.")
            assert await known(world, world.ann) == ["User likes tea."]
            assert model.meanwhile is None
            assert await commits(world, world.ann, "deletion") == 0

    async def test_while_it_is_answered_the_model_stores_nothing_of_it_any_more(self, start: Start) -> None:
        model = Interrupted()
        async with start(model, extraction_enabled=False) as world:

            async def deleted() -> None:
                heard = asyncio.create_task(world.app.client.wait_for("raw_message_delete"))
                await asyncio.sleep(0)
                (said,) = [one for one in world.general.history() if one.content == "Remember the zebra"]
                world.env.backend.delete_message(world.general.id, said.id)
                await heard
                await asyncio.sleep(0)
                await world.app.client.retractions.settle()

            model.meanwhile = deleted
            model.answers.extend([calls(("memory_store", {"text": "User likes zebras."})), "Done."])
            await world.ann.send(world.general, "Remember the zebra")
            assert await known(world, world.ann) == []
            assert await commits(world, world.ann, "deletion") == 0
            assert len(model.answers) == 2 and world.shown(world.general) == []

    async def test_before_it_is_learned_it_never_is(self, start: Start) -> None:
        async with start(Repeating(), durable_every=2) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            await world.ann.delete(said)
            await world.ann.send(world.general, "I like tea.")
            await world.ann.send(world.general, "I like coffee.")
            assert "User likes zebras." not in await known(world, world.ann)
            assert "User likes tea." in await known(world, world.ann)

    async def test_before_it_is_even_heard_it_never_is(self, start: Start) -> None:
        model = Repeating()
        async with start(model, summary_every=1) as world:
            said = world.env.backend.create_message(world.general.id, world.ann.id, "I like zebras.")
            world.env.backend.delete_message(world.general.id, said.id)
            await world.env.settle()
            await world.ann.send(world.general, "I like tea.")
            assert await known(world, world.ann) == ["User likes tea."]
            assert "zebra" not in summaries(world)


class TestManyMessages:
    async def test_two_people_lose_what_theirs_said_in_one_pass(self, start: Start) -> None:
        async with start() as world:
            gone = []
            for animal in ("zebras", "lions", "otters"):
                gone.append(await world.ann.send(world.general, f"I like {animal}."))
                gone.append(await world.bob.send(world.general, f"I use {animal}."))
            await world.ann.send(world.general, "I like cats.")
            await world.settle()
            await delete_at_once(world, world.general, gone)
            assert await known(world, world.ann) == ["User likes cats."]
            assert await known(world, world.bob) == []
            assert await commits(world, world.ann, "deletion") == 1

    async def test_two_people_lose_what_one_message_taught_both(self, start: Start) -> None:
        async with start() as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            ledgers = world.folder / "data" / "memory" / "ledger"
            await world.restart(
                meanwhile=lambda: (ledgers / f"user-{world.bob.id}.jsonl").write_bytes(
                    (ledgers / f"user-{world.ann.id}.jsonl").read_bytes()
                )
            )
            assert await known(world, world.bob) == ["User likes zebras."]
            await world.ann.delete(said)
            assert await known(world, world.ann) == []
            assert await known(world, world.bob) == []

    async def test_two_thousand_at_once_are_one_commit(self, start: Start) -> None:
        async with start() as world:
            gone = [await world.ann.send(world.general, f"I like {one}.") for one in ("zebras", "otters")]
            await world.settle()
            first = gone[-1].id + 1
            world.env.backend.emit(
                "MESSAGE_DELETE_BULK",
                {
                    "ids": [str(one) for one in (*(one.id for one in gone), *range(first, first + 1998))],
                    "channel_id": str(world.general.id),
                    "guild_id": str(world.guild.id),
                },
            )
            await world.env.settle()
            assert await known(world, world.ann) == []
            assert await commits(world, world.ann, "deletion") == 1


class TestAConflict:
    async def test_that_a_deleted_message_raised_is_asked_no_more(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await world.ann.send(world.general, "!memory remember User prefers tabs.")
            await world.env.advance_time(60)
            subject = user_subject(str(world.ann.id))
            (item,) = (await world.memory.view(subject)).active()
            model.facts = [
                json.dumps(
                    {"upserts": [{"id": item.text, "kind": item.kind, "text": "User prefers spaces."}]}
                )
            ]
            said = await world.ann.send(world.general, "I prefer spaces.")
            await world.settle()
            assert (await world.memory.view(subject)).conflicts
            await world.ann.delete(said)
            await world.settle()
            assert not (await world.memory.view(subject)).conflicts
            assert await known(world, world.ann) == ["User prefers tabs."]


class TestAProposal:
    async def test_that_waits_for_a_yes_is_asked_no_more(self, start: Start) -> None:
        async with start(Repeating()) as world:
            await world.ann.send(world.general, "!memory approve on")
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            subject = user_subject(str(world.ann.id))
            assert (await world.memory.view(subject)).pending
            await world.ann.delete(said)
            await world.settle()
            view = await world.memory.view(subject)
            assert (view.pending, view.active()) == ((), [])


class TestADisk:
    async def test_that_refuses_is_tried_again_at_the_next_start(self, start: Start) -> None:
        async with start(summary_every=1, extraction_enabled=False) as world:
            said = await world.ann.send(world.general, "The zebra escaped yesterday.")
            await world.ann.send(world.general, "Which tea is good?")
            await world.settle()
            (cursor,) = (world.folder / "data" / "memory" / "cursors").glob("summary-*channel*")
            aside = cursor.with_name("aside")
            cursor.rename(aside)
            (cursor / "wall").mkdir(parents=True)
            await world.ann.delete(said)
            await world.settle()
            assert "zebra" in summaries(world)

            def meanwhile() -> None:
                (cursor / "wall").rmdir()
                cursor.rmdir()
                aside.rename(cursor)

            await world.restart(meanwhile=meanwhile)
            await world.settle()
            assert "zebra" not in summaries(world)


class TestWhatWasNotLearned:
    async def test_leaves_the_summary_and_the_prompt(self, start: Start) -> None:
        async with start(summary_every=1, extraction_enabled=False) as world:
            said = await world.ann.send(world.general, "The zebra escaped yesterday.")
            await world.ann.send(world.general, "Which tea is good?")
            await world.settle()
            assert "zebra" in summaries(world)
            await world.ann.delete(said)
            await world.settle()
            assert "zebra" not in summaries(world)
            assert "tea" in summaries(world)

    async def test_an_answer_of_the_bot_leaves_the_summary_too(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            await world.ann.send(world.general, "I like zebras.")
            await world.ann.send(world.general, "Which tea is good?")
            await world.settle()
            assert "I don't know that" in summaries(world)
            (answer,) = [one for one in world.general.history() if "I don't know that" in one.content]
            world.env.backend.delete_message(world.general.id, answer.id)
            await world.settle()
            assert "I don't know that" not in summaries(world)
            assert "zebras" in summaries(world)
            assert await known(world, world.ann) == ["User likes zebras."]

    async def test_a_guests_message_leaves_the_summary_too(self, start: Start) -> None:
        async with start(summary_every=1) as world:
            allowed = frozenset({str(world.ann.id)})
            await world.restart(allow_roles=frozenset(), allow_users=allowed)
            said = await world.bob.send(world.general, "The zebra escaped yesterday.")
            await world.ann.send(world.general, "Which tea is good?")
            await world.settle()
            assert "zebra" in summaries(world)
            await world.bob.delete(said)
            await world.settle()
            assert "zebra" not in summaries(world)


class TestAGap:
    async def test_what_was_deleted_while_the_bot_was_away_is_taken_back_once(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "Hello!")
            said = await world.ann.send(world.general, "I like zebras.")
            await world.ann.send(world.general, "I use vim.")
            await world.settle()

            def meanwhile() -> None:
                world.env.backend.delete_message(world.general.id, said.id)

            await world.restart(meanwhile=meanwhile)
            assert await known(world, world.ann) == ["User uses vim."]
            assert "zebra" not in summaries(world)
            assert "vim" in (before := summaries(world))
            await world.restart()
            assert await known(world, world.ann) == ["User uses vim."]
            assert summaries(world) == before
            assert await commits(world, world.ann, "deletion") == 1

    async def test_a_program_that_was_killed_finishes_at_its_next_start(self, start: Start) -> None:
        async with start(catch_up_hours=0) as world:
            said = await world.ann.send(world.general, "I like zebras.")
            await world.settle()
            cursor = world.folder / "data" / "memory" / "cursors" / "unsaid.json"

            def meanwhile() -> None:
                world.env.backend.delete_message(world.general.id, said.id)
                cursor.write_text(json.dumps({"deleted": {str(said.id): str(world.general.id)}}))

            await world.restart(meanwhile=meanwhile)
            assert await known(world, world.ann) == []
            assert "deleted" not in json.loads(cursor.read_text())


async def test_what_another_process_still_has_to_follow_stays_noted(
    start: Start, prepared_database: str
) -> None:
    async with start(store=prepared_database) as world:
        said = await world.ann.send(world.general, "I like zebras.")
        await world.settle()
        cursors, other = world.app.storage.cursors, {"4711": "4712"}
        assert await cursors.update(CURSOR, lambda known: {"deleted": other, "done": {"4713": 0}})
        await world.ann.delete(said)
        await world.settle()
        assert await known(world, world.ann) == []
        assert await cursors.get(CURSOR) == {"deleted": other, "done": {"4713": 0, str(said.id): 0}}
