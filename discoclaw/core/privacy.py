"""Privacy: which items are private, and where an item may be shown.

A person's memory is used wherever they talk, except for what the bot learned in private. Whatever shows an
item to a model or to people calls `may_show` first. Knows nothing about prompts or commands.
"""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from discoclaw.core.item import Item, Kind, Sensitivity

DmPrivacy: TypeAlias = Literal["strict", "balanced", "open"]

# With the rule "balanced", how a person likes to work may leave the DM it was learned in. Facts about them
# and their projects stay private.
_FOLLOWS: frozenset[Kind] = frozenset({"preference", "tool", "workflow"})

# A safety net below the extracting model's own judgement, for health, money, relations, identity and
# whereabouts. English only, and deliberately broad: an item kept private by mistake can be shared later, but
# a leak cannot be undone.
_PERSONAL = re.compile(
    r"""\b(?:
      health|medic\w*|doctor|therap\w*|diagnos\w*|illness|disease|surgery|hospital|pregnan\w*|disab\w*
    | depress\w*|anxi\w*|adhd|autis\w*|cancer|diabet\w*|allerg\w*|addict\w*|sober|pills?
    | salar\w*|debts?|loans?|mortgage|income|bank|bankrupt\w*|savings?|wages?|tax\w*|invest\w*
    | wife|husband|spouse|girlfriend|boyfriend|partner|fianc\w*|married|divorc\w*|dating|affair|ex
    | mother|father|mom|mum|dad|sisters?|brothers?|sons?|daughters?|kids?|child\w*|family
    | gay|lesbian|bisexual|trans|queer|religio\w*|muslim|christian|jewish|hindu|buddhist|atheist|church
    | citizen\w*|passport|visa|immigra\w*|ethnic\w*|politic\w*|vot(?:e|es|ed|ing)
    | address|lives?|living|home|moved|moving|commut\w*|travel\w*|vacation|holiday|hotel|street|city|born
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


def sensitivity(
    kind: Kind, text: str, *, learned_privately: bool, marked: Sensitivity, rule: DmPrivacy
) -> Sensitivity:
    """The sensitivity of a new item.

    `marked` is what the extracting model or the person said; it is never lowered. `learned_privately` means
    in a DM, or in a channel that not everybody on the server can read. `rule` is DISCOCLAW_DM_PRIVACY.
    """
    if marked != "normal" or not learned_privately or rule == "open":
        return marked
    if rule == "balanced" and kind in _FOLLOWS and not is_personal(text):
        return "normal"
    return "private"


def said_in_the_open(source: object) -> bool:
    """Whether the source of an item in another program's file says that it was not learned in a DM.

    The TypeScript bot noted the server and the channel's name of everything except what it learned in DMs.
    """
    told: Mapping[object, object] = source if isinstance(source, Mapping) else {}
    return any(isinstance(told.get(name), str) and told[name] for name in ("guildId", "channelName"))


def stricter(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """The more restrictive of two sensitivities. Combining items never makes one less private."""
    return max(one, other, key=get_args(Sensitivity).index)


def is_personal(text: str) -> bool:
    """Whether a text seems to be about health, money, relations, identity or whereabouts, by a word list."""
    return _PERSONAL.search(text) is not None


def may_show(item: Item, *, in_dm: bool) -> bool:
    """Whether an item may be shown to the model or to people, in a DM with its person or (False) elsewhere.

    Confidential items are never shown, not even to the model in a DM.
    """
    allowed: tuple[Sensitivity, ...] = ("normal", "private") if in_dm else ("normal",)
    return item.facets.sensitivity in allowed
