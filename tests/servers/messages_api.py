"""A loopback server of the Messages API, as `POST /v1/messages` behaves: streaming and not, good and bad.

    async with MessagesServer() as server:
        server.script(text("Hel", "lo"), failure(429, "rate_limit_error", retry_after_ms="1"))
        provider = AnthropicProvider(base_url=server.base_url)
        ...
        assert server.requests[0].body["model"] == "claude-haiku-5-5"

Each request takes the next scripted behaviour; when none is left, `server.default(request)` gives one (it
answers "ok" unless the test sets another). `server.requests` keeps what arrived, in order. `GET /v1/models`
lists `server.models`, or does what a `Raw` says; with `server.key` set, both refuse any other. A behaviour is
made by one of the functions below: text, tool_use, json_answer, refusal, failure, error_event, cut, ended,
silence, raw. Its streaming is as fine and as slow as the test says; the same answer is sent whole to a
request that does not ask for a stream. Its `dialect` is how a server that imitates the API would send it.
Messages that break the API's rules (`fault`) are refused.

Knows nothing about DiscoClaw.
"""

import asyncio
import base64
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Literal

from aiohttp import web
from PIL import Image

from tests.servers.scripted import Held, Raw, ScriptedServer, abort, headers_of, named

Json = dict[str, Any]

MOST_BASE64 = 5 * 2**20
MOST_PIXELS = 8_000
"""A side of a picture."""


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower-case."""

    body: Json
    headers: Mapping[str, str]
    path: str

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)

    @property
    def system(self) -> str:
        """The system prompt as one text."""
        system = self.body.get("system", ())
        return system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)

    @property
    def schema(self) -> Json | None:
        """The JSON schema that the answer has to follow."""
        wanted = self.body.get("output_config", {}).get("format")
        return wanted["schema"] if wanted else None

    @property
    def room(self) -> int:
        """The tokens that the answer may take."""
        return int(self.body["max_tokens"])

    @property
    def tools(self) -> Json:
        """The schema of each tool that is offered, by name."""
        return {tool["name"]: tool["input_schema"] for tool in self.body.get("tools", ())}

    @property
    def may_call(self) -> bool:
        """Whether the model may call tools."""
        return bool(self.tools) and self.body.get("tool_choice") != {"type": "none"}

    @property
    def files(self) -> list[str]:
        """What the first message of a person has beside text: "image" or "document"."""
        return [block["type"] for block in self.body["messages"][0]["content"] if block["type"] != "text"]

    @property
    def talk(self) -> list[tuple[Any, ...]]:
        """The messages but the system prompt: who said what, and the calls and their results."""
        found: list[tuple[Any, ...]] = []
        for message in self.body["messages"]:
            for block in message["content"]:
                match block["type"]:
                    case "text":
                        found.append((message["role"], block["text"]))
                    case "tool_use":
                        found.append(("call", block["id"], block["name"], block["input"]))
                    case "tool_result":
                        found.append(("result", block["tool_use_id"], block["content"]))
        return found


Dialect = Literal[
    "anthropic",
    "no usage",
    "no message_stop",
    "json",
    "no event lines",
    "no types",
    "no block start",
    "index 1",
    "null text",
    "done",
]


@dataclass(frozen=True)
class Answer:
    """A message, streamed or whole as the request wants; `ending` tells how a stream goes wrong."""

    blocks: tuple[Json, ...]
    pieces: tuple[tuple[str, ...], ...]
    stop_reason: str | None = "end_turn"
    stop_details: Json | None = None
    delay_s: float = 0.0
    hold: asyncio.Event | None = None
    usage: Json = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})
    ending: Literal["complete", "cut", "ended"] | Json = "complete"
    dialect: Dialect = "anthropic"


Behaviour = Answer | Raw | Held


def text(*pieces: str, **how: Any) -> Answer:
    """A text answer; `how` is any other field of `Answer`, such as stop_reason or dialect."""
    return Answer(({"type": "text", "text": ""},), (pieces,), **how)


def tool_use(*calls: tuple[str, str, Json], said: str = "", thought: str = "", **how: Any) -> Answer:
    """Calls as (id, name, input), after an optional signed thought and an optional text."""
    blocks: list[Json] = []
    pieces: list[tuple[str, ...]] = []
    if thought:
        blocks.append({"type": "thinking", "thinking": "", "signature": ""})
        pieces.append((thought,))
    if said:
        blocks.append({"type": "text", "text": ""})
        pieces.append((said,))
    for call_id, name, given in calls:
        sent = json.dumps(given)
        blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": {}})
        pieces.append(_in_pieces(sent))
    return Answer(tuple(blocks), tuple(pieces), **{"stop_reason": "tool_use", **how})


def json_answer(value: object, **how: Any) -> Answer:
    """An answer whose text is `value` as JSON, in pieces."""
    return text(*_in_pieces(json.dumps(value)), **how)


def _in_pieces(sent: str) -> tuple[str, ...]:
    """A text in at most four pieces, cut wherever that may be: each costs the reader as much as ten lines."""
    size = max(7, -(-len(sent) // 4))
    return tuple(sent[at : at + size] for at in range(0, len(sent), size))


def refusal(explanation: str = "", *said: str) -> Answer:
    """The model declines, maybe after some text."""
    details = {"type": "refusal", "category": None, "explanation": explanation or None}
    return text(*said, stop_reason="refusal", stop_details=details)


def failure(status: int, kind: str = "api_error", message: str = "it failed", **headers: str) -> Raw:
    """An HTTP error with Anthropic's error body; `retry_after_ms="1"` becomes the header retry-after-ms."""
    sent = {"content-type": "application/json", "request-id": "req_test", **named(headers)}
    return Raw(json.dumps(_error(kind, message)).encode(), status, sent)


