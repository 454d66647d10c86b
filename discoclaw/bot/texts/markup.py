"""Discord's markup: text that stays as it is, times that Discord renders, and small print."""

import re

from discoclaw.core.times import iso_ms
from discoclaw.show.words import LONGEST, line, quoted, word

NOTE = "-# "
"""How lines begin that are no talk: small print in Discord, and left out of the window."""

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
    """What `plain` was given."""
    return _ESCAPED.sub(r"\1", text)


def opening(text: str, most: int = LONGEST) -> str:
    """Like `words`, at the start of a line, where a mark would make it a heading, a quotation or a list."""
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


def without_times(text: str) -> str:
    """Text for a file, where Discord renders no times: they become `2026-02-09 14:03Z`."""

    def spelled_out(found: re.Match[str]) -> str:
        iso = iso_ms(int(found[1]) * 1000)
        return f"{iso[:10]} {iso[11:16]}Z"

    return _TIME.sub(spelled_out, text)
