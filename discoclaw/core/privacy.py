"""Privacy: which items are private, and where an item may be shown.

A person's memory is used wherever they talk, except for what is personal or was learned in private. Whatever
shows an item to a model or to people calls `may_show` first. Pure; knows nothing about prompts or commands.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, TypeAlias, get_args

import regex

from discoclaw.core.event import Commit
from discoclaw.core.item import Item, Kind, Sensitivity
from discoclaw.core.languages import personal, technical
from discoclaw.core.words import fold

# ----------------------------------------------------------------------
# Personal matters: whether a text is about health, family, religion, money or somebody's whereabouts.
#
# This is a net below the extracting model's own judgement, made of words (`languages.personal`). It knows
# the sixteen languages that recall knows (English, German, French, Spanish, Portuguese, Italian, Dutch,
# Swedish, Polish, Turkish, Indonesian, Vietnamese, Russian, Greek, Arabic, Hindi), and Chinese, Japanese,
# Korean, Hebrew and Thai. It has two widths:
#
# - In the open it is narrow: health and medicines, family, religion, money, and whereabouts in the narrow
#   sense (an address; where somebody is now or will be). The city that somebody lives in, their employer
#   and their time zone are not meant: whoever names them in a channel expects the bot to know them there.
#   Some words are technical terms as well. They don't count beside a technical word ("child process", "bank
#   of memory").
# - In private it is broad: also politics, sexuality and identity papers, and words that are often personal.
#   An item kept private by mistake can be shared later, but a leak cannot be undone.
#
# What follows from it is decided below.


_ASCII_WORD = re.compile(r"[a-z0-9]+")
# Words are letters with their marks. Scripts without spaces have none; they are searched as a whole.
_WORD = regex.compile(
    r"[[\p{L}\p{M}\p{N}]--[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]]+",
    regex.VERSION1,
)
# Hardly anything but a medicine is measured like this, in any language.
_DOSE = re.compile(r"[0-9] ?(?:mg|mcg|мг|ملغ|毫克|ミリグラム)(?![a-z])")

# "And", "the", "in", "for" are written together with the next word in Arabic and Hebrew.
_JOINED = frozenset(
    [f"{also}{how}{the}" for also in ("", "و", "ف") for how in ("", "ب", "ك", "ل") for the in ("", "ال")]
    + [f"{also}{how}{the}" for also in ("", "ו") for how in ("", *"שכבלמ", "כש") for the in ("", "ה")]
    + ["لل", "ولل", "فلل", "שב", "של", "שמ"]
)
_LONGEST_JOINED = max(map(len, _JOINED))
_FIRST = 2
"""Beginnings of words are looked up by so many letters, and are at least as long."""

_Listed: TypeAlias = tuple[Sequence[str], bool]
"""The words that have to follow, and whether it is doubtful: it doesn't count beside a technical word."""


class _Net:
    """The words of the narrow net or of the broad one, ready for looking up."""

    def __init__(self, *, in_the_open: bool) -> None:
        self._whole: dict[str, list[_Listed]] = {}
        self._beginnings: dict[tuple[str, bool], tuple[str, ...]] = {}
        inside = []
        for written in personal(unspaced=False, in_the_open=in_the_open):
            doubtful = written.endswith("?")
            first, *rest = map(fold, written.removesuffix("?").split("_"))
            if first.startswith("-"):
                inside.append(re.escape(first[1:].removesuffix("-")) + ("" if first.endswith("-") else r"\b"))
            elif first.endswith("-"):
                place = first[:_FIRST], doubtful and in_the_open
                self._beginnings[place] = (*self._beginnings.get(place, ()), first[:-1])
            else:
                self._whole.setdefault(first, []).append((rest, doubtful and in_the_open))
        # Apart, since `re` skips to the first letters of alternatives, as long as these are only few.
        self._inside = re.compile("|".join(inside))
        unspaced = (re.escape(fold(one)) for one in personal(unspaced=True, in_the_open=in_the_open))
        self._unspaced = re.compile("|".join(unspaced))
        self._begun_by = lru_cache(maxsize=16_384)(self._looked_up)

    def catches(self, folded: str) -> bool:
        """Whether a folded text has one of the words."""
        plain = folded.isascii()
        if (
            self._inside.search(folded)
            or _DOSE.search(folded)
            or (not plain and self._unspaced.search(folded))
        ):
            return True
        words = (_ASCII_WORD if plain else _WORD).findall(folded)
        for place, word in enumerate(words):
            for rest, doubtful in self._begun_by(word):
                end = place + 1 + len(rest)
                goes_on = not rest or (end <= len(words) and all(map(_is, words[place + 1 : end], rest)))
                if goes_on and not (doubtful and _is_technical(words[:place], words[end:])):
                    return True
        return False

    def _looked_up(self, word: str) -> Sequence[_Listed]:
        """The listed phrases that begin with this word."""
        found: list[_Listed] = []
        for plain in _without_joined(word):
            found += self._whole.get(plain, ())
            for doubtful in (False, True):
                if plain.startswith(self._beginnings.get((plain[:_FIRST], doubtful), ())):
                    found.append(((), doubtful))
        return found


