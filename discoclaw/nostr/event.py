"""Keys and events of Nostr, over `nostr-sdk`: made, signed, sealed, read and verified. The only module that
makes or checks one.

Sources: NIP-01 (events), NIP-19 (nsec, npub), NIP-44 (encryption), NIP-49 (ncryptsec), RFC 5869 (HKDF).
Whatever goes wrong in the library becomes an error of ours here. A secret key is never shown: not in an
error, not in a `repr`. Knows nothing about what events mean or where they go.
"""

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import nostr_sdk

from discoclaw.core.errors import BadEvent, NostrError, NotOpened, SettingsError
from discoclaw.core.redact import redact

MOST_BYTES: Final = 65_536
"""Of one event as JSON; the usual limit of relays, and LocalRelay's."""
MOST_PLAIN: Final = 40_000
"""Bytes of plain text that surely fit into one event: NIP-44 pads 40,960 bytes to 54,704 characters and the
next one to 65,628."""

MOST_TAGS: Final = 5_000

_SDK_ERRORS = (nostr_sdk.NostrSdkError, ValueError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Event:
    """A signed event whose id and signature are right. `created_at` is in whole seconds since 1970.

    `id` and `pubkey` are lower-case hex, `sig` too.
    """

    id: str
    pubkey: str
    created_at: int
    kind: int
    tags: tuple[tuple[str, ...], ...]
    content: str
    sig: str

    def tag(self, name: str) -> str | None:
        """The value of the first tag of this name."""
        return next((tag[1] for tag in self.tags if len(tag) > 1 and tag[0] == name), None)

    @property
    def d(self) -> str:
        """The identifier of an addressable event; "" when it has none, as NIP-01 has it."""
        return self.tag("d") or ""

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


def received(value: Any) -> Event:
    """The event that somebody sent, as decoded JSON, verified. Raises BadEvent with the reason.

    The id is computed here, and the library is shown no more of the event than a signature is about: handing
    a text of a kilobyte over to it takes ten times as long as verifying.
    """
    try:
        event = _shaped(value)
        if len(event.content) > 2 * MOST_BYTES:
            raise BadEvent("it is too large")
        if event.id != _id(event.pubkey, event.created_at, event.kind, event.tags, event.content):
            raise BadEvent("its id is wrong")
        if not nostr_sdk.Event.from_json(_SIGNED % (event.id, event.pubkey, event.sig)).verify_signature():
            raise BadEvent("its signature is wrong")
    except (*_SDK_ERRORS, RecursionError) as error:
        raise BadEvent(f"it is no event: {type(error).__name__}") from None
    return event


_SIGNED = '{"id":"%s","pubkey":"%s","sig":"%s","created_at":0,"kind":1,"tags":[],"content":""}'
_HEX64, _HEX128 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{128}")


def _shaped(value: Any) -> Event:
    """The event that decoded JSON is, if it has NIP-01's fields; nothing is verified yet. Raises BadEvent."""
    if not isinstance(value, Mapping):
        raise BadEvent("it is no object")
    created_at, kind, tags = (value.get(name) for name in ("created_at", "kind", "tags"))
    id_, pubkey, sig, content = (_text(value.get(name)) for name in ("id", "pubkey", "sig", "content"))
    if not (_HEX64.fullmatch(id_) and _HEX64.fullmatch(pubkey) and _HEX128.fullmatch(sig)):
        raise BadEvent("its id, key or signature is none")
    if type(created_at) is not int or not 0 <= created_at < 2**53:
        raise BadEvent("its time is none")
    if type(kind) is not int or not 0 <= kind <= 65_535:
        raise BadEvent("its kind is none")
    if not isinstance(tags, list) or len(tags) > MOST_TAGS:
        raise BadEvent("its tags are none, or too many")
    for tag in tags:
        if not isinstance(tag, list) or not tag or not all(isinstance(one, str) for one in tag):
            raise BadEvent("a tag is none")
    return Event(id_, pubkey, created_at, kind, tuple(map(tuple, tags)), content, sig)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BadEvent("a field that is text is none")
    return value


def _id(pubkey: str, created_at: int, kind: int, tags: Sequence[Sequence[str]], content: str) -> str:
    """NIP-01: SHA-256 of the compact JSON. Raises ValueError for text that is no Unicode."""
    fields = [0, pubkey, created_at, kind, tags, content]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class Keys:
    """A secret key and what it can do. `public` is the public key in hex, `npub` the same in bech32."""

    def __init__(self, keys: nostr_sdk.Keys) -> None:
        self._keys = keys
        self._mine = keys.public_key()
        self.public: str = self._mine.to_hex()
        self.npub: str = self._mine.to_bech32()

    def __repr__(self) -> str:
        return f"Keys({self.npub})"

    @classmethod
    def parse(cls, text: str, password: str | None = None, *, name: str = "NOSTR_SECRET_KEY") -> "Keys":
        """The key of an nsec, of 64 hex digits, or of an ncryptsec and its password.

        Raises SettingsError, which names the setting and never shows the key.
        """
        key = text.strip()
        try:
            if key.lower().startswith("ncryptsec1"):
                if not password:
                    raise SettingsError(f"{name}=…: this key is encrypted; set NOSTR_KEY_PASSWORD too")
                plain = unicodedata.normalize("NFKC", password)
                secret = nostr_sdk.EncryptedSecretKey.from_bech32(key.lower()).decrypt(plain)
                return cls(nostr_sdk.Keys.parse(secret.to_hex()))
            return cls(nostr_sdk.Keys.parse(key.lower()))
        except _SDK_ERRORS:
            why = "the password does not fit, or it is" if password and "ncryptsec" in key else "it is"
            raise SettingsError(
                f"{name}=…: {why} no key; an nsec, 64 hex digits or an ncryptsec is wanted"
            ) from None

    @classmethod
    def generate(cls) -> "Keys":
        """A new key."""
        return cls(nostr_sdk.Keys.generate())

    def nsec(self) -> str:
        """The secret key in bech32: to be written where only we can read it, and shown nowhere."""
        return str(self._keys.secret_key().to_bech32())

    def secret_hex(self) -> str:
        """The secret key in hex: what has to be taken out of every text."""
        return str(self._keys.secret_key().to_hex())

    def encrypted(self, password: str) -> str:
        """The secret key as an ncryptsec (NIP-49, log_n 16)."""
        plain = unicodedata.normalize("NFKC", password)
        medium = nostr_sdk.KeySecurity.MEDIUM
        return str(nostr_sdk.EncryptedSecretKey(self._keys.secret_key(), plain, 16, medium).to_bech32())

    def derived(self, purpose: str) -> bytes:
        """32 bytes that only the holder of this key can know: HKDF-SHA256 (RFC 5869) without a salt."""
        secret = bytes.fromhex(self.secret_hex())
        prk = hmac.new(bytes(32), secret, hashlib.sha256).digest()
        return hmac.new(prk, f"discoclaw:{purpose}".encode() + b"\x01", hashlib.sha256).digest()

    def sign(self, kind: int, content: str, tags: Sequence[Sequence[str]], created_at: int) -> Event:
        """A signed event of that time (s). Raises NostrError when it can not be made or is too large."""
        kept = tuple(map(tuple, tags))
        try:
            if not all(kept) or not 0 <= created_at < 2**53:
                raise ValueError("an empty tag, or no time")
            event_id = _id(self.public, created_at, kind, kept, content)
            sig = str(self._keys.sign_schnorr(bytes.fromhex(event_id)))
        except _SDK_ERRORS as error:
            raise NostrError(f"an event of kind {kind} can not be made: {type(error).__name__}") from None
        event = Event(event_id, self.public, created_at, kind, kept, content, sig)
        if (size := len(event.encode().encode("utf-8"))) > MOST_BYTES:
            raise NostrError(f"an event of kind {kind} has {size} bytes, and {MOST_BYTES} are the most")
        return event

    def seal(self, text: str, to: str | None = None) -> str:
        """Text encrypted to a public key (hex), ourselves unless given (NIP-44 v2). Raises NostrError."""
        try:
            other = self._mine if to is None else nostr_sdk.PublicKey.parse(to)
            return str(self._keys.nip44_encrypt(other, text))
        except _SDK_ERRORS as error:
            raise NostrError(f"a text can not be encrypted: {type(error).__name__}") from None

    def open(self, payload: str, by: str | None = None) -> str:
        """The text in a NIP-44 payload from a public key (hex), ourselves unless given. Raises NotOpened."""
        try:
            other = self._mine if by is None else nostr_sdk.PublicKey.parse(by)
            return str(self._keys.nip44_decrypt(other, payload))
        except _SDK_ERRORS as error:
            raise NotOpened(f"it can not be decrypted: {type(error).__name__}") from None


def public_key(text: str, *, name: str = "NOSTR_OWNER") -> str:
    """A public key, given as npub or hex, in hex. Raises SettingsError, naming the setting."""
    try:
        return str(nostr_sdk.PublicKey.parse(text.strip()).to_hex())
    except _SDK_ERRORS:
        shown = redact(text.strip()).text[:80]
        raise SettingsError(f"{name}={shown}: no public key; an npub or 64 hex digits are wanted") from None


def npub_of(public: str) -> str:
    """A public key in bech32."""
    return str(nostr_sdk.PublicKey.parse(public).to_bech32())


def npub_of_nsec(nsec: str) -> str | None:
    """The npub of an nsec that stands in some text; None when its checksum is wrong."""
    try:
        return Keys(nostr_sdk.Keys.parse(nsec.lower())).npub
    except _SDK_ERRORS:
        return None
