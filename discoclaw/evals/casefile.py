"""Files of cases: their format, and how they are read, those that come with the program and an admin's own.

An extraction case has a talk, what was remembered before it, and what is to be after; a chain has a long talk
in many updates of its summary. The format is described in docs/admins/evals.md. A file is checked as a whole
before anything is sent.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from discoclaw.core.errors import Refused
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


# ----------------------------------------------------------------------
# The format of a file of summary chains: a long talk in many updates, with planted facts and lies.
#
# Between the planted lines stands small talk.


class Planted(Line):
    """A line that is said in one update (the first is 1)."""

    update: int = Field(ge=1)


class Fact(Shape):
    """A fact that the summary has to say from the update `since` on, until before `until`.

    `stale` are patterns that it may not say any more from `until` on. `example` is how it may be said.
    """

    all: list[Pattern] = Field(min_length=1)
    since: int = Field(ge=1)
    until: int | None = Field(default=None, ge=2)
    stale: list[Pattern] = Field(default_factory=list)
    example: str

    def holds(self, update: int) -> bool:
        """Whether it is to be in the summary after this update."""
        return self.since <= update and (self.until is None or update < self.until)

    @model_validator(mode="after")
    def _checked(self) -> "Fact":
        if missing := [one for one in self.all if not found([one], self.example)]:
            raise ValueError(f'the example has nothing for the pattern "{missing[0]}"')
        if self.stale and self.until is None:
            raise ValueError('"stale" needs "until", the update from which on it is stale')
        return self


class Lie(Shape):
    """A claim that no sentence of a summary may make. `example` is how a summary would say it."""

    pattern: Pattern
    example: str

    @model_validator(mode="after")
    def _checked(self) -> "Lie":
        if not found([self.pattern], self.example):
            raise ValueError(f'the example has nothing for the pattern "{self.pattern}"')
        return self


class Chain(Shape):
    """One conversation in `updates` updates of its summary."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    group: str = ""
    note: str = ""
    place: PlaceName = "channel"
    names: dict[str, str] = Field(default_factory=dict)
    tz: Zone = "UTC"
    start: str
    hours: float = Field(default=6, gt=0)
    """The time between two updates."""
    updates: int = Field(default=30, ge=1, le=200)
    small_talk: int = Field(default=2, ge=0, le=20)
    """How many exchanges of small talk each update has."""
    max_chars: int = Field(default=2000, ge=100, le=20_000)
    planted: list[Planted] = Field(min_length=1)
    facts: list[Fact] = Field(min_length=1)
    lies: list[Lie] = Field(default_factory=list)

    @model_validator(mode="after")
    def _checked(self) -> "Chain":
        try:
            moment(self.start, self.tz)
        except ValueError as error:
            raise ValueError(f'"start" is not ISO 8601: {error}') from None
        for number, line in enumerate(self.planted):
            if line.update > self.updates:
                raise ValueError(f"planted.{number}: there is no update {line.update}")
            if line.at is not None:
                raise ValueError(f'planted.{number}: "at" follows from the update; leave it out')
        for number, fact in enumerate(self.facts):
            if fact.since > self.updates:
                raise ValueError(f"facts.{number}: there is no update {fact.since}")
            if lie := next((one for one in self.lies if found([one.pattern], fact.example)), None):
                raise ValueError(f'facts.{number}: the example has what "lies" forbids: "{lie.pattern}"')
        return self


# ----------------------------------------------------------------------
# Reading. A file that ends with `.jsonl` has one case a line; a `.json` file has one case, or a list of them.


One = TypeVar("One", Case, Chain)

_MOST_FAULTS = 3
_NEAREST = 3
"""How many ids are named beside one that there is not: all of them are a page."""


def cases(files: Sequence[Path] = ()) -> list[Case]:
    """The cases of these files, or the built-in ones. Raises Refused, naming file, case and fault."""
    return _all(Case, files or _built_in("extraction"))


def chains(files: Sequence[Path] = ()) -> list[Chain]:
    """The chains of summaries in these files, or the built-in ones. Raises Refused."""
    return _all(Chain, files or _built_in("summaries"))


def filler() -> list[list[tuple[str, str]]]:
    """Small talk that is worth nothing: exchanges of lines, each by somebody."""
    content = json.loads(_folder().joinpath("filler.json").read_text(encoding="utf-8"))
    return [[(by, text) for by, text in exchange] for exchange in content]


def chosen(all_: Sequence[One], *, ids: Sequence[str] = (), groups: Sequence[str] = ()) -> list[One]:
    """The cases with these ids or of these groups; all without either. Raises Refused for an unknown name."""
    for name, wanted, known in (
        ("case", ids, [one.id for one in all_]),
        ("group", groups, [one.group for one in all_]),
    ):
        if unknown := [one for one in wanted if one not in known]:
            if name == "case":
                near = ", ".join(get_close_matches(unknown[0], known, _NEAREST, cutoff=0))
                raise Refused(f"no case is called {unknown[0]!r}; the nearest are {near}")
            raise Refused(f"no group is called {unknown[0]!r}; there are {', '.join(dict.fromkeys(known))}")
    if not (ids or groups):
        return list(all_)
    return [one for one in all_ if one.id in ids or one.group in groups]


def _folder() -> Path:
    with resources.as_file(resources.files("discoclaw.evals") / "cases") as folder:
        return folder


def _built_in(name: str) -> list[Path]:
    return sorted(one for one in (_folder() / name).iterdir() if one.suffix in (".json", ".jsonl"))


def _all(shape: type[One], files: Iterable[Path]) -> list[One]:
    read: dict[str, One] = {}
    for path in files:
        for where, value in _values(path):
            one = _checked(shape, value, where)
            if one.id in read:
                raise Refused(f"{where}: there are two cases {one.id!r}; ids must be unique")
            read[one.id] = one if one.group else one.model_copy(update={"group": path.stem})
    return list(read.values())


def _values(path: Path) -> list[tuple[str, Any]]:
    """The values in a file, each with where it is: the file, and the line or the number. Raises Refused."""
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise Refused(f"can't read {path}: {error.strerror or error}") from None
    if path.suffix == ".jsonl":
        lines = [(f"{path}:{number}", line) for number, line in enumerate(content.splitlines(), start=1)]
        values = [(where, _parsed(line, where)) for where, line in lines if line.strip()]
    else:
        value = _parsed(content, str(path))
        values = (
            [(f"{path}: number {n}", one) for n, one in enumerate(value, start=1)]
            if isinstance(value, list)
            else [(str(path), value)]
        )
    if not values:
        raise Refused(f"{path}: there is no case in it")
    return values


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
        raise Refused(f"{where}: not JSON: {why}") from None


def _checked(shape: type[One], value: Any, where: str) -> One:
    if not isinstance(value, dict):
        raise Refused(f"{where}: expected a JSON object")
    named = value.get("id")
    name = f"{where}: {named}" if isinstance(named, str) else where
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise Refused(f"{name}: {faults(error)}") from None


def faults(error: ValidationError) -> str:
    """The faults of a case, field by field."""
    found = error.errors(include_url=False, include_context=False)
    shown = [_fault(one["loc"], one["msg"]) for one in found[:_MOST_FAULTS]]
    more = len(found) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])


def _fault(where: Sequence[int | str], message: str) -> str:
    text = message.removeprefix("Value error, ")
    return f"{'.'.join(map(str, where))}: {text}" if where else text
