"""When and how the bot answers, how much of the conversation it is shown, and who may talk to it.

Every turn is given a `Policy`. Its live fields can be changed while the bot runs (`core/live`), each on its
own: user > group > global > settings > default. A new one is a field here, and a setting in `settings` if a
variable may give it too: everything that reads, shows or changes live configuration goes by `FIELDS`.
Knows nothing about where overrides come from.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeAlias, get_args

import regex

from discoclaw.core import actions
from discoclaw.core.errors import Refused
from discoclaw.core.history import MAIN, branch_name
from discoclaw.core.message import Place
from discoclaw.core.privacy import DmPrivacy

# ----------------------------------------------------------------------
# Types of the fields of live configuration, and how people read, choose and type their values.
#
# Whoever reads, writes, explains or offers a field goes by its `Field`.
#
# A value is checked as JSON has it (`check`), and read from what somebody typed (`typed`). Both raise
# Refused, naming the field and what is allowed.


Kind = Literal["global", "group", "user"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Value = str | int | bool

MOST_PROMPT = 2000
"""Characters of a channel's text: it is in every prompt there, so it must not crowd out the conversation."""
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,119}")
_BLANKS = regex.compile(r"\p{Zs}")
"""Blanks that keep words together, or have another width: they come with what is pasted."""
_UNSEEN = regex.compile(r"[\u00ad\u200b\u200e\u200f\u2060\ufeff\U000e0000-\U000e007f]")
"""Hints about breaks and directions, and tags. Nobody sees them, so the model need not read them either."""
_WRITTEN = "\n\t\u200c\u200d"
"""Not printable by themselves: line breaks, tabs, and what Persian words and many emoji are written with."""
_ON, _OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")


class Type(Protocol):
    """The type of a field's values."""

    @property
    def allowed(self) -> str:
        """The rule for a value, as it stands behind “must be”."""
        ...

    def check(self, value: Any) -> Value | None:
        """The value in its one form, None if it is not allowed. `value` comes from JSON."""
        ...

    def typed(self, text: str) -> object:
        """The value for `check` from a text that somebody typed."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words, with what each means. `other` words mean one of them, and are never written."""

    meanings: Mapping[str, str]
    other: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(self.meanings)

    @property
    def allowed(self) -> str:
        return f"one of {', '.join(self.options)}"

    def check(self, value: Any) -> str | None:
        plain = self.other.get(value, value) if isinstance(value, str) else None
        return plain if plain in self.options else None

    def typed(self, text: str) -> object:
        return text.lower()


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def check(self, value: Any) -> int | None:
        number = isinstance(value, int) and not isinstance(value, bool)  # to Python, True is an int
        return value if number and self.least <= value <= self.most else None

    def typed(self, text: str) -> object:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off; `true` or `false` in JSON."""

    allowed: str = "true or false"

    def check(self, value: Any) -> bool | None:
        return value if isinstance(value, bool) else None

    def typed(self, text: str) -> object:
        word = text.lower()
        return True if word in _ON else False if word in _OFF else text


@dataclass(frozen=True, slots=True)
class Text:
    """A text; `tidy` returns it in its one form, None if it is not allowed."""

    allowed: str
    tidy: Callable[[str], str | None]

    def check(self, value: Any) -> str | None:
        return self.tidy(value) if isinstance(value, str) else None

    def typed(self, text: str) -> object:
        return text


def _model(text: str) -> str | None:
    return text if _MODEL.fullmatch(text) else None


def _prompt(text: str) -> str | None:
    seen = _BLANKS.sub(" ", _UNSEEN.sub("", text))
    plain = "\n".join(line.rstrip() for line in seen.splitlines()).strip()
    readable = all(char.isprintable() or char in _WRITTEN for char in plain)
    return plain if plain and readable and len(plain) <= MOST_PROMPT else None


def _persona(text: str) -> str | None:
    try:
        return text if text == MAIN else branch_name(text)
    except Refused:
        return None


MODEL = Text("the name of a model, such as sonnet", _model)
PROMPT = Text(f"a text of 1 to {MOST_PROMPT} characters", _prompt)
PERSONA = Text("a name of up to 32 letters and digits", _persona)
ACTIONS = Text(f"none, all, or some of {', '.join(actions.KINDS)}", actions.tidy)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of live configuration.

    `title` and `about` are words for people. `variable` is the setting that applies where nothing is
    configured; with `by_place` that is a list of places, so the field's default is None. `kinds` are the
    scopes that may set it: a rule about what is private is the same everywhere, and no channel is a person's.
    """

    name: str
    title: str
    about: str
    variable: str
    type: Type
    kinds: tuple[Kind, ...] = KINDS
    by_place: bool = False

    def check(self, value: Any) -> Value:
        """The value in its one form. Raises Refused if it is not allowed."""
        found = self.type.check(value)
        if found is None:
            # The value comes from outside and may be of any length.
            raise Refused(f"{self.name} must be {self.type.allowed}, not {repr(value)[:40]}")
        return found

    def typed(self, text: str) -> Value:
        """The value in what somebody typed. Raises Refused if it is not allowed."""
        return self.check(self.type.typed(text.strip()))


