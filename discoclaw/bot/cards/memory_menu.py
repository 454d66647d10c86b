"""The menu of one memory of a card: its ⋯ opens it, its buttons give the commands of `/memory`.

After each the card shows what came of it and the page again, with a button to take it back. The memory is
named by its stamp, so nobody changes what they were not shown (see `asked`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from discoclaw.bot.asked import STAMP, Asked, stamp
from discoclaw.bot.buttons import BRANCH, USER, PersonalButton
from discoclaw.bot.cards.buttons import PAGE, SHOW, acted
from discoclaw.bot.cards.card import Button, Card, Entry
from discoclaw.bot.cards.memories import one_of
from discoclaw.bot.links import source_words
from discoclaw.bot.modals import Field, Form, OpensModal, PersonalModal
from discoclaw.bot.presses import Press, Presses
from discoclaw.core.item import Item

_ITEM = rf"(?P<item>{STAMP}):{PAGE}:{BRANCH}"


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
        return await acted(presses, press, self.known, SHOW, lambda: presses.commands.again(press, asked))


class WhyButton(PersonalButton, template=rf"why:{USER}:{_ITEM}"):
    """Shows where the memory comes from."""

    async def do(self, presses: Presses, press: Press) -> Card:
        outcome = await presses.commands.again(press, _asked(self.known, "why"))
        card = outcome if isinstance(outcome, Card) else Card("", [Entry(str(outcome))])
        back = Button(self.item.custom_id.replace("why:", "item:", 1), "Back")
        return replace(card, controls=(*card.controls, back))


class EditButton(OpensModal, template=rf"change:{USER}:{_ITEM}"):
    """Opens a modal with the memory's text."""

    async def form(self, presses: Presses, press: Press) -> Form:
        item = await presses.commands.meant(press, _asked(self.known, "edit"))
        known = f"{self.known['user']}:{stamp(item)}:{self.known['page']}:{self.known['branch']}"
        return Form(f"edit:{known}", "Change a memory", [Field("text", "What it says", item.text)])


class EditModal(PersonalModal, template=rf"edit:{USER}:{_ITEM}"):
    """The memory's new text."""

    async def do(self, presses: Presses, press: Press) -> Card:
        asked = _asked(self.known, "edit", self.values["text"])
        return await acted(presses, press, self.known, SHOW, lambda: presses.commands.again(press, asked))


ALL = (ItemButton, DoButton, WhyButton, EditButton)
MODALS = (EditModal,)
"""The client registers these before it connects."""
