"""Transcription over HTTP, in OpenAI's form: one request for a recording, one bounded response, our errors.

    POST {address}/v1/audio/transcriptions   multipart: file, model, response_format=json
    {"text": "What was said."}
    https://platform.openai.com/docs/api-reference/audio/createTranscription

OpenAI, whisper.cpp's server, LocalAI and speaches (once faster-whisper-server) answer it. Nothing is retried
here. Redirects are not followed, because recordings and key may go only to the configured address. No error
text holds the key or anything the server wrote.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Final

import aiohttp
import yarl

from discoclaw.core.errors import TranscriptionError, TranscriptionRefused, TranscriptionUnavailable

PATH: Final = "/v1/audio/transcriptions"
MAX_RESPONSE: Final = 1_000_000
"""Longest accepted response, in bytes. An hour of talk is about 60,000."""
_REFUSED = (400, 413, 415, 422)
_RETRY_LATER = (408, 425, 429)


class HttpTranscriber:
    """The port `Transcriber` over HTTP. `base_url` may end with `/v1` or not.

    Raises ValueError when `base_url` can't be parsed.
    """

    def __init__(self, *, base_url: str, model: str, key: str | None = None) -> None:
        self._url = yarl.URL(base_url.rstrip("/").removesuffix("/v1") + PATH)
        self._model = model
        self._headers: Mapping[str, str] = {
            "Accept-Encoding": "identity",  # a small compressed body could unpack to a huge one
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }
        self._session: aiohttp.ClientSession | None = None

    async def words(self, audio: bytes, name: str, type: str, *, timeout_s: float) -> str:
        """What is said in a recording, "" if nothing is. Raises TranscriptionError."""
        try:
            async with asyncio.timeout(timeout_s):
                body = await self._post(audio, name, type)
        except TimeoutError:
            raise TranscriptionUnavailable(f"{self._where} did not answer within {timeout_s:g} s") from None
        return self._text(body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def _where(self) -> str:
        """The server for log and errors. Only the host is shown, since an address can hold a password."""
        return f"the transcription server at {self._url.host}"

    async def _post(self, audio: bytes, name: str, type: str) -> bytes:
        if self._session is None:
            # Recordings are rare, so no connection is kept for the next one.
            connector = aiohttp.TCPConnector(force_close=True)
            # Its own limit of five minutes is off: `words` is told how long to wait.
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)
            )
        form = aiohttp.FormData()
        form.add_field("model", self._model)
        form.add_field("response_format", "json")
        form.add_field("file", audio, filename=name, content_type=type)
        try:
            async with self._session.post(
                self._url, data=form, headers=self._headers, allow_redirects=False
            ) as response:
                self._check(response)
                return await self._body(response)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise TranscriptionUnavailable(
                f"{self._where} cannot be reached ({error.__class__.__name__})"
            ) from None

    def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise the error that a status stands for. The body is not quoted: it may repeat the key."""
        status = response.status
        if status == 200:
            return
        what = f"{self._where} answers {status}"
        if status in (401, 403):
            raise TranscriptionError(f"{what}: it does not accept the key; check DISCOCLAW_TRANSCRIBE_KEY")
        if status in _RETRY_LATER or status >= 500:
            raise TranscriptionUnavailable(what)
        if status in _REFUSED:
            raise TranscriptionRefused(what)
        raise TranscriptionError(f"{what}: check DISCOCLAW_TRANSCRIBE_URL and DISCOCLAW_TRANSCRIBE_MODEL")

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """The whole body. Raises TranscriptionError as soon as it is too long, whatever its header says."""
        body = bytearray()
        async for chunk in response.content.iter_chunked(65_536):
            body += chunk
            if len(body) > MAX_RESPONSE:
                response.close()
                raise TranscriptionError(f"{self._where}: the response is longer than {MAX_RESPONSE:,} bytes")
        return bytes(body)

    def _text(self, body: bytes) -> str:
        """The words in a response. Raises TranscriptionError if it has none where they belong.

        whisper.cpp's server answers 200 also when it can't decode a recording, with `{"error": …}`.
        """
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