def value_words(field: Field, value: Value | None) -> str:
    """A value in words, which are not markup yet."""
    if value is None or value == "":
        return "none"
    if isinstance(field.type, Switch):
        return "on" if value else "off"
    if isinstance(field.type, Choice):
        return field.type.meanings[str(value)]
    return str(value)


def options(field: Field) -> list[tuple[str, str]]:
    """The values to choose from, as they are typed and in words; nothing where a value is typed."""
    if isinstance(field.type, Choice):
        return list(field.type.meanings.items())
    return [("on", "on"), ("off", "off")] if isinstance(field.type, Switch) else []


def longest(field: Field) -> int:
    """How many characters a value has at most that is typed."""
    return 3 if isinstance(field.type, Number) else MOST_PROMPT if has_lines(field) else 120


def has_lines(field: Field) -> bool:
    """Whether a value may have several lines."""
    return field.type is PROMPT


def typed_value(field: Field, typed: str) -> Value | None:
    """The value that somebody typed or chose; None for nothing. Raises Refused, naming the field's title."""
    try:
        return field.typed(typed) if typed.strip() else None
    except Refused:  # its text names the field as the file does
        raise Refused(f"“{field.title}” must be {field.type.allowed}") from None


def changed_words(field: Field, value: Value | None) -> str:
    """The news of a field that was given a value: “is now on”."""
    return f"is now {value_words(field, value)}" if value is not None else "is the default again"


# ----------------------------------------------------------------------
# The policy, which has the fields.


RespondMode: TypeAlias = Literal["all", "mention", "owner", "none"]
RESPOND_MODES: tuple[RespondMode, ...] = get_args(RespondMode)
CONTEXT_HISTORY_BOUNDS = (1, 200)
_PLACES: tuple[Kind, ...] = ("global", "group")
_QUIET = ("silent", "listen")
"""Snowclaw's names for the mode `none`. They are accepted, but never written."""
_MODES = Choice(
    {
        "all": "every message",
        "mention": "when I'm mentioned",
        "owner": "only my owners",
        "none": "nobody",
    },
    dict.fromkeys(_QUIET, "none"),
)
_PRIVACY = Choice(
    {
        "strict": "everything stays in the DM",
        "balanced": "only how people like to work leaves the DM",
        "open": "only what is marked as private stays in the DM",
    }
)

Overrides: TypeAlias = Mapping[str, Value]
"""Values that one scope sets, by field; those it lacks are left to the next wider scope."""
NO_OVERRIDES: Overrides = {}


