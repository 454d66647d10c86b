"""Purging: what has to leave everything that is derived from memory and talk, and who is asked to.

A person takes something back when they forget, remove, undo or correct it, or settle a conflict against it;
with a command, a button, an edit of their file, or by asking the model to. What a model merely tidies is not
taken back. Making something private takes it back from the open only (`open_only`).

The ledger still knows a text that was taken back. Nothing that is derived from memory or talk may: it is
recognised by the ids of its messages and by its distinctive words, here and without naming it to a model.
What is said later counts anew.

A `Purge` is the order and `Purged` the outcome. Forgetting, undoing, privacy, edits and deletions in the
chat, opting out and erasing are scopes of it. A part that holds something about people is a `Derived`, and
the composition root registers it once. `memory/purge` visits them. Knows nothing about where things are kept.
"""

import re
from collections import defaultdict
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, Literal, TypeAlias

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
    *((*tokens.terms, *chain(*tokens.forms().values())) for tokens in map(tokenise, _FRAMES))
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
    return frozenset(chain(tokens.terms, *tokens.forms().values()))


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


# ---------------------------------------------------------------------- the order


@dataclass(frozen=True, slots=True)
class Purge:
    """An order: this has to leave everything that is derived from memory or talk.

    `at` (ms) is when it was taken back: what was said later stays. `messages` are the messages it rested on:
    channel ids by message id. `texts` are what the items said. `everything`: all that the person said until
    then, because they want no memory at all. `alone`: the messages were deleted, or say something else now
    (`changed`); other messages of the person stay whatever their words, and answers that repeat it don't.
    `sessions` are the conversations (keys) that may have it.

    `erases`: the widest scope, see `erasing`. `outside` are the steps that then follow elsewhere; what a part
    notes for one of them stays until it is done.
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
    sessions: frozenset[str] = field(default=frozenset(), compare=False)
    erases: bool = False
    outside: frozenset[str] = field(default=frozenset(), compare=False)

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


def erasing(subject: str, at: int, sessions: Iterable[str] = (), outside: Iterable[str] = ()) -> Purge:
    """The order to erase everything about a subject up to `at` (ms), with the summaries of these sessions."""
    return Purge(
        subject, at, everything=True, sessions=frozenset(sessions), erases=True, outside=frozenset(outside)
    )


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge removed from one part, or from all.

    For an erasing, `count` is how many files and notes, `left` what could not be removed and why, `changed`
    are other subjects in whose memory something rested on the person's words, `stuck` those in which it still
    does. The rest is for the line that the person reads: `messages` of the recent talk and of what waits to
    be learned from, `archived` ones, `summaries` (session keys), `notes` of channels, and `answers`: stored
    answers of the model and of its tools. `sessions` are the conversations (keys) in which RAM had words of
    the person, or their name: a purge's disk phase looks there too.
    """

    count: int = 0
    left: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    archived: int = 0
    summaries: frozenset[str] = frozenset()
    notes: int = 0
    answers: int = 0
    sessions: frozenset[str] = field(default=frozenset(), compare=False)

    def __add__(self, other: "Purged") -> "Purged":
        return Purged(
            self.count + other.count,
            self.left + other.left,
            self.changed | other.changed,
            self.stuck | other.stuck,
            self.messages | other.messages,
            self.archived + other.archived,
            self.summaries | other.summaries,
            self.notes + other.notes,
            self.answers + other.answers,
            self.sessions | other.sessions,
        )

    def __bool__(self) -> bool:
        return self != NOTHING_PURGED


NOTHING_PURGED: Final = Purged()


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of taking something back, to tell the person.

    `waiting`: something could not be removed yet, and that is tried again. `everything`: they want no memory.
    `brought_back`: something is remembered again because a change was undone. `elsewhere`: the items of other
    personas that still say the same (ids, by persona).
    """

    removed: Purged = NOTHING_PURGED
    waiting: bool = False
    everything: bool = False
    brought_back: bool = False
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def purges(subject: str, taken: Iterable[TakenBack], items: Mapping[str, Item]) -> list[Purge]:
    """The purges that these texts amount to: one for each time, apart for each sort.

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
        found.append(Purge(subject, at, messages, words_of(some, held), texts, open_only, alone=alone))
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


# ---------------------------------------------------------------------- the contract


ON_RELAYS: Final = "nostr"
"""The step of an erasing that asks relays to delete their copies; a relay may ignore that."""


@dataclass(frozen=True, slots=True)
class Readable:
    """One text that a part stores, for an audit.

    `place` is the file, or the row, as an admin finds it. `author` and `to` (user ids) belong to a message,
    `message` is its id. `owner` is the subject whose own file it is; with their DM as `session`, nobody else
    is shown it. Anything else was made of the talk of a `session` (key). `at` (ms) is from when it is; 0 if
    that is unknown. `digest` stands for a text that is stored only as its SHA-256.
    """

    place: str
    text: str = ""
    session: str = ""
    owner: str = ""
    author: str = ""
    to: str = ""
    message: str = ""
    at: int = 0
    digest: bytes = b""


Phase = Literal["ram", "disk", "done"]
Outcome: TypeAlias = "Purged | Awaitable[Purged | None] | None"


class Derived:
    """A part that holds something about people. Each method has a default that does nothing."""

    name: str
    """What the part holds, for the log: "archive", "rolling summaries"."""
    local: bool = False
    """Whether this part's disk is this machine's alone: each process then purges its own."""

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        """Remove it. A purge visits every part three times; the parts are visited one after another.

            ram   at once, before anybody can use it again. On the event loop, so it never blocks
            disk  what it returns is awaited. It may be asked again, and then finds nothing. Whatever is left
                  is named in `Purged.left`, or MemoryFault or OSError says so; it is then asked again
            done  everything that the subject took back is gone: what waited for that may be used again, and
                  is read again. On the event loop, so it never blocks

        After an erasing's RAM phase a part writes nothing of the subject that was said before, and its disk
        phase waits for what it is writing. The store's own files come last. Cursors are locked meanwhile, so
        no part may write one then. "done" follows also where the disk kept something. The subject of a purge
        is "" for messages of somebody who is not known here.
        """
        return None

    def outside(self, subject: str) -> Collection[str]:
        """Names of the steps that have to follow an erasing elsewhere (in the chat, on relays).

        It is asked before there is a purge: people read it before they confirm, and a killed erasing has to
        know it. Blocking, in a thread. Raises OSError.
        """
        return ()

    def audit(self) -> Iterable[Readable]:
        """The texts of this part on disk in the clear. Blocking, in a thread. Raises OSError.

        A person's own history and durable file are theirs, and no part lists them.
        """
        return ()
