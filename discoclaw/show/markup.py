"""Discord's markup: text that stays as it is, times that Discord renders, and small print."""

import re
from datetime import UTC

from discoclaw.core.yours import QUOTED
from discoclaw.core.zones import minute
from discoclaw.show.words import LONGEST, line, quoted, word

NOTE = "-# "
"""How lines begin that aren't talk: small print in Discord, and left out of the window."""

_MARKDOWN = re.compile(r"[*_~|\\`[]")
_ESCAPED = re.compile(r"\\([*_~|\\`[])")
_OPENING = re.compile(r"^(\d*)([#>+.)-])")
_TIME = re.compile(r"<t:(-?\d+):[a-zA-Z]>")


def block(text: str, language: str = "") -> str:
    """Text as it is, in a code block that nothing in it can end."""
    tame = text.replace("```", "'''")
    return f"```{language}\n{tame}\n```"


def plain(text: str) -> str:
    """Words as they are: nothing in them is markup."""
    return _MARKDOWN.sub(r"\\\g<0>", text)


def unmarked(text: str) -> str:
    """The text that `plain` was given."""
    return _ESCAPED.sub(r"\1", text)


def opening(text: str, most: int = LONGEST) -> str:
    """A text as `words` at the start of a line, where marks would make it a heading, quotation or list."""
    return _OPENING.sub(r"\g<1>\\\g<2>", words(text, most))


def words(text: str, most: int = LONGEST) -> str:
    """Other people's words on one line, without markup."""
    return plain(line(text, most))


def said(text: str, most: int = LONGEST) -> str:
    """Other people's words between “ and ”, on one line, without markup."""
    return plain(quoted(text, most))


def name(text: str) -> str:
    """A persona's name as one word, without markup."""
    return plain(word(text))


def ago(time_ms: int) -> str:
    """A time, which Discord shows as "2 hours ago", in the reader's language."""
    return f"<t:{time_ms // 1000}:R>"


def clock(seconds: int) -> str:
    """A time (s since 1970) where Discord renders none: "Mon 2026-02-09 14:03 UTC"."""
    return f"{minute(seconds * 1000, UTC)} UTC"


def without_times(text: str) -> str:
    """Text for a file, in which times are spelled out."""
    return _TIME.sub(lambda found: clock(int(found[1])), text)


# ----------------------------------------------------------------------
# The words of the core and of the command line in the words that people know: a branch is a persona.

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
