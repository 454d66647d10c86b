"""The format of files of extraction cases: a talk, what was remembered before it, and what is to be after.

The format is described in docs/admins/evals.md. A file is checked as a whole before anything is sent.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from discoclaw.core.item import Author, Kind, Sensitivity
from discoclaw.core.times import ms_of_iso
from discoclaw.core.zones import zone_named

BOT = "bot"
"""The speaker's name when it is the assistant."""
NAMES: Mapping[str, str] = {"A": "Anna", "B": "Ben", "C": "Carla", "D": "Dev"}
"""The names of speakers that a case gives no other name."""
PlaceName: TypeAlias = Literal["channel", "private", "dm"]


def _pattern(text: str) -> str:
    try:
        compiled(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _zone(name: str) -> str:
    if zone_named(name) is None:
        raise ValueError(f"{name!r} is not a time zone; use a name such as Europe/Berlin")
    return name


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]
"""A regular expression that is searched for, whatever the case of letters."""
Zone = Annotated[str, AfterValidator(_zone)]


@lru_cache(maxsize=4_096)
def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def found(patterns: Sequence[str], text: str) -> bool:
    """Whether all of these are in a text."""
    return all(compiled(one).search(text) for one in patterns)


def moment(text: str, zone: str) -> int:
    """A time of a case in ms since 1970; without an offset it is in the case's zone."""
    if datetime.fromisoformat(text).tzinfo is None:
        text = datetime.fromisoformat(text).replace(tzinfo=zone_named(zone)).isoformat()
    return ms_of_iso(text)


class Shape(BaseModel):
    """The base of all parts of a case."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Line(Shape):
    """One message. Without `at`, it was sent a minute after the one before."""

    by: str = Field(min_length=1)
    text: str = Field(min_length=1)
    at: str | None = None


class Before(Shape):
    """An item that was remembered before the talk. `forgotten` is when the person forgot it."""

    text: str = Field(min_length=1)
    kind: Kind = "fact"
    key: str | None = None
    author: Author = "inferred"
    sensitivity: Sensitivity = "normal"
    at: str = "2026-01-05T12:00:00+00:00"
    forgotten: str | None = None


class Expected(Shape):
    """One change that has to be made.

    `add`: an item is there that was not. `update`: the existing item `item` (its number in `items`) says this
    now. `retire`: it is not in use any more, or says this. `ask`: the person is asked about it, because they
    stated it. All patterns of `all` must be found in one item. `source` are the lines it may rest on.
    `example` is what a good model might write.
    """

    op: Literal["add", "update", "retire", "ask"]
    all: list[Pattern] = []
    source: int | list[int]
    item: int | None = None
    kind: list[Kind] = []
    private: bool | None = None
    example: str = ""

    @property
    def lines(self) -> list[int]:
        """The lines that the change may rest on."""
        return self.source if isinstance(self.source, list) else [self.source]

    @property
    def dated(self) -> bool:
        """Whether it is about a date that had to be resolved."""
        return any(re.search(r"\d{4}-\d\d", one) for one in self.all)

    @model_validator(mode="after")
    def _checked(self) -> "Expected":
        if self.op != "add" and self.item is None:
            raise ValueError(f'"{self.op}" needs "item", the number of an existing item')
        if self.op == "add" and self.item is not None:
            raise ValueError('"add" takes no "item"; use "update"')
        if self.op in ("add", "update"):
            if not self.all:
                raise ValueError(f'"{self.op}" needs "all", the patterns of what is to be remembered')
            if not self.example:
                raise ValueError('"example" is missing: a text that a good model might write')
        if missing := [one for one in self.all if self.example and not found([one], self.example)]:
            raise ValueError(f'the example has nothing for the pattern "{missing[0]}"')
        return self


class Case(Shape):
    """One talk, and what is to become of one person's memory by it.

    What fits a pattern of `may` is allowed and not needed. `filler` lines of small talk are put between the
    lines of the talk. Existing items that no expectation names have to stay as they are.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    group: str = ""
    note: str = ""
    who: str = "A"
    names: dict[str, str] = {}
    tz: Zone = "UTC"
    place: PlaceName = "channel"
    items: list[Before] = []
    talk: list[Line] = Field(min_length=1)
    must: list[Expected] = []
    may: list[Pattern] = []
    must_not: list[Pattern] = []
    max_items: int | None = Field(default=None, ge=0)
    filler: int = Field(default=0, ge=0, le=400)

    @property
    def empty(self) -> bool:
        """Whether nothing at all is worth remembering here."""
        return not self.must and not self.may

    def times(self) -> list[int]:
        """When (ms since 1970) each line was sent."""
        times: list[int] = []
        for line in self.talk:
            if line.at is not None:
                times.append(moment(line.at, self.tz))
            else:
                times.append(times[-1] + timedelta(minutes=1) // timedelta(milliseconds=1))
        return times

    @model_validator(mode="after")
    def _checked(self) -> "Case":
        if self.talk[0].at is None:
            raise ValueError('the first line of "talk" needs "at"')
        try:
            times = self.times()
            for one in self.items:
                for at in filter(None, (one.at, one.forgotten)):
                    moment(at, self.tz)
        except ValueError as error:
            raise ValueError(f"a time is not ISO 8601: {error}") from None
        if times != sorted(times):
            raise ValueError('the lines of "talk" are not in the order of their times')
        if all(line.by != self.who for line in self.talk):
            raise ValueError(f'no line is by "{self.who}", whom it is about')
        for number, expected in enumerate(self.must):
            self._check(f"must.{number}", expected)
        return self

    def _check(self, name: str, one: Expected) -> None:
        for line in one.lines:
            if not 0 <= line < len(self.talk):
                raise ValueError(f"{name}: there is no line {line}; the first is 0")
            if self.talk[line].by != self.who:
                raise ValueError(f'{name}: line {line} is not by "{self.who}"')
        if one.item is not None and not 0 <= one.item < len(self.items):
            raise ValueError(f"{name}: there is no item {one.item}; the first is 0")
        for pattern in self.must_not:
            if one.example and found([pattern], one.example):
                raise ValueError(f'{name}: the example has what "must_not" forbids: "{pattern}"')
