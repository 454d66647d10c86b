"""A loopback server of OpenAI's chat completions in five dialects: `POST /v1/chat/completions`, good and bad.

    async with ChatServer("ollama") as server:
        server.script(text("Hel", "lo"), failure(400, "no such model"))
        provider = OpenAIProvider(base_url=server.base_url)

The dialects are OpenAI's own, Ollama's, llama.cpp's (and LM Studio's), vLLM's and Gemini's (and
OpenRouter's), in shape as their documentation has them: where thoughts stand, how calls come, when tokens are
counted, what ends a stream, and how an error is worded. Each request takes the next scripted behaviour; when
none is left, `server.default(request)` gives one. `server.requests` keeps what arrived, in order. Messages
that break the API's rules are refused. The same answer is sent whole to a request that asks for no stream.

Knows nothing about DiscoClaw.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from aiohttp import web

from tests.servers.scripted import Held, Raw, ScriptedServer, abort, headers_of, named

Json = dict[str, Any]
Dialect = Literal["openai", "ollama", "llamacpp", "vllm", "gemini"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


STOPS = {"max_tokens": "length", "end_turn": "stop", "tool_use": "tool_calls"}
"""The API's names of reasons that the Messages API has too."""


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower-case."""

    body: Json
    headers: Mapping[str, str]
    path: str

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        return text_of([one for one in self.body["messages"] if one["role"] == "user"][-1])

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n\n".join(text_of(one) for one in self.body["messages"] if one["role"] == "system")

    @property
    def schema(self) -> Json | None:
        """The JSON schema that the answer has to follow."""
        wanted = self.body.get("response_format")
        return wanted["json_schema"]["schema"] if wanted else None

    @property
    def room(self) -> int:
        """The tokens that the answer may take."""
        return int(self.body.get("max_tokens") or self.body["max_completion_tokens"])

    @property
    def tools(self) -> Json:
        """The schema of each tool that is offered, by name."""
        offered = (tool["function"] for tool in self.body.get("tools", ()))
        return {tool["name"]: tool["parameters"] for tool in offered}

    @property
    def may_call(self) -> bool:
        """Whether the model may call tools."""
        return bool(self.tools) and self.body.get("tool_choice") != "none"

    @property
    def files(self) -> list[str]:
        """What the first message of a person has beside text: "image" or "document"."""
        [first, *_] = (one["content"] for one in self.body["messages"] if one["role"] == "user")
        kinds = {"image_url": "image", "file": "document"}
        parts = first if isinstance(first, list) else ()
        return [kinds[part["type"]] for part in parts if part["type"] != "text"]

    @property
    def talk(self) -> list[tuple[Any, ...]]:
        """The messages but the system prompt: who said what, and the calls and their results."""
        found: list[tuple[Any, ...]] = []
        for one in self.body["messages"]:
            if one["role"] == "tool":
                found.append(("result", one["tool_call_id"], text_of(one).removeprefix("Error: ")))
            elif one["role"] != "system":
                if said := text_of(one):
                    found.append((one["role"], said))
                for call in one.get("tool_calls", ()):
                    function = call["function"]
                    found.append(("call", call["id"], function["name"], json.loads(function["arguments"])))
        return found


def text_of(message: Json) -> str:
    """The text of a message."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@dataclass(frozen=True)
class Answer:
    """A completion, streamed or whole as the request wants; `ending` tells how a stream goes wrong."""

    pieces: tuple[str, ...] = ()
    thought: str = ""
    calls: tuple[tuple[str, str, Json], ...] = ()
    refusal: str = ""
    stop_reason: str | None = None
    usage: Json | None = field(default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5})
    delay_s: float = 0.0
    hold: asyncio.Event | None = None
    ending: Literal["complete", "no done", "cut", "ended"] | Json = "complete"
    whole: bool = False


Behaviour = Answer | Raw | Held


def text(*pieces: str, **how: Any) -> Answer:
    """A text answer; `how` is any other field of `Answer`."""
    return Answer(pieces, **how)


def tool_use(*calls: tuple[str, str, Json], said: str = "", thought: str = "", **how: Any) -> Answer:
    """Calls as (id, name, input), after an optional thought and an optional text."""
    return Answer((said,) if said else (), thought, calls, **how)


