"""A loopback server of transcriptions, in OpenAI's form: good and bad.

    async with TranscriptionServer() as server:
        server.says[b"the bytes of a recording"] = "What is said in it."
        server.script(failure(500), stall())
        HttpTranscriber(base_url=server.url, model="whisper-1", key="k")
        ...
        assert server.requests[0].audio == b"the bytes of a recording"

Each request takes the next scripted behaviour, else `default`, else it is answered with what `says` has for
its recording. Knows nothing about DiscoClaw.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import BodyPartReader, web

from tests.servers.scripted import Cut, Held, Raw, ScriptedServer, headers_of
from tests.servers.scripted import failure as failure  # part of this module's interface
from tests.servers.scripted import stall as stall


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower-case."""

    fields: Mapping[str, str]
    audio: bytes
    name: str
    type: str
    headers: Mapping[str, str]


Behaviour = Raw | Held | Cut


class TranscriptionServer(ScriptedServer[Received, Behaviour]):
    """The server; an async context manager."""

    paths = ("/v1/audio/transcriptions",)

    def __init__(self) -> None:
        super().__init__()
        self.default: Behaviour | None = None
        self.says: dict[bytes, str] = {}

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        received = await _read(request)
        await self._record(received)
        match behaviour := self._next() or self.default:
            case Raw():
                return behaviour.response
            case Held():
                await behaviour.wait()
            case Cut():
                return await behaviour.answer(request, b'{"text": "I mo')
        return web.json_response({"text": self.says[received.audio]})


async def _read(request: web.Request) -> Received:
    """The form of a request. It has exactly what OpenAI's form needs, each part once."""
    fields: dict[str, str] = {}
    audio, name, kind = b"", "", ""
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader) and part.name is not None and part.name not in fields
        if part.name == "file":
            audio, name = bytes(await part.read()), part.filename or ""
            kind = part.headers.get("content-type", "")
        else:
            fields[part.name] = await part.text()
    assert set(fields) == {"model", "response_format"}
    return Received(fields, audio, name, kind, headers_of(request))
