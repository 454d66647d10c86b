"""What can be done with one memory of a card: its ⋯ opens it, its buttons give the commands of `/memory`.

After each the card shows what came of it and the page again, with a button to take it back. The memory is
named by its stamp, so nobody changes what they were not shown (see `asked`).
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from discoclaw.bot.answers import FAILED, NOT_ALLOWED, SLOW, sentence
from discoclaw.bot.asked import STAMP, Asked, stamp
from discoclaw.bot.buttons import BRANCH, USER, PersonalButton
from discoclaw.bot.cards.buttons import PAGE, SHOW, acted
from discoclaw.bot.cards.card import Button, Card, Entry
from discoclaw.bot.cards.memories import one_of
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.links import source_words
from discoclaw.bot.modals import Field, PersonalModal, opened
from discoclaw.bot.pages import send_pieces
from discoclaw.bot.presses import Press, Presses
from discoclaw.bot.refused import TOO_LATE
from discoclaw.core.errors import ChatError, ChatGone, MemoryFault, Refused
from discoclaw.core.item import Item

log = logging.getLogger(__name__)

_ITEM = rf"(?P<item>{STAMP}):{PAGE}:{BRANCH}"
OPEN_WITHIN_S = 2.0
"""A modal has to open within three seconds of a press."""


def _asked(known: Mapping[str, str], verb: str, text: str = "") -> Asked:
    return Asked(verb, known["item"], known["branch"], text)


def _one(press: Press, item: Item, known: Mapping[str, str]) -> Card:
    def where(source: Any) -> str:
        return source_words(press.client, source)

    return one_of(item, known["user"], known["branch"], int(known["page"]), where)


class ItemButton(PersonalButton, template=rf"item:{USER}:{_ITEM}"):
    """Shows one memory, as it is now, with what can be done about it."""

    async def do(self, presses: Presses, press: Press) -> Card:
        return _one(press, await presses.commands.meant(press, _asked(self.known, "why")), self.known)


class DoButton(PersonalButton, template=rf"do:{USER}:(?P<verb>forget|private|share):{_ITEM}"):
    """Gives a command that changes the memory, and shows the page again."""

    async def do(self, presses: Presses, press: Press) -> Card:
        asked = _asked(self.known, self.known["verb"])
        return await acted(presses, press, self.known, SHOW, presses.commands.again(press, asked))


class WhyButton(PersonalButton, template=rf"why:{USER}:{_ITEM}"):
    """Shows where the memory comes from."""

    async def do(self, presses: Presses, press: Press) -> Card:
        outcome = await presses.commands.again(press, _asked(self.known, "why"))
        card = outcome if isinstance(outcome, Card) else Card("", [Entry(outcome)])
        back = Button(self.item.custom_id.replace("why:", "item:", 1), "Back")
        return replace(card, controls=(*card.controls, back))


class EditButton(PersonalButton, template=rf"change:{USER}:{_ITEM}"):
    """Opens a modal with the memory's text."""

    async def callback(self, interaction: Press) -> None:
        try:
            if await self.theirs(interaction):
                await self._open(interaction)
        except ChatGone as error:  # Discord waits no longer
            log.warning("a modal came too late: %s", error)
            await _too_late(interaction)
        except ChatError as error:
            log.warning("a modal could not be opened: %s", error)

    async def do(self, presses: Presses, press: Press) -> Card:
        raise Refused(TOO_LATE)  # it opens something instead

    async def _open(self, press: Press) -> None:
        presses = cast(Presses, press.client.presses)
        try:
            item = await asyncio.wait_for(self._item(presses, press), OPEN_WITHIN_S)
        except Refused as refusal:
            text = sentence(refusal)
        except TimeoutError:
            text = SLOW
        except MemoryFault as fault:
            log.warning("a memory could not be read for a modal: %s", fault)
            text = FAILED
        else:
            known = f"{self.known['user']}:{stamp(item)}:{self.known['page']}:{self.known['branch']}"
            fields = [Field("text", "What it says", item.text)]
            await opened(press, f"edit:{known}", "Change a memory", fields)
            return
        with discord_errors():
            await press.response.send_message(text, ephemeral=True)

    async def _item(self, presses: Presses, press: Press) -> Item:
        if not await presses.may_talk(press.user, press.guild):
            raise Refused(NOT_ALLOWED)
        presses.require(*self.needs)
        return await presses.commands.meant(press, _asked(self.known, "edit"))


class EditModal(PersonalModal, template=rf"edit:{USER}:{_ITEM}"):
    """The memory's new text."""

    async def do(self, presses: Presses, press: Press) -> Card:
        asked = _asked(self.known, "edit", self.values["text"])
        return await acted(presses, press, self.known, SHOW, presses.commands.again(press, asked))


async def _too_late(press: Press) -> None:
    try:
        await send_pieces(press.user.send, TOO_LATE)
    except ChatError as error:
        log.info("a person could not be told that a press came too late: %s", error)


ALL = (ItemButton, DoButton, WhyButton, EditButton)
MODALS = (EditModal,)
"""The client registers these before it connects."""
