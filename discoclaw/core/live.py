"""Live configuration: what an owner or an admin changes while the bot runs, by scope. Pure.

    global          everywhere, direct messages too
    group:<id>      a channel; its threads go by it
    user:<id>       a person, wherever they talk

Each field is resolved by itself. A narrower scope beats a wider one, wherever it comes from; within one
scope what the owner signed beats the local file; below them are the settings, and then the default:

    user (event, file) > group (event, file) > global (event, file) > settings > default

Addresses and fields of the events are Snowclaw's (kind 30078). An id is a Discord id, or 16, 32 or 64 hex
digits of a pseudonym. One wrong value refuses an event as a whole, so that half a wish never counts; fields
that are not ours are left alone. Knows nothing about signatures, files or who may send an event.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, get_args

from discoclaw.core.errors import Refused
from discoclaw.core.policy import CONTEXT_HISTORY_BOUNDS, DEFAULT, RESPOND_MODES, Layer, Policy, resolve

Kind = Literal["global", "group", "user"]
KINDS: tuple[Kind, ...] = get_args(Kind)

FIELDS = ("respond_mode", "context_history")
PREFIX = "snowclaw:config:"
QUIET = ("silent", "listen")
"""Other words for the mode `none`: Snowclaw's, read and not written."""

_ADDRESSED = {"global": "global", "group": "group", "user": "npub"}  # scopes as their addresses call them
_DISCORD_ID = re.compile(r"[0-9]{1,20}")
_PSEUDONYM = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{64}")
_DIGITS = re.compile(r"[0-9]{1,9}")

NO_WISHES = Layer()


class Pseudonyms(Protocol):
    """How people and channels are called where their Discord ids may not be seen: 64 hex digits each."""

    def user(self, user_id: str) -> str: ...
    def channel(self, channel_id: str) -> str: ...


# ---------------------------------------------------------------------- scopes


@dataclass(frozen=True, slots=True)
class Scope:
    """Where wishes hold. `id` is "" for the global one."""

    kind: Kind
    id: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.id else self.kind

    @property
    def raw(self) -> bool:
        """Whether the id is a Discord id, as far as can be seen."""
        return _DISCORD_ID.fullmatch(self.id) is not None


GLOBAL = Scope("global")


def scope_named(text: str) -> Scope:
    """The scope that is written `global`, `group:<id>` or `user:<id>`. Raises Refused."""
    kind, _, given = text.strip().lower().partition(":")
    if kind == "global" and not given:
        return GLOBAL
    if kind in ("group", "user") and _is_id(given):
        return Scope("group" if kind == "group" else "user", given)
    why = "; an id is a number" if kind in ("group", "user") and given else ""
    raise Refused(
        f"{text.strip()[:80]!r} is no scope; there are global, group:<channel id> and user:<user id>{why}"
    )


def scope_of(address: str) -> Scope:
    """The scope of a configuration event's address (`d`). Raises Refused for one that names none."""
    kind, _, given = address.removeprefix(PREFIX).partition(":")
    if given.startswith("npub1"):
        raise Refused("people are not linked with keys of their own")
    scope = next((one for one, called in _ADDRESSED.items() if called == kind), None)
    if not address.startswith(PREFIX) or scope is None:
        raise Refused("it is no address of a configuration")
    return scope_named(f"{scope}:{given}" if given else scope)


def address(scope: Scope) -> str:
    """The address (`d`) of a scope's configuration event."""
    called = f"{PREFIX}{_ADDRESSED[scope.kind]}"
    return f"{called}:{scope.id}" if scope.id else called


def other_names(scope: Scope, names: Pseudonyms | None) -> tuple[Scope, ...]:
    """The scope under all names it may have: its Discord id first, then its pseudonym, the longest first."""
    if names is None or scope.kind == "global" or not scope.raw:
        return (scope,)
    whole = names.user(scope.id) if scope.kind == "user" else names.channel(scope.id)
    return (scope, *(Scope(scope.kind, whole[:length]) for length in (64, 32, 16)))


def _is_id(text: str) -> bool:
    return bool(_DISCORD_ID.fullmatch(text) or _PSEUDONYM.fullmatch(text))


# ---------------------------------------------------------------------- wishes


def wishes_of(content: str, tags: Iterable[Sequence[str]] = ()) -> Layer:
    """The wishes of an event: of the JSON in its content, or of its tags where the content is empty.

    A field that is missing or null is left to the scopes below, so `{}` takes everything back. JSON has a
    number for `context_history`; tags have text. Raises Refused, saying which value is wrong.
    """
    if content.strip():
        try:
            return wishes_from(json.loads(content))
        except (ValueError, RecursionError):
            raise Refused("its content is no JSON") from None
    given: dict[str, Any] = {}
    for tag in tags:
        if tag and tag[0] in FIELDS:
            given.setdefault(tag[0], tag[1] if len(tag) > 1 else "")
    if "context_history" in given and _DIGITS.fullmatch(given["context_history"]):
        given["context_history"] = int(given["context_history"])
    return wishes_from(given)


