"""The tokeniser: turns text in any script into comparable terms.

Case is folded and accents are dropped ("Café" matches "cafe"). Words are stemmed (Snowball) in the language
that their text seems to be in. Scripts written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar)
are cut into pairs of neighbouring characters. Function words, including question words, are left out, since
they aren't evidence of what a text is about.
There is only one tokeniser, so that prompts, search and the archive agree on what matches.
Knows nothing about items or ranking.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import regex
import snowballstemmer

from discoclaw.core.languages import (
    ABOUT_ONESELF,
    ASKING,
    COMMON,
    COMMON_PAIRS,
    COURTESIES,
    ENGLISH_TOO,
    FUNCTION_WORDS,
    IRREGULAR,
    OWN_TOPICS,
    SAME,
    TOPICS,
)
from discoclaw.core.values import dataclass

# Letters, their combining marks (Indic vowel signs are marks), digits. "node.js" and "c++" are one run each.
_RUN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’.][\p{L}\p{M}\p{N}]+)*[+#]*")
# The same for ASCII text. `regex` releases the interpreter's lock for every call, and beside a busy thread it
# takes up to 5 ms to get it back; `re` keeps it.
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+(?:['.][A-Za-z0-9]+)*[+#]*")
_UNSPACED = regex.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_SCRIPTS = {  # the stemmer for a script that, among our languages, only one is written in
    "\u0370": (0x03FF, "greek"),
    "\u0400": (0x052F, "russian"),
    "\u0600": (0x06FF, "arabic"),
    "\u0900": (0x097F, "hindi"),
}
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})
# Diacritics of Latin, Greek and Cyrillic (but й is a letter of its own), and the vowel signs of Hebrew and
# Arabic: most people omit them. Without Indic and kana marks, it would be a different letter.
_ACCENTS = re.compile("(?<!и)\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u064b-\u065f\u0640\u0670]")
_HIRAGANA = re.compile("[\u3041-\u309f]+")
_STEMMERS: dict[str, Any] = {}
_ALONE = threading.Lock()
"""A stemmer works on a word in its own attributes, and threads stem too: two at once raise IndexError."""
_ELIDING = frozenset({"french", "italian"})
_ELIDED = re.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|dell|all|dall|nell|sull|coll|quell|quest)['’]"
)


def fold(text: str) -> str:
    """The text with case folded, compatibility forms unified, and accents dropped where they are optional."""
    if text.isascii():
        return text.lower()
    # NFKD twice: compatibility forms such as a bold "P" become plain letters before their case can be folded.
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).translate(_LETTERS)


STOP_WORDS = {language: frozenset(map(fold, words)) for language, words in FUNCTION_WORDS.items()}
_COURTESIES = frozenset(map(fold, COURTESIES))
_FUNCTION = frozenset().union(*STOP_WORDS.values())
_AFTER_ASKING = _FUNCTION - {"a", "an"}  # "What a day I had!" isn't a question
_SPOKEN: dict[str, tuple[str, ...]] = {}
for _language, _words in STOP_WORDS.items():
    for _word in _words - ENGLISH_TOO:
        _SPOKEN[_word] = (*_SPOKEN.get(_word, ()), _language)


@dataclass(frozen=True)
class Tokens:
    """A text cut into folded runs of letters and digits, and the language it seems to be in."""

    runs: Sequence[str]
    language: str

    @cached_property
    def terms(self) -> list[str]:
        """The terms in order, with repetitions. Function words and single letters are left out."""
        found: list[str] = []
        for run in self.runs:
            _add(run, self.language, found)
        return found

    @property
    def asks_nothing(self) -> bool:
        """Whether there are only courtesies and function words: "thanks, see you tomorrow".

        "What makes me happy?" has no other words either, but is a question.
        """
        joined = [_joined(_ELIDED.sub("", run)) for run in self.runs]
        return (
            len(joined) > 1
            and all(run in _COURTESIES or run in _FUNCTION for run in joined)
            and not _COURTESIES.isdisjoint(joined)
            and not _asks_about_oneself(joined)
        )

    @property
    def asks(self) -> bool:
        """Whether it begins as a question: "where do I live"; not "what a day"."""
        pairs = pairwise(self.runs[:3])
        return any(one in ASKING and other in _AFTER_ASKING for one, other in pairs)

    @property
    def sure(self) -> bool:
        """Whether its function words tell the language; words alone ("vélo, détendeur") may be of any."""
        return any(_joined(run) in _SPOKEN for run in self.runs)

    def forms(self, languages: Iterable[str] = ("english",)) -> dict[str, tuple[str, ...]]:
        """What each term would be if the text were in one of the languages, as far as it differs."""
        found: dict[str, dict[str, None]] = {}
        for language in languages:
            for run in self.runs if language != self.language else ():
                here: list[str] = []
                there: list[str] = []
                _add(run, self.language, here)
                _add(run, language, there)
                for one, other in zip(here, there, strict=True) if len(here) == len(there) else ():
                    if one != other:
                        found.setdefault(one, {})[other] = None
        return {one: tuple(others) for one, others in found.items()}


def tokenise(text: str) -> Tokens:
    """Cut a text into runs, once for everything that is then computed from them."""
    runs = _runs(fold(text))
    return Tokens(runs, guess(runs))


def _runs(folded: str) -> list[str]:
    found: list[str] = (_ASCII_RUN if folded.isascii() else _RUN).findall(folded)
    return found


def terms_in(text: str, language: str) -> list[str]:
    """The terms of a text that is known to be in a language, or is a part of a longer text in it."""
    return Tokens(_runs(fold(text)), language).terms


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repetitions. Function words and single letters are left out."""
    return tokenise(text).terms


