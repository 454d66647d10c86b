"""One small question to the configured model, and errors that say what to do about them.

Knows nothing about settings files or terminals.
"""

import re
from typing import Final

from discoclaw.checkup import pasted
from discoclaw.checkup.asked import Asked, Exchange, Listening
from discoclaw.core.errors import (
    ModelBadRequest,
    ModelEmpty,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelTooLong,
    ModelUnreachable,
)
from discoclaw.core.model import ModelRequest, SystemBlock, UserTurn
from discoclaw.core.redact import without_login
from discoclaw.models.config import ModelConfig
from discoclaw.models.providers import open_models

QUESTION: Final = ModelRequest(
    (SystemBlock("You are being tested. Answer with one short sentence."),),
    (UserTurn("Say hello."),),
    max_tokens=64,
)
ANTHROPIC: Final = "https://api.anthropic.com"
_PAGE = re.compile(r"web page|<html|<!doctype html|<body", re.IGNORECASE)


async def ask(config: ModelConfig) -> Exchange:
    """Ask the model that answers people one small question, within the configuration's time.

    Raises SettingsError for what the configuration alone shows to be wrong, and otherwise ModelError, with
    one line each: the thing, the reason, the way out. None of them has the key in it.
    """
    check_key(config)
    models = open_models(config)
    try:
        done = await Listening(models.chat, Asked()).exchange(QUESTION)
    finally:
        await models.close()
    if done.error is not None:
        raise plainly(done.error, config)
    return done


def check_key(config: ModelConfig) -> None:
    """Raise SettingsError for a key that can't be one of those who are asked."""
    if config.provider == "anthropic" and config.key is not None:
        pasted.check_key(config.key, of_anthropic=_is_anthropic(config))


def plainly(
    error: ModelError, config: ModelConfig, model: str = "", variable: str = "DISCOCLAW_MODEL"
) -> ModelError:
    """The same kind of error, with one line for an admin: the thing, the reason, the way out.

    `model` and the `variable` that names it are by default those of the model that answers people.
    """
    where, reason = address_of(config), str(error)
    told = _sentence(error, where, reason, model or config.chat, variable)
    plain = ModelError.__new__(type(error))  # one of these takes more than a text
    ModelError.__init__(plain, told, user_message=error.user_message)
    plain.status = error.status
    return plain


def _sentence(error: ModelError, where: str, reason: str, model: str, variable: str) -> str:
    if _PAGE.search(reason) and (isinstance(error, ModelNotFound | ModelBadRequest) or error.status < 400):
        return f"{where} answers with a web page and not as a model's server; check ANTHROPIC_BASE_URL"
    match error:
        case ModelKeyRejected():
            return f"{where} refuses the key ({reason}); check ANTHROPIC_API_KEY"
        case ModelNotFound() if "/v1" in where:
            return f"{where} has no such page; leave /v1 out of ANTHROPIC_BASE_URL, it is added"
        case ModelNotFound():
            return (
                f"{where} doesn't have the model {model!r}, or isn't a model's server ({reason}); "
                f"check {variable} and ANTHROPIC_BASE_URL"
            )
        case ModelTimeout():
            return f"{where} took too long ({reason}); use a faster model, or raise DISCOCLAW_MODEL_TIMEOUT_S"
        case ModelOverloaded():
            return f"{where} is overloaded ({reason}); try again later"
        case ModelRateLimited():
            return f"{where} has no quota left for this key ({reason}); wait, or add credit to the account"
        case ModelTooLong():
            return f"{where} takes shorter prompts only ({reason}); use a model with a longer context"
        case ModelUnreachable():
            return f"{where} can't be reached ({reason}); check ANTHROPIC_BASE_URL and the network"
        case ModelEmpty():
            return f"{model} at {where} answered without a word; try another model"
        case _:
            way_out = f"check {variable} and ANTHROPIC_BASE_URL"
            return f"{where} doesn't answer as it should ({reason}); {way_out}"


def address_of(config: ModelConfig) -> str:
    """Where the model is, without a password."""
    return without_login(config.base_url or ANTHROPIC)


def _is_anthropic(config: ModelConfig) -> bool:
    return config.base_url is None or config.base_url.rstrip("/") == ANTHROPIC
