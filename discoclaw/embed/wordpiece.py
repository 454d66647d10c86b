"""The uncased WordPiece tokeniser: text to the token numbers that a BERT model reads. Pure.

The steps are those of google-research/bert, `tokenization.py`: clean, separate Han characters, lower-case,
drop accents, split at white space and punctuation, then cut each word into the longest pieces that the
vocabulary has. These 80 lines replace a library that would bring a download client with it.
"""

import unicodedata
from collections.abc import Mapping

UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
MAX_WORD_CHARS = 100
"""Characters. A longer word is one unknown token, as in the original."""

_HAN = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def vocabulary(text: str) -> dict[str, int]:
    """A vocabulary from the text of its file: one piece on each line, numbered from 0."""
    return {piece: number for number, piece in enumerate(text.split("\n")) if piece}


def tokens(text: str, vocabulary: Mapping[str, int], *, most: int) -> list[int]:
    """The token numbers of a text between begin and end mark, at most `most` including these two."""
    unknown = vocabulary[UNKNOWN]
    found = [vocabulary[BEGIN]]
    for word in _words(text):
        if len(found) >= most - 1:
            break
        found += _pieces(word, vocabulary, unknown)
    return [*found[: most - 1], vocabulary[END]]


def _words(text: str) -> list[str]:
    lowered = unicodedata.normalize("NFD", "".join(map(_clean, text))).lower()
    spaced = "".join(_apart(char) for char in lowered if unicodedata.category(char) != "Mn")
    return spaced.split()


def _clean(char: str) -> str:
    """A normalised character: white space is one space, controls vanish, Han gets spaces around it."""
    if char in "\t\n\r" or unicodedata.category(char) == "Zs":
        return " "
    if char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    return f" {char} " if any(low <= ord(char) <= high for low, high in _HAN) else char


def _apart(char: str) -> str:
    """Punctuation with a space on each side, so that it becomes a word of its own."""
    is_mark = char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")
    return f" {char} " if is_mark else char


def _pieces(word: str, vocabulary: Mapping[str, int], unknown: int) -> list[int]:
    """The pieces of a word, each the longest that fits (greedy).

    One unknown token if any rest doesn't fit.
    """
    if len(word) > MAX_WORD_CHARS:
        return [unknown]
    found: list[int] = []
    begin = 0
    while begin < len(word):
        for end in range(len(word), begin, -1):
            piece = ("##" if begin else "") + word[begin:end]
            if piece in vocabulary:
                found.append(vocabulary[piece])
                begin = end
                break
        else:
            return [unknown]
    return found
