"""What is written into events, and the box it is written in."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import NostrError, SettingsError, UnreadableContent
from discoclaw.nostr.event import SecretBox, canonical, object_of, padded, padded_length
from tests.nostr.test_event import KEYS, TEXT, VECTORS
from tests.tables import naming

VECTOR = VECTORS["secretbox_v1"]
ZERO = SecretBox.parse(VECTOR["key"])


class TestTheBox:
    def test_seals_to_the_golden_content(self) -> None:
        assert ZERO.seal(VECTOR["plaintext"], bytes.fromhex(VECTOR["nonce_hex"])) == VECTOR["content"]
        assert ZERO.open(VECTOR["content"]) == VECTOR["plaintext"]

    @given(TEXT)
    def test_gives_back_what_was_put_in(self, text: str) -> None:
        assert ZERO.open(ZERO.seal(text)) == text

    @given(st.integers(0, 55), st.integers(0, 7))
    def test_opens_no_longer_with_a_single_bit_flipped(self, byte: int, bit: int) -> None:
        content = bytearray(base64.b64decode(VECTOR["content"]))
        content[byte % len(content)] ^= 1 << bit
        with pytest.raises(UnreadableContent):
            ZERO.open(base64.b64encode(content).decode())

    def test_opens_nothing_else(self) -> None:
        for content in ("", "AAAA", "no base64!", VECTOR["content"] + "\n", "é"):
            with naming(content), pytest.raises(UnreadableContent):
                ZERO.open(content)

    def test_does_not_open_with_another_key(self) -> None:
        with pytest.raises(UnreadableContent):
            SecretBox.of(KEYS).open(VECTOR["content"])

    def test_takes_its_key_in_each_form(self) -> None:
        for text in ("hex:" + "00" * 32, "00" * 32, f"  {'00' * 32}\n", base64.b64encode(bytes(32)).decode()):
            with naming(text):
                assert SecretBox.parse(text).open(VECTOR["content"]) == VECTOR["plaintext"]

    def test_refuses_another_key_without_showing_it(self) -> None:
        for text in ("", "hex:00", "00" * 31, "AAAA", "hex:" + base64.b64encode(bytes(32)).decode()):
            said = "NOSTR_SECRETBOX_KEY=…: not a key of 32 bytes"
            with naming(text), pytest.raises(SettingsError, match=said):
                SecretBox.parse(text)


class TestLengths:
    def test_are_those_of_nip_44(self) -> None:
        """The published test vectors of NIP-44, `calc_padded_len`."""
        lengths = "16 32 33 37 45 49 64 65 100 111 200 250 320 383 384 400 500 512 515 700 800"
        lengths_padded = "32 32 64 64 64 64 64 96 128 128 224 256 320 384 384 448 512 512 640 768 896"
        pairs = zip(map(int, lengths.split()), map(int, lengths_padded.split()), strict=True)
        known = [*pairs, (900, 1024), (1020, 1024), (65_536, 65_536)]
        assert [(length, padded_length(length)) for length, _ in known] == known

    @given(st.dictionaries(TEXT, TEXT, max_size=4))
    def test_are_hidden_by_spaces_that_no_reader_sees(self, value: dict[str, str]) -> None:
        text = padded(canonical(value))
        assert len(text.encode("utf-8")) == padded_length(len(canonical(value).encode("utf-8")))
        assert json.loads(text) == object_of(text) == value


class TestCanonical:
    def test_keeps_the_order_null_and_every_letter(self) -> None:
        assert canonical({"b": None, "a": "é\u2028😀\x7f"}) == '{"b":null,"a":"é\u2028😀\x7f"}'

    def test_refuses_what_is_no_json(self) -> None:
        for value in ("\ud800", float("nan"), object(), {1, 2}):
            with naming(value), pytest.raises(NostrError):
                canonical({"value": value})

    def test_reads_objects_alone(self) -> None:
        for text in ("", "[]", "null", "{", '"a"', "[" * 100_000):
            with naming(text), pytest.raises(UnreadableContent):
                object_of(text)
