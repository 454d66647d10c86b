"""Secrets are taken out of text before it reaches disk, model or relay.

The patterns are the public, self-identifying forms of keys. Nostr secret keys are replaced whatever
their case; 64 hex digits that are no known public key are flagged, since that is what a raw Nostr key
looks like (and a git or SHA-256 id too, hence "flagged"). Other text comes back unchanged.
Knows nothing about where text comes from or goes.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_NSEC = re.compile(rf"nsec1[{_BECH32}]{{58}}", re.IGNORECASE)
_NCRYPTSEC = re.compile(rf"ncryptsec1[{_BECH32}]{{20,}}", re.IGNORECASE)
# "0x" has no word boundary before the digits, so it is an explicit alternative.
_HEX64 = re.compile(r"(?:(?<=0x)|(?<=0X)|(?<![0-9a-zA-Z]))[0-9a-fA-F]{64}(?![0-9a-zA-Z])")

_PEM = r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
# user id in base64 . timestamp . HMAC, as Discord's developer documentation shows it
_DISCORD = r"(?<![\w-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
_OTHERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key", re.compile(_PEM, re.S)),
    ("Anthropic key", re.compile(r"sk-ant-[A-Za-z0-9_-]{16,}")),
    # A key has digits in it; "sk-" before a long kebab-case word is no key.
    ("API key", re.compile(r"(?<![A-Za-z0-9])sk-(?:proj-|svcacct-)?(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{32,}")),
    ("Stripe key", re.compile(r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("GitHub token", re.compile(r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})")),
    ("GitLab token", re.compile(r"glpat-[A-Za-z0-9_-]{20,}")),
    ("Hugging Face token", re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}")),
    ("npm token", re.compile(r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36,}")),
    ("Slack token", re.compile(r"(?:xox[abposr]|xapp)-[A-Za-z0-9-]{10,}")),
    ("webhook", re.compile(r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}")),
    ("JSON web token", re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}")),
    ("AWS key", re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])")),
    ("Google key", re.compile(r"AIza[A-Za-z0-9_-]{35}")),
    ("Discord token", re.compile(_DISCORD)),
)


@dataclass(frozen=True, slots=True)
class Redacted:
    """The text without secrets, and whether anything was `redacted` or `flagged`."""

    text: str
    redacted: bool = False
    flagged: bool = False


_SHORTEST = 15
"""Characters of the shortest secret there is a pattern for; most names are shorter."""
_MOST_DEEP = 32
"""Values that lie deeper in others than any shape of ours are left out."""


def redact(
    text: str,
    *,
    known_hex: Collection[str] = (),
    own_hex: Collection[str] = (),
    npub_of: Callable[[str], str | None] | None = None,
) -> Redacted:
    """Take secrets out of `text`.

    `known_hex`: public keys (64 lower-case hex digits) that are not flagged. `own_hex`: our own secret
    keys, in hex or any other form; not even their first digits are shown, nor whose they are. `npub_of`
    turns an nsec into its npub, or None when the nsec's checksum is wrong; without it no hint of the key's
    owner is given.
    """
    if len(text) < _SHORTEST:
        return Redacted(text)
    redacted = flagged = False

    def nsec(match: re.Match[str]) -> str:
        nonlocal redacted
        redacted = True
        npub = npub_of(match[0].lower()) if npub_of else None
        return f"[REDACTED nsec → {npub[:20]}...]" if npub else "[REDACTED nsec]"

    def hex64(match: re.Match[str]) -> str:
        nonlocal flagged
        digits = match[0].lower()
        if digits in known_hex:
            return match[0]
        flagged = True
        return f"[FLAGGED: unknown 64-char hex {match[0][:16]}…]"

    def other(label: str) -> Callable[[re.Match[str]], str]:
        def replace(_: re.Match[str]) -> str:
            nonlocal redacted
            redacted = True
            return f"[REDACTED {label}]"

        return replace

    for own in own_hex:  # wherever it stands, glued to other text too
        text = re.sub(re.escape(own), other("key"), text, flags=re.IGNORECASE)
    text = _NCRYPTSEC.sub(other("ncryptsec"), text)
    text = _NSEC.sub(nsec, text)
    for label, pattern in _OTHERS:
        text = pattern.sub(other(label), text)
    text = _HEX64.sub(hex64, text)
    return Redacted(text, redacted, flagged)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes secrets out of text, by what is known of keys; without any knowledge it is just `redact`.

    `own` are our own secret keys in each form in which one could be pasted (hex, nsec), `known` gives the
    public keys of the moment that are not flagged; `npub_of` is as for `redact`.
    """

    own: frozenset[str] = field(default=frozenset(), repr=False)
    known: Callable[[], Collection[str]] = frozenset
    npub_of: Callable[[str], str | None] | None = None

    def __call__(self, text: str) -> Redacted:
        """The text without secrets, and whether there were any."""
        return redact(text, known_hex=self.known(), own_hex=self.own, npub_of=self.npub_of)

    def clean(self, text: str) -> str:
        """The text without secrets."""
        return self(text).text

    def value(self, value: Any, *, _deep: int = 0) -> Any:
        """A value as JSON has it, every text in it without secrets."""
        if isinstance(value, str):
            return self.clean(value)
        if _deep > _MOST_DEEP:
            return None
        if isinstance(value, Mapping):
            return {self.clean(str(key)): self.value(one, _deep=_deep + 1) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(one, _deep=_deep + 1) for one in value]
        return value


PLAIN = Redactor()
"""What knows of no keys."""
