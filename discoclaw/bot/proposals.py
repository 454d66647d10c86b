"""The buttons and menus below what waits for a person's yes. They outlive a restart, as all buttons do.

A menu's options are the events that proposed something; what became of them meanwhile is looked up when one
is chosen. Discord takes 25 options in a menu, so the rest comes when these are answered.
"""

from collections.abc import Sequence

from discoclaw.bot.answers import Page
from discoclaw.bot.buttons import BRANCH, USER, PersonalButton, PersonalMenu, lasting
from discoclaw.bot.cards.card import YELLOW, Card, Entry, Menu, Turn
from discoclaw.bot.cards.layout import select, send_either
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.bot.texts import pending as texts
from discoclaw.core.pending import Pending
from discoclaw.core.view import View
from discoclaw.show.words import count

MOST_OPTIONS = 25
"""In one menu of Discord."""


class AnswerButton(
    PersonalButton, template=rf"answer:{USER}:(?P<how>yes|no):(?P<commit>[0-9a-f]{{16}}):{BRANCH}"
):
    """Says yes or no to all that one change proposed."""

    once = True

    async def do(self, presses: Presses, press: Press) -> str:
        yes = self.known["how"] == "yes"
        return await presses.answer(press, self.known["commit"], self.known["branch"], yes=yes)


class ChooseButton(PersonalButton, template=rf"choose:{USER}:{BRANCH}"):
    """Shows its person alone what is pending, with menus. The button stays."""

    async def do(self, presses: Presses, press: Press) -> Card:
        branch = self.known["branch"]
        view = await presses.waiting(press, branch)
        return card(self.known["user"], view, branch, days=presses.pending_days)

    async def show(self, press: Press, outcome: Outcome) -> None:
        assert isinstance(outcome, Card)
        await send_either(press.followup.send, outcome, ephemeral=True)


class AnswerMenu(PersonalMenu, template=rf"choice:{USER}:(?P<how>yes|no):{BRANCH}"):
    """Says yes or no to what is chosen, and then shows what is left."""

    async def do(self, presses: Presses, press: Press) -> Page | Card:
        branch, yes = self.known["branch"], self.known["how"] == "yes"
        note = await presses.pick(press, frozenset(self.item.values), branch, yes=yes)
        message = press.message
        private = press.guild_id is None or (message is not None and message.flags.ephemeral)
        view = await presses.waiting(press, branch)
        if message is not None and message.flags.components_v2:
            return card(self.known["user"], view, branch, days=presses.pending_days).said(note)
        left = page(self.known["user"], view, branch, in_private=private, days=presses.pending_days)
        return Page(f"{note}\n{left.text}", view=left.view)


ALL = (AnswerButton, ChooseButton, AnswerMenu)
"""The client registers these before it connects."""


def page(user_id: str, view: View, branch: str, *, in_private: bool, days: float) -> Page:
    """A page of what is pending, with a menu to agree and one to decline."""
    known = texts.shown(view, in_private=in_private)
    some = known[:MOST_OPTIONS]
    text = texts.listed(
        view, some, others=len(known) - len(some), hidden=len(view.pending) - len(known), days=days
    )
    return Page(text, view=lasting(*map(_made, _menus(user_id, some, branch))) if some else None)


def card(user_id: str, view: View, branch: str, *, days: float, page: int = 1) -> Card:
    """A card of what waits for a person's yes, for them alone."""
    known = texts.shown(view, in_private=True)
    some = known[:MOST_OPTIONS]
    others = len(known) - len(some)
    turn = Turn(user_id, "pending")
    return waiting(view, some, _menus(user_id, some, branch), turn, others=others, days=days, page=page)


def _menus(user_id: str, some: Sequence[Pending], branch: str) -> list[Menu]:
    options = [(texts.label(i, one), "", one.event_id) for i, one in enumerate(some, 1)]
    hints = (("yes", "Yes to …"), ("no", "No to …")) if some else ()
    return [Menu(f"choice:{user_id}:{how}:{branch}", hint, options, len(options)) for how, hint in hints]


def _made(menu: Menu) -> AnswerMenu:
    return AnswerMenu(menu.custom_id, select(menu))


# ---------------------------------------------------------------------- the card

MOST_SHOWN = 10
"""Proposals on a page of the card."""
LONGEST_SHOWN = 300
"""Longest words of each of them, in UTF-16 units."""


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
