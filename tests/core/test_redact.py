"""Secrets are taken out of text, all of them and nothing else.

No real secret is here: all are put together from parts when the tests run.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.redact import redact
from tests.core.builders import MODEST

BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
NSEC = "nsec1" + "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # the example of NIP-19
NPUB = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"
HEX = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
PEM = (
    "-----BEGIN {0}PRIVATE KEY{1}-----\n"
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\nAgEAAoIBAQC7\n"
    "-----END {0}PRIVATE KEY{1}-----"
)


def some(length: int, letters: str = LETTERS) -> st.SearchStrategy[str]:
    return st.text(letters, min_size=length, max_size=length)


SECRETS = st.one_of(
    some(58, BECH32).map("nsec1".__add__),
    some(58, BECH32).map(lambda rest: ("nsec1" + rest).upper()),
    some(110, BECH32).map("ncryptsec1".__add__),
    some(95, LETTERS + "-_").map("sk-ant-api03-".__add__),
    some(48).map("sk-".__add__),
    some(120, LETTERS + "-_").map("sk-proj-".__add__),
    some(36).map("ghp_".__add__),
    some(82, LETTERS + "_").map("github_pat_".__add__),
    some(24).map(lambda rest: f"xoxb-1234567890-{rest}"),
    some(35, LETTERS + "-_").map("AIza".__add__),
    st.tuples(some(25), some(6), some(38)).map(lambda parts: f"M{parts[0]}.{parts[1]}.{parts[2]}"),
    some(200, LETTERS + "+/\n").map(lambda body: PEM.format("", "").replace("MIIE", "MIIE" + body)),
)
AROUND = st.text(max_size=30)
BETWEEN = st.sampled_from([" ", "\n", "(", '"', "=", ":", ", ", "`", "🦀", "→"])


def hint(nsec: str) -> str | None:
    """What turns an nsec into its npub: it only knows one, like a checksum that only holds for one."""
    return NPUB if nsec == NSEC else None


class TestNostrSecretKeys:
    @pytest.mark.parametrize("key", [NSEC, NSEC.upper(), NSEC.title()], ids=["lower", "upper", "mixed"])
    def test_are_replaced_in_any_case_and_hint_at_their_owner(self, key: str) -> None:
        done = redact(f"my key is {key}, ok?", npub_of=hint)
        assert done.text == f"my key is [REDACTED nsec → {NPUB[:20]}...], ok?"
        assert (done.redacted, done.flagged) == (True, False)

    def test_a_wrong_checksum_is_replaced_without_a_hint(self) -> None:
        assert redact(NSEC[:-1] + "q", npub_of=hint).text == "[REDACTED nsec]"

    def test_without_a_way_to_know_the_owner_there_is_no_hint(self) -> None:
        assert redact(f"nostr:{NSEC}").text == "nostr:[REDACTED nsec]"

    def test_each_of_many_is_replaced(self) -> None:
        assert redact(f"{NSEC}{NSEC} {NSEC}").text == "[REDACTED nsec][REDACTED nsec] [REDACTED nsec]"

    def test_an_encrypted_one_is_replaced_too(self) -> None:
        done = redact("ncryptsec1" + BECH32 * 4)
        assert done.text == "[REDACTED ncryptsec]"
        assert done.redacted

    @pytest.mark.parametrize(
        "text", [NPUB, "nsec1", "nsec1 is what a key begins with", NSEC[:-1], "nsecurity"]
    )
    def test_what_is_no_secret_key_stays(self, text: str) -> None:
        done = redact(text)
        assert done.text == text
        assert not done.redacted


class TestSixtyFourHexDigits:
    def test_unknown_ones_are_flagged_and_cut(self) -> None:
        done = redact(f"key: {HEX}!")
        assert done.text == f"key: [FLAGGED: unknown 64-char hex {HEX[:16]}…]!"
        assert (done.redacted, done.flagged) == (False, True)

    @pytest.mark.parametrize(
        "text", [f"0x{HEX}", f"0X{HEX}", f"a={HEX}", f"({HEX})", f"_{HEX}_", HEX.upper()]
    )
    def test_whatever_stands_around_them(self, text: str) -> None:
        assert redact(text).flagged

    @pytest.mark.parametrize("text", [HEX, HEX.upper()])
    def test_a_known_public_key_is_left_as_it_is(self, text: str) -> None:
        done = redact(f"her key is {text}", known_hex={HEX})
        assert done.text == f"her key is {text}"
        assert (done.redacted, done.flagged) == (False, False)

    @pytest.mark.parametrize("text", [HEX, HEX.upper(), f"0x{HEX}"])
    def test_not_one_digit_of_our_own_secret_is_shown(self, text: str) -> None:
        done = redact(text, own_hex={HEX}, known_hex={HEX})
        assert done.text.removeprefix("0x") == "[REDACTED key]"
        assert (done.redacted, done.flagged) == (True, False)

    @pytest.mark.parametrize("text", [f"{HEX}{HEX}", f"z{HEX}", f"{HEX}z", f"key{HEX.upper()}0"])
    def test_our_own_secret_is_hidden_though_it_is_glued_to_other_text(self, text: str) -> None:
        assert HEX[:20] not in redact(text, own_hex={HEX}).text.lower()

    @pytest.mark.parametrize(
        "text", [HEX[:40], HEX[:63], HEX * 2, "g" * 64, "123e4567-e89b-12d3-a456-426614174000"]
    )
    def test_other_lengths_are_no_key(self, text: str) -> None:
        assert redact(text).text == text


class TestKeysOfOthers:
    @pytest.mark.parametrize(
        ("secret", "label"),
        [
            ("sk-ant-api03-" + "aB3_-" * 19, "Anthropic key"),
            ("sk-" + "aB3" * 16, "API key"),
            ("sk-proj-" + "aB3_" * 20, "API key"),
            ("ghp_" + "aB3" * 12, "GitHub token"),
            ("github_pat_" + "aB3_" * 15, "GitHub token"),
            ("xoxb-" + "123-aB3" * 5, "Slack token"),
            ("AKIA" + "ABCD1234" * 2, "AWS key"),
            ("AIza" + "aB3-_" * 7, "Google key"),
            ("MTIz" + "aB3" * 7 + ".Gabc_-." + "aB3" * 10, "Discord token"),
            (PEM.format("", ""), "private key"),
            (PEM.format("RSA ", ""), "private key"),
            (PEM.format("OPENSSH ", ""), "private key"),
            (PEM.format("PGP ", " BLOCK"), "private key"),
        ],
        ids=lambda value: value[:14].strip("-"),
    )
    def test_each_known_form_is_replaced_and_named(self, secret: str, label: str) -> None:
        done = redact(f"here: {secret} bye")
        assert done.text == f"here: [REDACTED {label}] bye"
        assert (done.redacted, done.flagged) == (True, False)

    def test_a_private_key_without_an_end_is_replaced_to_the_end(self) -> None:
        assert redact("x " + PEM.format("", "")[:60]).text == "x [REDACTED private key]"

    def test_two_private_keys_leave_the_text_between_them(self) -> None:
        key = PEM.format("EC ", "")
        assert redact(f"{key} and {key}").text == "[REDACTED private key] and [REDACTED private key]"


class TestRedaction:
    @MODEST
    @given(AROUND, BETWEEN, SECRETS, BETWEEN, AROUND)
    def test_no_longer_piece_of_a_secret_survives(
        self, before: str, one: str, secret: str, other: str, after: str
    ) -> None:
        done = redact(before + one + secret + other + after)
        assert done.redacted
        pieces = {secret[i : i + 20] for i in range(len(secret) - 19)} - {"-----BEGIN PRIVATE KEY-----"}
        assert [piece for piece in pieces if piece in done.text and piece not in before + after] == []

    @MODEST
    @given(AROUND, BETWEEN, SECRETS | st.just(HEX), BETWEEN, AROUND)
    def test_what_was_redacted_once_stays_as_it_is(
        self, before: str, one: str, secret: str, other: str, after: str
    ) -> None:
        once = redact(before + one + secret + other + after, npub_of=lambda _: NPUB)
        again = redact(once.text, npub_of=lambda _: NPUB)
        assert again.text == once.text
        assert (again.redacted, again.flagged) == (False, False)

    @MODEST
    @given(st.text(max_size=200))
    def test_text_without_secrets_comes_back_unchanged(self, text: str) -> None:
        done = redact(text)
        assert (done.text, done.redacted, done.flagged) == (text, False, False)

    @pytest.mark.parametrize(
        "text",
        [
            "I take the task-force to Oslo; ask-me-anything-about-it-whenever-you-have-the-time",
            "https://example.com/a/very/long/path?with=query&and=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "The sketch of MOUNTAIN.abcdef.com is at C:\\Users\\ann",
            "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b by ann",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "ghp_ is how tokens begin, xoxb- too, and sk-ant- as well",
        ],
    )
    def test_ordinary_text_with_the_look_of_a_secret_comes_back_unchanged(self, text: str) -> None:
        done = redact(text)
        assert (done.text, done.redacted, done.flagged) == (text, False, False)
