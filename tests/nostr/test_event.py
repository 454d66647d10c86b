"""Keys and events: golden values, and other people's implementations as judges."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import BadEvent, NostrError, SettingsError, UnreadableContent
from discoclaw.nostr.event import (
    MAX_EVENT_BYTES,
    MAX_PLAINTEXT,
    Keys,
    npub_of_nsec,
    public_key,
    verified,
)
from tests.tables import naming

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "nostr.json").read_text(encoding="utf-8"))
KEYS = Keys.parse(VECTORS["secret_key"])
NSEC = "nsec1" + "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # the example of NIP-19
NPUB = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def id_of(event: dict[str, Any]) -> str:
    """NIP-01's id, from its words."""
    fields = [0, event["pubkey"], event["created_at"], event["kind"], event["tags"], event["content"]]
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class TestEvents:
    def test_have_the_golden_ids(self) -> None:
        for vector in VECTORS["payloads"]:
            with naming(vector):
                content = json.dumps(vector["payload"], separators=(",", ":"), ensure_ascii=False)
                when = vector["payload"].get("created_at") or vector["payload"]["updated_at"]
                assert KEYS.sign(vector["kind"], content, vector["tags"], when).id == vector["plain_event_id"]

    def test_of_an_owner_have_the_golden_id(self) -> None:
        config = VECTORS["owner_config"]
        event = KEYS.sign(config["kind"], config["content"], config["tags"], config["created_at"])
        assert event.id == config["event_id"]

    @given(content=TEXT, value=TEXT, kind=st.integers(0, 65_535), when=st.integers(0, 2**33))
    def test_are_what_another_implementation_makes_of_the_same_words(
        self, content: str, value: str, kind: int, when: int
    ) -> None:
        coincurve = pytest.importorskip("coincurve")
        event = KEYS.sign(kind, content, [["d", value]], when)
        assert event.id == id_of(event.to_json())
        public = coincurve.PublicKeyXOnly(bytes.fromhex(event.pubkey))
        assert public.verify(bytes.fromhex(event.sig), bytes.fromhex(event.id))
        assert verified(json.loads(event.encode())) == event

    def test_that_were_changed_are_refused(self) -> None:
        for change in (
            {"content": "other"},
            {"created_at": 5},
            {"tags": [["d", "other"]]},
            {"sig": "00" * 64},
            {"id": "00" * 32},
            {"pubkey": "00" * 32},
            {"kind": -1},
            {"kind": "30078"},
            {"tags": [[]]},
            {"tags": [["d", 5]]},
            {"content": None},
            {"content": "\ud800"},
            {"created_at": 2**70},
        ):
            with naming(change):
                event = KEYS.sign(30078, "text", [["d", "a:b"]], 1_700_000_000)
                with pytest.raises(BadEvent):
                    verified({**event.to_json(), **change})

    def test_are_not_anything_else(self) -> None:
        for value in (None, [], "text", {}, {"id": "x"}, {"content": "x" * 200_000}):
            with naming(value), pytest.raises(BadEvent):
                verified(value)

    def test_larger_than_relays_take_are_not_made(self) -> None:
        with pytest.raises(NostrError, match=str(MAX_EVENT_BYTES)):
            KEYS.sign(30078, "x" * MAX_EVENT_BYTES, [], 1)

    def test_with_the_longest_text_that_is_allowed_still_fit(self) -> None:
        sealed = KEYS.seal("x" * MAX_PLAINTEXT)
        assert len(KEYS.sign(30078, sealed, [["d", "x" * 120]], 1).encode()) < MAX_EVENT_BYTES


class TestKeys:
    def test_are_read_in_each_form(self) -> None:
        for text in (VECTORS["secret_key"], KEYS.nsec(), KEYS.nsec().upper(), f" {KEYS.nsec()}\n"):
            with naming(text):
                assert Keys.parse(text).public == VECTORS["public_key"]

    def test_encrypted_with_a_password_open_with_it_alone(self) -> None:
        kept = KEYS.encrypted("pa\u0308ssword")
        assert Keys.parse(kept, "p\u00e4ssword").public == KEYS.public  # NFKC, as NIP-49 has it
        for wrong in ("password", None, ""):
            with pytest.raises(SettingsError, match="NOSTR_"):
                Keys.parse(kept, wrong)

    def test_of_nip_49_itself_open(self) -> None:
        vector = VECTORS.get("nip49") or {
            "ncryptsec": "ncryptsec1"
            + "qgg9947rlpvqu76pj5ecreduf9jxhselq2nae2kghhvd5g7dgjtcxfqtd67p9m0w57lspw8gsq"
            "6yphnm8623nsl8xn9j4jdzz84zm3frztj3z7s35vpzmqf6ksu8r89qk5z2zxfmu5gv8th8wclt0h4p",
            "password": "nostr",
            "secret": "3501454135014541350145413501453fefb02227e449e57cf4d3a3ce05378683",
        }
        assert Keys.parse(vector["ncryptsec"], vector["password"]).secret_hex() == vector["secret"]

    def test_that_are_none_are_refused_without_being_shown(self) -> None:
        for text in ("", "nsec1x", "00" * 32, "ff" * 32, "zz" * 32, NPUB):
            with naming(text):
                with pytest.raises(SettingsError, match="NOSTR_SECRET_KEY=…") as error:
                    Keys.parse(text)
                assert not text or text not in str(error.value)

    def test_are_never_shown(self) -> None:
        shown = f"{KEYS!r} {KEYS} {vars(KEYS)}"
        assert KEYS.secret_hex() not in shown
        assert KEYS.nsec() not in shown

    @pytest.mark.parametrize("purpose", ["pseudonym", "mark", "secretbox-v1"])
    def test_derive_others_as_rfc_5869_has_it(self, purpose: str) -> None:
        oracle = HKDF(hashes.SHA256(), 32, salt=None, info=f"discoclaw:{purpose}".encode())
        assert KEYS.derived(purpose) == oracle.derive(bytes.fromhex(VECTORS["secret_key"]))

    def test_are_named_in_bech32(self) -> None:
        assert npub_of_nsec(NSEC) == npub_of_nsec(NSEC.upper()) == NPUB
        assert npub_of_nsec(NSEC[:-1] + "q") is None
        with pytest.raises(SettingsError, match="NOSTR_OWNER=nobody"):
            public_key("nobody")
        with pytest.raises(SettingsError) as error:
            public_key(NSEC)
        assert NSEC not in str(error.value)


class TestNip44:
    def test_opens_what_another_implementation_sealed(self) -> None:
        vector = VECTORS["nip44_self"]
        assert KEYS.open(vector["payload"]) == vector["plaintext"]

    def test_goes_both_ways_between_two_people(self) -> None:
        other = Keys.generate()
        assert other.open(KEYS.seal("hello", to=other.public), by=KEYS.public) == "hello"

    def test_fails_closed(self) -> None:
        payload = KEYS.seal("hello")
        for wrong in (payload[:-4] + "AAAA", "", "hello", payload[:40]):
            with pytest.raises(UnreadableContent):
                KEYS.open(wrong)
        with pytest.raises(UnreadableContent):
            Keys.generate().open(payload)
        for text in ("", "x" * 70_000, "\ud800"):
            with pytest.raises(NostrError):
                KEYS.seal(text)
