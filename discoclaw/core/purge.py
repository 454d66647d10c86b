"""What a person took back: the texts, the messages they rest on, and the words by which to recognise them.

A person takes something back when they forget, remove, undo or correct it, or settle a conflict against it;
with a command, a button, an edit of their file, or by asking the model to. What a model merely tidies is not
taken back. Making something private takes it back from the open only (`open_only`).

The ledger still knows a text that was taken back. Nothing that is derived from memory or talk may: it is
recognised by the ids of its messages and by its distinctive words, here and without naming it to a model.
What is said later counts anew.
Pure. Knows nothing about where derived things are kept.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from discoclaw.core.item import Item, Kind, Source
from discoclaw.core.matching import spaced, without_user
from discoclaw.core.message import Said
from discoclaw.core.rolling_text import sentences
from discoclaw.core.subject import user_of
from discoclaw.core.text import normalise
from discoclaw.core.words import is_common, tokenise

MOST = 1000
"""The most texts that a view knows as taken back; beyond that the oldest are dropped."""
SHORTEST = 3
"""A text of fewer words, all of which everybody uses, is recognised only where nothing else stands."""
_FRAMES = (
    "user person preference fact project constraint tool workflow",
    "likes liked dislikes loves hates wants needs owns enjoys uses called named",
    "ich mag gerne wohne heiße arbeite habe",
    "j'aime j'habite je travaille je préfère",
    "me gusta vivo trabajo prefiero",
    "好き 住んで 名前",
)
"""How memories are worded in some languages: what many have in common tells none of them."""
FRAME = frozenset[str]().union(
    *((*tokens.terms, *tokens.in_english().values()) for tokens in map(tokenise, _FRAMES))
)
_COMMON = re.compile(r"[\w ]*")
_THOUSANDS = re.compile(r"(?<=\d)[,.'’\u00a0\u202f ](?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True)
class TakenBack:
    """One text that a person took back at a time (ms), with the messages it rested on.

    `messages` are sources as text ("discord:<channel>/<message>"). `open_only`: it is still remembered, but
    not in the open any more. `alone`: its messages were deleted or changed; whatever else the person said,
    before or after that, still counts.
    """

    item_id: str
    kind: Kind
    text: str
    at: int
    key: str | None = None
    messages: tuple[str, ...] = ()
    open_only: bool = False
    alone: bool = False


@lru_cache(maxsize=8_192)  # the same messages are compared with everything that was taken back
def terms_of(text: str) -> frozenset[str]:
    """The terms by which texts are compared: stemmed, also as English, and with numbers in one form."""
    tokens = tokenise(_THOUSANDS.sub("", text))
    return frozenset(tokens.terms) | frozenset(tokens.in_english().values())


@dataclass(frozen=True, slots=True)
class Words:
    """Words by which taken back texts are recognised: `terms` that no other has, or else whole `texts`.

    `spared` are texts that are still remembered and have one of `texts` within them, which isn't evidence.
    All texts are normalised.
    """

    terms: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    spared: frozenset[str] = frozenset()

    def hold(self, text: str, but: frozenset[str] = frozenset(), *, half: bool = False) -> bool:
        """Whether a text has any of these words, or (`half`) half of them; those in `but` aren't evidence."""
        if self.terms:
            found = len(self.terms & (terms_of(text) - but))
            if found and (not half or found * 2 >= len(self.terms)):
                return True
        if not self.texts:
            return False
        line = spaced(text)
        for one in self.spared:
            line = line.replace(spaced(one), " \n ")
        return any(_says(line, one) and not (but and terms_of(one) <= but) for one in self.texts)

    def __bool__(self) -> bool:
        return bool(self.terms or self.texts)

    def __or__(self, other: "Words") -> "Words":
        return Words(self.terms | other.terms, self.texts | other.texts, self.spared | other.spared)


def _says(line: str, whole: str) -> bool:
    """Whether a line has a text in it as a whole; one of few common words only if it is all."""
    wanted = spaced(whole)
    if wanted.count(" ") <= SHORTEST and _COMMON.fullmatch(wanted) and not distinctive(whole):
        return line == wanted
    return wanted != "  " and wanted in line


def distinctive(text: str) -> frozenset[str]:
    """The terms by which to recognise what a text says: not those that everybody uses."""
    return frozenset(term for term in terms_of(text) if not is_common(term)) - FRAME


