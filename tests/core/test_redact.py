"""Secrets are taken out of text, all of them and nothing else.

No real secret is here: all are put together from parts when the tests run.
"""

from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.redact import _table, folded, redact
from tests.tables import each_row

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
    @each_row("key", [NSEC, NSEC.upper(), NSEC.title()])
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

    @each_row("text", [NPUB, "nsec1", "nsec1 is what a key begins with", NSEC[:-1], "nsecurity"])
    def test_what_is_no_secret_key_stays(self, text: str) -> None:
        done = redact(text)
        assert done.text == text
        assert not done.redacted


class TestSixtyFourHexDigits:
    def test_unknown_ones_are_flagged_and_cut(self) -> None:
        done = redact(f"it is {HEX}!")
        assert done.text == f"it is [FLAGGED: unknown 64-char hex {HEX[:16]}…]!"
        assert (done.redacted, done.flagged) == (False, True)

    @each_row("text", [f"0x{HEX}", f"0X{HEX}", f"a={HEX}", f"({HEX})", f"_{HEX}_", HEX.upper()])
    def test_whatever_stands_around_them(self, text: str) -> None:
        assert redact(text).flagged

    @each_row(
        "text",
        [
            "my key: {}",
            "NOSTR_PRIVATE_KEY={}",
            'export API_SECRET="0x{}"',
            "Private key:\n```\n{}\n```",
            "{} is my seed",
            "the sha256 of my key? no, my key is {}",
            "Mein geheimer Schlüssel ist {}",
            "ma clé privée : {}",
            "mi clave: {}",
            "мой ключ {}",
            "秘密鍵は{}",
            "私钥：{}",
        ],
    )
    def test_called_a_key_are_replaced(self, text: str) -> None:
        done = redact(text.format(HEX))
        assert done.text == text.format("[REDACTED key]")
        assert (done.redacted, done.flagged) == (True, False)

    @each_row(
        "text",
        [
            "why did tx 0x{} fail?",
            "https://etherscan.io/tx/0x{}",
            "The transaction {} of my token",
            "the SHA-256 of the release is {}",
            "Is {} a known malware hash?",
            "image@sha256:{}",
            "requests==2.0 --hash=sha256:{}",
            "{}  discoclaw.whl",
            "{} *discoclaw.whl",
            "In my private repository, commit {}",
            "Prüfsumme: {}",
            "хеш {}",
            "交易 {}",
            "I lost my key. The tx is {}",
        ],
    )
    def test_called_a_hash_stay(self, text: str) -> None:
        done = redact(text.format(HEX))
        assert (done.text, done.redacted, done.flagged) == (text.format(HEX), False, False)

    @each_row(
        "text",
        [
            "her public key is {}",
            "pubkey {}",
            "Which hash do you mean?\nmine is {}",
            "I committed {} and blocked them",
            "my key, not a hash: {}",
            "private key (not the tx hash!) {}",
            "the privkey for tx {}",
            "this hash {} is my private key",
            "sha256? " + "no, this is something else entirely. " * 3 + "{}",
        ],
    )
    def test_called_neither_are_flagged(self, text: str) -> None:
        assert redact(text.format(HEX)).text == text.format(f"[FLAGGED: unknown 64-char hex {HEX[:16]}…]")

    def test_of_a_list_are_all_what_the_first_is_called(self) -> None:
        assert redact(f"checksums: {HEX}, {HEX}\n{HEX}").text == f"checksums: {HEX}, {HEX}\n{HEX}"
        assert redact(f"keys: {HEX} and {HEX}").text == "keys: [REDACTED key] and [REDACTED key]"

    def test_are_each_what_the_nearest_word_calls_them(self) -> None:
        for one, other in ("sha256", "secret"), ("secret", "sha256"):
            text = redact(f'{{"{one}": "{HEX}", "{other}": "{HEX}"}}').text
            assert text == f'{{"{one}": "{HEX}", "{other}": "{HEX}"}}'.replace(
                f'"secret": "{HEX}"', '"secret": "[REDACTED key]"'
            )

    def test_of_our_own_secret_are_never_a_hash(self) -> None:
        assert redact(f"sha256 {HEX}", own_hex={HEX}).text == "sha256 [REDACTED key]"

    @each_row("text", [HEX, HEX.upper()])
    def test_a_known_public_key_is_left_as_it_is(self, text: str) -> None:
        done = redact(f"her key is {text}", known_hex={HEX})
        assert done.text == f"her key is {text}"
        assert (done.redacted, done.flagged) == (False, False)

    @each_row("text", [HEX, HEX.upper(), f"0x{HEX}"])
    def test_not_one_digit_of_our_own_secret_is_shown(self, text: str) -> None:
        done = redact(text, own_hex={HEX}, known_hex={HEX})
        assert done.text.removeprefix("0x") == "[REDACTED key]"
        assert (done.redacted, done.flagged) == (True, False)

    @each_row("text", [f"{HEX}{HEX}", f"z{HEX}", f"{HEX}z", f"key{HEX.upper()}0"])
    def test_our_own_secret_is_hidden_though_it_is_glued_to_other_text(self, text: str) -> None:
        assert HEX[:20] not in redact(text, own_hex={HEX}).text.lower()

    @each_row("text", [HEX[:40], HEX[:63], HEX * 2, "g" * 64, "123e4567-e89b-12d3-a456-426614174000"])
    def test_other_lengths_are_no_key(self, text: str) -> None:
        assert redact(text).text == text


