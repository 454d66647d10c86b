"""The words of `/usage`: sums, groups and budgets, as markup."""

from collections.abc import Callable

from discoclaw.bot.texts.markup import ago, words
from discoclaw.core.budgets import Limit, Spent
from discoclaw.core.usage import By, Group, Total, money
from discoclaw.show.usage import purpose, used

ONLY_YOURS = "only my owners can see everybody's usage; `/usage` alone shows yours"
UNREADABLE = "I can't read what was written down about calls of models just now; try again later"
UNNAMED = "I don't write down whom calls are for, so I can't tell which were yours."
NOT_WRITTEN = "I don't write down what models are used for: nothing is stored here (DISCOCLAW_STORE=none)."
RECENT = "The last 30 days"
NO_CALLS = "No calls in the last 30 days"
OPTED_OUT = "You have opted out, so I don't write down which calls are for you."
ASKED = "You asked for this in"
SENT = "I sent it to you in a DM."
DMS_CLOSED = "I can't send you DMs, and your usage is nobody else's business; use `/usage` here instead"
NOBODY: dict[By, str] = {
    "person": "nobody in particular",
    "channel": "direct messages, and what I do by myself",
    "server": "direct messages, and what I do by myself",
}
"""Names of the groups that have no id."""
KINDS: dict[By, str] = {
    "purpose": "by purpose",
    "model": "by model",
    "day": "by day",
    "channel": "by channel",
    "server": "by server",
    "person": "by person",
}
_LONGEST = 60


def sum_line(title: str, total: Total) -> tuple[str, str]:
    """A sum in two lines: what it is and what it cost; what was used."""
    cost = f": {money(total.nano)}" if total else ""
    return f"**{title}**{cost}", used(total)


def group(one: Group, kind: By, whole: Total, server: Callable[[str], str]) -> tuple[str, str]:
    """A group in two lines; `server` returns the name of one."""
    cost, tokens = one.total.nano, one.total.tokens
    part, all_ = (cost, whole.nano) if whole.nano else (tokens, whole.tokens)
    share = [f"{part * 100 // all_} %"] if all_ and kind != "day" else []
    title = _title(one.key, kind, server)
    return f"**{title}**: {money(cost)}", " · ".join([used(one.total), *share])


def _title(key: str | None, kind: By, server: Callable[[str], str]) -> str:
    if key is None:
        return NOBODY[kind]
    match kind:
        case "person":
            return f"<@{key}>"
        case "channel":
            return f"<#{key}>"
        case "server":
            return words(server(key), _LONGEST)
        case "purpose":
            return purpose(key)
        case _:
            return words(key, _LONGEST) or "none"


def budget(spent: Spent, *, own: bool, server: Callable[[str], str]) -> tuple[str, str]:
    """A budget in two lines: what is left of it, how much was spent, and when it begins anew.

    `own`: for one person, who is told no amounts of what others share with them.
    """
    limit = spent.limit
    left, percent = max(0, limit.nano - spent.nano), min(100, spent.percent)
    if not left:
        rest = "spent"
    elif own and limit.scope != "person":
        rest = f"{100 - percent} % left"
    else:
        rest = f"{money(left)} of {money(limit.nano)} left"
    when = "today" if limit.period == "day" else "this month"
    return f"**{_whose(limit, spent.whose, own, server)} for {when}**: {rest}", (
        f"{percent} % spent · begins anew {ago(spent.until)}"
    )


def _whose(limit: Limit, whose: str, own: bool, server: Callable[[str], str]) -> str:
    match limit.scope:
        case "all":
            return "Everybody's budget"
        case "person":
            return "Your budget" if own else f"Budget of <@{whose}>"
        case "channel":
            return f"Budget of {'this channel' if own else f'<#{whose}>'}"
        case "server":
            return f"Budget of {'this server' if own else words(server(whose), _LONGEST)}"
