"""The address of a relay: which ones are accepted, and how one is shown. Nothing is connected."""

import ipaddress
from collections.abc import Iterable

import yarl

from discoclaw.core.errors import SettingsError
from discoclaw.core.redact import without_login


def relay_url(text: str) -> yarl.URL:
    """The address of a relay. Raises SettingsError, which never shows a password."""
    try:
        url = yarl.URL(text.strip())
        if url.scheme in ("ws", "wss") and url.host and url.port:
            return url.with_fragment(None)
    except ValueError:
        pass
    raise SettingsError(f"NOSTR_RELAYS={_redacted(text)}: not the address of a relay; use ws://… or wss://…")


def check_private(addresses: Iterable[str]) -> None:
    """Raise SettingsError unless all these relays are on this machine or in a private network.

    Only the addresses are looked at. Other relays never get plaintext.
    """
    for url in map(relay_url, addresses):
        if not _is_private(url.host or ""):
            raise SettingsError(
                f"NOSTR_ALLOW_PLAINTEXT=1: {display_url(url)} is not on this machine or in a private "
                "network; remove it from NOSTR_RELAYS, or set NOSTR_ALLOW_PLAINTEXT=0"
            )


def _is_private(host: str) -> bool:
    # A name is not resolved: what it stands for can change after the check.
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def display_url(url: yarl.URL) -> str:
    """An address as it may be logged and shown: without user, password and query, which can hold secrets."""
    return str(url.with_user(None).with_query(None))


def auth_url(url: yarl.URL) -> str:
    """An address as the relay knows it, for NIP-42. User and password are for a proxy in front of it."""
    return str(url.with_user(None))


def _redacted(text: str) -> str:
    """A wrong address without what may be a password in it, or a key that was set in the wrong place."""
    return without_login(text.strip())[:80] if "://" in text else "…"
