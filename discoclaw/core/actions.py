"""What the bot may do in the chat for a person who asks for it, and whether somebody really asked.

A model calls a tool, and may have been told to by anybody: by a file, a name, a topic, a linked message, a
memory. So the call has to rest on the asker's own words: a quotation of what they typed in the very message
that is answered, in which they ask for just that. What reaches further than the answer itself (another
channel, a role, the server's calendar) also has to be named, and worded, by them.

The request has to stand where nobody pastes a text: in the first line of one's own words, before a colon,
and not behind words such as "translate" or "he said". That refuses some honest requests, and says how to put
them. What a person may do is asked elsewhere, of the chat itself, at the moment of the act.
Pure. Knows nothing about models, permissions or how an act is done.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, Self, TypeAlias, get_args

from discoclaw.core.errors import Refused
from discoclaw.core.languages import ACTIONS, NEGATIONS
from discoclaw.core.message import Place
from discoclaw.core.own_words import is_quoted, own_words, within, words_in
from discoclaw.core.values import dataclass, field

Kind: TypeAlias = Literal["poll", "thread", "event", "reaction", "pin", "message", "mention"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES: Final[Mapping[Kind, str]] = {
    "poll": "a poll",
    "thread": "a thread",
    "event": "a scheduled event",
    "reaction": "a reaction",
    "pin": "a pin",
    "message": "a message to another channel",
    "mention": "a mention of a role",
}
EXAMPLES: Final[Mapping[Kind, str]] = {
    "poll": "make a poll: pizza or pasta?",
    "thread": "open a thread about the trip",
    "event": "schedule an event on Friday at 8 pm: movie night",
    "reaction": "react with 🎉",
    "pin": "pin this message",
    "message": "post in #dev: the build is fixed",
    "mention": "ping the role Testers: the build is ready",
}
OFF: Final = ("none", "0", "off", "no", "false")
IN_DMS: Final[frozenset[Kind]] = frozenset({"reaction", "pin"})
"""What makes sense where two talk."""
MOST_A_TURN: Final = 3
MOST_AN_HOUR: Final = 20
HOUR_MS: Final = 3_600_000
LONGEST_REQUEST: Final = 300
"""The beginning of a first line in which a request is looked for, in characters."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing to do in the chat. `quote` are the words that ask for it.

    `text` is the poll's question, the name of a thread or an event, the words of a message, or an emoji. An
    event starts at `start` (ISO 8601 with its difference from UTC), takes `minutes`, and is at `location`.
    """

    kind: Kind
    quote: str
    text: str = ""
    options: tuple[str, ...] = ()
    several: bool = False
    hours: int = 24
    start: str = ""
    minutes: int = 60
    location: str = ""
    channel: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Typed:
    """What somebody typed as one message, as it stands in the chat now.

    `text` has no names of people, roles, channels and emoji that are linked in it, since others choose these:
    for a channel or a role it has the id, as a word. `whole` has the names, as the model reads it. `links`
    says what stands in `text` for each, by how it stands in `whole`.
    """

    text: str
    whole: str
    links: Mapping[str, str] = field(default_factory=dict, hash=False)

    def plain(self, quote: str) -> str:
        """A quotation of `whole`, with what stands in `text` for the links in it."""
        text = quote.replace(_NO_BREAK, " ")
        for shown in sorted(self.links, key=len, reverse=True):
            text = text.replace(shown.replace(_NO_BREAK, " "), f" {self.links[shown]} ")
        return text


# ---------------------------------------------------------------------- where what is on


@dataclass(frozen=True, slots=True)
class Allowed:
    """What admins switched on: pairs of a server's id ("" for all, and for DMs) and a kind of act."""

    pairs: frozenset[tuple[str, Kind]] = frozenset()

    @classmethod
    def everywhere(cls) -> Self:
        """All of it, on every server."""
        return cls(frozenset(("", kind) for kind in KINDS))

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __str__(self) -> str:
        found = [f"{guild}:{kind}" if guild else kind for guild, kind in sorted(self.pairs)]
        return ", ".join(found) or "none"

    def of(self, place: Place) -> tuple[Kind, ...]:
        """What is on in a place, in the order of `KINDS`; nothing where only one person sees the answer."""
        if place.kind == "aside":
            return ()
        return tuple(
            kind
            for kind in KINDS
            if (kind in IN_DMS or place.kind != "dm")
            and (("", kind) in self.pairs or (place.guild_id or "", kind) in self.pairs)
        )


