"""What somebody pasted where a token, a key or an address belongs: what it is instead, and what was meant.

Goes by the published forms of secrets and addresses. No text of it has any part of a secret. Knows nothing
about who asks.
"""

import base64
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from discoclaw.core.errors import SettingsError

PORTAL: Final = "https://discord.com/developers/applications"
"""The page on which a bot's application is set up."""
TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{20,}")
"""A bot's token: its id, a time and a signature."""
_NOT_TOKENS: Final = (
    (re.compile(r"sk-ant-\S+"), "a key of Anthropic's"),
    (re.compile(r"https?://\S+/api/webhooks/\S+"), "the address of a webhook"),
    (re.compile(r"(?:https?://|discord\.gg/)\S+"), "an address"),
    (re.compile(r"\d{15,20}"), "an id"),
    (re.compile(r"[0-9a-f]{64}"), "the application's public key"),
    (re.compile(r"mfa\.\S+"), "the token of a person's account, which Discord doesn't let bots use"),
    (re.compile(r"[A-Za-z0-9_-]{32}"), "the application's client secret, from the page OAuth2"),
)
_VENDORS: Final = (
    ("sk-ant-", "Anthropic"),
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
"""How keys begin."""
SEVERAL: Final = "OpenAI or of another vendor"
_SECRET: Final = re.compile(r"(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9_-]{32}")
"""A client secret, and hardly the name of a machine."""
_QUOTES: Final = tuple("\"'`“”„‘’«»")
_ADDRESS: Final = re.compile(r"[^\s\"'<>?#]+")
_APPENDED: Final = re.compile(r"(?:/v1(?:/[a-z/_]+)?|/api(?:/[a-z]+)?)/*")
"""Pages of model servers, which other programs want as a part of the address."""


def check_token(text: str) -> None:
    """Raise SettingsError for what can't be a bot's token. Blanks around it don't matter."""
    token = text.strip()
    if not token:
        raise SettingsError("DISCORD_TOKEN is empty; copy the token from the developer portal, under Bot")
    if token.lower().startswith("bot "):
        raise SettingsError("DISCORD_TOKEN=…: begins with “Bot”; leave that word out")
    _check_copied("DISCORD_TOKEN", token, "token")
    vendor = vendor_of(token)
    known = (what for form, what in _NOT_TOKENS if form.fullmatch(token))
    what = next(known, f"a key of {vendor}" if vendor else None)
    if what is not None:
        raise SettingsError(
            f"DISCORD_TOKEN=…: is {what}; the token is in the developer portal, under Bot (Reset Token)"
        )
    if not (TOKEN.fullmatch(token) and _begins_with_id(token)):
        raise SettingsError(
            "DISCORD_TOKEN=…: isn't a token of a bot, which has three parts with dots between; copy all of "
            "it from the developer portal, under Bot (Reset Token)"
        )


def _begins_with_id(token: str) -> bool:
    try:
        return base64.urlsafe_b64decode(token.partition(".")[0] + "==").isdigit()
    except ValueError:
        return False


def check_key(text: str, variable: str, vendor: str, moved: str) -> None:
    """Raise SettingsError for what can't be a model's key, or one of `vendor`'s, if that is who is asked.

    `variable` is the setting of the key, `moved` that of another server's address.
    """
    if TOKEN.fullmatch(text):
        raise SettingsError(f"{variable}=…: is the token of a Discord bot; use {_key_of(vendor)}")
    if not vendor:
        return
    _check_copied(variable, text, "key")
    if text.startswith("sk-ant-admin"):
        raise SettingsError(
            f"{variable}=…: is an admin key, which can't ask models; make an API key in the console"
        )
    whose = vendor_of(text)
    if whose is None or whose == vendor or (vendor == "OpenAI" and whose == SEVERAL):
        return
    raise SettingsError(
        f"{variable}=…: is a key of {whose}, and {vendor} is asked; use {_key_of(vendor)}, "
        f"or set {moved} to a server that takes this one"
    )


def _key_of(vendor: str) -> str:
    return "a key of Anthropic's (sk-ant-…)" if vendor in ("", "Anthropic") else f"a key of {vendor}"


def _check_copied(variable: str, text: str, what: str) -> None:
    """Raise SettingsError for a secret with something in it that came from around it."""
    if text.startswith(_QUOTES) or text.endswith(_QUOTES):
        raise SettingsError(f"{variable}=…: has quotation marks around it; leave them out")
    if any(letter.isspace() for letter in text):
        raise SettingsError(f"{variable}=…: has spaces or line breaks in it; copy the {what} once more")
    if not (text.isascii() and text.isprintable()):
        raise SettingsError(f"{variable}=…: has letters that no {what} has; copy the {what} once more")


def vendor_of(key: str) -> str | None:
    """The vendor of a key, by its first letters; None if they don't tell."""
    found = next((vendor for start, vendor in _VENDORS if key.startswith(start)), None)
    return found or (SEVERAL if key.startswith("sk-") else None)


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a model's server as the bot needs it, and a remark if it was typed otherwise."""

    address: str
    remark: str = ""


def server_at(text: str) -> Server:
    """The server that was meant. Raises SettingsError, which does not repeat what was typed."""
    typed = text.strip().strip("\"'")
    if typed.startswith("sk-") or vendor_of(typed) or TOKEN.fullmatch(typed) or _SECRET.fullmatch(typed):
        raise SettingsError(
            "ANTHROPIC_BASE_URL=…: is a key or a token; an address looks like http://127.0.0.1:11434"
        )
    if typed.isdigit():
        typed = f"127.0.0.1:{typed}"
    try:
        parts = urlsplit(typed if "://" in typed else f"http://{typed}")
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not _ADDRESS.fullmatch(typed):
        raise SettingsError(
            "ANTHROPIC_BASE_URL=…: is not an address; it must look like http://127.0.0.1:11434"
        )
    appended = parts.path.strip("/") if _APPENDED.fullmatch(parts.path) else ""
    address = f"{parts.scheme}://{parts.netloc}{'' if appended else parts.path.rstrip('/')}"
    return Server(address, f"Left out /{appended}: the bot appends what it needs." if appended else "")
