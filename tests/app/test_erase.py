"""Somebody has their memory erased while the whole bot runs: files, RAM, and what Discord shows of them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.model import ModelRequest
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.memory.leftovers import traces

CANARY = "Kanarie-Ü🐦-4711"


async def mirrored(world: World) -> World:
    """The world again, with the channel `dev` as its transparency channel."""
    await world.restart(memory_channel=str(world.dev.id))
    return world


async def erase(world: World, person: Any, *, wait: bool = True) -> None:
    """As a command does it: asked for at the chat's present."""
    asked_at = int(world.env.now().timestamp() * 1000)
    erased = await world.memory.erase(user_subject(str(person.id)), asked_at=asked_at)
    assert erased.left == ()
    if wait:
        await world.env.advance_time(1)
        await world.settle()


async def talk(world: World) -> None:
    """Ann's words in her DM, in a channel with Bob, and by command; the loops run on all of them."""
    for _ in range(2):
        await world.ann.send(world.general, f"I like {CANARY}")
        await world.bob.send(world.general, "I like coffee")
        await world.ann.send_dm(f"I prefer {CANARY}")
    await world.ann.send(world.general, f"!memory remember I have a {CANARY}")
    await world.settle()


def data(world: World) -> Path:
    return world.folder / "data"


def intents(world: World) -> list[Any]:
    return [json.loads(path.read_bytes()) for path in (data(world) / "memory" / "erasing").glob("*.json")]


def shown_of(world: World, person: Any) -> list[str]:
    """The messages of the transparency channel about a person."""
    return [
        text for text in world.shown(world.dev) if text.startswith("**Memory of") and f"({person.id})" in text
    ]


