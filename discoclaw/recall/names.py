"""Names in a text, as far as writing shows them: words with a capital letter inside a sentence. Pure.

Only scripts that have capitals show any, and German, which gives them to every noun, shows none.
"""

import re

from discoclaw.core.words import fold, guess, terms

_NAME = re.compile(r"(?<=[^\W_][\s,;:(\"'“„«’])(?:the\s+)?([^\W\d_]\w*)")
_FIRST = re.compile(r"[^\W_]\w*")


def names_in(text: str) -> frozenset[str]:
    """The terms of the names in a text."""
    written = [word for word in _NAME.findall(text) if word[0].isupper()]
    if not written or guess(_FIRST.findall(fold(text))) == "german":
        return frozenset()
    return frozenset(term for word in written for term in terms(word))
