"""The ids of ◀ and ▶ below a card: each press gives the command again, for another page of what is so now.

What was asked stands in the custom id if it fits there (100 characters), as what was asked of `log` does.
What does not, such as what somebody searches for, stands in the card itself, which only we can edit.
"""

from collections.abc import Sequence

from discoclaw.bot.cards.card import Button, Turn
from discoclaw.bot.texts.markup import plain, unmarked
from discoclaw.show.words import line

ASKED_ID = 1000
"""The component that holds what was asked."""
MOST_ID = 100
"""The longest custom id, by Discord's limit."""
LONGEST_PAGE = 9999
IN_CARD = "*"
"""Stands in a custom id for values that are in the card."""
SEPARATOR = "|"


def written(values: Sequence[object]) -> str:
    """The values of a command as one text; only the last may contain the separator."""
    texts = ["1" if one is True else "" if one is None or one is False else str(one) for one in values]
    return SEPARATOR.join(texts)


def asked_in(turn: Turn | None) -> str:
    """The values that stand in the card because they don't fit into a custom id; "" if they fit."""
    text = written(turn.values) if turn is not None else ""
    fits = turn is None or (len(_id(turn, LONGEST_PAGE, text)) <= MOST_ID and text != IN_CARD)
    return "" if fits else plain(line(text))


def turn_buttons(turn: Turn, page: int, pages: int) -> tuple[Button, ...]:
    """The buttons of a page: back, which one it is, on."""
    values = IN_CARD if asked_in(turn) else written(turn.values)
    return (
        Button(_id(turn, page - 1, values), "◀", disabled=page <= 1),
        Button(_id(turn, page, values), f"{page} of {pages}", disabled=True),
        Button(_id(turn, page + 1, values), "▶", disabled=page >= pages),
    )


def back(turn: Turn, page: int, label: str = "Back") -> Button:
    """The way back to a page of a card. Only for a turn whose values fit into a custom id."""
    return Button(_id(turn, page, written(turn.values)), label)


def _id(turn: Turn, page: int, values: str) -> str:
    return f"turn:{turn.user_id}:{min(page, LONGEST_PAGE)}:{turn.verb}:{values}"


def read(text: str) -> str:
    """The values that were asked for, from the text of the card."""
    return unmarked(text.removeprefix("-# "))