class TestTheFiles:
    @pytest.mark.design(317, 327)
    async def test_no_byte_is_left_and_nobody_elses_goes(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            before = world.durable(world.bob).read_bytes()
            assert len(traces(data(world), CANARY)) >= 4
            await erase(world, world.ann)
            assert traces(data(world), CANARY, str(world.ann.id)) == []
            assert world.durable(world.bob).read_bytes() == before

    async def test_it_is_so_after_a_restart_and_more_talk(self, start: Start) -> None:
        async with start() as world:
            await talk(world)
            await erase(world, world.ann)
            for _ in range(2):
                await world.ann.send(world.general, "good morning")
                await world.bob.send(world.general, "good morning to you")
                await world.ann.send_dm("good evening")
                await world.settle()
                assert traces(data(world), CANARY) == []
                await world.restart()

    async def test_what_is_said_afterwards_is_learned_as_ever(self, start: Start) -> None:
        async with start() as world:
            await talk(world)
            await erase(world, world.ann)
            await world.ann.send(world.general, "I prefer cake over pie")
            await world.settle()
            assert "cake" in world.durable(world.ann).read_text()
            assert traces(data(world), CANARY) == []


class TestTheModel:
    async def test_sees_nothing_of_it_again(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await talk(world)
            assert CANARY in model.prompt
            await erase(world, world.ann)
            for _ in range(2):
                await world.ann.send(world.general, "what else do you remember about me?")
                assert CANARY not in model.prompt
                await world.ann.send_dm("what else do you remember about me?")
                assert CANARY not in model.prompt
                await world.settle()
                await world.restart()
            assert all(CANARY not in prompt for prompt in model.structured_prompts[-4:])

    async def test_an_answer_that_is_under_way_is_not_remembered(self, start: Start) -> None:
        """It was made from what is gone, and may repeat it."""

        def answer(request: ModelRequest) -> str:
            return f"You like {CANARY}."

        model = Scripted(then=answer)
        async with start(model) as world:
            await world.ann.send(world.general, "hello")
            await world.settle()
            model.hold, model.asked = asyncio.Event(), asyncio.Event()
            sending = asyncio.create_task(world.ann.send(world.general, f"I like {CANARY}"))
            await model.asked.wait()
            asked_at = int(world.env.now().timestamp() * 1000)
            await world.memory.erase(user_subject(str(world.ann.id)), asked_at=asked_at)
            model.hold.set()
            await sending
            await world.settle()
            await world.env.advance_time(1)
            model.then = "ok"
            await world.ann.send(world.general, "good morning")
            assert CANARY not in model.prompt
            await world.settle()
            assert traces(data(world), CANARY) == []

    @pytest.mark.parametrize("in_dm", [False, True], ids=["in a channel", "in a DM"])
    async def test_a_summary_that_is_under_way_leaves_nothing(self, start: Start, in_dm: bool) -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        class Slow(Scripted):
            async def structured(self, **given: Any) -> Any:
                if "summary" in given["shape"].model_fields:
                    begun.set()
                    await go_on.wait()
                return await super().structured(**given)

        async with start(Slow(), summary_every=1, extraction_enabled=False) as world:
            said = f"I like {CANARY}"
            sending = world.ann.send_dm(said) if in_dm else world.ann.send(world.general, said)
            task = asyncio.create_task(sending)
            await begun.wait()
            await erase(world, world.ann, wait=False)
            go_on.set()
            await task
            await world.settle()
            assert traces(data(world), CANARY, str(world.ann.id)) == []


class TestTheTransparencyChannel:
    async def test_the_persons_message_goes_and_the_others_stay(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            await world.bob.send(world.general, "!memory remember I have a cat")
            await world.settle()
            assert len(shown_of(world, world.ann)) == 1
            await erase(world, world.ann)
            assert shown_of(world, world.ann) == []
            assert "cat" in shown_of(world, world.bob)[0]
            assert intents(world) == []

    async def test_others_no_longer_show_the_summary_the_person_took_part_in(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            await world.bob.send(world.general, "!memory remember I have a cat")
            await world.settle()
            assert CANARY in shown_of(world, world.bob)[0]
            await erase(world, world.ann)
            assert all(CANARY not in text for text in world.shown(world.dev))
            assert "cat" in shown_of(world, world.bob)[0]

    async def test_no_new_one_is_made_before_there_is_something_to_show(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            await erase(world, world.ann)
            for _ in range(3):
                await world.ann.send(world.general, "good morning")
                await world.settle()
            assert shown_of(world, world.ann) == []
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            (text,) = shown_of(world, world.ann)
            assert "tea" in text

    async def test_a_discord_that_fails_is_asked_again_after_a_while(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            world.env.inject_error("DELETE", f"/channels/{world.dev.id}/messages/*", status=403, times=1)
            # Begun by the bot itself, so that its timers follow the simulated clock.
            begun: list[asyncio.Task[None]] = []
            world.app.client.heard_hooks.append(
                lambda _: begun.append(asyncio.create_task(erase(world, world.ann, wait=False)))
            )
            await world.ann.send(world.general, "!memory help")
            await asyncio.gather(*begun)
            await world.settle()
            assert len(shown_of(world, world.ann)) == 1
            assert intents(world) == [{"subject": user_subject(str(world.ann.id)), "todo": ["transparency"]}]
            await world.env.advance_time(40)
            await world.settle()
            assert shown_of(world, world.ann) == []
            assert intents(world) == []

    async def test_or_at_the_next_start(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            world.env.inject_error("DELETE", f"/channels/{world.dev.id}/messages/*", status=403, times=1)
            await erase(world, world.ann)
            await world.restart()
            await world.settle()
            assert shown_of(world, world.ann) == []
            assert traces(data(world), CANARY, str(world.ann.id)) == []

    async def test_the_message_is_found_though_our_note_of_it_is_lost(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            for message in world.dev.pinned_messages():
                await message.unpin()
            (data(world) / "memory" / "cursors" / "transparency.json").unlink()
            await world.restart()
            await erase(world, world.ann)
            assert shown_of(world, world.ann) == []

    async def test_one_that_somebody_deleted_already_is_as_good(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            for message in world.dev.pinned_messages():
                await message.delete()
            await erase(world, world.ann)
            assert intents(world) == []
            assert traces(data(world), str(world.ann.id)) == []

    async def test_a_channel_that_is_gone_took_its_messages_with_it(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            await world.restart(memory_channel="1")
            await erase(world, world.ann)
            assert intents(world) == []
            assert traces(data(world), CANARY, str(world.ann.id)) == []

    async def test_a_mirror_that_is_at_work_meanwhile_leaves_nothing(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            memory = world.memory
            assert memory is not None
            subject = user_subject(str(world.ann.id))
            for pauses in range(8):
                await world.ann.send(world.general, f"!memory remember I like {CANARY}")
                memory.changes.recorded(subject)  # the mirror begins, and comes so far
                for _ in range(pauses):
                    await asyncio.sleep(0)
                await erase(world, world.ann)
                assert all(CANARY not in text for text in world.shown(world.dev))
                assert traces(data(world), CANARY, str(world.ann.id)) == []

    async def test_without_a_channel_there_is_no_step(self, start: Start) -> None:
        async with start() as world:
            await talk(world)
            await erase(world, world.ann)
            assert intents(world) == []
            assert traces(data(world), CANARY, str(world.ann.id)) == []

    async def test_a_channel_that_is_switched_off_is_waited_for(self, start: Start) -> None:
        async with start() as world:
            await mirrored(world)
            await talk(world)
            await world.restart(memory_channel=None)
            await erase(world, world.ann)
            assert [intent["todo"] for intent in intents(world)] == [["transparency"]]
            await mirrored(world)
            await world.settle()
            assert intents(world) == []
            assert shown_of(world, world.ann) == []
