"""A voice message that somebody points at, itself or by the note below it: its words are its author's."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from discoclaw.core import titles
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_voice import PORTO, SHOWN, speak
from tests.servers.transcription_api import TranscriptionServer

ANNS = f"[ann]: {PORTO}"


@pytest.fixture
async def ears() -> AsyncIterator[TranscriptionServer]:
    """A transcription server on loopback, which hears that somebody moved."""
    async with TranscriptionServer() as running:
        running.says[b"porto"] = PORTO
        yield running


def note_of(world: World) -> Any:
    """Our newest note with its words."""
    return next(one for one in reversed(world.general.history()) if one.content == SHOWN)


def quoted(model: Scripted) -> str:
    """What the newest prompt quotes as the message that somebody replies to."""
    return model.prompt.rpartition(titles.REPLIED_TO)[2]


class TestAReply:
    async def test_to_the_note_quotes_who_spoke(self, start: Start, ears: TranscriptionServer) -> None:
        model = Scripted()
        async with start(model, transcribe_url=ears.url) as world:
            await speak(world, world.ann, world.general)
            await world.bob.send(world.general, "since when?", reply_to=note_of(world))
            assert ANNS in quoted(model)

    @pytest.mark.parametrize("to_the_note", [True, False])
    async def test_quotes_what_left_the_window(
        self, start: Start, ears: TranscriptionServer, to_the_note: bool
    ) -> None:
        model = Scripted()
        async with start(model, transcribe_url=ears.url, respond_mode="mention", context_history=2) as world:
            voice = await speak(world, world.ann, world.general)
            for number in range(4):
                await world.bob.send(world.general, f"number {number}")
            to = note_of(world) if to_the_note else voice
            await world.bob.send(world.general, f"<@{world.env.bot.user.id}> since when?", reply_to=to)
            assert ANNS in quoted(model)

    async def test_to_the_note_quotes_nothing_of_a_person_who_was_erased(
        self, start: Start, ears: TranscriptionServer
    ) -> None:
        model = Scripted()
        async with start(model, transcribe_url=ears.url) as world:
            await speak(world, world.ann, world.general)
            await world.memory.erase(
                user_subject(str(world.ann.id)), asked_at=int(world.env.now().timestamp() * 1000)
            )
            await world.bob.send(world.general, "since when?", reply_to=note_of(world))
            assert len(model.requests) == 2 and PORTO not in model.prompt

    async def test_quotes_nothing_that_an_erased_person_wrote(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            message = await world.ann.send(world.general, PORTO)
            await world.memory.erase(
                user_subject(str(world.ann.id)), asked_at=int(world.env.now().timestamp() * 1000)
            )
            await world.bob.send(world.general, "since when?", reply_to=message)
            assert len(model.requests) == 2 and PORTO not in model.prompt


class TestAgain:
    @pytest.mark.parametrize("restarted", [False, True])
    async def test_answers_the_words_again(
        self, start: Start, ears: TranscriptionServer, restarted: bool
    ) -> None:
        model = Scripted("Heads.", "Tails.")
        async with start(model, transcribe_url=ears.url) as world:
            await speak(world, world.ann, world.general)
            if restarted:
                await world.restart()
            await world.ann.click(world.general.last_message, label="Again")
            await world.settle()
            assert world.shown(world.general)[1:] == [SHOWN, "Tails."]
            assert PORTO in model.prompt
            assert len(ears.requests) == 1


class TestAMenu:
    async def test_remembers_the_words(self, start: Start, ears: TranscriptionServer) -> None:
        off = {"extraction_enabled": False, "summary_enabled": False}
        async with start(Scripted(), transcribe_url=ears.url, **off) as world:
            voice = await speak(world, world.ann, world.general)
            await world.ann.context_menu(world.general, "Remember this", voice)
            view = await world.memory.view(user_subject(str(world.ann.id)))
            assert [item.text for item in view.active()] == [PORTO]

    @pytest.mark.parametrize("at_the_note", [True, False])
    async def test_asks_about_the_words(
        self, start: Start, ears: TranscriptionServer, at_the_note: bool
    ) -> None:
        model = Scripted()
        async with start(model, transcribe_url=ears.url) as world:
            voice = await speak(world, world.ann, world.general)
            about = note_of(world) if at_the_note else voice
            form = await world.bob.context_menu(world.general, "Ask about this", about)
            await world.bob.submit_modal(form, {"question": "Since when?"})
            await world.settle()
            assert ANNS in quoted(model)


class TestALink:
    @pytest.mark.parametrize("to_the_note", [True, False])
    async def test_shows_the_words(self, start: Start, ears: TranscriptionServer, to_the_note: bool) -> None:
        model = Scripted()
        async with start(model, transcribe_url=ears.url, allow_roles=frozenset()) as world:
            pass
        async with start(model, transcribe_url=ears.url) as world:
            voice = await speak(world, world.ann, world.general)
            to = note_of(world) if to_the_note else voice
            link = f"https://discord.com/channels/{world.guild.id}/{world.general.id}/{to.id}"
            await world.bob.send(world.dev, f"what does she say in {link}?")
            await world.settle()
            assert ANNS in model.prompt