def is_common(term: str) -> bool:
    """Whether a term is so common in conversation that sharing it alone isn't evidence."""
    return term in _common() or (not term.isascii() and _HIRAGANA.fullmatch(term) is not None)


def guess(words: Sequence[str]) -> str:
    """The language with the most function words among these (folded) words; English if none has more."""
    seen: dict[str, int] = {}
    for word in words:
        for language in _SPOKEN.get(_joined(word), ()):
            seen[language] = seen.get(language, 0) + 1
    best = max(seen.values(), default=0)
    if seen.get("english", 0) == best:  # a tie, or no function word at all
        return "english"
    return next(language for language in STOP_WORDS if seen.get(language) == best)


@lru_cache(maxsize=65_536)
def _stem(language: str, word: str) -> str:
    if language == "english":
        word = IRREGULAR.get(word, word)
    with _ALONE:
        stemmer = _STEMMERS.get(language)
        if stemmer is None:
            known = language if language in snowballstemmer.algorithms() else "english"  # none for Polish, …
            stemmer = _STEMMERS[language] = snowballstemmer.stemmer(known)
        stem: str = stemmer.stemWord(word)
    return stem


def _add(run: str, language: str, found: list[str]) -> None:
    begin = 0
    for unspaced in () if run.isascii() else _UNSPACED.finditer(run):
        _add_word(run[begin : unspaced.start()], language, found)
        pairs, begin = unspaced[0], unspaced.end()
        found.extend(pairs[i : i + 2] for i in range(max(1, len(pairs) - 1)))
    _add_word(run[begin:], language, found)


def _add_word(run: str, language: str, found: list[str]) -> None:
    if language in _ELIDING and (elided := _ELIDED.match(run)):
        run = run[elided.end() :]  # "l'entrée", "all'aperto"
    word = _joined(run)
    # A single Latin letter says nothing; a digit may ("gate 7"), and so may a single character of Han.
    if not word or (len(word) < 2 and word.isascii() and not word.isdigit()):
        return
    if not word.isascii():  # a Russian word in an English text is stemmed as Russian
        language = _script(word[0]) or language
    if word in STOP_WORDS[language]:
        return
    if word.isalpha():
        if language == "english" and word != run and run[-2:] in ("'s", "’s"):
            word = word[:-1]  # "Marta's" means Marta
        found.append(_stem(language, word))
        return
    found.append(word)
    if "." in word:  # so that "example.com" and "node.js" can also be found by their parts
        found.extend(
            _stem(language, part)
            for part in word.split(".")
            if len(part) > 1 and part not in STOP_WORDS[language]
        )


