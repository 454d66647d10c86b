"""When and how the bot answers, how much of the conversation it is shown, and who may talk to it.

Every turn is given a `Policy`. Live configuration (`core/live`) overrides the settings, field by field:
user > group > global > settings > default. Knows nothing about where overrides come from.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeAlias, get_args

from discoclaw.core.message import Place
from discoclaw.core.privacy import DmPrivacy

RespondMode: TypeAlias = Literal["all", "mention", "owner", "none"]
RESPOND_MODES: tuple[RespondMode, ...] = get_args(RespondMode)
CONTEXT_HISTORY_BOUNDS = (1, 200)


@dataclass(frozen=True, slots=True)
class Overrides:
    """What one scope sets; None leaves a field to the next wider scope. `core/live_fields` describes each."""

    respond_mode: RespondMode | None = None
    context_history: int | None = None
    model: str | None = None
    prompt: str | None = None
    persona: str | None = None
    receipts: bool | None = None
    approve: bool | None = None
    archive: bool | None = None
    dm_privacy: DmPrivacy | None = None
    listen: bool | None = None
    threads: bool | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What applies to one message. `context_history` is a number of messages, 1 to 200.

    `minimum_window` is the largest `context_history` of anyone who may talk in the same conversation. All of
    them share one window, so it must not shrink for everybody when one person asks for less. `persona`,
    `archive` and `listen` are None where the settings' lists of places decide.
    """

    respond_mode: RespondMode = "mention"
    context_history: int = 20
    minimum_window: int = 0
    model: str = "sonnet"
    prompt: str = ""
    persona: str | None = None
    receipts: bool = False
    approve: bool = False
    archive: bool | None = None
    dm_privacy: DmPrivacy = "balanced"
    listen: bool | None = None
    threads: bool = False

    @property
    def capacity(self) -> int:
        """How many messages the conversation's window holds."""
        return max(self.context_history, self.minimum_window)


DEFAULT = Policy()
OVERRIDABLE: tuple[str, ...] = tuple(one.name for one in fields(Overrides))


def resolve(layers: Iterable[Overrides], default: Policy = DEFAULT) -> Policy:
    """The policy that `layers` (strongest first) add up to: each field comes from the first that sets it.

    `context_history` is clamped to `CONTEXT_HISTORY_BOUNDS`.
    """
    found: dict[str, Any] = {}
    for layer in layers:
        for name in OVERRIDABLE:
            if name not in found and (value := getattr(layer, name)) is not None:
                found[name] = value
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
    """Who may talk to the bot, and where. Ids are Discord snowflakes as text.

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
