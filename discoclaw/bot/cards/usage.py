"""The cards of what models were used for, a person's own or everybody's, with a menu of views.

### Your usage
**Today**: $0.34
-# 12 calls · 34.5k tokens in, 2.1k out
**This month**: $3.40 …
───────────────
**Your budget for today**: $0.16 of $0.50 left
-# 68 % spent · begins anew in 5 hours
[ a picture of the last thirty days ]
[ Another view…                   ▾ ]
"""

from collections.abc import Callable, Sequence

from discoclaw.bot.cards.card import GREY, Card, Entry, Menu, Picture, Turn
from discoclaw.bot.cards.turning import written
from discoclaw.bot.texts import usage as texts
from discoclaw.core.budgets import Spent
from discoclaw.core.usage_report import By, Report, Total, money
from discoclaw.show.usage import used

OVERVIEW = "overview"
_OWN: Sequence[By] = ("purpose", "model", "day", "channel")
_ALL: Sequence[By] = ("person", "channel", "server", "purpose", "model", "day")
_MOST_IN_TEXT = 12


def overview(
    sums: Sequence[tuple[str, Total]],
    budgets: Sequence[Spent],
    turn: Turn,
    server: Callable[[str], str],
    *,
    page: int,
) -> Card:
    """A card of what was used in some periods, and what is left of budgets."""
    own = not _everybodys(turn)
    rows = [Entry(*texts.sum_line(when, total)) for when, total in sums]
    left = [Entry(*texts.budget(one, own=own, server=server), apart=not n) for n, one in enumerate(budgets)]
    return Card(title(_everybodys(turn)), [*rows, *left], turn=turn, page=page, most=10, colour=GREY)


def groups(report: Report, kind: By, turn: Turn, server: Callable[[str], str], *, page: int) -> Card:
    """The groups of one kind, dearest first, days newest first. Days without a call are left out."""
    total = report.total
    rows = [Entry(*texts.group(one, kind, total, server)) for one in report.by(kind)]
    summed = f"{texts.RECENT}: {money(total.nano)} · {used(total)}"
    return Card(
        f"{title(_everybodys(turn))} {texts.KINDS[kind]}",
        rows[::-1] if kind == "day" else rows,
        small=[summed if total else texts.NO_CALLS],
        turn=turn,
        page=page,
        most=10,
        colour=GREY,
    )


def picture(data: bytes, total: Total) -> Picture:
    """The picture of the last thirty days."""
    about = f"A bar for each of the last 30 days; together {money(total.nano)}" if total else texts.NO_CALLS
    return Picture("usage.png", data, about)


def views(user_id: str, *, owner: bool) -> Menu:
    """The menu of all views that somebody may see."""
    options = [("Mine", "", written((OVERVIEW, False)))]
    options += [(f"Mine {texts.KINDS[kind]}", "", written((kind, False))) for kind in _OWN]
    if owner:
        options.append(("Everybody's", "", written((OVERVIEW, True))))
        options += [(f"Everybody's {texts.KINDS[kind]}", "", written((kind, True))) for kind in _ALL]
    return Menu(f"usage:{user_id}", "Another view…", options)


def short_text(card: Card) -> str:
    """The card as a text that fits into one message: its first rows, and how many there are."""
    left = len(card.entries) - _MOST_IN_TEXT
    rows = [*card.entries[:_MOST_IN_TEXT], *([Entry(f"and {left} more: `/usage`")] if left > 0 else [])]
    return Card(card.heading, rows, small=card.small, foot=card.foot).as_text()


def title(everybody: bool) -> str:
    """The title of the card and of its picture."""
    return "Everybody's usage" if everybody else "Your usage"


def _everybodys(turn: Turn) -> bool:
    _, everybody = turn.values
    return bool(everybody)
