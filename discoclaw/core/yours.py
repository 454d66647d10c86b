"""A memory as people read it: "You work as a nurse" where "User works as a nurse" is stored.

A text is turned if all of it is English and certain; else it says the person's name, which fits any grammar.
Quotations, code and names such as "the User guide" stay as they are. Pure.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from discoclaw.core.languages import IRREGULAR
from discoclaw.core.purge import distinctive
from discoclaw.core.text import collapse
from discoclaw.core.words import tokenise

# ----------------------------------------------------------------------
# Two statements in one sentence: "User has a dog and drives a van" says two things, "tea and cake" is one.

_AND_THEN = re.compile(r"\s*(?:;|,?\s+(?:and|but|und|aber)\s)\s*(?:(?:also|auch)\s+)?", re.IGNORECASE)
VERBS = frozenset(
    """
    is am are was has have had lives live works work likes like loves love hates hate drives drive owns
    own plays play speaks speak wants want studies study keeps keep goes go drinks drink eats eat uses
    use prefers prefer needs need rides ride collects collect teaches teach runs run writes write sings
    sing knows know plans plan moved got bought sold started stopped married visits visit earns earn
    pays pay rents rent sees see takes take ist bin war hat habe wohnt wohne lebt arbeitet arbeite mag
    liebt hasst fährt fahre spielt spiele spricht will studiert trinkt isst braucht sammelt lernt
    enjoys learns dislikes believes thinks hopes feels gets gives makes breeds bakes cooks codes deploys
    develops designs manages leads organizes travels moves stays sleeps walks swims hikes smokes dances paints
    draws reads listens watches follows supports tries starts wears carries says tells talks helps trains
    """.split()  # noqa: SIM905 - a list of words is not easier to read
)
_FARTHEST = 4
"""The verb of the second statement is among so many words."""


def halves(text: str) -> tuple[str, str] | None:
    """The two statements of a sentence, each whole; None if it makes one, or more than two."""
    parts = [part for part in _AND_THEN.split(collapse(text).rstrip(".")) if part]
    if len(parts) != 2:
        return None
    first, second = (part.split() for part in parts)
    verb = next((at for at, word in enumerate(first) if word.lower() in VERBS), None)
    begins = next((at for at, word in enumerate(second[:_FARTHEST]) if word.lower() in VERBS), None)
    if not verb or begins is None or len(second) < 2:
        return None
    whole = second if begins else [*first[:verb], *second]
    one, other = " ".join(first), " ".join(whole)
    own, others = distinctive(one), distinctive(other)
    return (f"{one}.", f"{other}.") if own - others and others - own else None


def left_out(before: str, after: str) -> str:
    """The statement of a text of which another text has no word any more; "" if there is none."""
    found = halves(before)
    if found is None:
        return ""
    now = distinctive(after)
    gone = [
        part for part, other in (found, found[::-1]) if not (distinctive(part) - distinctive(other)) & now
    ]
    return gone[0] if len(gone) == 1 else ""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


QUOTED = r"“[^”]*”|`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)"
_TOKEN = re.compile(rf"{QUOTED}|[^\W_](?:[\w'’@/#+&-]|\.(?=\w))*|\s+|.", re.DOTALL)
_IS = {"is": "are", "was": "were", "has": "have", "does": "do"}
_IS |= {f"{one}n't": f"{other}n't" for one, other in _IS.items()}
_IS |= {"dies": "die", "lies": "lie", "ties": "tie", "aches": "ache", "caches": "cache", "focuses": "focus"}
_SAME = (IRREGULAR.keys() - set(IRREGULAR.values())) | _set(  # not "will", which is a wish in German
    "can cannot can't could couldn't won't would wouldn't should shouldn't must might had hadn't did didn't"
)
_NO_VERBS = _set(
    "always sometimes perhaps towards this es las los les des its plus based defined facing need"
)
_NAMES = _set(
    "guide manual story stories interface interfaces account accounts experience agent agents friendly name "
    "id ids names group groups data settings permissions roles sessions inputs generated"
)
_ANYBODY = _set("a an the this each every any no per another some A An The Each Every")
_ADVERBS = _set("always also still now just often never sometimes even once both no longer not")
_PLACES = _set("of with for to from about by at on in into near as without after before")
_AND, _OTHERS = _set("and but or then"), _set("who which that whose where when while because if how what")
_SOMEBODY = _set("he she they him them his her their hers theirs himself herself themselves you your yours")
_READER: ContextVar[str] = ContextVar("reader", default="")


@contextmanager
def read_by(name: str) -> Iterator[None]:
    """Mark texts made inside this block as read by the person of that name."""
    token = _READER.set(name)
    try:
        yield
    finally:
        _READER.reset(token)


def yours(text: str) -> str:
    """A memory for the person whom it is about."""
    return _told(text, _READER.get(), True) if "User" in text else text


def named(text: str, name: str) -> str:
    """A memory for anybody else, with its person's name."""
    return _told(text, name, False)


