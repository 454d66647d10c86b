"""Canonical JSON, and the two ways to encrypt it into an event's content.

    nip44         kind 30078: encrypted to our own key; tag ["encrypted", "nip44"]
    secretbox-v1  kinds 30093–30097: XSalsa20-Poly1305, base64 of nonce(24) || mac(16) || ciphertext

Before it goes into a secretbox, JSON is padded with spaces to the lengths of NIP-44, since a secretbox hides
content but not length. Trailing spaces are valid JSON, so Aman's reader accepts them. Whatever cannot be
encrypted is not published, and whatever cannot be decrypted is not used (UnreadableContent).
Sources: Aman's `nostr-persistence` (crypto.rs) for the secretbox, NIP-44 for the lengths.
"""

import base64
import binascii
import hashlib
import json
import re
from typing import Any, Final

import nacl.exceptions
import nacl.secret

from discoclaw.core.errors import NostrError, SettingsError, UnreadableContent
from discoclaw.nostr.event import MAX_PLAINTEXT, Keys

SECRETBOX: Final = "secretbox-v1"
NIP44: Final = "nip44"
_HEX_KEY = re.compile(r"[0-9a-fA-F]{64}")


def canonical(value: object) -> str:
    """Compact JSON in field order, not escaped beyond what JSON needs: what is hashed and encrypted.

    It equals the output of Rust's serde_json, which Aman hashes. Raises NostrError.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:  # a lone surrogate is a ValueError
        raise NostrError(f"cannot write this as JSON: {type(error).__name__}") from None
    return text


def sha256(text: str) -> str:
    """The SHA-256 of the text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def padded_length(length: int) -> int:
    """The length to which NIP-44 pads `length` bytes (1 or more): coarser steps the longer the text."""
    if length <= 32:
        return 32
    power = 1 << (length - 1).bit_length()
    chunk = 32 if power <= 256 else power // 8
    return int(chunk * ((length - 1) // chunk + 1))


def object_of(text: str) -> dict[str, Any]:
    """The JSON object in a text. Raises UnreadableContent."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableContent("the content is not JSON") from None
    if not isinstance(value, dict):
        raise UnreadableContent("the content is not a JSON object")
    return value


class SecretBox:
    """Encryption with one symmetric key of 32 bytes (NaCl's secretbox)."""

    def __init__(self, key: bytes) -> None:
        self._box = nacl.secret.SecretBox(key)

    @classmethod
    def parse(cls, text: str, *, name: str = "NOSTR_SECRETBOX_KEY") -> "SecretBox":
        """The box of a key given as 64 hex digits, with or without `hex:`, or as base64.

        Raises SettingsError.
        """
        plain = text.strip()
        try:
            digits = plain.removeprefix("hex:")
            if _HEX_KEY.fullmatch(digits):
                return cls(bytes.fromhex(digits))
            # Without `validate`, characters outside base64 are skipped, and a typo gives another key.
            key = base64.b64decode(plain, validate=True)
            if plain.startswith("hex:") or len(key) != 32:
                raise ValueError("length")
            return cls(key)
        except (ValueError, binascii.Error):
            raise SettingsError(f"{name}=…: not a key of 32 bytes; set 64 hex digits or base64") from None

    @classmethod
    def of(cls, keys: Keys) -> "SecretBox":
        """The box whose key is derived from the bot's secret key: then that one key recovers everything."""
        return cls(keys.derived(SECRETBOX))

    def seal(self, text: str, nonce: bytes | None = None) -> str:
        """Encrypt text into an event's content. `nonce` (24 bytes) is random by default; tests fix it."""
        return base64.b64encode(bytes(self._box.encrypt(text.encode("utf-8"), nonce))).decode("ascii")

    def open(self, content: str) -> str:
        """Decrypt content. Raises UnreadableContent: another key, changed bytes, or not base64."""
        try:
            return self._box.decrypt(base64.b64decode(content, validate=True)).decode("utf-8")
        except (nacl.exceptions.CryptoError, ValueError, binascii.Error):
            raise UnreadableContent(
                "it cannot be decrypted: encrypted with another key, or changed"
            ) from None


def padded(text: str) -> str:
    """Text with spaces appended until its byte length is one of NIP-44's padded lengths."""
    length = len(text.encode("utf-8"))
    return text + " " * (padded_length(length) - length)


def check_length(text: str) -> str:
    """The text itself. Raises NostrError when it surely doesn't fit into one event."""
    if (length := len(text.encode("utf-8"))) > MAX_PLAINTEXT:
        raise NostrError(f"{length} bytes do not fit into one event; the limit is {MAX_PLAINTEXT}")
    return text
