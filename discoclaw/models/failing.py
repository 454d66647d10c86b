"""Turns what an SDK or a server fails with into `ModelError`s. No vendor's class leaves its adapter.

A call can raise three kinds of errors:

- The SDK's own classes: some for an HTTP status, and a generic one for an error in a stream that began with
  status 200. There only the body says what happened. Each adapter has its tables of these (`Failures`).
- httpx2's errors. While a request is sent, the SDKs wrap them (in `APIConnectionError`, with the original as
  the cause). While a stream is read, they come through unwrapped.
- Ordinary exceptions while a stream is read: a malformed event surfaces as whatever trips over it.

Knows nothing about requests or answers, and no SDK.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import httpx2

from discoclaw.core import errors
from discoclaw.core.errors import ModelBadOutput, ModelBadRequest, ModelError, ModelTooLong, ModelUnreachable
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
