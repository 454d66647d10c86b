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

from discoclaw.core import errors
from discoclaw.models.failing import BY_MARK, Failures, Told

SDK_ERRORS: Final[Mapping[type[BaseException], type[errors.ModelError]]] = {
    openai.APITimeoutError: errors.ModelTimeout,
    openai.APIConnectionError: errors.ModelUnreachable,
    openai.APIResponseValidationError: errors.ModelBadOutput,
    openai.LengthFinishReasonError: errors.ModelCut,
    openai.ContentFilterFinishReasonError: errors.ModelRefused,
    openai.InvalidWebhookSignatureError: errors.ModelBadRequest,
    openai.OAuthError: errors.ModelKeyRejected,
    SubjectTokenProviderError: errors.ModelKeyRejected,
    openai.WebSocketConnectionClosedError: errors.ModelUnreachable,
    openai.WebSocketQueueFullError: errors.ModelUnreachable,
}

# Base classes, raised when the SDK has no class of its own. When a new SDK class lands here, add it above.
GENERIC_ERRORS: Final[Mapping[type[BaseException], type[errors.ModelError]]] = {
    openai.InternalServerError: errors.ModelUnreachable,
    openai.APIStatusError: errors.ModelUnreachable,
    openai.APIError: errors.ModelUnreachable,
    openai.OpenAIError: errors.ModelBadRequest,
}

# Rejections whose status says less than their words, or something else.
_WORDS: Final[Mapping[type[errors.ModelError], "re.Pattern[str]"]] = {
    kind: re.compile(words, re.IGNORECASE)
    for kind, words in {
        errors.ModelBadRequest: r"no endpoints found that (?:can |do )?(?:support|handle)",  # OpenRouter's
        errors.ModelRefused: r"content.filter|content management policy|our usage polic|input was flagged",
        errors.ModelKeyRejected: r"api.key not valid|api_key_invalid",  # Gemini's, 400
        errors.ModelTooLong: r"request too large",  # OpenAI's, 429: it never fits into a minute
        errors.ModelNotFound: r"not a valid model|\bmodel\b.{0,99} (?:not found|not exist)|no models? loaded",
    }.items()
}


def sent(error: Any, response: httpx2.Response) -> APIStatusError:
    """The SDK's error for one that a server sent in an answer with status 200; its code may be a status."""
    code = str(error.get("code") if isinstance(error, dict) else "")
    status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else response.status_code
    meant = httpx2.Response(status, request=response.request, headers=response.headers)
    return APIStatusError(str(error), response=meant, body=error)


def _rejected(words: str) -> type[errors.ModelError] | None:
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
        if code in BY_MARK
        else Told(said, (code, error.request_id), kind)
    )


FAILURES: Final = Failures(APIStatusError, APIConnectionError, _told, SDK_ERRORS, GENERIC_ERRORS, _rejected)
