"""Translates errors of the SDK into `ModelError`s: one table per source. No vendor class leaves this package.

A call can raise three kinds of errors:

- The SDK's own classes: one per HTTP status, and a generic one for an `error` event in a stream that began
  with status 200. There only the body's `error.type` says what happened.
- httpx2's errors. While a request is sent, the SDK wraps them (in `APIConnectionError`, with the original as
  the cause). While a stream is read, they come through unwrapped.
- Ordinary exceptions while the SDK reads a stream. It doesn't validate what a server sends, so a malformed
  event surfaces as whatever its accumulator trips over.

Knows nothing about requests or answers.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import anthropic
import httpx2
from anthropic import APIConnectionError, APIStatusError

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
)
from discoclaw.core.redact import redact
from discoclaw.core.text import clip, collapse

SDK_ERRORS: Mapping[type[BaseException], type[ModelError]] = {
    anthropic.BadRequestError: ModelBadRequest,
    anthropic.AuthenticationError: ModelKeyRejected,
    anthropic.PaymentRequiredError: ModelRateLimited,
    anthropic.PermissionDeniedError: ModelKeyRejected,
    anthropic.NotFoundError: ModelNotFound,
    anthropic.RequestTimeoutError: ModelTimeout,
    anthropic.ConflictError: ModelBadRequest,
    anthropic.PreconditionFailedError: ModelBadRequest,
    anthropic.ContentTooLargeError: ModelTooLong,
    anthropic.UnprocessableEntityError: ModelBadRequest,
    anthropic.RateLimitError: ModelRateLimited,
    anthropic.RequestHeaderFieldsTooLargeError: ModelBadRequest,
    anthropic.ClientClosedRequestError: ModelUnreachable,
    anthropic.HTTPNotImplementedError: ModelUnreachable,
    anthropic.ServiceUnavailableError: ModelOverloaded,
    anthropic.GatewayTimeoutError: ModelTimeout,
    anthropic.OverloadedError: ModelOverloaded,
    anthropic.APITimeoutError: ModelTimeout,
    anthropic.APIConnectionError: ModelUnreachable,
    anthropic.RetryableError: ModelUnreachable,
    anthropic.CredentialsError: ModelKeyRejected,
    anthropic.APIResponseValidationError: ModelBadOutput,
    anthropic.APIWebhookValidationError: ModelBadRequest,
}

# Base classes, raised when the SDK has no class of its own. When a new SDK class lands here, add it above.
GENERIC_ERRORS: Mapping[type[BaseException], type[ModelError]] = {
    anthropic.InternalServerError: ModelUnreachable,
    anthropic.APIStatusError: ModelUnreachable,
    anthropic.APIError: ModelUnreachable,
    anthropic.AnthropicError: ModelBadRequest,
}

HTTP_ERRORS: Mapping[type[BaseException], type[ModelError]] = {
    httpx2.ConnectTimeout: ModelUnreachable,
    httpx2.TimeoutException: ModelTimeout,
    httpx2.UnsupportedProtocol: ModelNotFound,
    httpx2.InvalidURL: ModelNotFound,
    httpx2.HTTPError: ModelUnreachable,
    httpx2.CookieConflict: ModelUnreachable,
    httpx2.StreamError: ModelUnreachable,
    TimeoutError: ModelTimeout,
    OSError: ModelUnreachable,
}

# UnicodeEncodeError means that our request holds half a surrogate pair; all others, that the answer is
# garbage.
GARBLED: Mapping[type[BaseException], type[ModelError]] = {
    UnicodeEncodeError: ModelBadRequest,
    ValueError: ModelBadOutput,
    LookupError: ModelBadOutput,
    AttributeError: ModelBadOutput,
    TypeError: ModelBadOutput,
    RuntimeError: ModelBadOutput,
    AssertionError: ModelBadOutput,
}

# By `error.type` of the body, which is used only where the class says no more than "it failed".
BODY_TYPES: Mapping[str, type[ModelError]] = {
    "invalid_request_error": ModelBadRequest,
    "authentication_error": ModelKeyRejected,
    "billing_error": ModelRateLimited,
    "permission_error": ModelKeyRejected,
    "not_found_error": ModelNotFound,
    "request_too_large": ModelTooLong,
    "rate_limit_error": ModelRateLimited,
    "timeout_error": ModelTimeout,
    "overloaded_error": ModelOverloaded,
    "api_error": ModelUnreachable,
}

# Some rejections share status 400 and differ only in their text: two of Anthropic's, llama.cpp's, Ollama's.
_TOO_LONG = re.compile(
    r"prompt is too long|exceed\w*[\w\s]*context|context (?:length|size|window)|exceeds? the maximum",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"credit balance|billing", re.IGNORECASE)

USER_MESSAGES: Mapping[type[ModelError], str] = {
    ModelKeyRejected: (
        "The model refused my API key, so I can't answer. An admin has to check ANTHROPIC_API_KEY."
    ),
    ModelNotFound: (
        "The server doesn't have the model I'm set up with. "
        "An admin has to check DISCOCLAW_MODEL and ANTHROPIC_BASE_URL."
    ),
}
"""For people: the errors whose way out is a setting of this provider."""

_MAX_SHOWN = 400


def translate(error: BaseException, *, secret: str = "") -> ModelError:
    """The `ModelError` for an error of the SDK. Its text is one line for the log and never holds `secret`."""
    kind = _kind(error)
    translation = kind(_describe(error, secret), user_message=USER_MESSAGES.get(kind))
    if isinstance(error, APIStatusError):
        translation.status = error.status_code
    return translation


@contextmanager
def translated(secret: str = "") -> Iterator[None]:
    """Surrounds every call of the SDK: whatever it raises leaves as a `ModelError`.

    SDK errors are not kept as the cause: a server may echo the key in its message, and a logged traceback
    prints causes. An ordinary exception may be a bug of ours, so it stays as the cause.
    """
    try:
        yield
    except (*GENERIC_ERRORS, *HTTP_ERRORS) as error:
        raise translate(error, secret=secret) from None
    except tuple(GARBLED) as error:
        raise translate(error, secret=secret) from error


def mapped(
    kind: type[BaseException], table: Mapping[type[BaseException], type[ModelError]]
) -> type[ModelError] | None:
    """The entry of the nearest ancestor of `kind` that `table` names."""
    return next((table[ancestor] for ancestor in kind.__mro__ if ancestor in table), None)


def _kind(error: BaseException) -> type[ModelError]:
    if isinstance(error, APIConnectionError) and error.__cause__ is not None:
        cause = mapped(type(error.__cause__), HTTP_ERRORS)
        if cause is not None:
            return cause
    kind = mapped(type(error), SDK_ERRORS)
    if kind is None and isinstance(error, APIStatusError):
        kind = BODY_TYPES.get(str(error.type)) or (
            ModelBadRequest if 400 <= error.status_code < 500 else None
        )
    if kind is ModelBadRequest and isinstance(error, APIStatusError):
        return _rejected(error)
    for table in (GENERIC_ERRORS, HTTP_ERRORS, GARBLED):
        kind = kind or mapped(type(error), table)
    return kind or ModelError


def _rejected(error: APIStatusError) -> type[ModelError]:
    words = f"{error.message} {error.api_message or ''}"
    if _TOO_LONG.search(words):
        return ModelTooLong
    return ModelRateLimited if _NO_CREDIT.search(words) else ModelBadRequest


def _describe(error: BaseException, secret: str) -> str:
    name, words = type(error).__name__, str(error)
    if isinstance(error, APIStatusError):
        facts = (f"HTTP {error.status_code}", error.type, error.error_code, error.request_id)
        name = f"{name} ({', '.join(str(fact) for fact in facts if fact)})"
        words = str(error.api_message or error.message)
    elif isinstance(error, APIConnectionError) and error.__cause__ is not None:
        words = f"{type(error.__cause__).__name__}: {error.__cause__}"
    # Redacted before it is clipped: half a key would no longer be recognised.
    if secret:
        words = words.replace(secret, "[key]")
    words = clip(collapse(redact(words).text), _MAX_SHOWN)
    return f"{name}: {words}" if words else name