class TestKeysOfOthers:
    @each_row(
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
    )
    def test_each_known_form_is_replaced_and_named(self, secret: str, label: str) -> None:
        done = redact(f"here: {secret} bye")
        assert done.text == f"here: [REDACTED {label}] bye"
        assert (done.redacted, done.flagged) == (True, False)

    def test_a_private_key_without_an_end_is_replaced_to_the_end(self) -> None:
        assert redact("x " + PEM.format("", "")[:60]).text == "x [REDACTED private key]"

    def test_a_web_token_with_a_long_header_or_inside_a_word_is_replaced(self) -> None:
        rest = ".eyJzdWIiOiIxMjM0In0." + "x1Y2" * 11
        for token in ("eyJ" + "hbGci" * 900 + rest, "token_eyJ" + "hbGci" * 9 + rest):
            assert redact(token).text in ("[REDACTED JSON web token]", "token_[REDACTED JSON web token]")

    def test_two_private_keys_leave_the_text_between_them(self) -> None:
        key = PEM.format("EC ", "")
        assert redact(f"{key} and {key}").text == "[REDACTED private key] and [REDACTED private key]"


SHOWN = _table()
INVISIBLE = "".join(one for one, shown in SHOWN.items() if not shown)
LOOKALIKES = {
    letter: "".join(one for one, shown in SHOWN.items() if shown == letter)
    for letter in {shown for shown in SHOWN.values() if len(shown) == 1}
}


@st.composite
def disguises(draw: st.DrawFn) -> tuple[str, str]:
    """A secret, and the same with look-alike and invisible characters in it."""
    secret = draw(SECRETS | st.just(HEX))
    places = range(len(secret))
    found = list(secret)
    for at in draw(st.sets(st.sampled_from(places), max_size=12)):
        found[at] = draw(st.sampled_from(LOOKALIKES.get(secret[at], secret[at])))
    for at in draw(st.sets(st.sampled_from(places[1:]), min_size=1, max_size=12)):
        found[at] = draw(st.text(INVISIBLE, min_size=1, max_size=3)) + found[at]
    return secret, "".join(found)


def disguised(secret: str, number: int) -> str:
    """A secret in one of a few disguises, the same each time."""
    if number == 0:
        return "\u200b".join(secret)
    others = [LOOKALIKES.get(letter, letter) for letter in secret]
    return "".join(letters[number % len(letters)] for letters in others)