def _live(
    default: Any,
    title: str,
    about: str,
    variable: str,
    type: Type,
    kinds: tuple[Kind, ...] = KINDS,
    *,
    by_place: bool = False,
) -> Any:
    """A field that can be changed while the bot runs; see `Field` for the arguments."""

    def named(name: str) -> Field:
        return Field(name, title, about, variable, type, kinds, by_place)

    return field(default=default, metadata={"live": named})


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy for one message. `context_history` is a number of messages, 1 to 200.

    `actions` is what the model may be offered to do in the chat, as far as the settings allow it.
    `minimum_window` is the largest `context_history` of anyone who may talk in the same conversation. All of
    them share one window, so it must not shrink for everybody when one person asks for less. `persona`,
    `archive`, `actions` and `listen` are None where the settings' lists of places decide.
    """

    respond_mode: RespondMode = _live(
        "mention",
        "When I answer",
        "every message, when mentioned, only owners, or nobody",
        "DISCOCLAW_RESPOND_MODE",
        _MODES,
    )
    context_history: int = _live(
        20,
        "Messages I look back on",
        "how many recent messages are in the prompt",
        "DISCOCLAW_CONTEXT_HISTORY",
        Number(*CONTEXT_HISTORY_BOUNDS),
    )
    minimum_window: int = 0
    model: str = _live("sonnet", "Model", "the language model that answers", "DISCOCLAW_MODEL", MODEL)
    prompt: str = _live(
        "", "Instructions", "a text for the model, in every prompt of the channel", "", PROMPT, _PLACES
    )
    persona: str | None = _live(
        None,
        "Persona",
        "the persona that everybody has here",
        "DISCOCLAW_CHANNEL_PERSONAS",
        PERSONA,
        ("group",),
        by_place=True,
    )
    receipts: bool = _live(
        False, "Receipts", "a small line says what I have just learned", "DISCOCLAW_RECEIPTS", Switch()
    )
    approve: bool = _live(
        False,
        "Ask before remembering",
        "people who haven't chosen are asked first",
        "DISCOCLAW_MEMORY_APPROVAL",
        Switch(),
    )
    archive: bool | None = _live(
        None,
        "Archive",
        "what is said is kept word for word, to be searched",
        "DISCOCLAW_AUTO_SAVE",
        Switch(),
        _PLACES,
        by_place=True,
    )
    dm_privacy: DmPrivacy = _live(
        "balanced",
        "Privacy of direct messages",
        "what I learn in DMs and may use elsewhere",
        "DISCOCLAW_DM_PRIVACY",
        _PRIVACY,
        ("global",),
    )
    listen: bool | None = _live(
        None,
        "Listen here",
        "off: I neither read nor answer in the channel",
        "DISCORD_CHANNEL_IDS",
        Switch(),
        ("group",),
        by_place=True,
    )
    actions: str | None = _live(
        None,
        "What I may do when asked",
        "polls, threads, events, reactions, pins, messages, mentions; never more than the person may",
        "DISCOCLAW_ACTIONS",
        ACTIONS,
        _PLACES,
        by_place=True,
    )
    threads: bool = _live(
        False,
        "Answer in threads",
        "each conversation gets a thread of its own",
        "DISCOCLAW_THREADS",
        Switch(),
        _PLACES,
    )

    @property
    def capacity(self) -> int:
        """How many messages the conversation's window holds."""
        return max(self.context_history, self.minimum_window)


DEFAULT = Policy()
FIELDS: Mapping[str, Field] = {
    one.name: one.metadata["live"](one.name) for one in fields(Policy) if "live" in one.metadata
}
"""Fields that can be changed while the bot runs, by name."""


def resolve(layers: Iterable[Overrides], default: Policy = DEFAULT) -> Policy:
    """The policy that `layers` (strongest first) add up to: each field comes from the first that sets it.

    `context_history` is clamped to `CONTEXT_HISTORY_BOUNDS`.
    """
    found: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            found.setdefault(name, value)
    if "context_history" in found:
        least, most = CONTEXT_HISTORY_BOUNDS
        found["context_history"] = min(max(found["context_history"], least), most)
    return replace(default, **found)


def should_respond(mode: RespondMode, *, mentions_us: bool, is_owner: bool, in_our_thread: bool) -> bool:
    """Whether the bot answers a message. The caller has already checked that its author is allowed.

    `mentions_us`: a mention, a reply to the bot, or a DM. `in_our_thread`: in a thread where the bot was
    mentioned before; it then replies there without being mentioned.
    """
    if mode == "all":
        return True
    if mode == "mention":
        return mentions_us or in_our_thread
    return mode == "owner" and is_owner


