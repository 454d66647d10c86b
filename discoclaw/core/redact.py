"""Removes secrets from text before it reaches the disk, a model or a relay.

The patterns match keys that identify themselves by their published form. Nostr secret keys are replaced in
any case. 64 hex digits may be a raw key, or a SHA-256 or transaction id. The word nearest before them decides
("my key: …", "tx …"), or else one right after them: a key is replaced, and a hash stays, as known public keys
do. If nothing says what they are, or the words disagree, they are flagged and cut. All other text stays.
A key counts as it looks: with invisible or look-alike characters in it, it is replaced too (`folded`).
Knows nothing about where text comes from or goes.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from discoclaw.core.values import dataclass, field

# ----------------------------------------------------------------------
# The ASCII text that somebody sees in a text of look-alike and invisible characters.
#
#     folded("ｓk-\u200bаnt-…") is "sk-ant-…", and knows which characters each of its own came from
#
# A character counts as the ASCII characters that it looks like: by Unicode's compatibility form (NFKC), or,
# for Cyrillic, Greek, Armenian and a few Latin letters and dashes, by the table below (a part of Unicode's
# confusables). Characters that show nothing (default-ignorable ones) are left out. Any other character
# stays. The tables are made when they are first needed.


_ALIKE = (
    ("АаВЕеЅѕІіЈјКкМНОоРрСсТУуХхҮүһԁԛԝԌԍӏьѵӀ", "AaBEeSsIiJjKkMHOoPpCcTYyXxYyhdqwGglbvI"),
    ("ΑαΒΕΖΗηΙιΚκΜΝνΟοΡρΤτΥυΧχγωϲϳϹͿ", "AaBEZHnIiKkMNvOoPpTtYuXxywcjCJ"),
    ("օսոհցզՍՕԼ", "ounhgqUOL"),
    ("ɑɡıȷɩƖ", "agijiI"),
    ("‐‑‒–—―−⁃˗", "---------"),
    ("․·∙ꞏ", "...."),
    ("⁄∕ː∶", "//::"),
)
"""Characters, and below each the ASCII character that it looks like."""
_COMPATIBLE = (
    *((0xA0, 0xFF), (0x17F, 0x17F), (0x1C4, 0x1CC), (0x1F1, 0x1F3), (0x2B0, 0x2E4), (0x1D2C, 0x1D6A)),
    *((0x2010, 0x2189), (0x2460, 0x24FF), (0x2C7C, 0x2C7D), (0x3200, 0x33FF), (0xA69C, 0xA7FF)),
    *((0xFB00, 0xFB06), (0xFE10, 0xFE6F), (0xFF01, 0xFFEE), (0x1D400, 0x1D7FF), (0x1F100, 0x1F1FF)),
    (0x1FBF0, 0x1FBF9),
)
"""Ranges of characters with a compatibility form in ASCII, as first and last code points."""
_INVISIBLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    (0xE0000, 0xE0FFF),
)
"""Unicode's default-ignorable characters, as first and last code points."""
_BLOCK = "-----BEGIN"


