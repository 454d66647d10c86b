"""The live configuration as the page shows and changes it: the same fields and the same way as `/settings`.

Whoever has the page's token may do what the bot's owners may.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.live import GLOBAL, Scope, parse_scope
from discoclaw.core.live_fields import (
    Field,
    changed_words,
    has_lines,
    longest,
    options,
    typed_value,
    value_words,
)
from discoclaw.core.policy import FIELDS
from discoclaw.memory.live import FILE
from discoclaw.session.live_settings import FIXED, LiveSettings, Row
from discoclaw.web.page.sources import Sources

OWN_SIGNATURE = f"{FIXED[:1].upper()}{FIXED[1:]}; `discoclaw config set` signs another value."


@dataclass(frozen=True, slots=True)
class Setting:
    """A field at a scope, as it is shown. `own` is its value in the form, "" if the scope has none.

    `by` is the id of whoever set it and `at` when (ms), if that is known.
    """

    field: Field
    value: str
    origin: str
    own: str
    fixed: bool
    options: Sequence[tuple[str, str]]
    lines: bool
    longest: int
    by: str = ""
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """A scope that has settings of its own, and what they are."""

    scope: str
    values: str
    signed: bool


class Configuration:
    """Shows and changes the live configuration."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @property
    def _settings(self) -> LiveSettings:
        return self._sources.live.settings

    async def settings(self, scope: Scope) -> list[Setting]:
        """Every field that makes sense at a scope."""
        await self._settings.refresh()
        return [self._setting(scope, row) for row in self._settings.rows(scope)]

    def overrides(self) -> list[Override]:
        """All scopes with settings of their own."""
        found = []
        for one in self._settings.places.live.overrides():
            values = (
                f"{FIELDS[name].title}: {value_words(FIELDS[name], value)}"
                for name, value in one.overrides.items()
            )
            found.append(Override(str(one.scope), "; ".join(values), one.source == "event"))
        return found

    async def change(self, form: Mapping[str, str]) -> str:
        """Change what a form names, and return a sentence about it. Raises Refused."""
        scope = parse_scope(form["scope"])
        await self._settings.refresh()
        field = self._settings.row(scope, form["field"]).field
        value = None if "unset" in form else typed_value(field, form["value"])
        if not await self._settings.change(scope, field.name, value, self._sources.live.by):
            return f"{field.title} was that already."
        return f"{field.title} {changed_words(field, value)}."

    def titled(self, scope: Scope) -> str:
        """A scope in words."""
        if scope == GLOBAL:
            return "everywhere"
        if scope.kind == "user":
            return f"person {scope.id}"
        name = self._sources.names.channel(scope.id) if scope.raw else ""
        return f"#{name}" if name else f"channel {scope.id}"

    def _setting(self, scope: Scope, row: Row) -> Setting:
        field, changed = row.field, row.changed
        own = "" if row.own is None else str(row.own)
        if isinstance(row.own, bool):
            own = value_words(field, row.own)  # which is how it is chosen
        return Setting(
            field=field,
            value=self._settings.words(row, self._sources.live.place(scope)),
            origin=self._origin(scope, row),
            own=own,
            fixed=row.fixed,
            options=options(field),
            lines=has_lines(field),
            longest=longest(field),
            by=changed.by if changed is not None else "",
            at=changed.at if changed is not None else None,
        )

    def _origin(self, scope: Scope, row: Row) -> str:
        """Where a value comes from."""
        effective = row.effective
        wider = "" if effective.scope == scope else f", for {self.titled(effective.scope)}"
        if effective.source == "event":
            return f"signed by the owner{wider}"
        if effective.source == "file":
            return f"{'set' if row.changed is not None else f'set in {FILE}'}{wider}"
        listed = effective.value is None and self._settings.lists(row.field.name)
        return f"from {row.field.variable}" if effective.source == "settings" or listed else "default"
