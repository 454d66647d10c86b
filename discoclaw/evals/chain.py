"""The format of a file of summary chains: a long talk in many updates, with planted facts and lies.

Between the planted lines stands small talk. The format is described in docs/admins/evals.md.
"""

from pydantic import Field, model_validator

from discoclaw.evals.case import Line, Pattern, PlaceName, Shape, Zone, found, moment


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