@dataclass(frozen=True, slots=True)
class Allowlist:
    """People who may talk to the bot, and where. Ids are Discord snowflakes as text.

    Fails closed: without users and roles nobody may. Empty `channels` means every channel. A thread is
    allowed with its parent channel, and DMs depend on the person alone.
    """

    users: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()

    @property
    def closed(self) -> bool:
        """Whether nobody at all may talk to the bot."""
        return not self.users and not self.roles

    def person(self, user_id: str, role_ids: Iterable[str] = ()) -> bool:
        """Whether this person may talk to the bot, by user id or by one of their roles."""
        return user_id in self.users or not self.roles.isdisjoint(role_ids)

    def channel(self, group_id: str | None, channel_id: str) -> bool:
        """Whether the bot may be talked to in this channel or thread; `group_id` None means a DM."""
        return group_id is None or not self.channels or bool(self.channels & {group_id, channel_id})


class PlacePersonas(Protocol):
    """Says which places have a persona that applies to everybody there."""

    @property
    def names(self) -> Collection[str]:
        """All personas that some place has."""
        ...

    def of(self, place: Place) -> str | None:
        """The fixed persona of a place, or None. A thread has its channel's."""
        ...


@dataclass(frozen=True, slots=True)
class Personas:
    """Places with a fixed persona (branch), which applies there instead of the person's current one.

    Keys are channel ids, channel names, or "dm" for direct messages; a channel that happens to be named "dm"
    is not meant by it.
    """

    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> Collection[str]:
        """All personas that some place has."""
        return set(self.places.values())

    def of(self, place: Place) -> str | None:
        """The fixed persona of a place, or None. A thread has its channel's."""
        if place.kind == "dm":
            return self.places.get("dm")
        for name in (place.channel_id, place.group_id, place.group_name.casefold()):
            if name is not None and name != "dm" and name in self.places:
                return self.places[name]
        return None


# ----------------------------------------------------------------------
# Which places the archive keeps messages from, as an admin set it in DISCOCLAW_AUTO_SAVE. A value.

OFF = {"", "0", "off", "no", "false", "none"}
EVERYWHERE = {"all", "1", "on", "yes", "true"}


@dataclass(frozen=True, slots=True)
class AutoSave:
    """Archive `everywhere`, or on the servers in `guilds` (ids) and, if `dms`, in direct messages.

    Nothing is archived by default: keeping what people say is the admin's decision, not ours.
    """

    everywhere: bool = False
    guilds: frozenset[str] = frozenset()
    dms: bool = False

    def __bool__(self) -> bool:
        return self.everywhere or self.dms or bool(self.guilds)

    def __str__(self) -> str:
        places = ["direct messages"] * self.dms + [f"server {one}" for one in sorted(self.guilds)]
        return "on" if self.everywhere else f"on for {', '.join(places)}" if places else "off"

    def covers(self, place: Place) -> bool:
        """Whether messages from a place are archived. An aside is not: the chat's history has none of it."""
        if place.kind == "aside":
            return False
        if self.everywhere:
            return True
        return self.dms if place.kind == "dm" else place.guild_id in self.guilds


def auto_save(text: str) -> AutoSave:
    """Parse "off", "all", or server ids and "dm" separated by commas or white space.

    Raises ValueError, saying what is allowed.
    """
    words = text.replace(",", " ").lower().split()
    if len(words) <= 1 and (words or [""])[0] in OFF:
        return AutoSave()
    if len(words) == 1 and words[0] in EVERYWHERE:
        return AutoSave(everywhere=True)
    guilds = frozenset(word for word in words if word != "dm")
    for word in sorted(guilds):
        if not (word.isascii() and word.isdigit() and len(word) <= 20):
            raise ValueError(
                f"{word!r} is not allowed; use 0, all, or server ids and dm, separated by commas"
            )
    return AutoSave(guilds=guilds, dms="dm" in words)
