"""What a message says in its author's own words, and whether a model's quotation is copied from them.

A model may learn only what a person said, and proves it by a quotation. Not their own are lines quoted with
">", forwards and attachments (which `bot/wire` puts behind the text), code blocks, and passages of three
words or more in quotation marks. Whatever looks like one of these counts as one: it is safer not to learn.
Pure. Knows nothing about models or prompts.
"""

import re
import unicodedata
from collections.abc import Sequence

FEWEST_WORDS = 3
"""Fewest words of a quotation, unless it is a whole sentence, such as "yes please"."""
FEWEST_LETTERS = 4
"""The same for scripts that do not separate words, in characters."""

_NOT_OWN = re.compile(
    r"""
      ^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)|\Z)   # a code block
    | ```.*?(?:```|\Z)
    | ^[ \t]*>>>[ ].*\Z                                # quoted up to the end
    | ^[ \t]*>[^\n]*
    | ^[ \t]*\((?:forwarded|attached):[ ].*\Z
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_MARKED = re.compile(
    r'"([^"\n]+)"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|»([^«\n]+)«|「([^」\n]+)」|『([^』\n]+)』'
)
_SENTENCE_END = re.compile(r"[.!?…。！？؟;\n]+")
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def own_words(text: str) -> tuple[str, ...]:
    """The passages of a message that are its author's own words, in order."""
    passages: list[str] = []
    for part in _split(_NOT_OWN, text):
        begin = 0
        for match in _MARKED.finditer(part):
            if _enough(_words(match[0])):
                passages.append(part[begin : match.start()])
                begin = match.end()
        passages.append(part[begin:])
    return tuple(passage for passage in passages if _WORD.search(passage))


def holds_others(text: str) -> bool:
    """Whether anything in a message is not its author's own words."""
    marked = any(_enough(_words(match[0])) for match in _MARKED.finditer(text))
    return marked or _NOT_OWN.search(text) is not None


def is_quoted(quote: str, passages: Sequence[str]) -> bool:
    """Whether a quotation is copied from one of the passages, and long enough to mean just that.

    Case, punctuation, width and white space do not count.
    """
    wanted = _words(quote)
    if not wanted:
        return False
    for passage in passages:
        if _enough(wanted) and _within(wanted, _words(passage)):
            return True
        if any(wanted == _words(sentence) for sentence in _SENTENCE_END.split(passage)):
            return True
    return False


def _split(pattern: re.Pattern[str], text: str) -> list[str]:
    parts, begin = [], 0
    for match in pattern.finditer(text):
        parts.append(text[begin : match.start()])
        begin = match.end()
    return [*parts, text[begin:]]


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _enough(words: Sequence[str]) -> bool:
    letters = "".join(words)
    return len(words) >= FEWEST_WORDS or (len(letters) >= FEWEST_LETTERS and bool(_UNSPACED.search(letters)))


def _within(wanted: Sequence[str], words: Sequence[str]) -> bool:
    if _UNSPACED.search("".join(wanted)):
        return "".join(wanted) in "".join(words)
    return f" {' '.join(wanted)} " in f" {' '.join(words)} "
