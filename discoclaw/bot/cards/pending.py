"""The card of what waits for a person's yes."""

from collections.abc import Sequence

from discoclaw.bot.cards.card import YELLOW, Card, Entry, Menu, Turn
from discoclaw.bot.texts import pending as texts
from discoclaw.core.pending import Pending
from discoclaw.core.view import View
from discoclaw.show.words import count

MOST_SHOWN = 10
"""On a page."""
LONGEST_SHOWN = 300
"""UTF-16 units of the words of each."""


def waiting(
    view: View,
    some: Sequence[Pending],
    menus: Sequence[Menu],
    turn: Turn,
    *,
    others: int,
    days: float,
    page: int,
) -> Card:
    """`some` of what is pending, numbered as in the menus; `others` come when these are answered."""
    total = len(some) + others
    if not total:
        return Card(texts.TITLE, [Entry(texts.NOTHING)], colour=YELLOW)
    entries = [
        Entry(f"{number}\\. {texts.would(one, held, LONGEST_SHOWN)}", texts.lapses(one, days))
        for number, one in enumerate(some, 1)
        for held in [view.items.get(one.item.id)]
    ]
    return Card(
        texts.TITLE,
        entries,
        small=[count(total, "proposal")],
        foot=[texts.more(others)] if others else [],
        menus=menus,
        turn=turn,
        page=page,
        most=MOST_SHOWN,
        colour=YELLOW,
    )
