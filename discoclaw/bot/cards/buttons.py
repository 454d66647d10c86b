"""What can be pressed on a card, besides what any message has (`bot.buttons`)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import discord

from discoclaw.bot.buttons import USER, PersonalButton
from discoclaw.bot.cards.card import Card
from discoclaw.bot.cards.turning import ASKED_ID, IN_CARD, read
from discoclaw.bot.modals import PersonalModal
from discoclaw.bot.presses import Press, Presses

PAGE = r"(?P<page>\d{1,4})"


def texts_of(message: discord.Message | None) -> Mapping[int, str]:
    """The texts of a card by the ids of their components."""
    parts = message.components if message is not None else []
    return {one.id: one.content for one in _walk(parts) if isinstance(one, discord.TextDisplay) and one.id}


def _walk(parts: Sequence[Any]) -> Iterator[Any]:
    for part in parts:
        yield part
        yield from _walk(getattr(part, "children", ()))


class TurnButton(PersonalButton, template=rf"turn:{USER}:{PAGE}:(?P<verb>[a-z -]{{1,30}}):(?P<values>.*)"):
    """Shows a page of a command's card."""

    needs = ()

    async def do(self, presses: Presses, press: Press) -> Card:
        values = self.known["values"]
        if values == IN_CARD:
            values = read(texts_of(press.message).get(ASKED_ID, ""))
        return await presses.turn(press, self.known["verb"], values, int(self.known["page"]))


ALL = (TurnButton,)
MODALS: tuple[type[PersonalModal], ...] = ()
"""The client registers these before it connects."""
