"""Who may see what: which items stay private, and where an item may be shown.

User memory follows its person everywhere, except what was learned in confidence. Knows nothing about
prompts or commands; they ask `may_show` before an item leaves the ledger.
"""

import re
from typing import Literal, TypeAlias, get_args

from discoclaw.core.item import Item, Kind, Sensitivity

DmPrivacy: TypeAlias = Literal["strict", "balanced", "open"]

# How a person likes to work follows them; who they are and what they do stays where it was said.
_FOLLOWS: frozenset[Kind] = frozenset({"preference", "tool", "workflow"})

# A net under the extractor's own mark, for health, money, relations, identity and whereabouts. English
# only, and on purpose too wide: a preference kept private by mistake can be shared, a leak can not be undone.
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
    """How sensitive a new item is.

    `marked` is what the extractor or the person says; it is never lowered. `learned_privately`: in a DM
    or in a channel that not everybody on the server can read. `rule` is DISCOCLAW_DM_PRIVACY.
    """
    if marked != "normal" or not learned_privately or rule == "open":
        return marked
    if rule == "balanced" and kind in _FOLLOWS and not is_personal(text):
        return "normal"
    return "private"


def stricter(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """The one that shows less: privacy is only ever raised on the way."""
    return max(one, other, key=get_args(Sensitivity).index)


def is_personal(text: str) -> bool:
    """Whether words are about health, money, relations, identity or whereabouts; a list has to do."""
    return _PERSONAL.search(text) is not None


def may_show(item: Item, *, in_dm: bool) -> bool:
    """Whether an item may be put before the model, or people, in a DM with its person or elsewhere."""
    allowed: tuple[Sensitivity, ...] = ("normal", "private") if in_dm else ("normal",)
    return item.facets.sensitivity in allowed
