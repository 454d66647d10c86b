"""One small question to the configured model, and errors that say what to do about them.

Knows nothing about settings files or terminals.
"""

import re
import time
from dataclasses import dataclass
from typing import Final

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
    SettingsError,
)
from discoclaw.core.model import Finished, ModelRequest, SystemBlock, TextDelta, Usage, UserTurn
from discoclaw.core.ports import Model
from discoclaw.models.config import ModelConfig
from discoclaw.models.providers import open_models

QUESTION: Final = ModelRequest(
    (SystemBlock("You are being tested. Answer with one short sentence."),),
    (UserTurn("Say hello."),),
    max_tokens=64,
)
OTHER_VENDORS: Final = (
    ("sk-or-", "OpenRouter"),
    ("sk-proj-", "OpenAI"),
    ("sk-svcacct-", "OpenAI"),
    ("AIza", "Google"),
    ("gsk_", "Groq"),
    ("xai-", "xAI"),
    ("hf_", "Hugging Face"),
    ("r8_", "Replicate"),
    ("pplx-", "Perplexity"),
    ("nvapi-", "NVIDIA"),
)
"""How keys of other vendors begin."""
ANTHROPIC: Final = "https://api.anthropic.com"
_PAGE = re.compile(r"web page|<html|<!doctype html|<body", re.IGNORECASE)
_LOGIN = re.compile(r"//[^/@]*@")
"""A name and a password in an address."""


@dataclass(frozen=True, slots=True)
class ModelSeen:
    """How a model answered: its words, the seconds to the first of them and to the last, and its tokens."""

    model: str
    said: str
    first_word_s: float
    whole_s: float
    usage: Usage


async def ask(config: ModelConfig) -> ModelSeen:
    """Ask the model that answers people one small question, within the configuration's time.

    Raises SettingsError for what the configuration alone shows to be wrong, and otherwise ModelError, with
    one line each: the thing, the reason, the way out. None of them has the key in it.
    """
    check_key(config)
    models = open_models(config)
    try:
        return await _asked(models.chat, config.chat)
    except ModelError as error:
        raise plainly(error, config) from None
    finally:
        await models.close()


async def _asked(model: Model, configured: str) -> ModelSeen:
    began, first, said, usage = time.monotonic(), 0.0, list[str](), Usage()
    async for event in model.stream(QUESTION):
        if isinstance(event, TextDelta):
            first = first or time.monotonic() - began
            said.append(event.text)
        elif isinstance(event, Finished):
            usage = event.usage
    if not "".join(said).strip():
        raise ModelEmpty("it answered without a word")
    name = str(getattr(model, "name", configured))  # what an alias such as "sonnet" stands for
    return ModelSeen(name, "".join(said).strip(), first, time.monotonic() - began, usage)


def check_key(config: ModelConfig) -> None:
    """Raise SettingsError for a key that Anthropic can't have given out, if Anthropic is asked."""
    if config.provider != "anthropic" or config.key is None or not _is_anthropic(config):
        return
    key = config.key.strip()
    if key != config.key or any(letter.isspace() for letter in key):
        raise SettingsError("ANTHROPIC_API_KEY=…: has spaces or line breaks in it; copy the key once more")
    if key[0] in "\"'`“”" or key[-1] in "\"'`“”":
        raise SettingsError("ANTHROPIC_API_KEY=…: has quotation marks around it; leave them out")
    if not key.isascii():
        raise SettingsError("ANTHROPIC_API_KEY=…: has letters that no key has; copy the key once more")
    if key.startswith("sk-ant-admin"):
        raise SettingsError(
            "ANTHROPIC_API_KEY=…: is an admin key, which can't ask models; make an API key in the console"
        )
    if (vendor := vendor_of(key)) is not None:
        raise SettingsError(
            f"ANTHROPIC_API_KEY=…: is a key of {vendor}, and Anthropic is asked; use a key of Anthropic's "
            "(sk-ant-…), or set ANTHROPIC_BASE_URL to a server that takes this one"
        )


def vendor_of(key: str) -> str | None:
    """The other vendor whose key this is, by its first letters; None if it may be Anthropic's."""
    if key.startswith("sk-ant-"):
        return None
    found = next((vendor for start, vendor in OTHER_VENDORS if key.startswith(start)), None)
    return found or ("OpenAI or of another vendor" if key.startswith("sk-") else None)


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
    return shown(config.base_url or ANTHROPIC)


def shown(address: str) -> str:
    """An address for texts, without a password."""
    return _LOGIN.sub("//", address)


def _is_anthropic(config: ModelConfig) -> bool:
    return config.base_url is None or config.base_url.rstrip("/") == ANTHROPIC
