"""Many voice messages at once, and long ones: nobody takes the transcription server for themselves."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from discoclaw.bot.voice.shown import MARK
from discoclaw.bot.voice.voices import BYTES_PER_S
from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.app.test_voice import notes, put, speak
from tests.servers.transcription_api import Held, TranscriptionServer, failure


@pytest.fixture
async def ears() -> AsyncIterator[TranscriptionServer]:
    """A transcription server on loopback."""
    async with TranscriptionServer() as running:
        running.says |= {b"one": "One.", b"bobs": "I am Bob."}
        yield running


async def test_somebody_who_sends_many_holds_up_nobody_else(start: Start, ears: TranscriptionServer) -> None:
    ready = asyncio.Event()
    async with start(Scripted(), transcribe_url=ears.url) as world:
        ears.script(Held(ready))
        for _ in range(5):
            put(world, world.ann, world.general, b"one", None, 2)
        await ears.wait_for_requests(1)
        put(world, world.bob, world.general, b"bobs", None, 2)
        await ears.wait_for_requests(2)
        assert [one.audio for one in ears.requests] == [b"one", b"bobs"]
        ready.set()
        await world.settle()
        assert len(notes(world, world.general)) == 6


async def test_those_who_waited_for_a_server_that_is_gone_wait_no_longer(
    start: Start, ears: TranscriptionServer
) -> None:
    ears.default = failure(503)
    async with start(Scripted(), transcribe_url=ears.url) as world:
        for _ in range(6):
            put(world, world.ann, world.general, b"one", None, 2)
        await ears.wait_for_requests(2)
        await world.settle()
        assert len(ears.requests) == 2
        assert len(notes(world, world.general)) == 6
        ears.default = None
        await speak(world, world.ann, world.general, b"one")
        assert notes(world, world.general)[-1] == f"{MARK}“One.”"


async def test_a_recording_that_is_longer_than_it_claims_is_not_loaded(
    start: Start, ears: TranscriptionServer
) -> None:
    async with start(Scripted(), transcribe_url=ears.url, transcribe_max_s=60) as world:
        await speak(world, world.ann, world.general, b"o" * (70 * BYTES_PER_S), seconds=3)
        assert "60 seconds at most" in notes(world, world.general)[0]
        assert ears.requests == []


async def test_somebody_who_opts_out_meanwhile_is_not_quoted(start: Start, ears: TranscriptionServer) -> None:
    ready = asyncio.Event()
    ears.script(Held(ready))
    async with start(Scripted(), transcribe_url=ears.url, respond_mode="mention") as world:
        put(world, world.ann, world.general, b"one", None, 2)
        await ears.wait_for_requests(1)
        ann = world.env.backend.create_message(world.general.id, world.ann.id, "!memory optout")
        async with asyncio.timeout(20):
            while not any(  # noqa: ASYNC110
                one.reference is not None and one.reference.message_id == ann.id
                for one in world.general.history()
            ):
                await asyncio.sleep(0.02)
        ready.set()
        await world.settle()
        assert notes(world, world.general) == []