def json_answer(value: object, **how: Any) -> Answer:
    """An answer whose text is `value` as JSON, in pieces."""
    sent = json.dumps(value)
    return text(*(sent[i : i + 40] for i in range(0, len(sent), 40)), **how)


def refusal(explanation: str, *said: str) -> Answer:
    """The model declines, maybe after some text."""
    return text(*said, refusal=explanation)


def failure(status: int, kind: str = "server_error", message: str = "it failed", **headers: str) -> Raw:
    """An HTTP error with OpenAI's body; `retry_after_ms="1"` becomes the header retry-after-ms."""
    sent = {"content-type": "application/json", "x-request-id": "req_test", **named(headers)}
    return Raw(json.dumps(_error(kind, message)).encode(), status, sent)


def error_event(kind: str, message: str = "it failed", *, after: tuple[str, ...] = ()) -> Answer:
    """A stream that begins well and then brings an error."""
    return text(*after, ending=_error(kind, message))


def cut(*pieces: str) -> Answer:
    """A stream whose connection is reset after these pieces."""
    return text(*pieces, ending="cut")


def ended(*pieces: str) -> Answer:
    """A stream that is closed properly after these pieces, without saying why."""
    return text(*pieces, ending="ended")


def silence() -> Held:
    """Never answers; the request stays open until the client gives up."""
    return Held()


def raw(body: bytes, *, status: int = 200, content_type: str = "text/event-stream") -> Raw:
    """Any bytes as the answer's body."""
    return Raw(body, status, {"content-type": content_type})


def chunks(*deltas: Json, finish: str | None = "stop", done: bool = True) -> Raw:
    """A stream of just these deltas."""
    sent = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish is not None:
        sent.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    lines = "".join(f"data: {json.dumps(one)}\n\n" for one in sent)
    return raw((lines + "data: [DONE]\n\n" * done).encode())


