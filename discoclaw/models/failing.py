"""Turns what an SDK or a server fails with into `ModelError`s. No vendor's class leaves its adapter.

A call can raise three kinds of errors:

- The SDK's own classes: some for an HTTP status, and a generic one for an error in a stream that began with
  status 200. There only the body says what happened. Each adapter has its tables of these (`Failures`).
- httpx2's errors. While a request is sent, the SDKs wrap them (in `APIConnectionError`, with the original as
  the cause). While a stream is read, they come through unwrapped.
- Ordinary exceptions while a stream is read: a malformed event surfaces as whatever trips over it.

Knows nothing about requests or answers, and no SDK.
"""

import logging
import re
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeAlias

import httpx2

from discoclaw.core import errors
from discoclaw.core.errors import ModelBadOutput, ModelBadRequest, ModelError, ModelTooLong, ModelUnreachable
from discoclaw.core.health import Finding
from discoclaw.core.message import Encoded
from discoclaw.core.model import Finished, ModelRequest, StreamEvent, Unseen, UserTurn, without
from discoclaw.core.redact import redact
from discoclaw.core.text import clip, collapse

Table: TypeAlias = Mapping[type[BaseException], type[ModelError]]

HTTP_ERRORS: Final[Table] = {
    httpx2.ConnectTimeout: ModelUnreachable,
    httpx2.TimeoutException: errors.ModelTimeout,
    httpx2.UnsupportedProtocol: errors.ModelNotFound,
    httpx2.InvalidURL: errors.ModelNotFound,
    httpx2.HTTPError: ModelUnreachable,
    httpx2.CookieConflict: ModelUnreachable,
    httpx2.StreamError: ModelUnreachable,
    TimeoutError: errors.ModelTimeout,
    OSError: ModelUnreachable,
}

# UnicodeEncodeError means that our request holds half a surrogate pair; all others, that the answer is
# garbage.
GARBLED: Final[Table] = {
    UnicodeEncodeError: ModelBadRequest,
    ValueError: ModelBadOutput,
    LookupError: ModelBadOutput,
    AttributeError: ModelBadOutput,
    TypeError: ModelBadOutput,
    RuntimeError: ModelBadOutput,
    AssertionError: ModelBadOutput,
}

# By status, or by type or code in the body, where an SDK has no class that says more. 524 is Cloudflare's.
_MEANT: Final[Mapping[type[ModelError], tuple[int | str, ...]]] = {
    ModelBadRequest: (400, 409, 412, 422, 431, "invalid_request_error", "BadRequestError"),
    ModelTooLong: (413, "request_too_large", "context_length_exceeded", "exceed_context_size_error"),
    errors.ModelKeyRejected: (401, 403, "authentication_error", "invalid_api_key", "permission_error"),
    errors.ModelNotFound: (404, "not_found_error", "model_not_found"),
    errors.ModelRateLimited: (
        402,
        429,
        "billing_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "insufficient_quota",
    ),
    errors.ModelTimeout: (408, 504, 524, "timeout", "timeout_error"),
    errors.ModelOverloaded: (503, 529, "overloaded_error", "service_unavailable_error"),
    ModelUnreachable: (499, "api_error"),
}
BY_MARK: Final = {mark: kind for kind, marks in _MEANT.items() for mark in marks}

# Some rejections share status 400 and differ only in their text: Anthropic's, OpenAI's, vLLM's, llama.cpp's,
# Ollama's.
_TOO_LONG: Final = re.compile(
    r"prompt is too long|exceed\w*[\w\s]*context|context[ _](?:length|size|window)|exceeds? the maximum",
    re.IGNORECASE,
)
_NO_CREDIT: Final = re.compile(r"credit balance|billing", re.IGNORECASE)
_MAX_SHOWN: Final = 400


class Told(NamedTuple):
    """A server's message with an error status: its `words`, and further `facts` for the log."""

    words: str
    facts: tuple[object, ...] = ()
    type: str = ""


