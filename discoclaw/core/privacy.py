"""Privacy: which items are private, and where an item may be shown.

A person's memory is used wherever they talk, except for what is personal or was learned in private. Whatever
shows an item to a model or to people calls `may_show` first. Knows nothing about prompts or commands.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, get_args

from discoclaw.core.event import Commit
from discoclaw.core.item import Item, Kind, Sensitivity
from discoclaw.core.matters import is_personal

DmPrivacy: TypeAlias = Literal["strict", "balanced", "open"]

# With the rule "balanced", how a person likes to work may leave the DM it was learned in. Facts about them
# and their projects stay private.
_FOLLOWS: frozenset[Kind] = frozenset({"preference", "tool", "workflow"})


def sensitivity(
    kind: Kind, text: str, *, inferred: bool, learned_privately: bool, marked: Sensitivity, rule: DmPrivacy
) -> Sensitivity:
    """The sensitivity of a new item.

    `marked` is what the extracting model or the person said; it is never lowered. `inferred`: by a model, not
    stated by the person with a command. `learned_privately`: in a DM, or in a channel that not everybody on
    the server can read. `rule` is DISCOCLAW_DM_PRIVACY.

    - What was learned in private stays there. With "balanced", how the person likes to work may leave, unless
      it is personal.
    - What was inferred from open talk is open, unless it is personal in the narrow sense (see `matters`).
    - What a person states in the open stays as they said it.
    """
    if marked != "normal" or rule == "open":
        return marked
    if learned_privately:
        stays = rule == "strict" or kind not in _FOLLOWS or is_personal(text)
    else:
        stays = inferred and is_personal(text, in_the_open=True)
    return "private" if stays else "normal"


def said_in_the_open(source: object) -> bool:
    """Whether the source of an item in another program's file says that it was not learned in a DM.

    The TypeScript bot noted the server and the channel's name of everything except what it learned in DMs.
    """
    told: Mapping[object, object] = source if isinstance(source, Mapping) else {}
    return any(isinstance(told.get(name), str) and told[name] for name in ("guildId", "channelName"))


def stricter(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """The more restrictive of two sensitivities. Combining items never makes one less private."""
    return max(one, other, key=get_args(Sensitivity).index)


def may_show(item: Item, *, in_dm: bool) -> bool:
    """Whether an item may be shown to the model or to people, in a DM with its person or (False) elsewhere.

    Confidential items are never shown, not even to the model in a DM.
    """
    allowed: tuple[Sensitivity, ...] = ("normal", "private") if in_dm else ("normal",)
    return item.facets.sensitivity in allowed


# ----------------------------------------------------------------------
# Which items are private only because the file they came in with doesn't say that they are open.

PRESUMED = "presumed_private"
"""Key in a commit's metadata: the ids of these items, sorted."""


def presumed_private(commits: Iterable[Commit]) -> set[str]:
    """The ids of these items, shared since or not."""
    named = (commit.metadata.get(PRESUMED) for commit in commits)
    return {one for ids in named if isinstance(ids, list) for one in ids if isinstance(one, str)}


def kept_private(count: int) -> str:
    """The note about them for an admin. Only the people themselves can share them."""
    return (
        f"{count} kept private and out of channels, because the file doesn't say where that was said "
        "(in Discord, people share theirs with `!memory share imported`)"
    )