@lru_cache(maxsize=4096)
def _told(text: str, name: str, to_them: bool) -> str:
    old = ["", "", *_TOKEN.findall(text), *[""] * 4]
    new, people, sure = list(old), set[int](), tokenise(text).language == "english"
    for at in [at for at, one in enumerate(old) if one in ("User", "User's", "User’s")]:
        alone = old[at - 1] in " (–—" and old[at + 1] in " .,;!?)…–—" and old[at - 2] not in _ANYBODY
        if alone and (turned := _turn(old, new, at)) is not None:
            people.add(at)
            sure &= turned
    if to_them and sure and not (people and any(one.lower() in _SOMEBODY for one in old)):
        return "".join(new)
    return "".join(one.replace("User", name or "User") if at in people else one for at, one in enumerate(old))


def _turn(old: Sequence[str], new: list[str], at: int) -> bool | None:
    """Turn one "User" and the verbs that are about it. False: not certain. None: it is not the person."""
    first, whose, then = old[at - 2] in ("", *".!?"), old[at] != "User", at + 2
    while old[then] in _ADVERBS or old[then].endswith("ly"):
        then += 2
    word = old[then] if old[then - 1] == " " and old[then][:1].isalpha() else ""
    if not whose and (word in _NAMES or word[:1].isupper()):
        return None
    you = "your" if whose else "you"
    new[at] = you.capitalize() if first else you
    if whose:
        return word not in ("", "a", "an", "the", "not", "been", "no")  # "User's a nurse" says "is"
    if old[at - 2] in _PLACES:
        return True
    if verb := _second(word):
        new[then] = verb
        return _rest(old, new, then)
    return word in _AND | _PLACES | _OTHERS or not (word or first)


def _rest(old: Sequence[str], new: list[str], verb: int) -> bool:
    """Turn the verbs that a sentence joins to the first: "works and lives". False if that is not certain."""
    others, seen = False, [verb, verb]
    for at in range(verb + 1, len(old)):
        word, before = old[at], seen[-1]
        if word in ("", *".!?") or word.startswith("User"):
            break
        if not word[0].isalpha() or word in _ADVERBS:
            continue
        second = _second(word)
        differs = second not in ("", word)
        known = differs and (word in VERBS or word in _IS)
        if differs and (old[before] in _AND or {",", ";"} & {*old[before:at]}):
            after = old[at + 1] if old[at + 1] != " " else old[at + 2]
            ends = not after[:1].isalnum() or after in _AND
            if others or (ends and new[seen[-2]] == old[seen[-2]] if known else not ends):
                return False  # "Ben lives in Graz and works", "films and drinks", "and refactors code"
            new[at] = second if known else word
        else:
            others |= word in _OTHERS or known
        seen.append(at)
    return True


def _second(word: str) -> str:
    """A verb as it stands with "You": "work" of "works". "" for what doesn't look like the verb of "User"."""
    word = word.replace("’", "'")
    if word in _IS or word in _SAME:
        return _IS.get(word, word)
    if not word.islower() or len(word) < 4 or word in _NO_VERBS:
        return ""
    if word.endswith(("ed", "ss", "us", "is", "as", "'s")) or not word.endswith("s"):
        return word if word.endswith("ed") else ""
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")) else word[:-1]
