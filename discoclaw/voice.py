"""Transcription over HTTP, in OpenAI's form: one request for a recording, one bounded response, our errors.

    POST {address}/v1/audio/transcriptions   multipart: file, model, response_format=json
    {"text": "What was said."}
    https://platform.openai.com/docs/api-reference/audio/createTranscription

OpenAI, whisper.cpp's server, LocalAI and speaches (once faster-whisper-server) answer it. Nothing is retried
here. Redirects are not followed, because recordings and key may go only to the configured address. No error
text holds the key or anything the server wrote.
"""

import json
from typing import Final

import aiohttp

from discoclaw.core.errors import TranscriptionError, TranscriptionRefused, TranscriptionUnavailable
from discoclaw.core.health import Seen
from discoclaw.core.ports import Transcriber
from discoclaw.http import Client, Failed, within
from discoclaw.work import step

PATH: Final = "/v1/audio/transcriptions"
MAX_RESPONSE: Final = 1_000_000
"""Longest accepted response, in bytes. An hour of talk is about 60,000."""


class HttpTranscriber:
    """The port `Transcriber` over HTTP. `base_url` may end with `/v1` or not.

    Raises ValueError when `base_url` can't be parsed.
    """

    def __init__(self, *, base_url: str, model: str, key: str | None = None) -> None:
        address = base_url.rstrip("/").removesuffix("/v1") + PATH
        # Recordings are rare, so no connection is kept for the next one.
        self._server = Client(address, most=MAX_RESPONSE, key=key, reuse=False)
        self._model = model

    async def words(self, audio: bytes, name: str, type: str, *, timeout_s: float) -> str:
        """The words of a recording, "" if there are none. Raises TranscriptionError."""
        form = aiohttp.FormData()
        form.add_field("model", self._model)
        form.add_field("response_format", "json")
        form.add_field("file", audio, filename=name, content_type=type)
        try:
            async with within(timeout_s):
                body = await self._server.post(data=form)
        except Failed as failed:
            raise self._ours(failed) from None
        # whisper.cpp's server answers 200 also when it can't decode a recording, with `{"error": …}`.
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise TranscriptionError(
                f"{self._where} does not answer with JSON; check DISCOCLAW_TRANSCRIBE_URL"
            ) from None
        text = answer.get("text") if isinstance(answer, dict) else None
        if isinstance(text, str):
            return text.encode("utf-8", "replace").decode("utf-8")
        if isinstance(answer, dict) and "error" in answer:
            raise TranscriptionRefused(f"{self._where} answers with an error instead of words")
        raise TranscriptionError(f"{self._where}: its answer has no text; check DISCOCLAW_TRANSCRIBE_URL")

    async def close(self) -> None:
        await self._server.close()

    @property
    def _where(self) -> str:
        """The server for log and errors."""
        return f"the transcription server at {self._server.host}"

    def _ours(self, failed: Failed) -> TranscriptionError:
        what = f"{self._where} {failed}"
        if failed.why == "unavailable":
            return TranscriptionUnavailable(what)
        if failed.why == "refused" or failed.status == 415:  # a format that it can't read
            return TranscriptionRefused(what)
        if failed.why == "key":
            what += ": it does not accept the key; check DISCOCLAW_TRANSCRIBE_KEY"
        elif failed.why == "address":
            what += ": check DISCOCLAW_TRANSCRIBE_URL and DISCOCLAW_TRANSCRIBE_MODEL"
        return TranscriptionError(what)


# A transcriber whose calls are noted: when it last answered, or why it didn't. Knows no server.

VOICE: Final = "transcription"


class SeenTranscriber:
    """The port `Transcriber` around another one."""

    def __init__(self, transcriber: Transcriber, seen: Seen) -> None:
        self._transcriber = transcriber
        self._seen = seen

    async def words(self, audio: bytes, name: str, type: str, *, timeout_s: float) -> str:
        """Return what is said in a recording. Raises TranscriptionError."""
        step(timeout_s)
        try:
            words = await self._transcriber.words(audio, name, type, timeout_s=timeout_s)
        except TranscriptionRefused:  # just this recording
            self._seen.answered(VOICE)
            raise
        except TranscriptionError as error:
            self._seen.failed(VOICE, error)
            raise
        self._seen.answered(VOICE)
        return words

    async def close(self) -> None:
        """Close the other's connections."""
        await self._transcriber.close()
