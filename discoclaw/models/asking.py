"""Models behind a server's API: what each adapter does with a request and an answer, whichever API it is.

An adapter derives a `Server`, which owns one connection pool of an SDK, and a `ServedModel`, the port `Model`
over it: so the chat model and the small ones share connections and key. The SDK does the retries. Knows no
vendor, and nothing about prompts, memory or Discord.

Every wait for the server counts against one deadline per call. The deadline is set around each wait and
not around the whole generator: `asyncio.timeout` cancels the task that entered it, and between two pieces
that task is busy in the caller's code.
"""

import contextlib
import json
import logging
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar, Final, Literal, TypeAlias
from uuid import uuid4

import httpx2
from pydantic import BaseModel

from discoclaw.core import titles
from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelError,
    ModelNotFound,
    ModelTimeout,
    ModelTooLong,
    SettingsError,
)
from discoclaw.core.health import Finding
from discoclaw.core.model import (
    WRITTEN,
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    SystemBlock,
    TextDelta,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
)
from discoclaw.core.ports import Shape
from discoclaw.core.usage import used
from discoclaw.models import reading
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.failing import Failures, Refused, asked
from discoclaw.models.reading import Answer, Events, Limit
from discoclaw.models.speech import Hearing
from discoclaw.models.structured import MAX_ANSWER

log = logging.getLogger(__name__)

DUMMY_KEY = "no-key"
"""Sent when no key is set: the SDKs insist on one, and local servers ignore it."""

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]

# How hard a model that thinks should think, by what it is asked for.
EFFORTS: Final[Mapping[Purpose, Effort]] = {
    "answer": "medium",  # a person waits; Sonnet's own default is high
    "summary": "low",
    "extraction": "low",
    "tidying": "medium",  # it merges memories, and nobody waits
    "suggestion": "low",
    "title": "low",
}

THINKING_ROOM: Final[Mapping[Effort, int]] = {"low": 8_000, "medium": 16_000}
"""Tokens for thinking, beside the answer's own, for each effort in `EFFORTS`."""

MOST_PAUSES = 5
"""How often one answer goes on after the server has paused it."""


@cache
def trusted() -> ssl.SSLContext:
    """The certificates that the SDKs trust. Reading them takes 20 ms, so all servers share them."""
    return httpx2.create_ssl_context()


class Server(ABC):
    """One connection pool to one server. Raises ModelNotFound when `base_url` can't be parsed.

    `own_url` is the address of the vendor's server. `is_own`: it is that one, which sends thoughts and calls
    apart from what is said. `certain`: that one knows every field of its API, for each model.
    """

    failures: ClassVar[Failures]
    certain: ClassVar[bool]
    own_url: ClassVar[str]

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        max_retries: int = 2,
    ) -> None:
        self.secret = api_key or ""
        self.connect_timeout_s = connect_timeout_s
        self.is_own = base_url is None or base_url.rstrip("/") == self.own_url
        with self.failures.translated(self.secret):
            self.sdk: Any = self._client(api_key or DUMMY_KEY, base_url or self.own_url, max_retries)
        self.refused: dict[str, Refused] = {}
        """Fields that the server was found not to take, by model."""

    @abstractmethod
    def _client(self, key: str, base_url: str, max_retries: int) -> object:
        """The SDK's client. It must read nothing from the environment, and follow no redirect."""

    @abstractmethod
    def model(self, name: str, *, total_timeout_s: float = 180.0) -> "ServedModel":
        """The model of that name. `total_timeout_s` is for a whole call, retries included."""

    @abstractmethod
    def thinks(self, model: str) -> bool:
        """Whether a model is known to think, and to count that towards the limit of its answer."""

    def room_of(self, model: str, purpose: Purpose, own: int) -> int:
        """The tokens to ask for: the answer's own, and what thinking may take beside them."""
        return reading.bounded(own + (THINKING_ROOM[EFFORTS[purpose]] if self.thinks(model) else 0))

    def left_out(self) -> Iterator[Finding]:
        """Findings about what is left out of requests because the server refuses it, and what that costs."""
        for model, refused in self.refused.items():
            yield from refused.findings(model)

    async def close(self) -> None:
        """Close all connections. Running calls fail with ModelUnreachable. May be called again."""
        await self.sdk.close()