def _asks_about_oneself(words: Sequence[str]) -> bool:
    """Whether somebody asks about themselves ("how do I sleep"), or names a topic of theirs ("my test")."""
    if words[0] in ASKING and words[1] in _AFTER_ASKING and not ABOUT_ONESELF.isdisjoint(words):
        return True
    return any(one == "my" and other in OWN_TOPICS for one, other in pairwise(words))


def _joined(run: str) -> str:
    """A run without apostrophes, as the word lists have it ("dont", "users")."""
    return run.replace("'", "").replace("’", "")


def _script(char: str) -> str | None:
    """The language of a letter's script, for scripts that determine it; else None."""
    for first, (last, language) in _SCRIPTS.items():
        if first <= char and ord(char) <= last:
            return language
    return None


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(_stem("english", word) for word in words)


def others_for(term: str) -> tuple[str, ...]:
    """Everyday English synonyms of a term, and terms it includes (for "pet", "dog")."""
    return _same().get(term, ())


def topics_for(term: str) -> tuple[str, ...]:
    """The words of `others_for`, and those a term includes where somebody names a topic ("car": "tesla")."""
    return _topics().get(term) or others_for(term)


def _groups(table: str, start: Mapping[str, Iterable[str]] | None = None) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {
        term: dict.fromkeys(others) for term, others in (start or {}).items()
    }
    for line in re.sub(r"\n {4,}", " ", table).strip().splitlines():
        same, _, narrower = line.partition("<")
        group, below = ([_stem("english", word) for word in words.split()] for words in (same, narrower))
        for term in group:
            found.setdefault(term, {}).update(dict.fromkeys(one for one in (*group, *below) if one != term))
    return {term: tuple(others) for term, others in found.items()}


# Stemming all of them takes 40 ms, and most commands of the terminal need none.
@cache
def _same() -> Mapping[str, tuple[str, ...]]:
    return _groups(SAME)


@cache
def _topics() -> Mapping[str, tuple[str, ...]]:
    return _groups(TOPICS, _same())


@cache
def _common() -> frozenset[str]:
    return _stems(COMMON) | COMMON_PAIRS


# ----------------------------------------------------------------------
# The gist of a text: a form in which texts can be compared word by word. Pure.

_FILLERS = frozenset({"a", "an", "the", "my", "user", "users"})
_WORDS = re.compile(r"[\w+#]+")

Gist: TypeAlias = tuple[str, ...] | str
"""The folded words of a text in order; of a text without words, the text itself."""


def gist_of(text: str) -> Gist:
    """The gist of a text: its words in order, without articles and the like.

    Words such as "not", "from" or "before" are kept, since they change the meaning.
    """
    words = _WORDS.findall(fold(text).replace("'", "").replace("’", ""))
    return tuple([word for word in words if word not in _FILLERS]) or text


def words_in(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


def beginning_with(text: str) -> re.Pattern[str]:
    """A pattern for folded words with these beginnings; "." ends a whole word, "_" stands for a space."""
    ways = [way.replace("_", " ").replace(".", r"\b") for way in text.split()]
    return re.compile(rf"\b(?:{'|'.join(ways)})")


NOT_TELLING = frozenset().union(*STOP_WORDS.values()) | words_in(
    """nutzer nutzers nutzerin utilisateur lutilisateur usuario utente gebruiker пользователь"""
)
"""Words that don't tell what a text is about: function words, and whom it is about."""
