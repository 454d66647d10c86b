"""What the parts in Discord owe each other: a voice message answered again, a channel not listened to."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_voice import PORTO, SHOWN, notes, speak
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