def error_event(kind: str, message: str = "it failed", *, after: Sequence[str] = ()) -> Answer:
    """A stream that begins well and then brings an `error` event."""
    return text(*after, ending=_error(kind, message))


def cut(*pieces: str) -> Answer:
    """A stream whose connection is reset after these pieces."""
    return text(*pieces, ending="cut")


def ended(*pieces: str) -> Answer:
    """A stream that is closed properly after these pieces, without `message_stop`."""
    return text(*pieces, ending="ended")


def silence() -> Held:
    """Never answers; the request stays open until the client gives up."""
    return Held()


def raw(body: bytes, *, status: int = 200, content_type: str = "text/event-stream") -> Raw:
    """Any bytes as the answer's body."""
    return Raw(body, status, {"content-type": content_type})


def refusing(
    wordings: Mapping[str, Raw], then: Callable[[Received], Behaviour]
) -> Callable[[Received], Behaviour]:
    """A server that refuses each of these fields in its own words, the first first, as gateways do.

    `system` stands for a system prompt in blocks.
    """

    def answer(received: Received) -> Behaviour:
        has = {
            "cache_control": '"cache_control"' in json.dumps(received.body),
            "system": isinstance(received.body.get("system"), list),
        }
        refused = [raw for field, raw in wordings.items() if has.get(field, field in received.body)]
        return refused[0] if refused else then(received)

    return answer


