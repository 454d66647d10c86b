"""The buttons and menus below what waits for a person's yes. They outlive a restart, as all buttons do.

A menu's options are the events that proposed something; what became of them meanwhile is looked up when one
is chosen. Discord takes 25 options in a menu, so the rest comes when these are answered.
"""

import discord

from discoclaw.bot.answers import Page
from discoclaw.bot.buttons import BRANCH, USER, PersonalButton, PersonalMenu, lasting
from discoclaw.bot.cards.card import Card
from discoclaw.bot.pressed import whisper
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.bot.texts import pending as texts
from discoclaw.core.view import View

MOST_OPTIONS = 25
"""In one menu of Discord."""


class AnswerButton(
    PersonalButton, template=rf"answer:{USER}:(?P<how>yes|no):(?P<commit>[0-9a-f]{{16}}):{BRANCH}"
):
    """Says yes or no to all that one change proposed."""

    async def do(self, presses: Presses, press: Press) -> str:
        yes = self.known["how"] == "yes"
        return await presses.answer(press, self.known["commit"], self.known["branch"], yes=yes)


class ChooseButton(PersonalButton, template=rf"choose:{USER}:{BRANCH}"):
    """Shows its person alone what is pending, with menus. The button stays."""

    async def do(self, presses: Presses, press: Press) -> Page:
        branch = self.known["branch"]
        view = await presses.waiting(press, branch)
        return page(self.known["user"], view, branch, in_private=True, days=presses.pending_days)

    async def show(self, press: Press, outcome: Outcome) -> None:
        assert not isinstance(outcome, Card)
        await whisper(press, outcome)


class AnswerMenu(PersonalMenu, template=rf"choice:{USER}:(?P<how>yes|no):{BRANCH}"):
    """Says yes or no to what is chosen, and then shows what is left."""

    async def do(self, presses: Presses, press: Press) -> Page:
        branch, yes = self.known["branch"], self.known["how"] == "yes"
        note = await presses.pick(press, frozenset(self.item.values), branch, yes=yes)
        message = press.message
        private = press.guild_id is None or (message is not None and message.flags.ephemeral)
        view = await presses.waiting(press, branch)
        left = page(self.known["user"], view, branch, in_private=private, days=presses.pending_days)
        return Page(f"{note}\n{left.text}", view=left.view)


ALL = (AnswerButton, ChooseButton, AnswerMenu)
"""The client registers these before it connects."""


def answer_view(user_id: str, commit: str, branch: str, *, whole: bool, several: bool) -> discord.ui.View:
    """What stands below a question: yes and no if the `whole` of it is shown, and a choice of `several`."""
    green = discord.ButtonStyle.success
    buttons: list[PersonalButton] = []
    if whole:
        buttons += [
            AnswerButton(f"answer:{user_id}:yes:{commit}:{branch}", "Yes", green),
            AnswerButton(f"answer:{user_id}:no:{commit}:{branch}", "No"),
        ]
    if several or not whole:
        buttons.append(ChooseButton(f"choose:{user_id}:{branch}", "Choose"))
    return lasting(*buttons)


def page(user_id: str, view: View, branch: str, *, in_private: bool, days: float) -> Page:
    """What is pending, with a menu to agree and one to decline."""
    known = texts.shown(view, in_private=in_private)
    some = known[:MOST_OPTIONS]
    text = texts.listed(
        view, some, others=len(known) - len(some), hidden=len(view.pending) - len(known), days=days
    )
    if not some:
        return Page(text)
    menus = [
        _menu(
            f"choice:{user_id}:{how}:{branch}",
            hint,
            [(texts.label(i, one), one.event_id) for i, one in enumerate(some, 1)],
        )
        for how, hint in (("yes", "Yes to …"), ("no", "No to …"))
    ]
    return Page(text, view=lasting(*menus))


def _menu(custom_id: str, hint: str, options: list[tuple[str, str]]) -> AnswerMenu:
    return AnswerMenu(
        custom_id,
        discord.ui.Select(
            custom_id=custom_id,
            placeholder=hint,
            min_values=1,
            max_values=len(options),
            options=[discord.SelectOption(label=label, value=value) for label, value in options],
        ),
    )
