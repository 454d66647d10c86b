"""Nostr keys and events over `nostr-sdk`: generated, signed, encrypted, decrypted, parsed and verified.

The only module that creates or verifies an event.
Sources: NIP-01 (events), NIP-19 (nsec, npub), NIP-44 (encryption), NIP-49 (ncryptsec), RFC 5869 (HKDF).
Every error of the library becomes one of ours here. A secret key is never shown, neither in an error nor in a
`repr`. Knows nothing about what events mean or where they go.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import nacl.exceptions
import nacl.secret
import nostr_sdk

from discoclaw.core.errors import BadEvent, NostrError, SettingsError, UnreadableContent
from discoclaw.core.redact import PLAIN, Redactor, redact

MAX_EVENT_BYTES: Final = 65_536
"""Size of an event as JSON. Most relays, and nostr-sdk's LocalRelay, refuse larger ones."""
MAX_PLAINTEXT: Final = 40_000
"""Bytes of plaintext that surely fit into one event.

NIP-44 pads in steps: 40,960 bytes become 54,704 characters,
and 40,961 become 65,628, which is over the limit."""

MAX_TAGS: Final = 5_000

_SDK_ERRORS = (nostr_sdk.NostrSdkError, ValueError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Event:
    """A signed event with a correct id and signature.

    `created_at` is in whole seconds since 1970. `id`, `pubkey` and `sig` are lower-case hex.
    """

    id: str
    pubkey: str
    created_at: int
    kind: int
    tags: tuple[tuple[str, ...], ...]
    content: str
    sig: str
    d: str = field(init=False, repr=False, compare=False)
    """The identifier of an addressable event; "" when it has none, as in NIP-01."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", self.tag("d") or "")

    def tag(self, name: str) -> str | None:
        """The value of the first tag of this name; None if there is none."""
        for tag in self.tags:
            if len(tag) > 1 and tag[0] == name:
                return tag[1]
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "pubkey": self.pubkey,
            "created_at": self.created_at,
            "kind": self.kind,
            "tags": [list(tag) for tag in self.tags],
            "content": self.content,
            "sig": self.sig,
        }

    def encode(self) -> str:
        """The event as compact JSON."""
        return json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":"))


def verified(value: Any) -> Event:
    """The event that decoded JSON describes, with its id and signature checked.

    Raises BadEvent with the reason.

    The id is computed here, and the library gets only what the signature is about. Its binding copies text
    byte by byte: handing over one kilobyte takes ten times as long as verifying. With this, verifying an
    event of 1.6 kB takes 0.3 ms instead of 1.0.
    """
    try:
        event = _shaped(value)
        # Before hashing: a relay decides how much it sends.
        if len(event.content) > 2 * MAX_EVENT_BYTES:
            raise BadEvent("the event is too large")
        if event.id != _id(event.pubkey, event.created_at, event.kind, event.tags, event.content):
            raise BadEvent("the event's id is wrong")
        # A Schnorr signature is about the id and the key alone (NIP-01), so the other fields can be empty.
        if not nostr_sdk.Event.from_json(_SIGNED % (event.id, event.pubkey, event.sig)).verify_signature():
            raise BadEvent("the event's signature is wrong")
    except (*_SDK_ERRORS, RecursionError) as error:
        raise BadEvent(f"not an event: {type(error).__name__}") from None
    return event


_SIGNED = '{"id":"%s","pubkey":"%s","sig":"%s","created_at":0,"kind":1,"tags":[],"content":""}'
_HEX64, _HEX128 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{128}")


def _shaped(value: Any) -> Event:
    """Decoded JSON as an event, if its fields have the types of NIP-01.

    Nothing is verified. Raises BadEvent.
    """
    if not isinstance(value, Mapping):
        raise BadEvent("the event is not a JSON object")
    created_at, kind, tags = (value.get(name) for name in ("created_at", "kind", "tags"))
    texts = [value.get(name) for name in ("id", "pubkey", "sig", "content")]
    if not all(isinstance(one, str) for one in texts):
        raise BadEvent("one of the event's text fields is not a string")
    id_, pubkey, sig, content = map(str, texts)
    if not (_HEX64.fullmatch(id_) and _HEX64.fullmatch(pubkey) and _HEX128.fullmatch(sig)):
        raise BadEvent("the event's id, public key or signature is not hex of the right length")
    # bool is a subclass of int. Numbers from 2**53 on are not exact in relays that use doubles for JSON.
    if type(created_at) is not int or not 0 <= created_at < 2**53:
        raise BadEvent("the event's created_at is not a time")
    if type(kind) is not int or not 0 <= kind <= 65_535:
        raise BadEvent("the event's kind is not a number from 0 to 65535")
    if not isinstance(tags, list) or len(tags) > MAX_TAGS:
        raise BadEvent(f"the event's tags are not a list of at most {MAX_TAGS}")
    for tag in tags:
        if not isinstance(tag, list) or not tag or not all(isinstance(one, str) for one in tag):
            raise BadEvent("one of the event's tags is not a list of strings")
    return Event(id_, pubkey, created_at, kind, tuple(map(tuple, tags)), content, sig)


def _id(pubkey: str, created_at: int, kind: int, tags: Sequence[Sequence[str]], content: str) -> str:
    """NIP-01: the SHA-256 of the compact JSON. Raises ValueError for text with lone surrogates."""
    fields = [0, pubkey, created_at, kind, tags, content]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class Keys:
    """A key pair. `public` is the public key in hex, `npub` the same in bech32."""

    def __init__(self, keys: nostr_sdk.Keys) -> None:
        self._keys = keys
        self._mine = keys.public_key()
        self.public: str = self._mine.to_hex()
        self.npub: str = self._mine.to_bech32()

    def __repr__(self) -> str:
        return f"Keys({self.npub})"

    @classmethod
    def parse(cls, text: str, password: str | None = None, *, name: str = "NOSTR_SECRET_KEY") -> "Keys":
        """The key pair of an nsec, of 64 hex digits, or of an ncryptsec and its password.

        Raises SettingsError, which names the setting and never shows the key.
        """
        key = text.strip()
        try:
            if key.lower().startswith("ncryptsec1"):
                if not password:
                    raise SettingsError(f"{name}=…: this key is encrypted; set NOSTR_KEY_PASSWORD too")
                # NIP-49 demands NFKC, so that the same password from two keyboards is the same bytes.
                plain = unicodedata.normalize("NFKC", password)
                secret = nostr_sdk.EncryptedSecretKey.from_bech32(key.lower()).decrypt(plain)
                return cls(nostr_sdk.Keys.parse(secret.to_hex()))
            # Bech32 may be written in upper case (BIP-173).
            return cls(nostr_sdk.Keys.parse(key.lower()))
        except _SDK_ERRORS:
            why = "the password is wrong, or this is" if password and "ncryptsec" in key else "this is"
            raise SettingsError(
                f"{name}=…: {why} not a secret key; set an nsec, 64 hex digits, or an ncryptsec"
            ) from None

    @classmethod
    def generate(cls) -> "Keys":
        """A new random key pair."""
        return cls(nostr_sdk.Keys.generate())

    def nsec(self) -> str:
        """The secret key in bech32. Write it only where nobody else can read it, and never show it."""
        return str(self._keys.secret_key().to_bech32())

    def secret_hex(self) -> str:
        """The secret key in hex, for redacting it from texts."""
        return str(self._keys.secret_key().to_hex())

    def encrypted(self, password: str) -> str:
        """The secret key as an ncryptsec (NIP-49). With log_n 16, one guess at the password takes 0.3 s."""
        plain = unicodedata.normalize("NFKC", password)
        medium = nostr_sdk.KeySecurity.MEDIUM
        return str(nostr_sdk.EncryptedSecretKey(self._keys.secret_key(), plain, 16, medium).to_bech32())

    def derived(self, purpose: str) -> bytes:
        """32 bytes that only the holder of the secret key can compute: HKDF-SHA256 (RFC 5869) without a salt.

        `purpose` separates the keys derived from one secret, so that one never stands in for another.
        """
        secret = bytes.fromhex(self.secret_hex())
        # Extract, then one block of expand: 32 bytes need no more.
        prk = hmac.new(bytes(32), secret, hashlib.sha256).digest()
        return hmac.new(prk, f"discoclaw:{purpose}".encode() + b"\x01", hashlib.sha256).digest()

    def sign(self, kind: int, content: str, tags: Sequence[Sequence[str]], created_at: int) -> Event:
        """A signed event of this time (s). Raises NostrError when it can't be made or is too large."""
        kept = tuple(map(tuple, tags))
        try:
            if not all(kept) or not 0 <= created_at < 2**53:
                raise ValueError("an empty tag, or created_at out of range")
            event_id = _id(self.public, created_at, kind, kept, content)
            # The library's EventBuilder would copy the text byte by byte: 1.4 ms per event instead of 0.2.
            sig = str(self._keys.sign_schnorr(bytes.fromhex(event_id)))
        except _SDK_ERRORS as error:
            raise NostrError(f"cannot make an event of kind {kind}: {type(error).__name__}") from None
        event = Event(event_id, self.public, created_at, kind, kept, content, sig)
        if (size := len(event.encode().encode("utf-8"))) > MAX_EVENT_BYTES:
            raise NostrError(
                f"an event of kind {kind} has {size} bytes, more than the limit of {MAX_EVENT_BYTES}"
            )
        return event

    def seal(self, text: str, to: str | None = None) -> str:
        """Encrypt text to a public key (hex), by default our own (NIP-44 v2). Raises NostrError."""
        try:
            other = self._mine if to is None else nostr_sdk.PublicKey.parse(to)
            return str(self._keys.nip44_encrypt(other, text))
        except _SDK_ERRORS as error:
            raise NostrError(f"cannot encrypt: {type(error).__name__}") from None

    def open(self, payload: str, by: str | None = None) -> str:
        """Decrypt a NIP-44 payload from a public key (hex), by default our own. Raises UnreadableContent."""
        try:
            other = self._mine if by is None else nostr_sdk.PublicKey.parse(by)
            return str(self._keys.nip44_decrypt(other, payload))
        except _SDK_ERRORS as error:
            raise UnreadableContent(f"it cannot be decrypted ({type(error).__name__})") from None


def public_key(text: str, *, name: str = "NOSTR_OWNER") -> str:
    """A public key in hex, from an npub or hex. Raises SettingsError, naming the setting `name`."""
    try:
        return str(nostr_sdk.PublicKey.parse(text.strip()).to_hex())
    except _SDK_ERRORS:
        shown = redact(text.strip()).text[:80]  # somebody may have set the secret key by mistake
        raise SettingsError(f"{name}={shown}: not a public key; set an npub or 64 hex digits") from None


def npub_of_nsec(nsec: str) -> str | None:
    """The npub of an nsec found in a text; None if its checksum is wrong."""
    try:
        return Keys(nostr_sdk.Keys.parse(nsec.lower())).npub
    except _SDK_ERRORS:
        return None


# ----------------------------------------------------------------------
# A redactor that knows Nostr keys: which are ours, and whose key somebody pasted.

MIN_SECRET_CHARS = 32
"""A shorter secret may be an ordinary word, and redacting it would damage ordinary text."""


def redactor_of(
    keys: Keys | None, *, secrets: Iterable[str | None] = (), owner: str | None = None
) -> Redactor:
    """A redactor that removes our secret key and the other `secrets` of the settings from any text.

    `owner` is the owner's public key (npub or hex). It is not flagged as unknown, and neither is ours.
    Without any key or secret the result is `PLAIN`. Raises SettingsError when `owner` isn't a public key.
    """
    others = [one.strip().removeprefix("hex:") for one in secrets if one is not None]
    known = {public_key(owner)} if owner is not None else set[str]()
    if keys is None and not others and not known:
        return PLAIN
    own = {one for one in others if len(one) >= MIN_SECRET_CHARS}
    for one in (keys, *map(_keys, own)):
        if one is not None:
            own |= {one.secret_hex(), one.nsec()}
    if keys is not None:
        known.add(keys.public)
    return Redactor(frozenset(own), lambda: known, npub_of_nsec)


def _keys(secret: str) -> Keys | None:
    """A secret as a key pair if it is one: it may then be pasted in another form, hex instead of nsec."""
    with suppress(SettingsError):
        return Keys.parse(secret)
    return None


# ----------------------------------------------------------------------
# Canonical JSON, and the two ways to encrypt it into an event's content.

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
