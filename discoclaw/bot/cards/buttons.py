"""Buttons of cards, besides those that any message has (`bot.buttons`)."""

from collections.abc import Awaitable, Callable, Mapping

from discoclaw.bot.buttons import BRANCH, USER, PersonalButton, PersonalMenu
from discoclaw.bot.cards.card import Button, Card
from discoclaw.bot.cards.questions import HOW
from discoclaw.bot.cards.reading import texts_of
from discoclaw.bot.cards.turning import ASKED_ID, IN_CARD, read
from discoclaw.bot.presses import Outcome, Press, Presses

PAGE = r"(?P<page>\d{1,4})"
COMMIT = r"(?P<commit>[0-9a-f]{16})"
SHOW = "show"
_SHOWN = rf"{SHOW}|\d{{1,4}}"


class TurnButton(PersonalButton, template=rf"turn:{USER}:{PAGE}:(?P<verb>[a-z -]{{1,30}}):(?P<values>.*)"):
    """Shows a page of a command's card."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        values = self.known["values"]
        if values == IN_CARD:
            values = read(texts_of(press.message).get(ASKED_ID, ""))
        return await presses.commands.turn(press, self.known["verb"], values, int(self.known["page"]))


class UsageMenu(PersonalMenu, template=rf"usage:{USER}"):
    """Shows another view of what models were used for."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        return await presses.commands.turn(press, "data usage", self.item.values[0], 1)


class RevertButton(PersonalButton, template=rf"revert:{USER}:{COMMIT}:{PAGE}:(?P<limit>\d{{1,4}}):{BRANCH}"):
    """Takes back one change of a log, and shows the log again."""

    async def do(self, presses: Presses, press: Press) -> Card:
        def undo() -> Awaitable[str]:
            return presses.undo(press, self.known["commit"], self.known["branch"])

        return await acted(presses, press, self.known, self.known["limit"], undo)


class PersonaButton(PersonalButton, template=rf"be:{USER}:{PAGE}:{BRANCH}"):
    """Switches to a persona, and shows them all again."""

    async def do(self, presses: Presses, press: Press) -> Card:
        note = await presses.switch(press, self.known["branch"])
        card = await presses.commands.turn(press, "persona list", "", int(self.known["page"]))
        return card.said(note)


class DecideButton(
    PersonalButton, template=rf"decide:{USER}:(?P<event>[0-9a-f]{{16}}):(?P<how>[knb]):{PAGE}:{BRANCH}"
):
    """Answers a question, and shows the next one."""

    async def do(self, presses: Presses, press: Press) -> Card:
        note = await presses.settle(press, self.known["event"], HOW[self.known["how"]], self.known["branch"])
        return (await presses.commands.turn(press, "settle", "", int(self.known["page"]))).said(note)


class TakeBackButton(PersonalButton, template=rf"back:{USER}:{COMMIT}:{PAGE}:(?P<shown>{_SHOWN}):{BRANCH}"):
    """Takes back what was just done on a card, and shows its page again."""

    async def do(self, presses: Presses, press: Press) -> Card:
        note = await presses.undo(press, self.known["commit"], self.known["branch"])
        return (await _page(presses, press, self.known, self.known["shown"])).said(note)


async def acted(
    presses: Presses,
    press: Press,
    known: Mapping[str, str],
    shown: str,
    act: Callable[[], Awaitable[Outcome]],
) -> Card:
    """Do something about what a card shows, then show its page again, with a way to take that back.

    `shown` is `SHOW` or the limit of a log.
    """
    before = await presses.head(press, known["branch"])
    outcome = await act()
    after = await presses.head(press, known["branch"])
    card = await _page(presses, press, known, shown)
    assert isinstance(outcome, str)  # what changes a memory is answered with a sentence
    if after is None or after == before or not await presses.made(press, after):
        return card.said(outcome)
    undo = f"back:{known['user']}:{after}:{known['page']}:{shown}:{known['branch']}"
    return card.said(outcome, Button(undo, "Undo"))


async def _page(presses: Presses, press: Press, known: Mapping[str, str], shown: str) -> Card:
    verb, values = (SHOW, "") if shown == SHOW else ("history log", f"|{shown}|{known['branch']}")
    return await presses.commands.turn(press, verb, values, int(known["page"]))


ALL = (TurnButton, UsageMenu, RevertButton, PersonaButton, DecideButton, TakeBackButton)
"""The client registers these before it connects."""