def is_personal(text: str, *, in_the_open: bool = False) -> bool:
    """Whether a text seems to be personal, by the narrow net (`in_the_open`) or by the broad one."""
    return _net(in_the_open=in_the_open).catches(fold(text))


@cache
def _net(*, in_the_open: bool) -> _Net:
    """A net, made when it is needed first: that takes 20 ms, and most commands of the terminal need none."""
    return _Net(in_the_open=in_the_open)


def _without_joined(word: str) -> Iterator[str]:
    """A word, and what is left of it without the short words that may be joined to its front."""
    yield word
    for i in range(1, min(_LONGEST_JOINED, len(word) - 1) + 1):
        if word[:i] in _JOINED:
            yield word[i:]


def _is(word: str, wanted: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("-") else word == wanted


def _is_technical(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the last word before, or the first after, is technical. Articles and the like don't count."""
    terms, beginnings, joining = _technical()
    beside = (next((word for word in words if word not in joining), "") for words in (before[::-1], after))
    return any(word in terms or word.startswith(beginnings) for word in beside)


@cache
def _technical() -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """Technical words, their beginnings, and the words that may stand beside them."""
    words, joining = technical()
    terms = frozenset(fold(word) for word in words if not word.endswith("-"))
    return terms, tuple(fold(word[:-1]) for word in words if word.endswith("-")), joining


# ----------------------------------------------------------------------
# The rules.


DmPrivacy: TypeAlias = Literal["strict", "balanced", "open"]

# With the rule "balanced", how a person likes to work may leave the DM it was learned in. Facts about them
# and their projects stay private.
_FOLLOWS: frozenset[Kind] = frozenset({"preference", "tool", "workflow"})


def sensitivity(
    kind: Kind, text: str, *, inferred: bool, learned_privately: bool, marked: Sensitivity, rule: DmPrivacy
) -> Sensitivity:
    """The sensitivity of a new item.

    `marked` is what the extracting model or the person said; it is never lowered. `inferred`: by a model, not
    stated by the person with a command. `learned_privately`: in a DM, or in a channel that not everybody on
    the server can read. `rule` is DISCOCLAW_DM_PRIVACY.

    - What was learned in private stays there. With "balanced", how the person likes to work may leave, unless
      it is personal.
    - What was inferred from open talk is open, unless it is personal in the narrow sense (see `is_personal`).
    - What a person states in the open stays as they said it.
    """
    if marked != "normal" or rule == "open":
        return marked
    if learned_privately:
        stays = rule == "strict" or kind not in _FOLLOWS or is_personal(text)
    else:
        stays = inferred and is_personal(text, in_the_open=True)
    return "private" if stays else "normal"


def said_in_the_open(source: object) -> bool:
    """Whether the source of an item in another program's file says that it was not learned in a DM.

    The TypeScript bot noted the server and the channel's name of everything except what it learned in DMs.
    """
    told: Mapping[object, object] = source if isinstance(source, Mapping) else {}
    return any(isinstance(told.get(name), str) and told[name] for name in ("guildId", "channelName"))


def stricter(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """The more restrictive of two sensitivities. Combining items never makes one less private."""
    return max(one, other, key=get_args(Sensitivity).index)


def may_show(item: Item, *, in_dm: bool) -> bool:
    """Whether an item may be shown to the model or to people, in a DM with its person or (False) elsewhere.

    Confidential items are never shown, not even to the model in a DM.
    """
    allowed: tuple[Sensitivity, ...] = ("normal", "private") if in_dm else ("normal",)
    return item.facets.sensitivity in allowed


# ----------------------------------------------------------------------
# Which items are private only because the file they came in with doesn't say that they are open.

PRESUMED = "presumed_private"
"""Key in a commit's metadata: the ids of these items, sorted."""


def presumed_private(commits: Iterable[Commit]) -> set[str]:
    """The ids of these items, shared since or not."""
    named = (commit.metadata.get(PRESUMED) for commit in commits)
    return {one for ids in named if isinstance(ids, list) for one in ids if isinstance(one, str)}


def kept_private(count: int) -> str:
    """The note about them for an admin. Only the people themselves can share them."""
    return (
        f"{count} kept private and out of channels, because the file doesn't say where that was said "
        "(in Discord, people share theirs with `!memory share imported`)"
    )