@dataclass(frozen=True, slots=True)
class Failures:
    """The meanings of the errors of one SDK.

    `status_error` and `connection_error` are its classes for an error status and for no connection. `told`
    reads the former. `kinds` has an entry for each class that says more than "it failed", and `generic` the
    others. `rejected` is asked first about a status of 4xx, and returns None if it knows no better.
    `messages` are for people.
    """

    status_error: type[Any]
    connection_error: type[BaseException]
    told: Callable[[Any], Told]
    kinds: Table
    generic: Table
    rejected: Callable[[str], type[ModelError] | None] = lambda words: None
    messages: Mapping[type[ModelError], str] = field(default_factory=dict)

    def translate(self, error: BaseException, *, secret: str = "") -> ModelError:
        """The `ModelError` for an error of the SDK. Its text is one line and never holds `secret`."""
        kind = self._kind(error)
        translation = kind(self._describe(error, secret), user_message=self.messages.get(kind))
        if isinstance(error, self.status_error):
            translation.status = error.status_code
        return translation

    @contextmanager
    def translated(self, secret: str = "") -> Iterator[None]:
        """Surrounds every call of the SDK: whatever it raises leaves as a `ModelError`.

        SDK errors are not kept as the cause: a server may echo the key in its message, and a logged traceback
        prints causes. An ordinary exception may be a bug of ours, so it stays as the cause.
        """
        try:
            yield
        except (*self.generic, *HTTP_ERRORS) as error:
            raise self.translate(error, secret=secret) from None
        except tuple(GARBLED) as error:
            raise self.translate(error, secret=secret) from error

    def _kind(self, error: BaseException) -> type[ModelError]:
        if isinstance(error, self.connection_error) and error.__cause__ is not None:
            cause = mapped(type(error.__cause__), HTTP_ERRORS)
            if cause is not None:
                return cause
        kind = mapped(type(error), self.kinds)
        if isinstance(error, self.status_error):
            told, status = self.told(error), error.status_code
            words, theirs = f"{error.message} {told.words} {told.type} {told.facts}", 400 <= status < 500
            kind = kind or BY_MARK.get(status) or BY_MARK.get(told.type)
            kind = (self.rejected(words) if theirs else None) or kind or (ModelBadRequest if theirs else None)
            if kind is ModelBadRequest:
                return _rejected(words)
        for table in (self.generic, HTTP_ERRORS, GARBLED):
            kind = kind or mapped(type(error), table)
        return kind or ModelError

    def _describe(self, error: BaseException, secret: str) -> str:
        name, words = type(error).__name__, str(error)
        if isinstance(error, self.status_error):
            words, facts, kind = self.told(error)
            facts = (f"HTTP {error.status_code}", kind, *facts)
            name = f"{name} ({', '.join(str(fact) for fact in facts if fact)})"
        elif isinstance(error, self.connection_error) and error.__cause__ is not None:
            words = f"{type(error.__cause__).__name__}: {error.__cause__}"
        # Redacted before it is clipped: half a key would no longer be recognised.
        for one in filter(None, (secret, repr(secret)[1:-1])):  # as an error quotes a bad header
            words = words.replace(one, "[key]")
        words = clip(collapse(redact(words).text), _MAX_SHOWN)
        return f"{name}: {words}" if words else name


def mapped(kind: type[BaseException], table: Table) -> type[ModelError] | None:
    """The entry of the nearest ancestor of `kind` that `table` names."""
    return next((table[ancestor] for ancestor in kind.__mro__ if ancestor in table), None)


def _rejected(words: str) -> type[ModelError]:
    if _TOO_LONG.search(words):
        return ModelTooLong
    return errors.ModelRateLimited if _NO_CREDIT.search(words) else ModelBadRequest


# ----------------------------------------------------------------------
# Parts of a request that a server refuses: it is asked again without, and that is remembered.

log = logging.getLogger(__name__)

