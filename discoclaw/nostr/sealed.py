"""What is written into events: canonical JSON, and the two ways in which it is encrypted.

    nip44         30078: the JSON encrypted to ourselves; tag ["encrypted", "nip44"]
    secretbox-v1  30093–30097: XSalsa20-Poly1305, base64 of nonce(24) || mac(16) || ciphertext

Before it is boxed, JSON is padded with spaces to the lengths NIP-44 pads to: a box hides content, not length.
What can not be encrypted is not published; what can not be opened counts for nothing (NotOpened).
Sources: Aman's `nostr-persistence` (crypto.rs) for the box, NIP-44 for the lengths.
"""

import base64
import binascii
import hashlib
import json
import re
from typing import Any, Final

import nacl.exceptions
import nacl.secret

from discoclaw.core.errors import NostrError, NotOpened, SettingsError
from discoclaw.nostr.event import MOST_PLAIN, Keys

SECRETBOX: Final = "secretbox-v1"
NIP44: Final = "nip44"
_HEX32 = re.compile(r"[0-9a-fA-F]{64}")


def canonical(value: object) -> str:
    """JSON in field order, compact, non-ASCII as itself: what is hashed and encrypted. Raises NostrError."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:  # a lone surrogate is a ValueError
        raise NostrError(f"this can not be written as JSON: {type(error).__name__}") from None
    return text


def sha256(text: str) -> str:
    """Of UTF-8, in hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def padded_length(length: int) -> int:
    """To how many bytes NIP-44 pads so many (1 or more)."""
    if length <= 32:
        return 32
    power = 1 << (length - 1).bit_length()
    chunk = 32 if power <= 256 else power // 8
    return int(chunk * ((length - 1) // chunk + 1))


def object_of(text: str) -> dict[str, Any]:
    """The JSON object that a text is. Raises NotOpened."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise NotOpened("what it holds is no JSON") from None
    if not isinstance(value, dict):
        raise NotOpened("what it holds is no JSON object")
    return value


class Box:
    """A secretbox of one key (32 bytes)."""

    def __init__(self, key: bytes) -> None:
        self._box = nacl.secret.SecretBox(key)

    @classmethod
    def parse(cls, text: str, *, name: str = "NOSTR_SECRETBOX_KEY") -> "Box":
        """Of 64 hex digits, `hex:` before them or not, or of base64. Raises SettingsError."""
        plain = text.strip()
        try:
            digits = plain.removeprefix("hex:")
            if _HEX32.fullmatch(digits):
                return cls(bytes.fromhex(digits))
            key = base64.b64decode(plain, validate=True)
            if plain.startswith("hex:") or len(key) != 32:
                raise ValueError("length")
            return cls(key)
        except (ValueError, binascii.Error):
            raise SettingsError(f"{name}=…: 32 bytes are wanted, as 64 hex digits or in base64") from None

    @classmethod
    def of(cls, keys: Keys) -> "Box":
        """The box that the bot's secret key alone gives, so that it alone brings everything back."""
        return cls(keys.derived(SECRETBOX))

    def seal(self, text: str, nonce: bytes | None = None) -> str:
        """Text as content of an event. `nonce` (24 bytes) is random unless given."""
        return base64.b64encode(bytes(self._box.encrypt(text.encode("utf-8"), nonce))).decode("ascii")

    def open(self, content: str) -> str:
        """The text again. Raises NotOpened: wrong key, a changed bit, no base64."""
        try:
            return self._box.decrypt(base64.b64decode(content, validate=True)).decode("utf-8")
        except (nacl.exceptions.CryptoError, ValueError, binascii.Error):
            raise NotOpened("the box does not open: another key, or it was changed") from None


def padded(text: str) -> str:
    """Text with spaces behind it, so that its bytes are as many as NIP-44 would pad to."""
    length = len(text.encode("utf-8"))
    return text + " " * (padded_length(length) - length)


def check_length(text: str) -> str:
    """Raise NostrError where a text surely does not fit into one event."""
    if (length := len(text.encode("utf-8"))) > MOST_PLAIN:
        raise NostrError(f"{length} bytes are too many for one event; {MOST_PLAIN} are the most")
    return text