def allowed(text: str) -> Allowed:
    """Parse "none", "all", kinds, or kinds of one server ("1234:poll"), separated by commas or white space.

    Raises ValueError, saying what is allowed.
    """
    pairs = set[tuple[str, Kind]]()
    for word in text.replace(",", " ").lower().split():
        guild, _, name = word.rpartition(":")
        kinds = () if name in OFF else KINDS if name == "all" else tuple(one for one in KINDS if one == name)
        unknown = not kinds and name not in OFF
        if unknown or (guild and not (guild.isascii() and guild.isdigit() and len(guild) <= 20)):
            raise ValueError(
                f"{word!r} is not allowed; use none, all, or some of {', '.join(KINDS)}; a server's id and a "
                "colon before one are for that server only"
            )
        pairs |= {(guild, kind) for kind in kinds}
    return Allowed(frozenset(pairs))


def tidy(text: str) -> str | None:
    """What live configuration allows in a place, in its one form; None if it is no such list."""
    if ":" in text:
        return None
    try:
        kinds = {kind for _, kind in allowed(text).pairs}
    except ValueError:
        return None
    return "all" if kinds == set(KINDS) else ", ".join(kind for kind in KINDS if kind in kinds) or "none"


# ---------------------------------------------------------------------- whether somebody asked

_NO_BREAK = "\u00a0"
_COLON = re.compile(r"(?<!\d)[:：]|[:：](?=\s|$)")  # not that of a time
_LOGGED = re.compile(r"\s*(?:[\[(][^\])\n]*[\])]\s*)?<[^<>\n]{1,40}>")
"""How a line of a talk begins that somebody pastes: "<Bob> make a poll"."""
_SENTENCES = re.compile(r"[.!?;…]+(?=\s|$)|[。！？；]")
_STOPS = re.compile(r"\n|[.!?;…](?=\s|$)|[。！？；]")
_MARKS = re.compile(r"[*_~|`\"“”„‘’'«»「」『』>]+")
_MAKE, _TOLD, _UNASKED, _ARTICLES, _KNOWN = "make", "told", "unasked", "articles", "known"
_NEAR, _BESIDE = 5, 3
"""So many words are at most between "make" and "poll", and between "the" and "poll"."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_AFTER = 2
"""A negation also counts so many words behind the word that names the act: "die Umfrage bitte nicht"."""


def check_request(act: Act, typed: Sequence[Typed]) -> None:
    """Raise Refused unless an act is asked for in what somebody typed, in the words that it quotes."""
    title, example = TITLES[act.kind], EXAMPLES[act.kind]
    if not any(is_quoted(one.plain(act.quote), own_words(one.text)) for one in typed):
        raise Refused(
            "the quotation has to be copied from what the person typed in this very message; what is quoted, "
            "pasted as code, linked, forwarded, attached or spoken doesn't count"
        )
    asked = False
    for one in typed:
        quoted = words_in(one.plain(act.quote))
        for words in map(words_in, _head(one.text)):
            same = within(quoted, words) or within(words, quoted)
            asked = asked or (same and _asks(act.kind, words) and _asks(act.kind, quoted))
    if not asked:
        raise Refused(
            f"the person's own words don't ask for {title}; the request has to stand in the first line of "
            f"their message, before any colon, such as “{example}”"
        )
    if not act.channel and not act.role and act.kind != "event":
        return
    # What reaches further than the answer has to be theirs, word for word.
    if act.kind != "event":
        if not any(_is_behind(act.text, one.whole) for one in typed):
            raise Refused(
                f"{title} can only say what the person typed behind their request, word for word, from the "
                "first word to the end of a sentence or line"
            )
        return
    for text in filter(None, (act.text, act.location)):
        if not any(_is_worded(text, one.whole) for one in typed):
            raise Refused(f"{title} can only say what the person typed in this message, word for word")


def check_named(sign: Literal["#", "@"], name: str, id: str, typed: Sequence[Typed]) -> None:
    """Raise Refused unless a channel or role is named, or linked, where the request stands.

    Who writes one with its sign names nothing else by the words around it.
    """
    if is_linked(id, typed):
        return
    wanted, named = words_in(re.sub(r"[-_]", " ", name)), False
    for one in typed:
        linked = {id for shown, id in one.links.items() if shown.startswith(sign)}
        for head in _head(one.text):
            words, signed = re.sub(r"[-_]", " ", head), sign in head or not linked.isdisjoint(words_in(head))
            behind = [words_in(part)[: len(wanted)] for part in words.split(sign)[1:]]
            named = named or (wanted in behind if signed else within(wanted, words_in(words)))
    if not wanted or not named:
        raise Refused(f"the person has to name {name!r} themselves, in the first line of their message")


def is_linked(id: str, typed: Sequence[Typed]) -> bool:
    """Whether a channel or role is linked where the request stands."""
    return any(id in words_in(head) for one in typed for head in _head(one.text))


def _head(text: str) -> list[str]:
    """The sentences in which a request may stand: of the first line of one's own words, up to a colon."""
    for passage in own_words(text):
        for line in passage.splitlines():
            if _LOGGED.match(line):
                return []
            for part in _COLON.split(line):
                if words_in(part):
                    return [one for one in _SENTENCES.split(part[:LONGEST_REQUEST]) if words_in(one)]
    return []