def _error(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_test"}


class MessagesServer(ScriptedServer[Received, Behaviour]):
    """The server; an async context manager. See the module's docstring.

    It writes each event by itself, or `together` all that have no pause between them: its client has less to
    do then.
    """

    paths = ("/v1/messages",)

    def __init__(
        self, default: Callable[[Received], Behaviour] | None = None, *, together: bool = False
    ) -> None:
        super().__init__()
        self.together = together
        self.default = default or (lambda _: text("ok"))
        self.models: Sequence[str] | Raw = ()
        self.key: str | None = None
        self.listing: Held | None = None
        """What the list of models waits for."""
        self.connections: set[int] = set()
        """The client's port of each TCP connection that brought a request."""
        self.left = asyncio.Event()
        """Set once a client has gone away before its answer was complete."""
        self.served: list[Json] = []
        """The usage of each message that began to be answered, as the server counts it."""
        self._ids = itertools.count(1)

    @property
    def base_url(self) -> str:
        """Its address, under the name that the API's clients give it."""
        return self.url

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_get("/v1/models", self._list)

    async def _list(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return failure(401, "authentication_error").response
        if self.listing is not None:
            await self.listing.wait()
        if isinstance(self.models, Raw):
            return self.models.response
        # Ollama lists none as null
        listed = [{"id": name, "object": "model"} for name in self.models] or None
        return web.json_response({"object": "list", "data": listed})

    def _knows(self, request: web.Request) -> bool:
        return self.key is None or request.headers.get("Authorization") == f"Bearer {self.key}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if not self._knows(request):
            return failure(401, "authentication_error").response
        received = Received(await request.json(), headers_of(request), request.path)
        self.connections.add(request.get_extra_info("peername")[1])
        await self._record(received)
        if (why := fault(received.body)) is not None:
            return web.json_response(_error("invalid_request_error", why), status=400)
        behaviour = self._next() or self.default(received)
        try:
            match behaviour:
                case Raw():
                    return behaviour.response
                case Held():
                    await behaviour.wait()
                    raise AssertionError("nobody sets that event")
                case Answer() if received.body.get("stream") and behaviour.dialect != "json":
                    return await self._stream(behaviour, request, received)
                case Answer():
                    return web.json_response(self._message(behaviour, received, whole=True))
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise

    async def _stream(self, answer: Answer, request: web.Request, received: Received) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "request-id": "req_test"})
        await response.prepare(request)
        told, ready = 0, b""
        for name, data in _spoken_as(answer.dialect, self._events(answer, received)):
            begin = "" if answer.dialect == "no event lines" else f"event: {name}\n"
            ready += f"{begin}data: {json.dumps(data)}\n\n".encode()
            told += name == "content_block_delta"
            pauses = name == "content_block_delta" and (answer.delay_s or (told == 1 and answer.hold))
            if pauses or not self.together:
                await response.write(ready)
                ready = b""
            if pauses:
                if told == 1 and answer.hold:
                    await answer.hold.wait()
                await asyncio.sleep(answer.delay_s)
        if ready := ready + (b"data: [DONE]\n\n" if answer.dialect == "done" else b""):
            await response.write(ready)
        if answer.ending == "cut":
            # Waits for what was written to be on its way, then drops the connection without an end.
            await asyncio.sleep(0.01)
            abort(request)
        return response

    def _events(self, answer: Answer, received: Received) -> Iterator[tuple[str, Json]]:
        yield (
            "message_start",
            {"type": "message_start", "message": self._message(answer, received, whole=False)},
        )
        yield "ping", {"type": "ping"}
        for index, (block, pieces) in enumerate(zip(answer.blocks, answer.pieces, strict=True)):
            yield (
                "content_block_start",
                {"type": "content_block_start", "index": index, "content_block": block},
            )
            for delta in _deltas(block, pieces):
                yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            if answer.ending in ("cut", "ended"):
                return
            if isinstance(answer.ending, dict):
                yield "error", answer.ending
                return
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        delta = {
            "stop_reason": answer.stop_reason,
            "stop_sequence": None,
            "stop_details": answer.stop_details,
        }
        usage = {"output_tokens": answer.usage.get("output_tokens", 0)}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": usage}
        yield "message_stop", {"type": "message_stop"}

    def _message(self, answer: Answer, received: Received, *, whole: bool) -> Json:
        self.served.append(answer.usage)
        blocks = [_filled(*pair) for pair in zip(answer.blocks, answer.pieces, strict=True)] if whole else []
        return {
            "id": f"msg_{next(self._ids)}",
            "type": "message",
            "role": "assistant",
            "model": received.body.get("model"),
            "content": blocks,
            "stop_reason": answer.stop_reason if whole else None,
            "stop_sequence": None,
            "usage": answer.usage,
        }


