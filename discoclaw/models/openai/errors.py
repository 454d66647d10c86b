"""What the errors of OpenAI's SDK mean, and those of the servers that speak its API.

The SDK has few classes for a status, and servers put what happened into a status, a code or words, each in
its own way. No class of the SDK leaves this package. Knows nothing about requests or answers.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import httpx2
import openai
from openai import APIConnectionError, APIStatusError
from openai._exceptions import SubjectTokenProviderError

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
)
from discoclaw.models.failing import Failures, Told

SDK_ERRORS: Final[Mapping[type[BaseException], type[ModelError]]] = {
    openai.APITimeoutError: ModelTimeout,
    openai.APIConnectionError: ModelUnreachable,
    openai.APIResponseValidationError: ModelBadOutput,
    openai.LengthFinishReasonError: ModelCut,
    openai.ContentFilterFinishReasonError: ModelRefused,
    openai.InvalidWebhookSignatureError: ModelBadRequest,
    openai.OAuthError: ModelKeyRejected,
    SubjectTokenProviderError: ModelKeyRejected,
    openai.WebSocketConnectionClosedError: ModelUnreachable,
    openai.WebSocketQueueFullError: ModelUnreachable,
}

# Base classes, raised when the SDK has no class of its own. When a new SDK class lands here, add it above.
GENERIC_ERRORS: Final[Mapping[type[BaseException], type[ModelError]]] = {
    openai.APIStatusError: ModelUnreachable,
    openai.APIError: ModelUnreachable,
    openai.OpenAIError: ModelBadRequest,
}

STATUSES: Final[Mapping[int, type[ModelError]]] = {
    401: ModelKeyRejected,
    402: ModelRateLimited,
    403: ModelKeyRejected,
    404: ModelNotFound,
    408: ModelTimeout,
    413: ModelTooLong,
    429: ModelRateLimited,
    499: ModelUnreachable,
    503: ModelOverloaded,
    504: ModelTimeout,
    524: ModelTimeout,  # Cloudflare's
    529: ModelOverloaded,
}

# By type or code of an error that came with status 200.
BODY_TYPES: Final[Mapping[str, type[ModelError]]] = {
    "invalid_request_error": ModelBadRequest,
    "BadRequestError": ModelBadRequest,  # vLLM's
    "context_length_exceeded": ModelTooLong,
    "exceed_context_size_error": ModelTooLong,  # llama.cpp's
    "authentication_error": ModelKeyRejected,
    "invalid_api_key": ModelKeyRejected,
    "permission_error": ModelKeyRejected,
    "not_found_error": ModelNotFound,
    "model_not_found": ModelNotFound,
    "rate_limit_error": ModelRateLimited,
    "rate_limit_exceeded": ModelRateLimited,
    "insufficient_quota": ModelRateLimited,
    "timeout": ModelTimeout,
    "overloaded_error": ModelOverloaded,
    "service_unavailable_error": ModelOverloaded,
}

# Rejections whose status says less than their words, or something else.
_WORDS: Final[Mapping[type[ModelError], "re.Pattern[str]"]] = {
    kind: re.compile(words, re.IGNORECASE)
    for kind, words in {
        ModelBadRequest: r"no endpoints found that (?:can |do )?(?:support|handle)",  # OpenRouter's, 404
        ModelRefused: r"content.filter|content management policy|violat\w+ our usage polic|input was flagged",
        ModelKeyRejected: r"api.key not valid|api_key_invalid",  # Gemini's, 400
        ModelTooLong: r"request too large",  # OpenAI's and Groq's, 429: it never fits into a minute's tokens
        ModelNotFound: r"not a valid model|\bmodel\b.{0,99} (?:not found|not exist)|no models? loaded",
    }.items()
}


def sent(error: Any, response: httpx2.Response) -> APIStatusError:
    """The SDK's error for one that a server sent in an answer with status 200; its code may be a status."""
    code = str(error.get("code") if isinstance(error, dict) else "")
    status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else response.status_code
    meant = httpx2.Response(status, request=response.request, headers=response.headers)
    return APIStatusError(str(error), response=meant, body=error)


def _rejected(words: str) -> type[ModelError] | None:
    return next((kind for kind, said in _WORDS.items() if said.search(words)), None)


def _told(error: APIStatusError) -> Told:
    """What the server said. Gemini's is in a list; OpenRouter has a second server's words in `metadata`."""
    body: Any = error.body
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = body[0].get("error")
    body = body if isinstance(body, dict) else {"message": body}
    behind = body.get("metadata")
    raw = behind.get("raw") if isinstance(behind, dict) else None
    said = " ".join(one for one in (body.get("message"), raw) if isinstance(one, str)) or error.message
    code, kind = str(body.get("code") or ""), str(body.get("type") or "")
    return (
        Told(said, (kind, error.request_id), code)
        if code in BODY_TYPES
        else Told(said, (code, error.request_id), kind)
    )


FAILURES: Final = Failures(
    APIStatusError,
    APIConnectionError,
    _told,
    SDK_ERRORS,
    GENERIC_ERRORS,
    BODY_TYPES,
    STATUSES,
    _rejected,
)