_NO_SCHEMA: Final = "nothing holds a model to the form of its answer, so learning depends on its discipline"
COSTS: Final[Mapping[str, str]] = {
    "cache_control": "nothing is cached there, so each turn pays for the whole prompt",
    "output_config": _NO_SCHEMA,
    "response_format": _NO_SCHEMA,
    "stream_options": "what answers cost there is estimated",
    "reasoning_effort": "the model thinks as long as it does by itself",
    "tool_choice": "a model that has called enough tools may go on calling them",
    "temperature": "the model's own temperature counts",
    "system": "the system prompt is sent as one text, and no part of it is cached",
    "tools": "the bot looks nothing up and saves nothing while it answers",
    "document": "people who attach a PDF file are told that the model can't read it",
    "image": "people who attach a picture are told that the model can't see it",
}
"""The parts of a request that may be left out, in the order in which that is tried, and what it costs."""

NO_TOOLS = "You can't call tools here: you can't look anything up or save anything. Say so if asked to."
"""In the system prompt for a server that refuses tools."""

FORGOTTEN_S: Final = 3600.0
"""After this long a refused file is tried again: it may have been a bad one, or there is a new model."""

_SURE: Final = 2
"""How many doubts are enough. What an error names counts as two, as does a file that is refused. A guess may
be wrong, and a server that fails may only be unwell."""
_NAMES: Final[Mapping[str, str]] = {
    "cache_control": r"cache_control|prompt.cach",
    "output_config": r"output_config|output_format|response_format|json_schema",
    "response_format": r"response_format|json_schema|grammar",
    "stream_options": r"stream_options|include_usage",
    "reasoning_effort": r"reasoning.effort",
    "reasoning_content": r"reasoning",
    # It has two names. One that is too large isn't a reason for the other name.
    "max_tokens": r"max_completion_tokens|(?:unsupported|unknown|unrecognized)\b.{0,30}max_tokens",
    "parallel_calls": r"parallel|(?:single|one|multiple) tool.?calls?",  # they are sent one by one then
    "tool_choice": r"tool_choice",
    "temperature": r"temperature",
    "system": r"\bsystem\b",
    "tools": r"\btools?\b|function.call",
}
"""The fields among them, and what an error that is about one has in it."""
_OTHERS: Final = r"(?i)\bexpected\b|\ballowed\b"
"""Behind these words an error may list the names that the server knows."""


