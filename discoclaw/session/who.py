"""Who the bot is to the person it answers: its own memory, overridden by the personality's files.

What is about "our human" is only for owners, and not for one who opted out of memory. Independent of prompts.
"""

from discoclaw.core.values import dataclass, field, replace
from discoclaw.core.view import EMPTY, View
from discoclaw.session.arrival import Arrival
from discoclaw.soul.soul import Soul, exists, of_view


@dataclass(frozen=True, slots=True)
class Who:
    """The soul shown to one person. `hatched`: there is one, or that is unknown."""

    soul: Soul = field(default=Soul())
    hatched: bool = True


def who_for(arrival: Arrival, files: Soul, view: View | None) -> Who:
    """The bot as a message's author sees it. `view`: the bot's own memory, None if it can't be read."""
    author, kept = arrival.message.author, view or EMPTY
    soul = files.over(of_view(kept, with_whom=author.id, in_dm=arrival.in_dm))
    if soul.user and (not author.is_owner or arrival.permission.opted_out):
        soul = replace(soul, user="")
    return Who(soul, view is None or bool(files) or exists(kept))
