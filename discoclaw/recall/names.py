"""Names in a text, as far as writing shows them: words with a capital letter, and codes such as "WEB-903".

Only scripts that have capitals show any. German gives them to every noun, so there only two words or more in
a row of a note are taken for a name ("Frau Seifert"). A name is the set of its terms. Pure.
"""

import re
from collections.abc import Sequence

from discoclaw.core.words import terms_in

LONGEST_NAME = 8
"""A name of more terms is a sentence: nobody asks for it as a whole."""
LONGEST_ACRONYM = 4
_WORD = re.compile(r"[^\W_](?:[\w.'’/-]*\w)?|[^\w\s]")
_PARTICLES = frozenset(["da", "de", "del", "della", "den", "der", "des", "di", "do", "dos", "du"])
_PARTICLES |= frozenset(["la", "las", "le", "les", "of", "the", "van", "von", "zu"])


def names_in(text: str, language: str, *, note: bool) -> list[frozenset[str]]:
    """The names in a text that is in `language`.

    `note`: the text is a note, in which "SLA" is a name. In what people ask it is no person whom one could
    know.
    """
    found: list[frozenset[str]] = []
    run: list[str] = []
    words = [*_WORD.findall(text), ""]
    for number, word in enumerate(words):
        if _is_part(word, inside=bool(run)) or (
            run and word in _PARTICLES and _is_part(words[number + 1], inside=True)
        ):
            run.append(word)
            continue
        if run and _is_name(run, language, begins=number == len(run), note=note):
            found.append(frozenset(terms_in(" ".join(run), language)))
        run = []
    return [name for name in found if name]


def _is_part(word: str, *, inside: bool) -> bool:
    """Whether a word can be part of a name: with a capital, a code, or a number inside a name."""
    if not word or not word[0].isalnum():
        return False
    numbered = any(map(str.isdigit, word))
    return word[0].isupper() or (numbered and (inside or any(map(str.isalpha, word))))


def _is_name(run: Sequence[str], language: str, *, begins: bool, note: bool) -> bool:
    if language == "german":
        return note and len(run) > 1
    if len(run) > 1:
        return True
    if len(run[0]) > LONGEST_ACRONYM and run[0].isupper():
        return False  # it is emphasis
    acronym = len(run[0]) > 1 and run[0].isupper()
    if note:
        return not begins or acronym or any(map(str.isdigit, run[0]))
    return not begins and not acronym
