"""What the parts in Discord owe each other: a voice message answered again, a channel not listened to."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from discoclaw.bot.answers import sentence
from discoclaw.bot.below.controls import view_of
from discoclaw.core.errors import Refused
from discoclaw.core.subject import user_subject
from discoclaw.session.talk import NOT_HERE
from tests.app.conftest import Start, World
from tests.app.live import edit
from tests.app.models import Scripted
from tests.app.of_answer_buttons import answer_as_seen, press
from tests.app.older import PORTO, SHOWN, known, notes, speak
from tests.servers.transcription_api import TranscriptionServer, failure

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}


@pytest.fixture
async def ears() -> AsyncIterator[TranscriptionServer]:
    """A transcription server on loopback."""
    async with TranscriptionServer() as running:
        running.says[b"porto"] = PORTO
        yield running


async def again(world: World) -> None:
    """Ann presses the button below the newest answer."""
    await world.ann.click(world.general.last_message, label="Again")
    await world.settle()


class TestAVoiceMessageThatIsAnsweredAgain:
    @pytest.mark.parametrize("restarted", [False, True])
    async def test_has_its_words_and_is_listened_to_once(
        self, start: Start, ears: TranscriptionServer, restarted: bool
    ) -> None:
        model = Scripted("One.", "Two.")
        async with start(model, transcribe_url=ears.url, **QUIET) as world:
            await speak(world, world.ann, world.general)
            if restarted:
                await world.restart()
            await again(world)
            assert world.shown(world.general) == ["", SHOWN, "Two."]
            assert f"{PORTO}\n(attached: voice message, 3 s)" in model.prompt
            assert len(ears.requests) == 1

    async def test_is_listened_to_again_if_its_words_are_gone(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        model = Scripted("One.", "Two.")
        async with start(model, transcribe_url=ears.url, **QUIET) as world:
            await speak(world, world.ann, world.general)
            backend = world.env.backend
            backend.delete_message(world.general.id, world.general.history()[1].id)
            await world.settle()
            await again(world)
            assert world.shown(world.general) == ["", SHOWN, "Two."]
            assert PORTO in model.prompt

    async def test_keeps_its_answer_if_nobody_can_listen(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        async with start(Scripted("One."), transcribe_url=ears.url, **QUIET) as world:
            await speak(world, world.ann, world.general)
            world.env.backend.delete_message(world.general.id, world.general.history()[1].id)
            await world.settle()
            ears.script(failure(401))
            await again(world)
            assert "One." in world.shown(world.general) and len(notes(world, world.general)) == 1


def listens(world: World, on: bool) -> None:
    edit(world, {f"group:{world.general.id}": {"listen": on}})


class TestWhatIsSaidWhereTheBotIsNotToListen:
    async def test_is_never_read_nor_answered(self, start: Start) -> None:
        model = Scripted()
        async with start(model, auto_save="all", **QUIET) as world:
            await world.ann.send(world.general, "before")
            listens(world, False)
            await world.ann.send(world.general, "the walrus is secret")
            await world.bob.send(world.general, "the walrus is mine")
            listens(world, True)
            await world.ann.send(world.general, "after")
            await world.restart()
            await world.settle()
            assert len(model.requests) == 2
            await world.ann.send(world.general, "later")
            assert "before" in model.prompt and "after" in model.prompt
            assert "walrus" not in model.prompt
            found = await world.ann.slash(world.general, "search", query="walrus")
            assert "secret" not in found.response.content

    async def test_is_never_read_when_the_bot_was_away(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            await world.ann.send(world.general, "before")
            listens(world, False)

            def meanwhile() -> None:
                world.env.backend.create_message(world.general.id, world.ann.id, "the walrus is secret")

            await world.restart(meanwhile=meanwhile)
            await world.settle()
            listens(world, True)
            await world.restart()
            await world.ann.send(world.general, "later")
            await world.settle()
            assert len(model.requests) == 2
            assert "before" in model.prompt and "walrus" not in model.prompt

    async def test_is_no_talk_for_a_channel_that_was_never_heard(self, start: Start) -> None:
        model = Scripted()
        async with start(model, **QUIET) as world:
            listens(world, False)
            await world.ann.send(world.general, "the walrus is secret")
            listens(world, True)
            await world.ann.send(world.general, "hello")
            assert "walrus" not in model.prompt

    async def test_can_still_take_back_what_was_learned_there_before(self, start: Start) -> None:
        async with start() as world:
            message = await world.ann.send(world.general, "I use vim.")
            assert await known(world, world.ann) == ["User uses vim."]
            listens(world, False)
            await world.bob.send(world.general, "hello")
            await world.ann.delete(message)
            assert await known(world, world.ann) == []


class TestAPersonaThatAChannelGets:
    async def test_leaves_what_was_said_before_it_came_to_the_one_it_was_said_to(self, start: Start) -> None:
        async with start(summary_enabled=False, durable_every=2) as world:
            await world.ann.send(world.general, "I use vim.")
            edit(world, {f"group:{world.general.id}": {"persona": "work"}})
            await world.ann.send(world.general, "I use emacs.")
            assert await known(world, world.ann) == ["User uses vim."]
            work = await world.memory.view(user_subject(str(world.ann.id)), "work")
            assert "User uses emacs." in [item.text for item in work.active()]


class TestAForgedButton:
    @pytest.mark.parametrize("kind", ["again", "more"])
    async def test_asks_nothing_in_somebody_elses_name(self, start: Start, kind: str) -> None:
        model = Scripted("One.")
        async with start(model, **QUIET) as world:
            asked = await world.ann.send(world.general, "What do I like?")
            custom_id = f"{kind}:{world.bob.id}:{asked.id}{':' if kind == 'again' else ''}"
            world.env.backend.create_message(
                world.general.id,
                world.app.client.user.id,
                "One.",
                components=view_of((custom_id,)).to_components(),
            )
            pressed = press(world, world.bob, answer_as_seen(world, world.general.last_message))
            await world.settle()
            assert [one.content for one in pressed.followups] == [sentence(Refused(NOT_HERE))]
            assert len(model.requests) == 1
