"""Parses a message into a `Query`: terms to look up and dates, however the message is phrased. Pure.

A message is parsed once a turn, together with what it replies to and the talk before it. Ranking, selection
and the archive all use the result.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from discoclaw.core.languages import MONTHS
from discoclaw.core.query import Query
from discoclaw.core.words import Tokens, is_common, terms, terms_in, tokenise
from discoclaw.recall.document import dates_in, names_in

LONGEST = 6_000
"""Characters of a text that are read, from its beginning and its end: the request is at one of them."""
MOST_TERMS = 128
"""The most terms of a text that are looked up; of more, those that are common in any talk are left out."""
LONGEST_REQUEST = 300
"""A message with more characters than this asks for something in particular."""
_ENDS = ("st", "nd", "rd", "th")
_BREAK = re.compile(r"(?:(?<=\w\w\w[.…])|(?<=[!?…]))[\"'”’»)\]]*\s+|(?<=[。！？])|\n\s*")
"""The end of a sentence; after two letters and a full stop none does ("Dr. Okonkwo")."""
_OWN_VERB = re.compile(
    r"\b(?:i|let me)\s+(?:[\w'’]+\s+){0,3}?(?:know|remember|recall|learn\w*)\b", re.IGNORECASE
)
"""Phrases about a person's knowing ("I don't know") that don't ask what is known about them."""
_EVERYTHING = re.compile(
    r"\b(?:remember|know|recall|learn\w*|memor\w+|stor\w+|notes?)\b[^.!?\n]*\b(?:me|myself|i|my)\b"
    r"|\bwho am i\b|\bmy (?:memor\w+|notes)\b",
    re.IGNORECASE,
)
_MEMORY_WORDS = frozenset(
    terms("recall learned memory memories stored notes everything anything facts show list far date")
)


def parse(message: str, *, replied_to: str = "", recent: str = "", search: bool = False) -> Query:
    """Return what a message asks for.

    `replied_to` is the text of the message it answers. `recent` is the talk before it, which is used too if
    the message alone says next to nothing ("and why?"). With `search` it was typed to find something, so
    "sleep test" isn't a courtesy.
    """
    text = f"{message}\n{replied_to}" if replied_to else message
    brief = len(text) <= LONGEST_REQUEST
    tokens = tokenise(text[:LONGEST_REQUEST])
    found = tokens.terms
    everything = brief and _wants_everything(text, found)
    if recent and not _says_something(found):
        text = f"{text}\n{recent}"
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    return _query(text, everything=everything, search=search, known={text: tokens} if brief else {})


def in_context(message: str, recent: str) -> str:
    """The message, with the talk before it where it says next to nothing: the text to embed."""
    says_something = _says_something(terms(message[:LONGEST_REQUEST]))
    return message if says_something else f"{message}\n{recent}"


def _query(text: str, *, everything: bool, search: bool, known: Mapping[str, Tokens]) -> Query:
    asked: dict[str, None] = {}
    in_english: dict[str, str] = {}
    dates: set[str] = set()
    names: dict[frozenset[str], None] = {}
    sentences: list[set[str]] = []
    for sentence in filter(None, _BREAK.split(text)):
        tokens, named = known.get(sentence) or tokenise(sentence), dates_in(sentence)
        if tokens.asks_nothing and not search:
            continue
        left_out = _spoken(named)
        words = tokens.terms
        if search and not words:
            words = terms_in(sentence, "english")  # "go" alone looks Polish
        found = dict.fromkeys(term for term in words if term not in left_out)
        in_english |= tokens.in_english()
        asked |= found
        dates |= named
        names |= dict.fromkeys(names_in(sentence, tokens.language, note=False))
        if sentences and all(map(is_common, found)) and not named:
            sentences[-1] |= found.keys()  # "Have I heard them live?" goes on about what was named before
        else:
            sentences.append(found.keys() | named)
    kept = _most_telling(asked)
    in_english = {term: in_english[term] for term in kept if term in in_english}
    return Query(
        kept,
        frozenset(dates),
        in_english,
        (*kept, *in_english.values(), *sorted(dates)),
        tuple(names),
        everything,
        tuple(dict.fromkeys(frozenset(one) for one in sentences if one)),
    )


def _most_telling(asked: Collection[str]) -> tuple[str, ...]:
    """The terms in order; of too many, those that are common in any talk go first."""
    if len(asked) > MOST_TERMS:
        rarer = sorted(asked, key=is_common)[:MOST_TERMS]  # a stable sort: else in the order of the text
        asked = [term for term in asked if term in set(rarer)]
    return tuple(asked)


def _says_something(found: Sequence[str]) -> bool:
    return len(set(found)) > 1


def _wants_everything(text: str, found: Sequence[str]) -> bool:
    """Whether somebody asks for everything that is remembered about them, and nothing in particular.

    English only; in other languages the model finds it with its search tool.
    """
    if not _MEMORY_WORDS.issuperset(found):
        return False
    return _EVERYTHING.search(_OWN_VERB.sub("", text)) is not None


def _spoken(dates: Collection[str]) -> set[str]:
    """The terms by which dates were named: as words they would meet any other "8" or "August"."""
    if not dates:
        return set()
    parts = {int(part) for date in dates for part in date[2:].split("-")}
    numbers = {f"{part:02}" for part in parts} | {f"{part}{end}" for part in parts for end in ("", *_ENDS)}
    months = {term for name, month in MONTHS.items() if month in parts for term in terms(name)}
    return numbers | months