class Refused:
    """Parts that one model at one server was found not to take. `certain`: the server knows every field."""

    def __init__(self, *, certain: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.certain = certain
        self._clock = clock
        self._doubts: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._taken: set[str] = set()
        self._cleared: dict[str, float] = {}

    def out(self, part: str) -> bool:
        """Whether the model takes none of this."""
        is_sure = self._doubts.get(part, 0) >= _SURE
        return is_sure and (part in _NAMES or self._clock() - self._since[part] < FORGOTTEN_S)

    def took(self, parts: Collection[str]) -> None:
        """The model answered a request that had these."""
        self._taken.update(parts)
        for part in parts:
            self._doubts.pop(part, None)

    def doubt(self, part: str, *, sure: bool) -> None:
        """The model answered a request without this, after it had failed with it."""
        self._doubts[part] = self._doubts.get(part, 0) + (_SURE if sure else 1)
        self._since[part] = self._clock()

    def cleared(self, fields: Iterable[str]) -> None:
        """A request failed without these fields too: for a while they aren't suspected again."""
        self._cleared.update(dict.fromkeys(fields, self._clock() + FORGOTTEN_S))

    def named(self, error: ModelError, fields: Collection[str]) -> str:
        """The one of these fields that an error names; "" if it names none."""
        said = re.split(_OTHERS, str(error), maxsplit=1)[0] if not isinstance(error, ModelTooLong) else ""
        return next(
            (one for one in self._suspects(fields) if re.search(_NAMES[one], said, re.IGNORECASE)), ""
        )

    def guess(self, error: ModelError, fields: Collection[str]) -> str:
        """The one of these fields to leave out after a rejection that names none; "" if none is left."""
        rejected = error.status in (400, 422) and not isinstance(error, ModelTooLong)
        suspects = self._suspects(fields) if rejected else ()
        unknown = [one for one in suspects if one not in self._taken]
        return max(unknown, key=lambda one: self._doubts.get(one, 0), default="")

    def findings(self, model: str) -> Iterator[Finding]:
        """Findings about what is left out for this model, and what that costs."""
        for part in filter(self.out, COSTS):
            text = f"the server refuses `{part}` for {model}, so it is left out: {COSTS[part]}"
            yield Finding(part, "warning", text, "use a server or a model that takes it, if that matters")

    def _suspects(self, fields: Collection[str]) -> list[str]:
        now = self._clock()
        return [one for one in _NAMES if one in fields and self._cleared.get(one, now) <= now]


async def asked(
    request: ModelRequest,
    fields: Collection[str],
    ask: Callable[[ModelRequest, Collection[str]], AsyncGenerator[StreamEvent, None]],
    refused: Refused,
) -> AsyncGenerator[StreamEvent, None]:
    """The answer to a request, made without what the server doesn't take. Raises ModelError.

    `fields` are those of the request that may be left out; `ask` is told which ones to leave out.
    """
    media = [one for turn in request.turns if isinstance(turn, UserTurn) for one in turn.media]
    unseen = [Unseen(one, "blind") for one in media if refused.out(one.kind)]
    fields = set(fields) if not refused.certain else set[str]()
    out = {one for one in fields if refused.out(one)}
    named, guessed = list[str](), list[str]()
    last, field = list[Encoded](), ""  # what it was asked again without
    failure: ModelError | None = None
    while True:
        began = False
        try:
            async with aclosing(ask(_without(request, unseen), out)) as events:
                async for event in events:
                    began = True
                    if isinstance(event, Finished):
                        refused.took({*fields, *(one.kind for one in _left(media, unseen))} - out)
                        for one in {*named, field} - {""}:
                            refused.doubt(one, sure=one in named)
                        event = replace(event, unseen=_reasons(unseen, last, failure, refused))
                    yield event
            return
        except ModelError as error:
            too_large = isinstance(error, ModelTooLong)
            # Some servers say with status 500 or 501 that they don't take something.
            theirs = isinstance(error, ModelBadRequest) or (
                error.status in (500, 501) and not refused.certain
            )
            if began or not (theirs or too_large):
                raise
            if field in named and refused.named(error, [field]):  # it says the same without that field
                named.remove(field)
                refused.cleared([field])
            last, left, failure = [], _left(media, unseen), error
            if field := refused.named(error, fields - out):
                named.append(field)
            elif left:
                last = [one for one in left if (one.older if too_large else one.kind == "document")] or left
            elif field := refused.guess(error, fields - out):
                guessed.append(field)
            else:
                refused.cleared(guessed if theirs else ())
                raise
            out |= {field} - {""}
            log.warning("asking again without %s: %s", field or ", ".join(one.label for one in last), error)
            unseen += [Unseen(one, "too large" if too_large else "refused") for one in last]


def _without(request: ModelRequest, unseen: Sequence[Unseen]) -> ModelRequest:
    if not unseen:
        return request
    turns = (without(turn, unseen) if isinstance(turn, UserTurn) else turn for turn in request.turns)
    return replace(request, turns=tuple(turns))


def _left(media: Sequence[Encoded], unseen: Sequence[Unseen]) -> list[Encoded]:
    gone = {one.media.label for one in unseen}
    return [one for one in media if one.label not in gone]


def _reasons(
    unseen: Sequence[Unseen], last: Sequence[Encoded], failure: ModelError | None, refused: Refused
) -> tuple[Unseen, ...]:
    """The files that the model was not given, and why, now that it has answered without."""
    if failure is None or isinstance(failure, ModelTooLong):
        return tuple(unseen)
    if not refused.certain:
        for kind in {one.kind for one in last}:
            refused.doubt(kind, sure=isinstance(failure, ModelBadRequest))
    return tuple(
        replace(one, why="blind") if one.media in last and refused.out(one.media.kind) else one
        for one in unseen
    )
