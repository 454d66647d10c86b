"""What the errors of Anthropic's SDK mean: one table per source. No class of the SDK leaves this package.

Knows nothing about requests or answers.
"""

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
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
)
from discoclaw.models.failing import Failures, Told

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
    APIStatusError, APIConnectionError, _told, SDK_ERRORS, GENERIC_ERRORS, BODY_TYPES, messages=USER_MESSAGES
)
