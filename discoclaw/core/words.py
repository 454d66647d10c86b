"""The one tokeniser: text of any script becomes comparable terms.

Letters are case-folded, accents are dropped for matching ("Café" meets "cafe"), English words are stemmed
(Porter2, by the snowballstemmer library), scripts written without spaces (Han, kana, Hangul, Thai, Lao,
Khmer, Myanmar) are cut into pairs of neighbouring characters. Stop words, question words among them, carry
no evidence and are left out. Knows nothing about items or ranking.
"""

import unicodedata
from functools import lru_cache

import regex
import snowballstemmer

# Letters with their marks (an Indic vowel sign is a mark) and digits; "node.js" and "c++" are one run each.
_RUN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’.][\p{L}\p{M}\p{N}]+)*[+#]*")
_UNSPACED = regex.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_STEMMER = snowballstemmer.stemmer("english")

STOP_WORDS = frozenset(
    """
    a about actually after again all also am an and any are as at be because been before being but by can
    could did do does doing done dont down each ever every few for from get gets getting go goes going got
    had has have having he hello her here hers hey hi him his how i id if ill im in into is isnt it its ive
    just know let lets like ll look made make many maybe may me might mine more most much must my myself need
    no not now of off oh ok okay on once one only or other our ours out over own please put re really said
    same say says see she should so some someone something still such take tell than thank thanks that thats
    the their theirs them then there these they thing things think this those through to too try under until
    up us use used user users uses using ve very want wants was way we well were what whats when where which
    while who whom whose why will with without would yes yet you your youre yours yourself remember
    """.split()  # noqa: SIM905 - a list of 200 strings is not easier to read
)


def fold(text: str) -> str:
    """Case-folded, compatibility forms unified, accents dropped; other scripts keep their letters."""
    if text.isascii():
        return text.lower()
    # Twice NFKD: compatibility forms such as a bold "P" become letters first, then their case is folded.
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not _accent(c)))


def _accent(char: str) -> bool:
    # Only the Latin/Greek/Cyrillic diacritics: an Indic or kana mark is part of the letter's identity.
    return "\u0300" <= char <= "\u036f"


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    stem: str = _STEMMER.stemWord(word)
    return stem


def terms(text: str) -> list[str]:
    """The terms of a text, in order, with repetitions; stop words and single letters left out."""
    found: list[str] = []
    for match in _RUN.finditer(fold(text)):
        _add(match[0], found)
    return found


def _add(run: str, found: list[str]) -> None:
    begin = 0
    for unspaced in () if run.isascii() else _UNSPACED.finditer(run):
        _add_word(run[begin : unspaced.start()], found)
        pairs, begin = unspaced[0], unspaced.end()
        found.extend(pairs[i : i + 2] for i in range(max(1, len(pairs) - 1)))
    _add_word(run[begin:], found)


def _add_word(run: str, found: list[str]) -> None:
    word = run.replace("'", "").replace("’", "")
    if not word or word in STOP_WORDS or (len(word) < 2 and word.isascii() and not word.isdigit()):
        return
    if word.isalpha():
        found.append(_stem(word))
        return
    found.append(word)
    if "." in word:  # "example.com" and "node.js" are also found by their parts
        found.extend(_stem(part) for part in word.split(".") if len(part) > 1 and part not in STOP_WORDS)
