"""Quoting: what people and models wrote is data and can not pass for structure.

The structure of a prompt stands in the first column: separators, section titles, `[Name]: ` and `- [kind]`.
So a quoted line that looks like one of these, whatever white space, invisible characters, width or case it
is dressed in, is moved out of the first column. Everything else stays letter for letter, since people
paste code. Where one entry is one line, continuation lines are indented as well.
"""

import re
import unicodedata

from discoclaw.core import titles
from discoclaw.core.text import scrub, visible

INDENT = "  "

_TITLES = tuple(
    title.casefold()
    for title in (
        titles.SENDER,
        titles.DURABLE,
        titles.ROLLING,
        titles.RECENT,
        titles.REPLIED_TO,
        titles.MESSAGE,
        titles.EXISTING,
        titles.OWN_MESSAGES,
        titles.OTHERS,
        titles.PREVIOUS_SUMMARY,
        titles.NEW_MESSAGES,
        titles.FORGOTTEN,
        titles.GROUP,
        titles.MAXIMUM,
        titles.THEMES,
        titles.DECISIONS,
        titles.TODAY,
        titles.TO_TIDY,
        titles.REMEMBERED,
        titles.AGAINST,
        titles.SOUL_IDENTITY,
        titles.SOUL_USER,
        titles.SOUL_PHILOSOPHY,
        titles.TRAITS,
        titles.HATCHING,
    )
)
_FORGERY = re.compile(
    r"""
      ([-‐-―−_*=~#])\1{2,}\s*$               # a separator: --- and what looks like it
    | \[[^\]]{0,200}\]?\s*:                    # a speaker
    | -\s*(?:durable-|\[|(?:name|owner|time)\s*:)  # an item of memory, a fact about the sender
    | \((?:discord:|manual)                    # a source
    | (?:human|assistant|system)\s*:           # a turn, as some models were taught it
    | \[/?memory\s+context                     # blocks and tags that mean something to somebody
    | </?(?:soul|system|memory|instruction|tool|function|discord-action|continuation-capsule)
    """,
    re.VERBOSE,
)


def quote(text: str) -> str:
    """The text with every line that imitates structure indented; all other lines as they are."""
    lines = scrub(text).splitlines()
    return "\n".join(INDENT + line if _imitates(line) else line for line in lines)


def quote_entry(text: str) -> str:
    """The text as the rest of an entry's line: its further lines are indented, so none starts an entry."""
    return f"\n{INDENT}".join(scrub(text).splitlines())


def _imitates(line: str) -> bool:
    plain = line
    if not (line.isascii() and line.isprintable()):
        plain = unicodedata.normalize("NFKC", visible(line))
        plain = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Cc", "Mn", "Me"))
    plain = plain.strip().casefold()
    return plain.startswith(_TITLES) or _FORGERY.match(plain) is not None