def _error(kind: str, message: str) -> Json:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class ChatServer(ScriptedServer[Received, Behaviour]):
    """The server; an async context manager. See the module's docstring."""

    paths = ("/v1/chat/completions",)

    def __init__(self, dialect: Dialect = "openai") -> None:
        super().__init__()
        self.dialect = dialect
        self.default: Callable[[Received], Behaviour] = lambda _: text("ok")
        self.connections: set[int] = set()
        """The client's port of each TCP connection that brought a request."""
        self.left = asyncio.Event()
        """Set once a client has gone away before its answer was complete."""
        self._ids = itertools.count(1)

    @property
    def base_url(self) -> str:
        """Its address, as the API's clients take it."""
        return f"{self.url}/v1"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        received = Received(await request.json(), headers_of(request), request.path)
        self.connections.add(request.get_extra_info("peername")[1])
        await self._record(received)
        if (why := fault(received.body)) is not None:
            return failure(400, "invalid_request_error", why).response
        behaviour = self._next() or self.default(received)
        try:
            match behaviour:
                case Raw():
                    return behaviour.response
                case Held():
                    await behaviour.wait()
                    raise AssertionError("nobody sets that event")
                case Answer() if received.body.get("stream") and not behaviour.whole:
                    return await self._stream(behaviour, request, received)
                case Answer():
                    return web.json_response(self._completion(behaviour))
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise

    async def _stream(self, answer: Answer, request: web.Request, received: Received) -> web.StreamResponse:
        kind = "text/event-stream" + ("; charset=utf-8" if self.dialect == "vllm" else "")
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        if self.dialect == "gemini":
            await response.write(b": OPENROUTER PROCESSING\n\n")
        told = 0
        for chunk in self._chunks(answer, received):
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            if any(choice["delta"].get("content") for choice in chunk.get("choices", ())):
                told += 1
                if told == 1 and answer.hold:
                    await answer.hold.wait()
                if answer.delay_s:
                    await asyncio.sleep(answer.delay_s)
        if answer.ending == "complete":
            await response.write(b"data: [DONE]\n\n")
        if answer.ending == "cut":
            # Waits for what was written to be on its way, then drops the connection without an end.
            await asyncio.sleep(0.01)
            abort(request)
        return response

    def _chunks(self, answer: Answer, received: Received) -> Iterator[Json]:
        """The chunks of an answer as the dialect has them."""
        head = {"id": f"chatcmpl-{next(self._ids)}", "object": "chat.completion.chunk", "model": "m"}
        usage = answer.usage if (received.body.get("stream_options") or {}).get("include_usage") else None
        # Gemini counts in each chunk, the others once, at the end.
        each = {"usage": usage} if usage and self.dialect == "gemini" else {}

        def chunk(delta: Json, finish: str | None = None) -> Json:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **each}

        if self.dialect in ("openai", "llamacpp", "vllm"):
            yield chunk({"role": "assistant", "content": None if self.dialect == "llamacpp" else ""})
        if answer.thought:
            key = "reasoning" if self.dialect in ("ollama", "gemini") else "reasoning_content"
            yield chunk({key: answer.thought})
        for piece in answer.pieces:
            yield chunk({"role": "assistant", "content": piece})
        yield from (chunk({"tool_calls": calls}) for calls in self._calls(answer))
        if answer.refusal:
            yield chunk({"refusal": answer.refusal})
        if answer.ending in ("cut", "ended"):
            return
        if isinstance(answer.ending, dict):
            yield answer.ending
            return
        yield chunk({}, self._finish(answer))
        if usage and self.dialect != "gemini":
            yield {**head, "choices": [], "usage": usage}

    def _finish(self, answer: Answer) -> str:
        if answer.stop_reason is not None:
            return STOPS.get(answer.stop_reason, answer.stop_reason)
        # Ollama and Gemini have said "stop" after calls.
        return "tool_calls" if answer.calls and self.dialect not in ("ollama", "gemini") else "stop"

    def _calls(self, answer: Answer) -> Iterator[list[Json]]:
        """The calls of the deltas: in pieces by index, whole, or all in one delta."""
        whole = []
        for at, (call_id, name, given) in enumerate(answer.calls):
            sent = json.dumps(given)
            match self.dialect:
                case "openai" | "llamacpp" | "vllm":
                    begin = {"name": name, "arguments": ""}
                    yield [{"index": at, "id": call_id, "type": "function", "function": begin}]
                    for i in range(0, len(sent), 7):
                        yield [{"index": at, "function": {"arguments": sent[i : i + 7]}}]
                case "ollama":  # each whole, and all with the same index
                    function = {"name": name, "arguments": sent}
                    yield [{"index": 0, "id": call_id, "type": "function", "function": function}]
                case "gemini":
                    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": sent}}
                    whole.append({**call, "extra_content": {"google": {"thought_signature": f"sig-{at}"}}})
        if whole:
            yield whole

    def _completion(self, answer: Answer) -> Json:
        message: Json = {"role": "assistant", "content": "".join(answer.pieces) or None}
        for call_id, name, given in answer.calls:
            function = {"name": name, "arguments": json.dumps(given)}
            call = {"id": call_id, "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(call)
        if answer.refusal:
            message["refusal"] = answer.refusal
        choice = {"index": 0, "message": message, "finish_reason": self._finish(answer)}
        return {"object": "chat.completion", "model": "m", "choices": [choice], "usage": answer.usage}


class ListingServer(ChatServer):
    """The same, which also lists its models with the time at which each was made, and may want a `key`."""

    def __init__(self, dialect: Dialect = "ollama", models: Mapping[str, int] | None = None) -> None:
        super().__init__(dialect)
        self.models = dict(models or {})
        self.key: str | None = None
        self.listed = 0
        """How often somebody asked for the list."""

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_get("/v1/models", self._list)

    async def _list(self, request: web.Request) -> web.Response:
        self.listed += 1
        if self._refuses(request):
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        listed = [{"id": name, "created": made, "object": "model"} for name, made in self.models.items()]
        return web.json_response({"object": "list", "data": listed})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._refuses(request):
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        return await super()._handle(request)

    def _refuses(self, request: web.Request) -> bool:
        return self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}"


def fault(body: Json) -> str | None:
    """Why a request is refused with status 400, in the API's words; None when it is in order."""
    waiting: list[str] = []
    before = ""
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "system" and at:
            return "system message must be at the beginning"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return f"tool_call_ids did not have response messages: {', '.join(waiting)}"
        elif role == before != "tool":
            return "conversation roles must alternate"
        if not text_of(message).strip() and not message.get("tool_calls"):
            return f"messages[{at}]: content is empty"
        for call in message.get("tool_calls", ()):
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return "arguments must be a JSON object"
            waiting.append(call["id"])
        before = role
    return None if body["messages"] else "messages: at least one is required"
