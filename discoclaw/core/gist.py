"""The gist of a text: a form in which texts can be compared word by word. Pure."""

import re
from typing import TypeAlias

from discoclaw.core.words import STOP_WORDS, fold

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
