"""When the bot answers and how much it hears: runtime knobs, resolved per field, and the allowlist.

A `Policy` is given to each turn; settings make the bottom layer, live configuration the ones above (see
`core/live`): user > group > global > settings > default. Knows nothing about where layers come from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from discoclaw.core.message import Place

RespondMode: TypeAlias = Literal["all", "mention", "owner", "none"]
RESPOND_MODES: tuple[RespondMode, ...] = get_args(RespondMode)
CONTEXT_HISTORY_BOUNDS = (1, 200)


@dataclass(frozen=True, slots=True)
class Layer:
    """One scope's wishes; None leaves a field to the layer below."""

    respond_mode: RespondMode | None = None
    context_history: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for one message. `context_history` is a number of messages, 1 to 200.

    `holds` is how many the conversation keeps at least, because others who talk there are shown more: one
    person's wish for less takes nothing away from the others.
    """

    respond_mode: RespondMode = "mention"
    context_history: int = 20
    holds: int = 0

    @property
    def capacity(self) -> int:
        """How many messages the conversation's window holds."""
        return max(self.context_history, self.holds)


DEFAULT = Policy()


def resolve(layers: Iterable[Layer], default: Policy = DEFAULT) -> Policy:
    """The policy of `layers`, strongest first: each field from the first layer that sets it."""
    mode, history = None, None
    for layer in layers:
        mode = mode if mode is not None else layer.respond_mode
        history = history if history is not None else layer.context_history
    least, most = CONTEXT_HISTORY_BOUNDS
    return Policy(
        default.respond_mode if mode is None else mode,
        default.context_history if history is None else min(max(history, least), most),
    )


def should_respond(mode: RespondMode, *, mentions_us: bool, is_owner: bool, in_our_thread: bool) -> bool:
    """Whether a message of an allowed person is answered.

    `mentions_us`: a mention, a reply to us, or a DM. `in_our_thread`: a thread in which we were mentioned
    before, where the talk goes on without one.
    """
    if mode == "all":
        return True
    if mode == "mention":
        return mentions_us or in_our_thread
    return mode == "owner" and is_owner


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Who may talk to the bot, and where. Ids are snowflakes as text.

    Fails closed: with neither users nor roles nobody may. `channels` empty means every channel; a thread
    goes by its parent, and DMs are judged by the person alone.
    """

    users: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()

    @property
    def closed(self) -> bool:
        return not self.users and not self.roles

    def person(self, user_id: str, role_ids: Iterable[str] = ()) -> bool:
        return user_id in self.users or not self.roles.isdisjoint(role_ids)

    def channel(self, group_id: str | None, channel_id: str) -> bool:
        """`group_id` None is a DM."""
        return group_id is None or not self.channels or bool(self.channels & {group_id, channel_id})


@dataclass(frozen=True, slots=True)
class Personas:
    """Which persona (branch) is used where, whatever a person's HEAD is: by channel id, name, or "dm".

    "dm" is never a channel, whatever its name.
    """

    places: Mapping[str, str] = field(default_factory=dict)

    def of(self, place: Place) -> str | None:
        """The persona of a place; a thread goes by its channel. None leaves it to the person's HEAD."""
        if place.kind == "dm":
            return self.places.get("dm")
        for name in (place.channel_id, place.group_id, place.group_name.casefold()):
            if name is not None and name != "dm" and name in self.places:
                return self.places[name]
        return None