class TestDisguises:
    """Characters that show nothing, or look like others, hide no key."""

    @each_row("number", range(4))
    @each_row(
        ("secret", "label"),
        [
            (NSEC, "nsec"),
            ("ncryptsec1" + BECH32 * 4, "ncryptsec"),
            ("sk-ant-api03-" + "aB3_-" * 19, "Anthropic key"),
            ("sk-proj-" + "aB3_" * 20, "API key"),
            ("sk_live_" + "aB3" * 8, "Stripe key"),
            ("ghp_" + "aB3" * 12, "GitHub token"),
            ("glpat-" + "aB3" * 7, "GitLab token"),
            ("hf_" + "aB3" * 12, "Hugging Face token"),
            ("npm_" + "aB3" * 12, "npm token"),
            ("xoxb-" + "123-aB3" * 5, "Slack token"),
            ("https://discord.com/api/webhooks/123/" + "aB3_" * 12, "webhook"),
            ("eyJ" + "aB3" * 5 + ".eyJ" + "aB3" * 5 + "." + "aB3" * 9, "JSON web token"),
            ("AKIA" + "ABCD1234" * 2, "AWS key"),
            ("AIza" + "aB3-_" * 7, "Google key"),
            ("MTIz" + "aB3" * 7 + ".Gabc_-." + "aB3" * 10, "Discord token"),
            (PEM.format("RSA ", ""), "private key"),
        ],
    )
    def test_each_known_form_is_replaced_as_a_whole(self, secret: str, label: str, number: int) -> None:
        done = redact(f"вот: {disguised(secret, number)} пока", npub_of=None)
        assert done.text == f"вот: [REDACTED {label}] пока"
        assert (done.redacted, done.flagged) == (True, False)

    @each_row("number", range(3))
    def test_not_one_digit_of_our_own_secret_is_shown(self, number: int) -> None:
        assert redact(disguised(HEX, number), own_hex={HEX}).text == "[REDACTED key]"
        assert redact(disguised("s3cret+key/" * 3, number), own_hex={"s3cret+key/" * 3}).redacted

    @each_row("number", range(3))
    def test_sixty_four_digits_are_flagged_unless_they_are_a_known_key(self, number: int) -> None:
        text = f"key {disguised(HEX, number)}"
        assert redact(text).text == f"key [FLAGGED: unknown 64-char hex {HEX[:16]}…]"
        known = redact(text, known_hex={HEX})
        assert (known.text, known.redacted, known.flagged) == (text, False, False)

    @given(AROUND, BETWEEN, disguises(), BETWEEN, AROUND)
    def test_no_longer_piece_of_a_secret_survives(
        self, before: str, one: str, secret: tuple[str, str], other: str, after: str
    ) -> None:
        plain, hidden = secret
        done = redact(before + one + hidden + other + after)
        assert done.redacted or done.flagged
        left, beside = folded(done.text).text, folded(before + after).text
        pieces = {plain[i : i + 20] for i in range(len(plain) - 19)} - {"-----BEGIN PRIVATE KEY-----"}
        assert [piece for piece in pieces if piece in left and piece not in beside] == []
        again = redact(done.text)
        assert (again.text, again.redacted, again.flagged) == (done.text, False, False)

    @given(st.text(st.sampled_from([*SHOWN, *" .-\nabжд漢"]), max_size=200))
    def test_text_of_such_characters_without_a_key_comes_back_unchanged(self, text: str) -> None:
        done = redact(text)
        assert (done.text, done.redacted, done.flagged) == (text, False, False)

    @each_row(
        "text",
        [
            "Высокопревосходительство, посмотрите на https://example.com/очень/длинный/путь?запрос=1",
            "Αποτελεσματικότητα και ευχαριστώ πολύ, ηλεκτροεγκεφαλογραφήματος!",
            "ＡＢＣ株式会社のｗｅｂサイトは、ｈｔｔｐｓ：／／ｅｘａｍｐｌｅ．ｃｏｍ です。",
            "𝒯𝒽𝒾𝓈 𝒾𝓈 𝒿𝓊𝓈𝓉 𝓈𝑜𝓂𝑒 𝒻𝒶𝓃𝒸𝓎 𝓉𝑒𝓍𝓉-𝓌𝒾𝓉𝒽𝑜𝓊𝓉-𝒶-𝓀𝑒𝓎",
            "👩‍💻👨‍👩‍👧‍👦❤️‍🔥 — “quoted” ‘words’ … so\u00adft hy\u00adphens-everywhere-in-a-long-word",
            "می\u200cخواهم دربارهٔ پروژه حرف بزنم",
            "————————BEGIN———————— and ‑‑‑‑‑BEGIN PUBLIC KEY‑‑‑‑‑",
        ],
    )
    def test_ordinary_talk_comes_back_unchanged(self, text: str) -> None:
        done = redact(text)
        assert (done.text, done.redacted, done.flagged) == (text, False, False)


class TestRedaction:
    @given(AROUND, BETWEEN, SECRETS, BETWEEN, AROUND)
    def test_no_longer_piece_of_a_secret_survives(
        self, before: str, one: str, secret: str, other: str, after: str
    ) -> None:
        done = redact(before + one + secret + other + after)
        assert done.redacted
        pieces = {secret[i : i + 20] for i in range(len(secret) - 19)} - {"-----BEGIN PRIVATE KEY-----"}
        assert [piece for piece in pieces if piece in done.text and piece not in before + after] == []

    @given(AROUND, BETWEEN, SECRETS | st.just(HEX), BETWEEN, AROUND)
    def test_what_was_redacted_once_stays_as_it_is(
        self, before: str, one: str, secret: str, other: str, after: str
    ) -> None:
        once = redact(before + one + secret + other + after, npub_of=lambda _: NPUB)
        again = redact(once.text, npub_of=lambda _: NPUB)
        assert again.text == once.text
        assert (again.redacted, again.flagged) == (False, False)

    @given(st.text(max_size=200))
    def test_text_without_secrets_comes_back_unchanged(self, text: str) -> None:
        done = redact(text)
        assert (done.text, done.redacted, done.flagged) == (text, False, False)

    @each_row(
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


class TestHostileText:
    @each_row(
        "beginning",
        ["sk-", "sk-proj-", "eyJ", "ｓｋ－", "sk_live_", "ghp_", "-----BEGIN ", "https://", "nsec1"],
    )
    def test_of_beginnings_alone_takes_no_time_that_grows_with_its_square(self, beginning: str) -> None:
        text = beginning * 10_000  # with that, it would take a minute
        assert redact(text).text == text