def asks(kind: str, quote: str) -> bool:
    """Whether the words of a quotation ask for something; `kind` is a table of `languages/actions.toml`."""
    return _asks(kind, words_in(quote))


def _asks(kind: str, words: Sequence[str]) -> bool:
    """Whether a sentence asks for an act of a kind; a reminder, which is the person's own, in more ways."""
    articles, makes = _found(ACTIONS[_ARTICLES], words), _found(ACTIONS[_MAKE], words)
    names = [at for at in _found(ACTIONS[kind]["verbs"], words) if at - 1 not in articles]
    nouns = _found(ACTIONS[kind]["nouns"], words) if makes else []
    told, negated = _found(ACTIONS[_TOLD], words), _found(NEGATIONS, words)
    if kind in KINDS:
        told += _found(ACTIONS[_UNASKED], words)
        # "Give me the results of the vote" asks for none: it means one that is there.
        known = _found(ACTIONS[_KNOWN], words)
        means = {at: [one for one in sorted({*articles, *known}) if at - _BESIDE <= one < at] for at in nouns}
        nouns = [at for at in nouns if not means[at] or means[at][-1] not in known]
        nouns = [at for at in nouns if any(abs(at - one) <= _NEAR for one in makes)]
    names += nouns
    return any(
        all(place > at for place in told) and all(place > at + _AFTER for place in negated) for at in names
    )


def _found(listed: Collection[str], words: Sequence[str]) -> list[int]:
    """Where words of a list stand: as they are, as a beginning (`word-`), or as several (`a_word`).

    In scripts that don't separate words, they count wherever they stand.
    """
    places = []
    for at, word in enumerate(words):
        if word in listed or any(
            (one.endswith("-") and word.startswith(one[:-1]))
            or (_UNSPACED.match(one) and one in word)
            or ("_" in one and list(words[at : at + one.count("_") + 1]) == one.split("_"))
            for one in listed
        ):
            places.append(at)
    return places


def _is_behind(text: str, typed: str) -> bool:
    """Whether a text is what was typed for it: behind the colon of the request, in its line, or below it.

    So a note further below, or what the person quotes there, isn't posted for them.
    """
    if any(text.count(mark) > typed.count(mark) for mark in ("~~", "||", "`", ">")):
        return False
    lines = typed.splitlines()
    for at, line in enumerate(lines):
        if line.lstrip().startswith(">") or not words_in(line):
            continue
        ends = [one for one in _COLON.finditer(line) if words_in(line[: one.start()])]
        behind = "\n".join([line[ends[0].end() :] if ends else "", *lines[at + 1 :]])
        stops = [*(one.start() for one in _STOPS.finditer(behind)), len(behind)]
        wanted = _plain(text)
        whole = bool(wanted) and any(_plain(behind[:stop]) == wanted for stop in stops)
        return whole or (not ends and _is_worded(text, line))
    return False


def _is_worded(text: str, typed: str) -> bool:
    """Whether a text is copied from what was typed, as whole words, and with its negation."""
    wanted, whole = _plain(text), _plain(typed)
    for found in re.finditer(re.escape(wanted), whole) if wanted else ():
        before, after = whole[: found.start()], whole[found.end() :]
        edges = (before[-1:], wanted[0]), (wanted[-1], after[:1])
        cut = any(one.isalnum() and other.isalnum() for one, other in edges)
        near = [*words_in(re.split(r"[.!?;:](?=\s)", before)[-1]), *words_in(after)[:_AFTER]]
        if not cut and not _found(NEGATIONS, near):
            return True
    return False


def _plain(text: str) -> str:
    """A text without case, markup and marks around it; white space is one blank."""
    bare = _MARKS.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return " ".join(bare.split()).strip(" .,!?;:…")