def _spoken_as(dialect: Dialect, events: Iterator[tuple[str, Json]]) -> Iterator[tuple[str, Json]]:
    """The events as a server sends them that imitates the API."""
    for name, event in events:
        match dialect, name:
            case "no usage", _:
                event.pop("usage", None)
                event.get("message", {}).pop("usage", None)
            case ("no message_stop", "message_stop") | ("no block start", "content_block_start"):
                continue
            case "done", "message_stop" | "message_start":
                continue
            case "no types", _:
                del event["type"]
            case "index 1", _ if "index" in event:
                event["index"] += 1
            case "null text", "content_block_start" if "text" in event["content_block"]:
                event["content_block"] = {**event["content_block"], "text": None}
            case "null text", "content_block_stop":
                delta = {"type": "text_delta", "text": None}
                yield (
                    "content_block_delta",
                    {"type": "content_block_delta", "index": event["index"], "delta": delta},
                )
        yield name, event


def _deltas(block: Json, pieces: Sequence[str]) -> Iterator[Json]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in pieces)
        case "tool_use":
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces)
            yield {"type": "signature_delta", "signature": "c2lnbmVk"}


def _filled(block: Json, pieces: Sequence[str]) -> Json:
    whole = "".join(pieces)
    match block["type"]:
        case "text":
            return {**block, "text": whole}
        case "tool_use":
            return {**block, "input": json.loads(whole)}
        case _:
            return {**block, "thinking": whole, "signature": "c2lnbmVk"}


# What the API, and the strictest servers that speak it, demand of a request's messages. The API itself unites
# neighbours of one role; servers behind a chat template refuse them, and so do we.


def fault(body: Json) -> str | None:
    """Why a request is refused with status 400, in the API's words; None when it is in order."""
    messages = body["messages"]
    uses = any(block["type"] in ("tool_use", "tool_result") for one in messages for block in blocks(one))
    if uses and not body.get("tools"):
        return "Requests which include `tool_use` or `tool_result` blocks must define tools"
    if not messages or messages[0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    for number, one in enumerate(messages):
        before = messages[number - 1] if number else None
        why = _roles(one, before) or _contents(one) or _pairs(one, before)
        if why is not None:
            return f"messages.{number}: {why}"
    if _called(messages[-1]):
        return f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks"
    return None


def blocks(message: Json) -> list[Json]:
    """The content blocks of a message; a plain text is one block."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _roles(message: Json, before: Json | None) -> str | None:
    if message["role"] not in ("user", "assistant"):
        return f"unexpected role {message['role']!r}"
    if before is not None and before["role"] == message["role"]:
        return 'roles must alternate between "user" and "assistant"'
    return None


def _contents(message: Json) -> str | None:
    texts = [block["text"] for block in blocks(message) if block["type"] == "text"]
    if not blocks(message) or not all(text.strip() for text in texts):
        return "text content blocks must be non-empty"
    faults = (_media(block) for block in blocks(message) if block["type"] in ("image", "document"))
    return next(filter(None, faults), None)


def _media(block: Json) -> str | None:
    """Pictures must be what their type says, and not too large; the only other documents are PDF files."""
    source = block["source"]
    data = base64.b64decode(source["data"], validate=True)
    if block["type"] == "document":
        is_pdf = source["media_type"] == "application/pdf" and data.startswith(b"%PDF-")
        return None if is_pdf else "document: the data isn't a PDF"
    if len(source["data"]) > MOST_BASE64:
        return f"image exceeds 5 MB maximum: {len(source['data'])} bytes > {MOST_BASE64} bytes"
    with Image.open(BytesIO(data)) as picture:
        if picture.get_format_mimetype() != source["media_type"]:
            return f"image: the data is no {source['media_type']}"
        return None if max(picture.size) <= MOST_PIXELS else "image: dimensions exceed 8000 pixels"


def _pairs(message: Json, before: Json | None) -> str | None:
    """Every call of the message before is answered here, once, and first; nothing else is."""
    called = _called(before) if before is not None else []
    answered = [block["tool_use_id"] for block in blocks(message) if block["type"] == "tool_result"]
    if sorted(called) != sorted(answered):
        return f"`tool_use` ids {called} and `tool_result` ids {answered} of two messages do not match"
    if any(block["type"] != "tool_result" for block in blocks(message)[: len(answered)]):
        return "`tool_result` blocks must come first"
    return None


def _called(message: Json) -> list[str]:
    return [block["id"] for block in blocks(message) if block["type"] == "tool_use"]