def wishes_from(value: object) -> Layer:
    """The wishes in a JSON object. Raises Refused on a wrong value; fields that are not ours do not count."""
    if not isinstance(value, Mapping):
        raise Refused(f"a JSON object is wanted, not {type(value).__name__}")
    mode, history = value.get("respond_mode"), value.get("context_history")
    if mode is not None and not (isinstance(mode, str) and mode in (*RESPOND_MODES, *QUIET)):
        raise Refused(f"respond_mode is one of {', '.join(RESPOND_MODES)}, not {_shown(mode)}")
    least, most = CONTEXT_HISTORY_BOUNDS
    number = isinstance(history, int) and not isinstance(history, bool)
    if history is not None and not (number and least <= history <= most):
        raise Refused(f"context_history is a whole number from {least} to {most}, not {_shown(history)}")
    return Layer("none" if mode in QUIET else cast(Any, mode), history)


def wishes_json(wishes: Layer) -> dict[str, str | int]:
    """Wishes as a JSON object, without the fields that are left to others."""
    found = {"respond_mode": wishes.respond_mode, "context_history": wishes.context_history}
    return {field: value for field, value in found.items() if value is not None}


def _shown(value: object) -> str:
    return repr(value)[:40]


# ---------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class Signed:
    """An event of the owner: its time (s), its id, and its wishes if it is a configuration."""

    at: int
    id: str
    wishes: Layer | None = None

    def older_than(self, other: "Signed") -> bool:
        """Whether another event takes the place of this one (NIP-01: at equal times, the lowest id)."""
        return other.at > self.at or (other.at == self.at and other.id < self.id)


def newest(events: Iterable[Signed]) -> Signed | None:
    """The one that counts among events about the same."""
    found: Signed | None = None
    for one in events:
        if found is None or found.older_than(one):
            found = one
    return found


# ---------------------------------------------------------------------- resolution

Giver = Literal["event", "file", "settings", "default"]
_MOST_RESOLVED = 10_000


@dataclass(frozen=True, slots=True)
class SourcedOverrides:
    """Wishes, and who gave them: an event of the owner or the local file for a scope, or the settings."""

    by: Giver
    scope: Scope
    wishes: Layer


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds for one field, and where that comes from."""

    value: str | int
    by: Giver
    scope: Scope


def explain(layers: Iterable[SourcedOverrides], default: Policy = DEFAULT) -> dict[str, Effective]:
    """What holds for each field, and why; `layers` are given strongest first."""
    found: dict[str, Effective] = {}
    for layer in layers:
        for field, value in wishes_json(layer.wishes).items():
            found.setdefault(field, Effective(value, layer.by, layer.scope))
    last = {field: Effective(getattr(default, field), "default", GLOBAL) for field in FIELDS}
    return {field: found.get(field, last[field]) for field in FIELDS}


class Layers:
    """All wishes, by scope, and what they come to. Never changed, so what was resolved once stays right."""

    def __init__(
        self,
        events: Mapping[Scope, Signed],
        file: Mapping[Scope, Layer],
        settings: Layer = NO_WISHES,
        names: Pseudonyms | None = None,
    ) -> None:
        self._events = events
        self._file = file
        self._settings = settings
        self._names = names
        people = [wishes for scope, wishes in file.items() if scope.kind == "user"]
        people += [one.wishes or NO_WISHES for scope, one in events.items() if scope.kind == "user"]
        self._most_shown = max((wishes.context_history or 0 for wishes in people), default=0)
        self._resolved: dict[tuple[str | None, str], Policy] = {}

    def policy(self, group_id: str | None, user_id: str) -> Policy:
        """What holds for a person in a channel, or (None) in direct messages."""
        known = self._resolved.get((group_id, user_id))
        if known is None:
            if len(self._resolved) >= _MOST_RESOLVED:
                self._resolved.clear()
            known = self._resolved[group_id, user_id] = self._resolve(group_id, user_id)
        return known

    def _resolve(self, group_id: str | None, user_id: str) -> Policy:
        if group_id is None:
            return self._of(Scope("user", user_id))
        group = Scope("group", group_id)
        mine = self._of(group, Scope("user", user_id))
        holds = max(self._of(group).context_history, self._most_shown)
        return Policy(mine.respond_mode, mine.context_history, holds)

    def _of(self, *scopes: Scope) -> Policy:
        return resolve(layer.wishes for layer in self.given(scopes))

    def given(self, scopes: Iterable[Scope]) -> Iterator[SourcedOverrides]:
        """The wishes that count where these scopes meet, strongest first. The global ones are among them."""
        by_kind = {scope.kind: scope for scope in (*scopes, GLOBAL)}
        for kind in reversed(KINDS):
            if (scope := by_kind.get(kind)) is not None:
                if (event := self.newest(scope)) is not None:
                    yield SourcedOverrides("event", scope, event.wishes or NO_WISHES)
                for name in other_names(scope, self._names):
                    if name in self._file:
                        yield SourcedOverrides("file", scope, self._file[name])
        yield SourcedOverrides("settings", GLOBAL, self._settings)

    def newest(self, scope: Scope) -> Signed | None:
        """The newest event about a scope, which may be called by its id or by its pseudonym."""
        return newest(self._events[name] for name in other_names(scope, self._names) if name in self._events)

    def all(self) -> list[SourcedOverrides]:
        """All wishes but those of the settings, by scope as it is named there."""
        found = [
            SourcedOverrides("event", scope, one.wishes or NO_WISHES) for scope, one in self._events.items()
        ]
        found += [SourcedOverrides("file", scope, wishes) for scope, wishes in self._file.items()]
        kept = [one for one in found if one.wishes != NO_WISHES]
        return sorted(kept, key=lambda one: (KINDS.index(one.scope.kind), str(one.scope), one.by))
