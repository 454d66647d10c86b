"""What somebody pasted where a token or an address belongs: what it is instead, and what was meant.

Goes by the published forms of secrets and addresses. No text of it has any part of a secret. Knows nothing
about who asks.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from discoclaw.checkup.model import vendor_of
from discoclaw.core.errors import SettingsError

PORTAL: Final = "https://discord.com/developers/applications"
"""Where a bot's application is set up."""
TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{20,}")
"""A bot's token: its id, a time and a signature."""
_NOT_TOKENS: Final = (
    (re.compile(r"sk-ant-\S+"), "a key of Anthropic's, which is asked for later"),
    (re.compile(r"https?://\S+/api/webhooks/\S+"), "the address of a webhook"),
    (re.compile(r"(?:https?://|discord\.gg/)\S+"), "an address"),
    (re.compile(r"\d{15,20}"), "an id"),
    (re.compile(r"[0-9a-f]{64}"), "the application's public key"),
    (re.compile(r"mfa\.\S+"), "the token of a person's account, which Discord doesn't let bots use"),
    (re.compile(r"[A-Za-z0-9_-]{32}"), "the application's client secret, from the page OAuth2"),
)
_ADDRESS: Final = re.compile(r"[^\s\"'<>?#]+")
_APPENDED: Final = re.compile(r"(?:/v1(?:/[a-z/_]+)?|/api(?:/[a-z]+)?)/*")
"""Pages of model servers, which other programs want as a part of the address."""


def check_token(text: str) -> None:
    """Raise SettingsError for what is not a token but something else that we know."""
    vendor = vendor_of(text)
    known = (what for form, what in _NOT_TOKENS if form.fullmatch(text))
    what = next(known, f"a key of {vendor}" if vendor else None)
    if what is not None:
        raise SettingsError(
            f"DISCORD_TOKEN=…: is {what}; the token is in the developer portal, under Bot (Reset Token)"
        )


def check_key(text: str) -> None:
    """Raise SettingsError for a bot's token in place of a model's key."""
    if TOKEN.fullmatch(text):
        raise SettingsError(
            "ANTHROPIC_API_KEY=…: is the token of a Discord bot; use a key of Anthropic's (sk-ant-…)"
        )


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a model's server as the bot needs it, and a remark if it was typed otherwise."""

    address: str
    remark: str = ""


def server_at(text: str) -> Server:
    """The server that was meant. Raises SettingsError, which does not repeat what was typed."""
    typed = text.strip().strip("\"'")
    if typed.startswith("sk-") or vendor_of(typed) is not None:
        raise SettingsError("ANTHROPIC_BASE_URL=…: is a key; an address looks like http://127.0.0.1:11434")
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
