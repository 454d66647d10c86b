"""Two statements in one sentence: "User has a dog and drives a van" says two things, "tea and cake" is one.

English and German. What is found is only offered, so it may be wrong. Pure.
"""

import re

from discoclaw.core.purge import distinctive
from discoclaw.core.text import collapse

_AND = re.compile(r"\s*(?:;|,?\s+(?:and|but|und|aber)\s)\s*(?:(?:also|auch)\s+)?", re.IGNORECASE)
VERBS = frozenset(
    """
    is am are was has have had lives live works work likes like loves love hates hate drives drive owns
    own plays play speaks speak wants want studies study keeps keep goes go drinks drink eats eat uses
    use prefers prefer needs need rides ride collects collect teaches teach runs run writes write sings
    sing knows know plans plan moved got bought sold started stopped married visits visit earns earn
    pays pay rents rent sees see takes take ist bin war hat habe wohnt wohne lebt arbeitet arbeite mag
    liebt hasst fährt fahre spielt spiele spricht will studiert trinkt isst braucht sammelt lernt
    enjoys learns dislikes believes thinks hopes feels gets gives makes breeds bakes cooks codes deploys
    develops designs manages leads organizes travels moves stays sleeps walks swims hikes smokes dances paints
    draws reads listens watches follows supports tries starts wears carries says tells talks helps trains
    """.split()  # noqa: SIM905 - a list of words is not easier to read
)
_FARTHEST = 4
"""The verb of the second statement is among so many words."""


def halves(text: str) -> tuple[str, str] | None:
    """The two statements of a sentence, each whole; None if it makes one, or more than two."""
    parts = [part for part in _AND.split(collapse(text).rstrip(".")) if part]
    if len(parts) != 2:
        return None
    first, second = (part.split() for part in parts)
    verb = next((at for at, word in enumerate(first) if word.lower() in VERBS), None)
    begins = next((at for at, word in enumerate(second[:_FARTHEST]) if word.lower() in VERBS), None)
    if not verb or begins is None or len(second) < 2:
        return None
    whole = second if begins else [*first[:verb], *second]
    one, other = " ".join(first), " ".join(whole)
    own, others = distinctive(one), distinctive(other)
    return (f"{one}.", f"{other}.") if own - others and others - own else None


def left_out(before: str, after: str) -> str:
    """The statement of a text of which another text has no word any more; "" if there is none."""
    found = halves(before)
    if found is None:
        return ""
    now = distinctive(after)
    gone = [
        part for part, other in (found, found[::-1]) if not (distinctive(part) - distinctive(other)) & now
    ]
    return gone[0] if len(gone) == 1 else ""
