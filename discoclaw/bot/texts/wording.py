"""The words of the core and of the command line in the words that people know: a branch is a persona.

Rules and histories are described where they belong, in the words of git. What people read in Discord goes
through here. What somebody wrote themselves, which stands in quotes, stays as it is.
"""

import re

from discoclaw.core.yours import QUOTED

_QUOTED = re.compile(QUOTED)
_ID = re.compile(r"\bdurable-(?=[0-9a-f]{8}\b)")
_WORDS = {
    "branch": "persona",
    "branches": "personas",
    "commit": "change",
    "commits": "changes",
    "deprecated": "forgotten",
    "item": "memory",
    "items": "memories",
    "cannot": "can't",
    "HEAD": "the current persona",
}
_KNOWN = re.compile(rf"\b(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b")
_AN_ITEM = re.compile(r"\ban (?=item\b)")


def for_people(text: str) -> str:
    """A text about a memory, in the words that people know."""
    parts, at = [], 0
    for found in _QUOTED.finditer(text):
        parts += [_translated(text[at : found.start()]), found[0]]
        at = found.end()
    parts.append(_translated(text[at:]))
    return _ID.sub("", "".join(parts))


def _translated(text: str) -> str:
    return _KNOWN.sub(lambda found: _WORDS[found[0]], _AN_ITEM.sub("a ", text))