class Held:
    """The texts of what is still remembered, by which what was taken back is told from it."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(map(normalise, texts))

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of all of them."""
        return frozenset[str]().union(*map(terms_of, self._texts))

    def around(self, text: str) -> Iterator[str]:
        """The texts that have a text within them, normalised."""
        wanted = spaced(text)
        some = min((self._with_word[word] for word in wanted.split()), key=len, default=())
        return (one for one in some if wanted in spaced(one))

    @cached_property
    def _with_word(self) -> Mapping[str, Sequence[str]]:
        found = defaultdict[str, list[str]](list)
        for text in self._texts:
            for word in set(spaced(text).split()):
                found[word].append(text)
        return found


def words_of(taken: Iterable[TakenBack], held: Held) -> Words:
    """The words that only texts that were taken back have.

    Words that everybody uses, or that something still remembered has, aren't evidence. A text without a word
    of its own counts as a whole, and so does each sentence of it.
    """
    terms, whole = set[str](), set[str]()
    for one in taken:
        if own := distinctive(one.text) - held.terms:
            terms |= own
        else:
            some = {one.text, *sentences(one.text)}
            # A summary says "Ann's key" where an item says "User's key".
            some |= {part for text in some if distinctive(part := without_user(text))}
            whole |= set(map(normalise, some))
    spared = frozenset(text for one in whole for text in held.around(one))
    return Words(frozenset(terms), frozenset(whole), spared)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """An order: this has to leave everything that is derived from memory or talk.

    `at` (ms) is when it was taken back: what was said later stays. `messages` are the messages it rested on:
    channel ids by message id. `texts` are what the items said. `everything`: all that the person said until
    then, because they want no memory at all. `alone`: the messages were deleted, or say something else now
    (`changed`); other messages of the person stay whatever their words, and answers that repeat it don't.
    """

    subject: str
    at: int
    messages: Mapping[str, str] = field(default_factory=dict)
    words: Words = field(default=Words())
    texts: tuple[str, ...] = ()
    open_only: bool = False
    everything: bool = False
    alone: bool = False
    changed: Mapping[str, str] = field(default_factory=dict)
    """Messages that were edited, as `messages`. They stay; what was made from their old words doesn't."""

    @property
    def user_id(self) -> str:
        """The person's Discord id; "" for another subject."""
        return user_of(self.subject) or ""

    def covers(self, said: Said, *, in_private: bool = False, asked_at: int | None = None) -> bool:
        """Whether a message may no longer be used: it was said before, by the person or in answer to them.

        An answer to one of the messages goes whatever its words.

        `asked_at` (ms) is when the question was asked that it answers, if that is known.
        """
        if self.open_only and in_private:
            return False
        if said.id in self.messages and said.edited_at <= self.at:
            return True
        if (asked_at or said.as_of) > self.at:
            return False
        whose = said.to_id if said.by_us else "" if self.alone else said.author_id
        theirs = whose == self.user_id != ""
        to_it = not self.messages.keys().isdisjoint(said.of)
        return to_it or (theirs and (self.everything or self.words.hold(said.text)))


def withdrawals(subject: str, taken: Iterable[TakenBack], items: Mapping[str, Item]) -> list[Withdrawal]:
    """The withdrawals that these texts amount to: one for each time, apart for each sort.

    `items` are what is remembered now: words that other active items have too aren't evidence.
    """
    groups: dict[tuple[int, bool, bool], list[TakenBack]] = {}
    for one in taken:
        groups.setdefault((one.at, one.open_only, one.alone), []).append(one)
    active = {item.id: item.text for item in items.values() if item.active} if groups else {}
    everything = Held(active.values())
    found = []
    for (at, open_only, alone), some in groups.items():
        own = {one.item_id for one in some} & active.keys() if open_only else set[str]()
        held = Held(active[key] for key in active.keys() - own) if own else everything
        messages = dict(place_of(source) for one in some for source in one.messages)
        texts = tuple(one.text for one in some)
        found.append(Withdrawal(subject, at, messages, words_of(some, held), texts, open_only, alone=alone))
    return found


def place_of(source: str) -> tuple[str, str]:
    """The ids of the message and of the channel that a source ("discord:<channel>/<message>") names."""
    channel, _, message = source.removeprefix("discord:").partition("/")
    return message, channel


def sources_with(known: tuple[str, ...], source: str | Source) -> tuple[str, ...]:
    """The messages that an item rests on, and one more of them; at most the newest twenty."""
    text = str(source)
    if not text.startswith("discord:") or text in known:
        return known
    return (*known, text)[-20:]
