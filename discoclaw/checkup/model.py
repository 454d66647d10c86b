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
from discoclaw.core.model import VENDOR, ModelRequest, SystemBlock, UserTurn, split
from discoclaw.core.redact import without_login
from discoclaw.models.config import ModelConfig
from discoclaw.models.providers import PROVIDERS, open_models

QUESTION: Final = ModelRequest(
    (SystemBlock("You are being tested. Answer with one short sentence."),),
    (UserTurn("Say hello."),),
    max_tokens=64,
)
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
    """Raise SettingsError for keys that can't be those of who is asked."""
    for own in used_by(config):
        provider = PROVIDERS[own.provider]
        if provider.key and own.key is not None:
            vendor = provider.title if is_at_vendor(own) else ""
            pasted.check_key(own.key, provider.key, vendor, provider.moved)


def used_by(config: ModelConfig) -> list[ModelConfig]:
    """The configuration of each provider of whom a model is named, without the others."""
    names = (split(name)[0] or config.provider for name in (config.chat, config.summary, config.facts))
    return [config.of(name) for name in dict.fromkeys(names)]


def plainly(
    error: ModelError, config: ModelConfig, model: str = "", variable: str = "DISCOCLAW_MODEL"
) -> ModelError:
    """An error of the same class, with one line for an admin: the thing, the reason, the way out.

    `model` and the `variable` that names it are by default those of the model that answers people.
    """
    provider, name = split(model or config.chat)
    told = _sentence(error, config.of(provider), str(error), name, variable)
    plain = ModelError.__new__(type(error))  # one of these takes more than a text
    ModelError.__init__(plain, told, user_message=error.user_message)
    plain.status = error.status
    return plain


def _sentence(error: ModelError, config: ModelConfig, reason: str, model: str, variable: str) -> str:
    where, known = address_of(config), PROVIDERS[config.provider]
    has_page = "/v1" in where
    if _PAGE.search(reason) and (isinstance(error, ModelNotFound | ModelBadRequest) or error.status < 400):
        return f"{where} answers with a web page and not as a model's server; check {known.moved}"
    match error:
        case ModelKeyRejected():
            setting = known.key or f"{known.moved}, or use OPENAI_BASE_URL with OPENAI_API_KEY"
            return f"{where} refuses the key ({reason}); check {setting}"
        case ModelNotFound() if has_page and config.provider == VENDOR:
            return f"{where} has no such page; leave /v1 out of {known.moved}, it is added"
        case ModelNotFound() if not has_page and config.provider != VENDOR and config.base_url is not None:
            return f"{where} has no such page; end the address in {known.moved} with /v1"
        case ModelNotFound():
            return (
                f"{where} doesn't have the model {model!r}, or isn't a model's server ({reason}); "
                f"check {variable} and {known.moved}"
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
            return f"{where} can't be reached ({reason}); check {known.moved} and the network"
        case ModelEmpty():
            return f"{model} at {where} answered without a word; try another model"
        case _:
            return f"{where} doesn't answer as it should ({reason}); check {variable} and {known.moved}"


def address_of(config: ModelConfig) -> str:
    """The address of the configuration's provider, without a password."""
    return without_login(config.base_url or PROVIDERS[config.provider].address or "")


def is_at_vendor(config: ModelConfig) -> bool:
    """Whether the provider is asked at its usual address."""
    return config.base_url in (None, PROVIDERS[config.provider].address)
