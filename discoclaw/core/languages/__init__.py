"""The words of languages: function words, months, courtesies, and words that show that a text is personal.

The words are in files beside this one: `<language>.toml`, and `shared.toml` and `actions.toml` for lists of
several languages at once. They are lower-case, and without Latin accents but for personal words, whose case
and accents don't matter, and requests. Here is only what reads them, each file once.

Function words (articles, pronouns, auxiliaries, question words) don't say what a text is about, but they
reveal its language. The lists are deliberately short: a missing word is weighed by its rarity like any other,
while a word listed by mistake can never be found.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

SPOKEN = (
    "english", "german", "french", "spanish", "portuguese", "italian", "dutch", "swedish", "polish",
    "turkish", "indonesian", "vietnamese", "russian", "greek", "arabic", "hindi",
)  # fmt: skip
"""The languages with function words; of equals the first counts."""
ALSO = ("many", "hebrew", "korean")
"""Languages with personal words and no function words; "many" are those that many languages share."""
UNSPACED = ("chinese", "japanese", "thai")
"""Languages written without spaces: a personal word counts wherever it stands, and has no marks."""
OPENLY = ("health", "family", "religion", "money", "whereabouts")
"""The matters whose personal words count wherever something was said, the others only in private."""


@cache
def _read(name: str) -> Mapping[str, Any]:
    return tomllib.loads((files("discoclaw.core.languages") / f"{name}.toml").read_text("utf-8"))


def _words(name: str, file: str = "shared") -> frozenset[str]:
    return frozenset(_read(file)[name].split())


def _numbered(name: str, first: int) -> Iterator[tuple[str, int]]:
    """The words of each line, with numbers from `first` on."""
    for line in _read("shared")[name].splitlines():
        yield from ((word, number) for number, word in enumerate(line.split(), start=first))


def personal(*, unspaced: bool, in_the_open: bool) -> Iterator[str]:
    """Words that show that a text is about something personal, for `core/privacy`.

    Every language has the same matters. "loosely" has words that are often about something personal (a bank,
    a city, a trip), but too often about something else.

        word     this word                      word-    words that begin like this
        -word    words that end like this       -word-   words that contain this
        a_phrase these words in this order
        word?    not beside a technical word, in the open ("child process")

    A text may mix languages, and is often too short to tell which one it is in. So every word counts in every
    text, and has to be safe in all of them: German "Kind" is an English word, so only "mein Kind" is listed.
    """
    for language in UNSPACED if unspaced else (*SPOKEN, *ALSO):
        for matter, words in _read(language)["personal"].items():
            if matter in OPENLY or not in_the_open:
                yield from words.split()


def technical() -> tuple[frozenset[str], frozenset[str]]:
    """Words beside which a doubtful personal word doesn't count, and words that may stand between the two."""
    return _words("technical"), _words("joining")


FUNCTION_WORDS = {language: _words("function_words", language) for language in SPOKEN}
ENGLISH_TOO = _words("english_too")
COMMON_PAIRS = _words("common_pairs")
COURTESIES = _words("courtesies")
ASKING = _words("asking")
ACCOUNT = _read("shared")["account"]
POINTING = _words("pointing")
ABOUT_ONESELF = _words("about_oneself")
OWN_TOPICS = _words("own_topics")
EVERYTHING = _words("everything")
EVERYTHING_UNSPACED = tuple(_read("shared")["everything_unspaced"].splitlines())
LISTING = _words("listing")
SAYING = _words("saying")
NEGATIONS = _words("negations")
DIGITS = {word: str(digit) for word, digit in _numbered("digits", 0)} | {"oh": "0"}
MONTHS: dict[str, int] = dict(_numbered("months", 1))
COMMON = _words("common", "english")
IRREGULAR = {
    form: base.strip()
    for base, _, forms in (line.partition("<") for line in _read("english")["irregular"].splitlines())
    for form in forms.split()
}
"""English past and plural forms, with their base."""
SAME: str = _read("english")["same"]
TOPICS: str = _read("english")["topics"]
ACTIONS: Mapping[str, Any] = {
    name: {part: frozenset(listed.split()) for part, listed in words.items()}
    if isinstance(words, Mapping)
    else frozenset(words.split())
    for name, words in _read("actions").items()
}
"""Words by which people ask for something to be done in the chat: by kind of act, and those all share."""
