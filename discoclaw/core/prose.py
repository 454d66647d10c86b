"""Reads answers that should have been JSON alone: the objects between other words, and a summary in prose.

Servers without structured output may ignore the schema, and a summary in prose is still a summary. That is
true of nothing else: whatever changes somebody's memory is a whole JSON object. Pure.
"""

import json
import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

from pydantic import BaseModel

LONGEST = 20_000
"""The longest prose, in characters. What is longer isn't a summary, but the talk once more."""
_FEWEST_LETTERS = 20
_FEWEST_WORDS = 4
_MOST_STARTS = 20
"""How many opening braces are tried."""

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*$", re.MULTILINE)
_BEGINS = re.compile(r'\{\s*["}]')
"""How an object begins, and a brace in a sentence doesn't."""
_BLANK = " \t\r\n\ufeff"
_HEADING = re.compile(
    r"\A(?:(?:sure|okay|certainly|of course)\b[^\n:]{0,40}[,.!:]\s*)?"
    r"(?:here(?: i|['’])s\b[^\n:]{0,80}:|[#*_\s]*(?:new |running |updated )?summary[*_\s]*:[*_]*)\s*",
    re.IGNORECASE,
)
_WRECKAGE = re.compile(r"\A[\[{\"<]|(?:summary|themes|decisions)[\"']\s*:|</?think", re.IGNORECASE)
_NO_SUMMARY = re.compile(
    r"""\A\W*(?:
      (?:i['’]?\s?a?m\s+(?:(?:really|very|so)\s+)?)?(?:sorry|afraid)\b
    | i\s+(?:apologi[sz]e|must\s+decline|am\s+(?:unable|not\s+able)|cannot|can\s+not|won['’]t)\b
    | i\s+(?:can|could|do|did)n?['’]t\b
    | my\s+apologies | as\s+an?\s+(?:ai|language\s+model)\b
    | there\s+(?:is|are|was|were)\s+(?:no|nothing)\s+(?:new\s+)?(?:messages?|conversation|content|text|to)\b
    | please\b | could\s+you\b | how\s+can\s+i\b | error\b
    | (?:es\s+)?tut\s+mir\s+leid | entschuldigung | ich\s+kann\s+(?:\w+\s+){0,3}(?:nicht|kein)
    | (?:je\s+suis\s+)?d[ée]sol[ée] | lo\s+siento | mi\s+dispiace | desculpe
    )""",
    re.VERBOSE | re.IGNORECASE,
)


class ProseShape(BaseModel):
    """A shape that a model may also answer in prose."""

    @classmethod
    @abstractmethod
    def from_prose(cls, text: str) -> Self | None:
        """The value that an answer holds which is not JSON as a whole, or None if it holds none."""


def objects_in(text: str) -> Iterator[str]:
    """The JSON objects in a text, as they stand in a code fence or between sentences; "" for a broken one.

    What follows the brace of a broken one is searched too.
    """
    decoder, at = json.JSONDecoder(), -1
    for _ in range(_MOST_STARTS):
        at = text.find("{", at + 1)
        if at < 0:
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if _BEGINS.match(text, at):
                yield ""
            continue
        yield text[at:end]
        at = end - 1


def bare(text: str) -> str:
    """The text without what models put around JSON: a code fence, a list's brackets, a byte order mark."""
    plain = _FENCE.sub("", text).strip(_BLANK)
    return plain[1:-1].strip(_BLANK) if plain[:1] == "[" and plain[-1:] == "]" else plain


def summary_in(text: str) -> str | None:
    """The summary that a text without an object is: None if it is an apology, a wreck, empty or too long."""
    plain = _FENCE.sub("", _THOUGHT.sub("", text)).strip()
    plain = _HEADING.sub("", plain).strip()
    letters = sum(char.isalpha() for char in plain)
    # Scripts without spaces have long words.
    words = max(len(plain.split()), letters // 8)
    if letters < _FEWEST_LETTERS or words < _FEWEST_WORDS or len(plain) > LONGEST:
        return None
    if letters * 2 < len("".join(plain.split())) or _WRECKAGE.search(plain) or _NO_SUMMARY.match(plain):
        return None
    return plain