def opened(
    serve: Callable[..., Server],
    vendor: str,
    config: ModelConfig,
    aliases: tuple[str, ...] = (),
    id_of: Callable[[str], str] = str,
) -> Models:
    """The models of `open_models`. `aliases` are names of models at the vendor's own server."""
    if config.key is None and config.base_url is None:
        raise SettingsError(
            f"{vendor}_API_KEY is not set; set it, or {vendor}_BASE_URL for a local model, "
            "or try `discoclaw demo`, which needs neither"
        )
    try:
        server = serve(
            api_key=config.key, base_url=config.base_url, connect_timeout_s=config.connect_timeout_s
        )
    except ModelNotFound as error:
        raise SettingsError(f"{vendor}_BASE_URL=…: not an address ({error})") from None
    return Models(
        chat=server.model(config.chat, total_timeout_s=config.chat_timeout_s),
        summary=server.model(config.summary, total_timeout_s=config.loop_timeout_s),
        facts=server.model(config.facts, total_timeout_s=config.loop_timeout_s),
        named=partial(server.model, total_timeout_s=config.chat_timeout_s),
        room_of=server.room_of,
        left_out=server.left_out,
        aliases=aliases if server.is_own else (),
        id_of=id_of,
    )


class ServedModel(ABC):
    """The port `Model` over a `Server`. `total_timeout_s` is for a whole call, retries included."""

    def __init__(
        self, server: Server, name: str, *, total_timeout_s: float, temperature: float | None = None
    ) -> None:
        self.name = name
        self._server = server
        self._total_timeout_s = total_timeout_s
        self._temperature = temperature
        self._thinks_first = False
        """Whether an answer began with a thought, without a mark: the next one waits for a thought's end."""
        self._refused = server.refused.setdefault(name, Refused(certain=server.certain and server.is_own))

    @abstractmethod
    def _own_fields(self, request: ModelRequest, shape: type[BaseModel] | None) -> Mapping[str, object]:
        """Optional fields that only this API has, by their name in `refused`: does the request have them?"""

    @abstractmethod
    def _schema(self, shape: type[BaseModel]) -> Mapping[str, object] | None:
        """The JSON schema to put into the prompt; None if the model is known to enforce it."""

    @abstractmethod
    def _send(
        self, request: ModelRequest, shape: type[BaseModel] | None, out: Collection[str]
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        """Send a request without the fields that are `out`. Whatever the SDK raises is translated."""

    @abstractmethod
    def _events(self, response: httpx2.Response) -> Events:
        """The events that the server sends."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield `TextDelta`s and, last, one `Finished`. Closing the generator closes the connection.

        What a server rejects because of its media or of optional fields is asked again without them, within
        one time limit. Raises ModelError.
        """
        return asked(request, self._fields(request), partial(self._stream, self._limit()), self._refused)

    async def _stream(
        self, limit: Limit, request: ModelRequest, out: Collection[str]
    ) -> AsyncGenerator[StreamEvent, None]:
        """The answer to one request without the fields that are `out`, as `stream` yields it.

        An answer that the server pauses, as it does while its own tools work, is sent back to be continued.
        One that was cut off before its first word is asked for once more, with more room. Raises ModelError.
        """
        room = self._server.room_of(self.name, request.purpose, request.max_tokens)
        turns, parts, said = request.turns, list[Finished](), False
        cut: Finished | None = None
        while True:
            try:
                async with self._ask(
                    limit,
                    replace(request, turns=turns, max_tokens=room),
                    out,
                    own=request.max_tokens if room > request.max_tokens else None,
                ) as answer:
                    while (piece := await answer.piece()) is not None:
                        said = bool(piece.strip()) or (said and not answer.anew)
                        yield TextDelta(piece, instead=answer.anew)
                    part, paused = answer.finished(self.name, turns)
            except ModelBadRequest:
                if cut is None or said:
                    raise
                part, paused = cut, False  # so much room is more than this model has
            if part.stop == "length" and not (paused or said or cut) and reading.more(room) > room:
                log.info("%s was cut off before its first word; asking again with more room", self.name)
                cut, room = part, reading.more(room)
                continue
            parts.append(part)
            turns = (*turns, part.turn)
            if not paused or len(parts) > MOST_PAUSES:
                break
        yield reading.joined(parts)

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """One answer, read strictly as `shape`. Raises ModelError.

        What was cut off or is empty is asked for once more with more room, nonsense once more with its fault
        named, all within one time limit. If that brings no answer either, the first fault is raised.
        """
        blocks = [SystemBlock(system)]
        if (schema := self._schema(shape)) is not None:
            blocks.append(SystemBlock(reading.in_words(schema)))
        limit, room = self._limit(), self._server.room_of(self.name, purpose, max_tokens)
        turns: tuple[Turn, ...] = (UserTurn(prompt),)
        first: ModelError | None = None
        widened = corrected = False
        while True:
            try:
                request = ModelRequest(tuple(blocks), turns, max_tokens=room, purpose=purpose)
                read = partial(self._read, limit, shape)
                events = asked(request, self._fields(request, shape), read, self._refused)
                (done,) = [one async for one in events if isinstance(one, Finished)]
            except (ModelTimeout, ModelBadRequest, ModelTooLong) as error:
                raise first or error from None
            try:
                return reading.structured(done, shape)
            except (ModelCut, ModelEmpty) as error:
                first = first or error
                if widened or reading.more(room) <= room:
                    raise first from None
                widened, room = True, reading.more(room)
            except ModelBadOutput as error:
                first = first or error
                if corrected:
                    raise first from None
                corrected, turns = True, reading.corrected(prompt, done.turn, str(error))
            log.info("%s is asked again: %s", self.name, first)

    async def close(self) -> None:
        """Close the server and with it all its models."""
        await self._server.close()

    async def _read(
        self, limit: Limit, shape: type[BaseModel], request: ModelRequest, out: Collection[str]
    ) -> AsyncGenerator[StreamEvent, None]:
        """The whole answer to one structured request.

        It is streamed only so that an endless answer can be stopped early.
        """
        size = 0
        async with self._ask(limit, request, out, shape) as answer:
            while (piece := await answer.piece()) is not None:
                size += len(piece)
                if size > MAX_ANSWER:
                    raise ModelBadOutput(f"the structured answer is longer than {MAX_ANSWER} characters")
        done, _ = answer.finished(self.name, request.turns)
        yield done

    def _fields(self, request: ModelRequest, shape: type[BaseModel] | None = None) -> Collection[str]:
        """The fields that may be left out. What a tool has answered can't be sent without the tools."""
        has = {
            **self._own_fields(request, shape),
            "temperature": self._temperature is not None,
            "tool_choice": request.tools and not request.may_call,
            "system": any(one.text.strip() for one in request.system),
            "tools": request.tools and all(one.name == WRITTEN for one in called(request)),
        }
        return {field for field, there in has.items() if there}

    def _limit(self) -> Limit:
        return Limit(self._total_timeout_s, self._server.failures, self._server.secret)

    @asynccontextmanager
    async def _ask(
        self,
        limit: Limit,
        request: ModelRequest,
        out: Collection[str],
        shape: type[BaseModel] | None = None,
        *,
        own: int | None = None,
    ) -> AsyncIterator[Answer]:
        """Send one request without the fields that are `out`.

        The answer is open inside the block and always closed after it.
        `own`: the tokens that the answer's text may take, where `max_tokens` has room for thinking too.
        """
        writing = request.writing or "tools" in out
        if writing:
            request = in_writing(request)
        async with contextlib.AsyncExitStack() as stack:
            async with limit.wait():
                response = await stack.enter_async_context(self._send(request, shape, out))
                # Read as a stream, a web page would be an answer that broke off.
                if response.headers.get("content-type", "").startswith("text/html"):
                    said = self._server.failures.messages.get(ModelNotFound)
                    raise ModelNotFound("the server answers with a web page", user_message=said)
                plain = self._server.is_own and not writing
                hearing = None if plain else Hearing(thinking=self._thinks_first)
                answer = Answer(self._events(response), limit, own, hearing)
            try:
                yield answer
            finally:
                self._thinks_first = hearing is not None and (hearing.thinks_first or self._thinks_first)
                usage, whole = answer.usage
                used(self.name, usage, whole=whole)


# ----------------------------------------------------------------------
# A model that can call no tools writes what is to be done in the chat, and reads what came of it.

HOW_TO_WRITE: Final = (
    f'To have one of these done, write <{WRITTEN}>{{"type": "poll", "quote": "…", …}}</{WRITTEN}> on a line '
    "of its own, with all fields that it needs. You are told what came of it before you go on."
)


def called(request: ModelRequest) -> list[ToolCall]:
    """The calls of the turns so far."""
    return [call for turn in request.turns if isinstance(turn, AssistantTurn) for call in turn.calls]


def in_writing(request: ModelRequest) -> ModelRequest:
    """The request without tools: those that act are described behind the prompt, and calls are text."""
    acts = [tool for tool in request.tools if tool.acts] if request.may_call else []
    told = [
        f"- {tool.name.partition('_')[2]}: {tool.description} Fields: {json.dumps(tool.schema['properties'])}"
        for tool in acts
    ]
    turns = list[Turn]()
    for turn in request.turns:
        if isinstance(turn, UserTurn) and told and not turns:
            text = "\n".join([titles.ACTIONS, HOW_TO_WRITE, *told])
            turns.append(replace(turn, text=f"{turn.text}{titles.SEPARATOR}{text}"))
        elif isinstance(turn, AssistantTurn) and turn.calls:
            written = (
                f"<{WRITTEN}>{json.dumps(one.input, ensure_ascii=False)}</{WRITTEN}>" for one in turn.calls
            )
            turns.append(AssistantTurn("\n".join(filter(str.strip, [turn.text, *written]))))
        elif isinstance(turn, ToolTurn):
            turns.append(UserTurn("\n".join(one.text for one in turn.results)))
        else:
            turns.append(turn)
    return replace(request, turns=tuple(turns), tools=())


# ----------------------------------------------------------------------
# Sends requests with files without holding up the event loop.

_CHUNK: Final = 256 * 1024
_FILES: Final = (("source", "data"), ("image_url", "url"), ("file", "file_data"))
"""The path in a block of either API at which its file is: as base64, or as a URL of it."""


def in_pieces(options: Any) -> None:
    """Have an SDK send a request with files in pieces. `options` are what it prepares before each attempt."""
    if isinstance(options.json_data, Mapping) and (body := body_of(options.json_data)) is not None:
        given = options.headers if isinstance(options.headers, Mapping) else {}
        options.headers = {**given, "Content-Length": str(body.size)}
        options.content, options.json_data = body, None


class Body:
    """The pieces of a body, which can be sent more than once."""

    def __init__(self, pieces: Sequence[bytes | str]) -> None:
        self._pieces = pieces  # the files are text still, without a copy
        self.size = sum(map(len, pieces))

    def seek(self, at: int = 0) -> int:
        """Do nothing. OpenAI's SDK sends a body again only if it can rewind it like a file."""
        return 1

    read = seekable = tell = seek

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            for begin in range(0, len(piece), _CHUNK):
                chunk = piece[begin : begin + _CHUNK]
                yield chunk.encode("ascii") if isinstance(chunk, str) else chunk


def body_of(request: Mapping[str, Any]) -> Body | None:
    """The request as the SDK would write it; None if it has no files."""
    files: dict[str, str] = {}
    messages = [_without(message, files) for message in request.get("messages", ())]
    if not files:
        return None
    rest = json.dumps(
        {**request, "messages": messages}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    pieces: list[bytes | str] = []
    for token, data in files.items():
        before, _, rest = rest.partition(token)
        pieces += [before.encode(), data]
    return Body([*pieces, rest.encode()])


def _without(message: Any, files: dict[str, str]) -> Any:
    """The message with a token for each file, which is unique and stands in their order."""
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        return message
    return {**message, "content": [_block(block, files) for block in message["content"]]}


def _block(block: Any, files: dict[str, str]) -> Any:
    for field, key in _FILES if isinstance(block, Mapping) else ():
        source = block.get(field)
        data = source.get(key) if isinstance(source, Mapping) else None
        if isinstance(source, Mapping) and isinstance(data, str) and data:
            token = uuid4().hex
            files[token] = data
            return {**block, field: {**source, key: token}}
    return block
