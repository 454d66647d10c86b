"""The names of threads that grow out of a question. Pure."""

import re

from discoclaw.core.purge import terms_of
from discoclaw.core.text import clip, collapse, scrub, shows_nothing

FIRST_MAX = 60
TITLE_MAX = 80
"""UTF-16 units. Discord takes 100, and shows about 60 beside a channel's list."""

_MENTION = re.compile(r"(?<!\w)[@#][\w.-]+")
_MARKUP = re.compile(r"[*_`~|<>\[\]\\]+|^(?:#+|-#|>>>?|[-*])\s+", re.MULTILINE)
_SPOILER = re.compile(r"\|\|.*?\|\|", re.DOTALL)
_LINK = re.compile(r"https?://\S+")


def unspoiled(text: str) -> str:
    """A text without what its author hid as a spoiler: names are read by everybody."""
    return _SPOILER.sub("…", text)


def first_name(question: str, author: str) -> str:
    """The name of a thread until it has a title: the beginning of the question's words.

    Where there are none, it names who asked.
    """
    words = collapse(_MARKUP.sub(" ", _MENTION.sub(" ", _LINK.sub(" ", scrub(unspoiled(question))))))
    if not shows_nothing(words):
        return _at_word(words, FIRST_MAX)
    return f"Question by {clip(collapse(scrub(author)), 40)}"


def renamed(name: str, before: str, now: str, author: str) -> str | None:
    """Another name for a thread whose question was edited; None if its name tells nothing that is gone."""
    lost = terms_of(before) - terms_of(now)
    return None if lost.isdisjoint(terms_of(name)) else first_name(now, author)


def tidy_title(title: str) -> str:
    """A model's title as a name: one line without markup, mentions, links and quotation marks around it."""
    plain = collapse(_MARKUP.sub(" ", _MENTION.sub(" ", _LINK.sub(" ", scrub(title)))))
    return _at_word(plain.strip(" \"'“”„«».:-"), TITLE_MAX)


def _at_word(text: str, most: int) -> str:
    """A text cut behind a word, as far as one ends in its second half."""
    cut = clip(text, most)
    if cut == text:
        return text
    words, _, _ = cut.rpartition(" ")
    return f"{words.rstrip(',;:')}…" if len(words) > most // 2 else cut
