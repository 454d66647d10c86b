"""Quoting: text by people and models is data, and cannot imitate the structure of a prompt.

Everything structural starts in the first column: separators, section titles, `[Name]: ` and `- [kind]`. A
quoted line that looks like one of these is therefore indented, whatever white space, invisible characters,
width or case it uses. All other text stays exactly as it is, since people paste code. In entries of one line,
continuation lines are indented too.
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
      ([-‐-―−_*=~#])\1{2,}\s*$               # a separator: --- and similar
    | \[[^\]]{0,200}\]?\s*:                    # a speaker
    | -\s*(?:durable-|\[|(?:name|owner|time)\s*:)  # an item of memory, or a line about the sender
    | \((?:discord:|manual)                    # an item's source
    | (?:human|assistant|system)\s*:           # a turn, in the format some models were trained on
    | \[/?memory\s+context                     # blocks and tags with a meaning, here or to a model
    | </?(?:soul|system|memory|instruction|tool|function|discord-action|continuation-capsule)
    """,
    re.VERBOSE,
)


def quote(text: str) -> str:
    """The text with every line indented that imitates structure. Other lines stay as they are."""
    lines = scrub(text).splitlines()
    return "\n".join(INDENT + line if _imitates(line) else line for line in lines)


def quote_entry(text: str) -> str:
    """The text as the rest of an entry's line. Further lines are indented, so that none starts an entry."""
    return f"\n{INDENT}".join(scrub(text).splitlines())


def _imitates(line: str) -> bool:
    """Whether a line would read as structure, once the characters that hide it are removed."""
    plain = line
    if not (line.isascii() and line.isprintable()):
        plain = unicodedata.normalize("NFKC", visible(line))
        plain = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Cc", "Mn", "Me"))
    plain = plain.strip().casefold()
    return plain.startswith(_TITLES) or _FORGERY.match(plain) is not None
