"""The ASCII text that somebody sees in a text of look-alike and invisible characters.

    folded("ｓk-\\u200bаnt-…") is "sk-ant-…", and knows which characters each of its own came from

A character counts as the ASCII characters that it looks like: by Unicode's compatibility form (NFKC), or, for
Cyrillic, Greek, Armenian and a few Latin letters and dashes, by the table below (a part of Unicode's
confusables). Characters that show nothing (default-ignorable ones) are left out. Any other character stays.
The tables are made when they are first needed. Pure.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

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
