"""Live configuration: settings that an owner or an admin overrides while the bot runs.

An override applies to one scope:

    global          everywhere, including direct messages
    group:<id>      a channel and its threads
    user:<id>       a person, wherever they talk

Each field is resolved on its own. A narrower scope beats a wider one, whatever its source. Within a scope,
an event signed by the owner beats the local file. The settings and then the defaults come last:

    user (event, file) > group (event, file) > global (event, file) > settings > default

`policy.FIELDS` lists the fields, and the scopes that each may have. The events' addresses, `respond_mode` and
`context_history` are Snowclaw's schema (Nostr kind 30078). An id is a Discord id, or the first 16, 32 or all
64 hex digits of a pseudonym. One wrong value rejects the whole event, so that half a change is never applied.
Fields this version does not know are ignored.
Pure. Knows nothing about signatures, files, or who may send an event.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from discoclaw.core.errors import Refused
from discoclaw.core.policy import (
    DEFAULT,
    FIELDS,
    KINDS,
    NO_OVERRIDES,
    Kind,
    Overrides,
    Policy,
    Value,
    resolve,
)

PREFIX = "snowclaw:config:"
TAGGED = ("respond_mode", "context_history")
"""Fields that Snowclaw writes as tags. Others count in the content only: a tag may mean something else."""

_ADDRESSED = {"global": "global", "group": "group", "user": "npub"}  # a scope's name in an event's address
_DISCORD_ID = re.compile(r"[0-9]{1,20}")
_PSEUDONYM = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64}")


class Pseudonyms(Protocol):
    """Gives each person and channel a pseudonym (64 hex digits) for places that must not see Discord ids."""

    def user(self, user_id: str) -> str: ...
    def channel(self, channel_id: str) -> str: ...


# ---------------------------------------------------------------------- scopes


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of an override. `id` is "" for the global scope."""

    kind: Kind
    id: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.id else self.kind

    @property
    def raw(self) -> bool:
        """Whether the id looks like a Discord id rather than a pseudonym."""
        return _DISCORD_ID.fullmatch(self.id) is not None


GLOBAL = Scope("global")


def parse_scope(text: str) -> Scope:
    """Parse `global`, `group:<id>` or `user:<id>`. Raises Refused for anything else."""
    kind, _, given = text.strip().lower().partition(":")
    if kind == "global" and not given:
        return GLOBAL
    if kind in ("group", "user") and _is_id(given):
        return Scope("group" if kind == "group" else "user", given)
    why = "; an id is a number" if kind in ("group", "user") and given else ""
    raise Refused(
        f"unknown scope {text.strip()[:80]!r}; use global, group:<channel id> or user:<user id>{why}"
    )


def scope_of_address(address: str) -> Scope:
    """The scope in the address (`d` tag) of a configuration event. Raises Refused if it names none."""
    kind, _, given = address.removeprefix(PREFIX).partition(":")
    if given.startswith("npub1"):
        raise Refused("a person is named by a Discord id or a pseudonym, not by an npub")
    scope = next((one for one, called in _ADDRESSED.items() if called == kind), None)
    if not address.startswith(PREFIX) or scope is None:
        raise Refused(f"not the address of a configuration; it starts with {PREFIX}")
    return parse_scope(f"{scope}:{given}" if given else scope)


def address(scope: Scope) -> str:
    """The address (`d` tag) of the event that configures a scope."""
    called = f"{PREFIX}{_ADDRESSED[scope.kind]}"
    return f"{called}:{scope.id}" if scope.id else called


def scope_aliases(scope: Scope, names: Pseudonyms | None) -> tuple[Scope, ...]:
    """The scope under every id it may be given: the Discord id, then the pseudonym, longest form first.

    Without `names`, or for a scope that already is a pseudonym, that is the scope alone.
    """
    if names is None or scope.kind == "global" or not scope.raw:
        return (scope,)
    whole = names.user(scope.id) if scope.kind == "user" else names.channel(scope.id)
    return (scope, *(Scope(scope.kind, whole[:length]) for length in (64, 32, 16)))


def _is_id(text: str) -> bool:
    return bool(_DISCORD_ID.fullmatch(text) or _PSEUDONYM.fullmatch(text))


# ---------------------------------------------------------------------- overrides


def overrides_of(content: str, tags: Iterable[Sequence[str]] = ()) -> Overrides:
    """The overrides in an event: from the JSON of its content or, if that is empty, from its tags.

    A missing or null field is left to the wider scopes, so `{}` withdraws every override. `context_history`
    is a number in JSON and text in a tag. Raises Refused, naming the wrong value.
    """
    if content.strip():
        try:
            return overrides_from(json.loads(content))
        except (ValueError, RecursionError):  # deeply nested JSON exhausts the parser's stack
            raise Refused("the content is not JSON") from None
    given: dict[str, Any] = {}
    for tag in tags:
        if tag and tag[0] in TAGGED:
            given.setdefault(tag[0], FIELDS[tag[0]].type.typed(tag[1] if len(tag) > 1 else ""))
    return overrides_from(given)


def overrides_from(value: object) -> Overrides:
    """The overrides in a JSON object; unknown fields are ignored. Raises Refused, naming the wrong value."""
    if not isinstance(value, Mapping):
        raise Refused(f"expected a JSON object, not {type(value).__name__}")
    given = {name: value[name] for name in FIELDS if value.get(name) is not None}
    return {name: FIELDS[name].check(one) for name, one in given.items()}


