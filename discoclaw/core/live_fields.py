"""Types of the fields of live configuration, and how people read, choose and type their values.

`core/policy` has the fields. Whoever reads, writes, explains or offers one goes by its `Field`.

A value is checked as JSON has it (`check`), and read from what somebody typed (`typed`). Both raise Refused,
naming the field and what is allowed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

import regex

from discoclaw.core.branches import MAIN, branch_name
from discoclaw.core.errors import Refused

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
