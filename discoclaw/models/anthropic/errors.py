"""What the errors of Anthropic's SDK mean. No class of the SDK leaves this package."""

from collections.abc import Mapping
from typing import Final

import anthropic
from anthropic import APIConnectionError, APIStatusError

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelTimeout,
    ModelUnreachable,
)
from discoclaw.models.failing import Failures, Told

# `models/failing` knows what an error with a status means.
SDK_ERRORS: Mapping[type[BaseException], type[ModelError]] = {
    anthropic.HTTPNotImplementedError: ModelUnreachable,
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


def _told(error: APIStatusError) -> Told:
    return Told(
        str(error.api_message or error.message), (error.error_code, error.request_id), str(error.type or "")
    )


FAILURES: Final = Failures(
    APIStatusError, APIConnectionError, _told, SDK_ERRORS, GENERIC_ERRORS, messages=USER_MESSAGES
)