def fitting(scope: Scope, overrides: Overrides) -> Overrides:
    """The overrides, unchanged. Raises Refused if one of them can't be set for such a scope."""
    for name in overrides:
        if scope.kind not in (kinds := FIELDS[name].kinds):
            raise Refused(f"{name} can't be set for {scope}, only for {' or '.join(kinds)}")
    return overrides


# ---------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class Signed:
    """An event the owner signed: `at` in seconds, its id, and its overrides if it is a configuration."""

    at: int
    id: str
    overrides: Overrides | None = None

    def older_than(self, other: "Signed") -> bool:
        """Whether another event replaces this one (NIP-01: the later one; at equal times the lower id)."""
        return other.at > self.at or (other.at == self.at and other.id < self.id)


def newest(events: Iterable[Signed]) -> Signed | None:
    """The event that counts, among events with one address; None if there are none."""
    found: Signed | None = None
    for one in events:
        if found is None or found.older_than(one):
            found = one
    return found


# ---------------------------------------------------------------------- resolution

OverrideSource = Literal["event", "file", "settings", "default"]
_MOST_RESOLVED = 10_000
"""Resolved policies that are cached. Beyond that the cache starts over; resolving one is cheap."""


@dataclass(frozen=True, slots=True)
class SourcedOverrides:
    """The overrides of one scope, and where they come from: a signed event, the local file, the settings."""

    source: OverrideSource
    scope: Scope
    overrides: Overrides


@dataclass(frozen=True, slots=True)
class Effective:
    """The value in effect for one field, and where it comes from. None: a list of places in the settings."""

    value: Value | None
    source: OverrideSource
    scope: Scope


def explain(layers: Iterable[SourcedOverrides], default: Policy = DEFAULT) -> dict[str, Effective]:
    """The value in effect for each field, and its source. `layers` come strongest first."""
    found: dict[str, Effective] = {}
    for layer in layers:
        for field, value in layer.overrides.items():
            found.setdefault(field, Effective(value, layer.source, layer.scope))
    last = {field: Effective(getattr(default, field), "default", GLOBAL) for field in FIELDS}
    return {field: found.get(field, last[field]) for field in FIELDS}


class LiveOverrides:
    """All overrides by scope, and the policies they resolve to.

    Never modified: a change of the configuration makes a new one. That is why resolved policies can be
    cached here.
    """

    def __init__(
        self,
        events: Mapping[Scope, Signed],
        file: Mapping[Scope, Overrides],
        settings: Overrides = NO_OVERRIDES,
        names: Pseudonyms | None = None,
    ) -> None:
        self._events = events
        self._file = file
        self._settings = settings
        self._names = names
        # Somebody with a personal override may talk anywhere, so every window has to be large enough.
        people = [overrides for scope, overrides in file.items() if scope.kind == "user"]
        people += [one.overrides or NO_OVERRIDES for scope, one in events.items() if scope.kind == "user"]
        self._most_shown = max((int(one.get("context_history", 0)) for one in people), default=0)
        self._resolved: dict[tuple[str | None, str], Policy] = {}

    def policy(self, group_id: str | None, user_id: str) -> Policy:
        """The policy for a person in a channel; None means direct messages, "" that it is nobody's."""
        known = self._resolved.get((group_id, user_id))
        if known is None:
            if len(self._resolved) >= _MOST_RESOLVED:
                self._resolved.clear()
            known = self._resolved[group_id, user_id] = self._resolve(group_id, user_id)
        return known

    def _resolve(self, group_id: str | None, user_id: str) -> Policy:
        person = (Scope("user", user_id),) if user_id else ()
        if group_id is None:  # a DM is read by one person only, so there is no minimum
            return self._of(*person)
        group = Scope("group", group_id)
        mine = self._of(group, *person)
        minimum = max(self._of(group).context_history, self._most_shown)
        return replace(mine, minimum_window=minimum)

    def _of(self, *scopes: Scope) -> Policy:
        return resolve(layer.overrides for layer in self.layers(scopes))

    def layers(self, scopes: Iterable[Scope]) -> Iterator[SourcedOverrides]:
        """The overrides that apply where these scopes meet, strongest first; global ones always apply."""
        by_kind = {scope.kind: scope for scope in (*scopes, GLOBAL)}
        for kind in reversed(KINDS):
            if (scope := by_kind.get(kind)) is not None:
                if (event := self.newest(scope)) is not None:
                    yield SourcedOverrides("event", scope, event.overrides or NO_OVERRIDES)
                for name in scope_aliases(scope, self._names):
                    if name in self._file:
                        yield SourcedOverrides("file", scope, self._file[name])
        yield SourcedOverrides("settings", GLOBAL, self._settings)

    def newest(self, scope: Scope) -> Signed | None:
        """The newest event about a scope, whether it names the scope by Discord id or by pseudonym."""
        return newest(
            self._events[name] for name in scope_aliases(scope, self._names) if name in self._events
        )

    def all(self) -> list[SourcedOverrides]:
        """All overrides except the settings', sorted by scope as events and the file name it."""
        found = [
            SourcedOverrides("event", scope, one.overrides or NO_OVERRIDES)
            for scope, one in self._events.items()
        ]
        found += [SourcedOverrides("file", scope, overrides) for scope, overrides in self._file.items()]
        kept = [one for one in found if one.overrides != NO_OVERRIDES]
        return sorted(kept, key=lambda one: (KINDS.index(one.scope.kind), str(one.scope), one.source))