@dataclass(frozen=True, slots=True)
class Folded:
    """A text as it looks. `origins` has, for each of its characters, the position of the original one."""

    text: str
    origins: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original text from which this part came; it has at least one character."""
        return self.origins[start], self.origins[end - 1] + 1


def folded(text: str) -> Folded:
    """The text as it looks."""
    alike, found, origins = _table(), [], []
    for position, character in enumerate(text):
        shown = alike.get(character, character)
        found.append(shown)
        origins += [position] * len(shown)
    return Folded("".join(found), tuple(origins))


def disguised(text: str, least: int) -> Iterator[tuple[int, int]]:
    """The parts of a text without white space, as start and end, that look like ASCII but are something else.

    Each has at least `least` characters. This is all that anybody has to fold who looks for ASCII words.
    """
    end = 0
    for word in _long_words(text, least):
        start = text.index(word, end)
        end = start + len(word)
        for match in _ascii_looking(least).finditer(text, start, end):
            if not match[0].isascii():
                yield match.span()


def has_block(text: str) -> bool:
    """Whether a text has what looks like "-----BEGIN", with which a block of PEM begins."""
    return _BLOCK in text or any(_block().search(word) for word in _long_words(text, len(_BLOCK)))


def _long_words(text: str, least: int) -> list[str]:
    """The words of at least `least` characters that are not ASCII. Few texts have any, and this is fast."""
    return [word for word in text.split() if len(word) >= least and not word.isascii()]


@cache
def _table() -> Mapping[str, str]:
    """The look of each such character, in ASCII; "" if it shows nothing."""
    found: dict[str, str] = {}
    for character in _characters(_COMPATIBLE):
        shown = unicodedata.normalize("NFKC", character)
        if shown.isascii() and shown.isprintable() and " " not in shown:
            found[character] = shown
    for letters, ascii_letters in _ALIKE:
        found |= dict(zip(letters, ascii_letters, strict=True))
    return found | dict.fromkeys(_characters(_INVISIBLE), "")


def _characters(ranges: tuple[tuple[int, int], ...]) -> Iterator[str]:
    return (chr(code) for first, last in ranges for code in range(first, last + 1))


@cache
def _ascii_looking(least: int) -> re.Pattern[str]:
    return re.compile(rf"[!-~{_class(_table())}]{{{least},}}")


@cache
def _block() -> re.Pattern[str]:
    dash, nothing, letter = (
        _class(one for one, shown in _table().items() if shown == wanted) for wanted in ("-", "", "B")
    )
    return re.compile(rf"(?:[-{dash}][{nothing}]*){{5}}[B{letter}]")


def _class(characters: Iterable[str]) -> str:
    """The inside of a character class, with ranges where characters follow each other."""
    parts: list[str] = []
    codes = sorted(map(ord, characters))
    start = 0
    for index, code in enumerate(codes):
        if index + 1 == len(codes) or codes[index + 1] != code + 1:
            parts.append(f"{chr(codes[start])}-{chr(code)}")
            start = index + 1
    return "".join(parts)


# ----------------------------------------------------------------------
# What is removed.


_LOGIN = re.compile(r"(?s)(?:(?<=://)|^(?![\w+.-]+://)).*@|\?.*")
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_NSEC = re.compile(rf"nsec1[{_BECH32}]{{58}}", re.IGNORECASE)
_NCRYPTSEC = re.compile(rf"ncryptsec1[{_BECH32}]{{20,}}", re.IGNORECASE)
# "0x" has no word boundary before the digits, so it is an explicit alternative.
_HEX64 = re.compile(r"(?:(?<=0x)|(?<=0X)|(?<![0-9a-zA-Z]))[0-9a-fA-F]{64}(?![0-9a-zA-Z])")

_PEM = r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
# user id in base64 . timestamp . HMAC, the form in Discord's developer documentation
_DISCORD = r"(?<![\w-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
_OWN, _SECRET, _HEX = "key", "nsec", "hex"
_CALLED = re.compile(
    r"(?P<public>pub(?:lic)?[\s_-]*key|npub)"
    # In English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Turkish, Japanese,
    # Chinese and Korean. Only words that are part of others have an end.
    r"|(?P<key>(?:priv|api|sec|sign|session)?key(?![a-z])|keys(?![a-z])|nsec|secret|segre[dt]o|geheim|privat"
    r"|privé|privada|seed(?![a-z])|mnemonic|passw|passphrase|credential|token|bearer|schlüssel|kennwort|clé"
    r"|clef|mot de passe|clave|llave|contraseña|semilla|chave|senha|chiave|sleutel|wachtwoord|klucz|hasło"
    r"|ключ|секрет|приват|парол|сид|anahtar|şifre|鍵|秘密|パスワード|シード|密钥|密鑰|私钥|私鑰|密码|助记词"
    r"|키|비밀)"
    r"|(?P<hash>(?<![a-z])(?:sha|tx|txid|txn|commit|block)(?![a-z])|sha[\s_-]?[23]?[\s_-]?256|blake[23]"
    r"|keccak|hash|checksum|digest|fingerprint|merkle|transa[ck]|integrity|event[\s_-]?id|prüfsumme"
    r"|empreinte|somme de contrôle|хеш|хэш|транзакц|ハッシュ|トランザクション|哈希|交易|해시)",
    re.IGNORECASE,
)
"""Words that say what 64 hex digits are."""
_BEFORE, _AFTER, _APART = 80, 40, 12
"""How far before the digits a word counts, and after them; how far apart the entries of one list are."""
_CLAUSE = re.compile(r"[\n,;{}\[\]]|0x|[0-9a-f]{64}", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?。！？]\s*|,\s")
_NOT = re.compile(r"\b(?:not?|never|nicht|keine?|pas|non|não|не)\b", re.IGNORECASE)
_IS = re.compile(r"\W*(?:is|was|ist|war|est|es|é|è|это)\b", re.IGNORECASE)
_SHA256SUM = re.compile(r" [ *][\w./-]")  # what that program prints after a hash
# A real key contains digits; a long kebab-case word that starts with "sk-" is not a key. They are not looked
# for very far, or a text of many "sk-" would take a time that grows with its square.
_DIGIT = r"(?=[A-Za-z_-]{0,200}\d)"
_Rule = tuple[str, re.Pattern[str]]
_RULES: tuple[_Rule, ...] = (
    ("ncryptsec", _NCRYPTSEC),
    (_SECRET, _NSEC),
    ("private key", re.compile(_PEM, re.S)),
    ("Anthropic key", re.compile(r"sk-ant-[A-Za-z0-9_-]{16,}")),
    ("API key", re.compile(rf"(?<![A-Za-z0-9])sk-(?:proj-|svcacct-)?{_DIGIT}[A-Za-z0-9_-]{{32,}}")),
    ("Stripe key", re.compile(r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("GitHub token", re.compile(r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})")),
    ("GitLab token", re.compile(r"glpat-[A-Za-z0-9_-]{20,}")),
    ("Hugging Face token", re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}")),
    ("npm token", re.compile(r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36,}")),
    ("Slack token", re.compile(r"(?:xox[abposr]|xapp)-[A-Za-z0-9-]{10,}")),
    ("webhook", re.compile(r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}")),
    (  # also behind "token_" or "%3D", but then its first dot isn't looked for very far either
        "JSON web token",
        re.compile(r"(?:(?<![\w-])eyJ[\w-]{10,}|eyJ[\w-]{10,500})\.eyJ[\w-]{10,}\.[\w-]{20,}"),
    ),
    ("AWS key", re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])")),
    ("Google key", re.compile(r"AIza[A-Za-z0-9_-]{35}")),
    ("Discord token", re.compile(_DISCORD)),
    (_HEX, _HEX64),
)


def without_login(address: str) -> str:
    """An address, however wrong, without user, password and query, each of which may be a secret."""
    return _LOGIN.sub("", address)


@dataclass(frozen=True, slots=True)
class Redacted:
    """The text without secrets, and whether anything was `redacted` or `flagged`."""

    text: str
    redacted: bool = False
    flagged: bool = False


_SHORTEST = 15
"""Length of the shortest secret any pattern matches. Most names are shorter and need no search."""
_CANDIDATE = re.compile(rf"[\w.:/-]{{{_SHORTEST},}}|-----BEGIN")
"""A part of every secret that a pattern matches."""
_MOST_DEEP = 32
"""Deeper nesting is cut off. No JSON of ours is that deep, so it can only be meant to exhaust the stack."""


def redact(
    text: str,
    *,
    known_hex: Collection[str] = (),
    own_hex: Collection[str] = (),
    npub_of: Callable[[str], str | None] | None = None,
) -> Redacted:
    """Remove secrets from `text`.

    `known_hex`: public keys (64 lower-case hex digits) that are not flagged. `own_hex`: the bot's own secret
    keys, in hex or any other form; they are replaced without a hint at their digits or owner. `npub_of` turns
    an nsec into its npub, or returns None if its checksum is wrong; without it, the note in place of an nsec
    does not name the key's owner.
    """
    if len(text) < _SHORTEST:
        return Redacted(text)
    found = _Redaction(known_hex, own_hex, npub_of)
    text = found.apply(found.undisguise(text))
    return Redacted(text, found.redacted, found.flagged)


class _Redaction:
    """Replaces secrets in one text, and notes whether anything was `redacted` or `flagged`."""

    def __init__(
        self,
        known_hex: Collection[str],
        own_hex: Collection[str],
        npub_of: Callable[[str], str | None] | None,
    ) -> None:
        self.redacted = self.flagged = False
        self._known_hex = known_hex
        self._own_hex = own_hex
        self._npub_of = npub_of
        self._last = ("", 0, "")  # the text, end and kind of the last hex digits

    def apply(self, text: str) -> str:
        """The text without the secrets that stand in it as they are."""
        # Most texts have no word that is as long as a key, and need no other search.
        for label, pattern in self._rules() if _CANDIDATE.search(text) else self._own_rules():
            if pattern.search(text):
                text = pattern.sub(partial(self._instead, label), text)
        return text

    def undisguise(self, text: str) -> str:
        """The text without the secrets that look-alike or invisible characters hide from `apply`.

        This comes first, because `apply` may find the beginning of such a key and leave the rest.
        """
        if text.isascii():
            return text
        parts = [(0, len(text))] if has_block(text) else disguised(text, _SHORTEST)
        replaced: list[tuple[int, int, str]] = []
        for start, end in parts:
            replaced += self._replacements(text, start, folded(text[start:end]))
        for start, end, instead in sorted(replaced, reverse=True):
            text = text[:start] + instead + text[end:]
        return text

    def _replacements(self, text: str, offset: int, part: Folded) -> list[tuple[int, int, str]]:
        """The replacements of the disguised secrets of a part: start, end and text."""
        taken: list[tuple[int, int, str]] = []
        for label, pattern in self._rules():
            for match in pattern.finditer(part.text):
                start, end = (offset + at for at in part.span(*match.span()))
                is_free = all(end <= other or start >= until for other, until, _ in taken)
                if not is_free or text[start:end].isascii():  # `apply` finds the latter
                    continue
                if (instead := self._instead(label, match)) != match[0]:
                    taken.append((start, end, instead))
        return taken

    def _rules(self) -> Iterator[_Rule]:
        yield from self._own_rules()
        yield from _RULES

    def _own_rules(self) -> Iterator[_Rule]:
        # Anywhere, even inside a longer word: a leak of our own key is the worst case.
        return ((_OWN, re.compile(re.escape(own), re.IGNORECASE)) for own in self._own_hex)

    def _instead(self, label: str, match: re.Match[str]) -> str:
        """The replacement of a match of the rule with this label."""
        if label == _HEX:
            kind = self._kind(match)
            if match[0].lower() in self._known_hex or kind == "hash":
                return match[0]
            if kind != "key":
                self.flagged = True
                return f"[FLAGGED: unknown 64-char hex {match[0][:16]}…]"
            label = _OWN
        self.redacted = True
        npub = self._npub_of(match[0].lower()) if label == _SECRET and self._npub_of is not None else None
        return f"[REDACTED {label} → {npub[:20]}...]" if npub else f"[REDACTED {label}]"

    def _kind(self, match: re.Match[str]) -> str:
        """The name of hex digits by the words around them: "key", "hash", "public", or ""."""
        text, start, end = match.string, *match.span()
        last, until, kind = self._last if self._last[0] is text else ("", 0, "")
        between = text[max(until, start - _BEFORE) : start]
        # A line of its own above the digits, such as "Private key:", counts; what another line says doesn't.
        said = between.removesuffix("0x").rstrip(" \t\n\r`>*:=\"'(").rpartition("\n")[2].rpartition("]")[2]
        after = _CLAUSE.split(text[end : end + _AFTER], maxsplit=1)[0]
        named, behind = _kinds(said), _kinds(after)
        if named:
            kind = named[-1]
        elif not (last and start - until <= _APART):
            kind = behind[0] if behind else "hash" if _SHA256SUM.match(after) else ""
        doubt = said if _NOT.search(said) else _SENTENCE.split(said)[-1]
        if kind == "hash" and "key" in [*_kinds(doubt), *(behind if _IS.match(after) else ())]:
            kind = ""  # "my key, not a hash: …"
        self._last = (text, end, kind)
        return kind


def _kinds(text: str) -> list[str]:
    return [one.lastgroup or "" for one in _CALLED.finditer(text)]


@dataclass(frozen=True, slots=True)
class Redactor:
    """`redact` with the keys this bot knows. Without any it does the same as `redact` alone.

    `own`: the bot's secret keys, in every form in which one could be pasted (hex, nsec). `known`: returns the
    public keys that are not flagged, which change at runtime. `npub_of`: as for `redact`.
    """

    own: frozenset[str] = field(default=frozenset(), repr=False)
    known: Callable[[], Collection[str]] = frozenset
    npub_of: Callable[[str], str | None] | None = None

    def __call__(self, text: str) -> Redacted:
        """The text without secrets, and whether it had any."""
        return redact(text, known_hex=self.known(), own_hex=self.own, npub_of=self.npub_of)

    def clean(self, text: str) -> str:
        """The text without secrets."""
        return self(text).text

    def value(self, value: Any, *, _deep: int = 0) -> Any:
        """A JSON value with secrets removed from every text in it, keys of objects included."""
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
"""A redactor that knows no keys of our own."""
