"""Transcription over HTTP: what is sent, what is believed, and how each fault is named."""

import asyncio
import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest

from discoclaw.core.errors import TranscriptionError, TranscriptionRefused, TranscriptionUnavailable
from discoclaw.voice import MAX_RESPONSE, HttpTranscriber
from tests.servers.transcription_api import Behaviour, Cut, Held, Raw, TranscriptionServer, failure, stall
from tests.tables import each_row

KEY = "sk-secret"
AUDIO = b"OggS\x00 and so on"


@pytest.fixture
async def server() -> AsyncIterator[TranscriptionServer]:
    async with TranscriptionServer() as server:
        server.says[AUDIO] = "I moved to Porto."
        yield server


@pytest.fixture
async def transcriber(server: TranscriptionServer) -> AsyncIterator[HttpTranscriber]:
    transcriber = HttpTranscriber(base_url=server.url, model="whisper-1", key=KEY)
    yield transcriber
    await transcriber.close()


async def words(transcriber: HttpTranscriber, *, timeout_s: float = 5) -> str:
    return await transcriber.words(AUDIO, "voice-message.ogg", "audio/ogg", timeout_s=timeout_s)


class TestAGoodAnswer:
    async def test_gives_the_words(self, server: TranscriptionServer, transcriber: HttpTranscriber) -> None:
        assert await words(transcriber) == "I moved to Porto."

    async def test_is_asked_for_in_the_form_of_openai(
        self, server: TranscriptionServer, transcriber: HttpTranscriber
    ) -> None:
        await words(transcriber)
        (request,) = server.requests
        assert request.fields == {"model": "whisper-1", "response_format": "json"}
        assert (request.audio, request.name, request.type) == (AUDIO, "voice-message.ogg", "audio/ogg")
        assert request.headers["authorization"] == f"Bearer {KEY}"

    @each_row("end", ["/v1", "/v1/", "/"])
    async def test_an_address_may_end_as_other_programs_want_it(
        self, server: TranscriptionServer, end: str
    ) -> None:
        transcriber = HttpTranscriber(base_url=server.url + end, model="m")
        assert await words(transcriber) == "I moved to Porto."
        await transcriber.close()
        assert "authorization" not in server.requests[0].headers

    async def test_may_have_no_words(self, server: TranscriptionServer, transcriber: HttpTranscriber) -> None:
        server.script(Raw(b'{"text": ""}'))
        assert await words(transcriber) == ""

    async def test_half_a_character_is_replaced(
        self, server: TranscriptionServer, transcriber: HttpTranscriber
    ) -> None:
        server.script(Raw(b'{"text": "broken \\ud83d heart"}'))
        assert await words(transcriber) == "broken ? heart"


NONSENSE: dict[str, Behaviour] = {
    "a page": Raw(b"<!doctype html><title>Welcome to nginx</title>", headers={"content-type": "text/html"}),
    "not UTF-8": Raw(b"\xff\xfe\xfa"),
    "nothing": Raw(b""),
    "another shape": Raw(b'{"result": "I moved"}'),
    "a list": Raw(b'["I moved"]'),
    "text that is none": Raw(b'{"text": {"de": "Umzug"}}'),
    "deep": Raw(b"[" * 100_000),
    "a huge body": Raw(b'{"text": "' + b"a" * MAX_RESPONSE + b'"}'),
    "another path": failure(404),
    "a redirect": Raw(b"", 307, {"location": "http://127.0.0.1:9/"}),
    "a wrong key": failure(401),
}


class TestFaults:
    @each_row("behaviour", NONSENSE.values())
    async def test_nonsense_is_a_matter_for_the_admin_and_the_next_answer_counts(
        self, server: TranscriptionServer, transcriber: HttpTranscriber, behaviour: Behaviour
    ) -> None:
        server.script(behaviour)
        with pytest.raises(TranscriptionError) as caught:
            await words(transcriber)
        assert type(caught.value) is TranscriptionError
        assert await words(transcriber) == "I moved to Porto."

    @each_row("status", [408, 429, 500, 503])
    async def test_a_server_in_trouble_is_unavailable(
        self, server: TranscriptionServer, transcriber: HttpTranscriber, status: int
    ) -> None:
        server.script(failure(status))
        with pytest.raises(TranscriptionUnavailable, match=str(status)):
            await words(transcriber)

    @each_row("behaviour", [stall(), Cut()])
    async def test_one_that_does_not_answer_is_unavailable(
        self, server: TranscriptionServer, transcriber: HttpTranscriber, behaviour: Behaviour
    ) -> None:
        server.script(behaviour)
        with pytest.raises(TranscriptionUnavailable):
            await words(transcriber, timeout_s=0.5)

    async def test_one_that_is_slow_has_all_the_time_it_is_given(
        self, server: TranscriptionServer, transcriber: HttpTranscriber, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(aiohttp.client, "DEFAULT_TIMEOUT", aiohttp.ClientTimeout(total=0.05))
        ready = asyncio.Event()
        server.script(Held(ready))
        asking = asyncio.create_task(words(transcriber, timeout_s=30))
        await server.wait_for_requests(1)
        await asyncio.wait([asking], timeout=0.2)  # more than aiohttp would wait by itself
        ready.set()
        assert await asking == "I moved to Porto."

    async def test_one_that_is_not_there_is_unavailable(self) -> None:
        transcriber = HttpTranscriber(base_url="http://127.0.0.1:9", model="m", key=KEY)
        with pytest.raises(TranscriptionUnavailable, match="127"):
            await words(transcriber)
        await transcriber.close()

    @each_row(
        "behaviour",
        [failure(400), failure(413), failure(415), failure(422), Raw(b'{"error": "failed to read audio"}')],
    )
    async def test_a_recording_may_be_refused(
        self, server: TranscriptionServer, transcriber: HttpTranscriber, behaviour: Behaviour
    ) -> None:
        server.script(behaviour)
        with pytest.raises(TranscriptionRefused):
            await words(transcriber)

    async def test_no_error_and_no_log_holds_the_key_or_the_password_of_the_address(
        self, server: TranscriptionServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        address = server.url.replace("http://", "http://me:hunter2@")
        transcriber = HttpTranscriber(base_url=address, model="m", key=None)
        for behaviour in (failure(401), failure(400), failure(500), failure(404), Raw(b"sk-secret")):
            server.script(behaviour)
            with pytest.raises(TranscriptionError) as caught:
                await words(transcriber)
            assert "sk-secret" not in str(caught.value) + caught.value.user_message
            assert "hunter2" not in str(caught.value) + caught.value.user_message
        await transcriber.close()
        assert "hunter2" not in caplog.text
