"""Buttons that outlive a restart: all they know stands in their custom id, which Discord keeps.

Each is for one person. A press is acknowledged within Discord's three seconds, before anything is done; then
the message says what came of it and loses its buttons. So a second press, or an old one, finds it done
already. What a press does is in `presses`.
"""

import logging
import re
from abc import abstractmethod
from typing import Any, ClassVar, Self, cast

import discord

from discoclaw.bot.answers import FAILED, NOT_ALLOWED, SLOW, sentence, told_if_slow
from discoclaw.bot.commands.spec import Need
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.pages import SILENT
from discoclaw.bot.presses import Press, Presses
from discoclaw.core.draft import Resolution
from discoclaw.core.errors import ChatError, ChatGone, MemoryFault, Refused
from discoclaw.core.text import clip
from discoclaw.core.view import Conflict

log = logging.getLogger(__name__)

NOT_YOURS = "These buttons are for somebody else."

_USER = r"(?P<user>\d{1,20})"
_BRANCH = r"(?P<branch>[^:]{1,40})"

# ---------------------------------------------------------------------- the buttons


class _Button(discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]], template=r"(?!)"):
    """What all have in common. `user` is the one person who may press."""

    style: ClassVar[discord.ButtonStyle] = discord.ButtonStyle.secondary
    needs: ClassVar[tuple[Need, ...]] = ("memory",)

    def __init__(self, custom_id: str, label: str = "-", style: discord.ButtonStyle | None = None) -> None:
        super().__init__(discord.ui.Button(label=label[:80], style=style or self.style, custom_id=custom_id))
        found = self.template.fullmatch(custom_id)
        assert found is not None  # discord.py has matched it
        self.known = found.groupdict()

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: discord.ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """The button that was pressed, from what Discord kept of it."""
        return cls(match[0])

    @abstractmethod
    async def do(self, presses: Presses, press: Press) -> str:
        """Do it, and say what the message says then. Raises Refused and MemoryFault."""

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        try:
            with discord_errors():
                if str(interaction.user.id) != self.known["user"]:
                    await interaction.response.send_message(NOT_YOURS, ephemeral=True)
                    return
                await interaction.response.defer()
            await self._answer(interaction)
        except ChatError as error:
            log.warning("a pressed button could not be answered: %s", error)

    async def _answer(self, press: Press) -> None:
        presses = cast(Presses, press.client.presses)
        if not await presses.may_talk(press.user, press.guild):
            await _whisper(press, NOT_ALLOWED)
            return
        try:
            presses.require(*self.needs)
            text = await told_if_slow(self.do(presses, press), lambda: _whisper(press, SLOW))
        except Refused as refusal:
            await _settle_down(press)
            await _whisper(press, sentence(refusal))
        except MemoryFault as fault:
            log.warning("a pressed button changed nothing: %s", fault)
            await _whisper(press, FAILED)
        except Exception:  # a named edge: nobody waits for an answer that never comes
            log.exception("a pressed button failed")
            await _whisper(press, FAILED)
        else:
            await _become(press, text)


async def _become(press: Press, text: str) -> None:
    """The message says what came of it; one that was deleted meanwhile is said again."""
    try:
        with discord_errors():
            await press.edit_original_response(content=clip(text, 2000), view=None, allowed_mentions=SILENT)
    except ChatGone:
        await _whisper(press, text)


async def _settle_down(press: Press) -> None:
    """Nothing is left to press."""
    try:
        with discord_errors():
            await press.edit_original_response(view=None)
    except ChatError as error:
        log.info("the buttons of a message stay: %s", error)


async def _whisper(press: Press, text: str) -> None:
    with discord_errors():
        await press.followup.send(clip(text, 2000), ephemeral=True, allowed_mentions=SILENT)


class SettleButton(
    _Button,
    template=rf"settle:{_USER}:(?P<event>[0-9a-f]{{16}}):(?P<how>keep_old|use_new|both_valid):{_BRANCH}",
):
    """Says which side of a conflict holds."""

    async def do(self, presses: Presses, press: Press) -> str:
        how = cast(Resolution, self.known["how"])
        return await presses.settle(press, self.known["event"], how, self.known["branch"])


class UndoButton(_Button, template=rf"undo:{_USER}:(?P<commit>[0-9a-f]{{16}}):{_BRANCH}"):
    """Takes one commit back."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.undo(press, self.known["commit"], self.known["branch"])


class SwitchButton(_Button, template=rf"switch:{_USER}:{_BRANCH}"):
    """Switches to a persona."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.switch(press, self.known["branch"])


class HatchButton(_Button, template=rf"hatch:{_USER}"):
    """Begins the interview that gives us a personality."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.hatch(press)


class EraseButton(_Button, template=rf"erase:{_USER}:(?P<target>\d{{1,20}})"):
    """Erases everything."""

    async def do(self, presses: Presses, press: Press) -> str:
        return await presses.erase(press, self.known["target"])


class KeepButton(_Button, template=rf"keep:{_USER}"):
    """Leaves everything as it is."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> str:
        return "I erased nothing."


ALL: tuple[type[_Button], ...] = (
    SettleButton,
    UndoButton,
    SwitchButton,
    HatchButton,
    EraseButton,
    KeepButton,
)
"""The client registers these before it connects."""


# ---------------------------------------------------------------------- what they stand below


def settle_view(user_id: str, conflict: Conflict, branch: str) -> discord.ui.View:
    """The answers to a question: three, or two where there are no other words to keep as well."""
    red = discord.ButtonStyle.danger
    answers: list[tuple[Resolution, str, discord.ButtonStyle | None]] = (
        [
            ("keep_old", "Keep the old", None),
            ("use_new", "Use the new", None),
            ("both_valid", "Keep both", None),
        ]
        if conflict.text
        else [("keep_old", "Still true", None), ("use_new", "Forget it", red)]
    )
    return _view(
        *(
            SettleButton(f"settle:{user_id}:{conflict.event_id}:{how}:{branch}", label, style)
            for how, label, style in answers
        )
    )


def undo_view(user_id: str, commit: str, branch: str) -> discord.ui.View:
    return _view(UndoButton(f"undo:{user_id}:{commit}:{branch}", "Undo"))


def switch_view(user_id: str, branch: str) -> discord.ui.View:
    return _view(SwitchButton(f"switch:{user_id}:{branch}", f"Switch to {branch}"))


def hatch_view(user_id: str) -> discord.ui.View:
    return _view(HatchButton(f"hatch:{user_id}", "Start the interview"))


def erase_view(asker: str, target: str) -> discord.ui.View:
    return _view(
        EraseButton(f"erase:{asker}:{target}", "Erase everything", discord.ButtonStyle.danger),
        KeepButton(f"keep:{asker}", "Keep everything"),
    )


def _view(*buttons: _Button) -> discord.ui.View:
    # It never times out: a view that ends takes its buttons' registration with it, for all messages.
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(button)
    return view
