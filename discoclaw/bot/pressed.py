"""What becomes of a press, or of a modal that somebody sends: acknowledged, checked, done, shown.

Each is for one person. It is acknowledged within Discord's three seconds, before anything is done; then the
message says what came of it. What is done is in `presses`.
"""

import logging
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, cast

from discoclaw.bot.answers import FAILED, NOT_ALLOWED, SLOW, Page, sentence, told_if_slow
from discoclaw.bot.cards.card import Card, Entry
from discoclaw.bot.cards.layout import rendered
from discoclaw.bot.cards.reading import closed, frame_of
from discoclaw.bot.commands.spec import Need
from discoclaw.bot.pages import SILENT, send_pieces
from discoclaw.bot.presses import Outcome, Press, Presses
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, ChatGone, MemoryFault, Refused
from discoclaw.core.text import clip

log = logging.getLogger(__name__)

NOT_YOURS = "These buttons are for somebody else."


class Pressed:
    """The base of buttons, menus and modals. `known` is what the custom id says."""

    needs: ClassVar[tuple[Need, ...]] = ("memory",)
    once: ClassVar[bool] = False
    """Whether a card has nothing left to press once this was refused: it asks for no more than this."""
    known: Mapping[str, str]

    @abstractmethod
    async def do(self, presses: Presses, press: Press) -> Outcome:
        """Do it, and say what the message says then. Raises Refused and MemoryFault."""

    async def show(self, press: Press, outcome: Outcome) -> None:
        """Show what came of it: the message says so."""
        await become(press, outcome)

    async def take(self, press: Press) -> None:
        """Do all of it, from the acknowledgement on."""
        try:
            if not await self.theirs(press):
                return
            with discord_errors():
                # A modal that a command opened stands below no message: its answer is a new one.
                alone = press.message is None
                await press.response.defer(ephemeral=alone, thinking=alone)
            await self._answer(press)
        except ChatError as error:
            log.warning("a press could not be answered: %s", error)

    async def theirs(self, press: Press) -> bool:
        """Whether the one who pressed may; anybody else is told. Raises ChatError."""
        if str(press.user.id) == self.known["user"]:
            return True
        with discord_errors():
            await press.response.send_message(NOT_YOURS, ephemeral=True)
        return False

    async def _answer(self, press: Press) -> None:
        presses = cast(Presses, press.client.presses)
        if not await press.client.claims(press):
            return
        if not await presses.may_talk(press.user, press.guild):
            await whisper(press, NOT_ALLOWED)
            return
        try:
            presses.require(*self.needs)
            work = presses.told(press, self.do(presses, press))
            outcome = await told_if_slow(work, lambda: whisper(press, SLOW))
        except Refused as refusal:
            await _settle_down(press, once=self.once)
            await whisper(press, sentence(refusal))
        except MemoryFault as fault:
            log.warning("a press changed nothing: %s", fault)
            await whisper(press, FAILED)
        except Exception:  # a named edge: nobody waits for an answer that never comes
            log.exception("a press failed")
            await whisper(press, FAILED)
        else:
            await self.show(press, outcome)


class Opens(Pressed):
    """One that gives a command, which acknowledges the press, and answers it, as one of its own."""

    async def take(self, press: Press) -> None:
        try:
            if not await self.theirs(press):
                return
        except ChatError as error:
            log.warning("a press could not be answered: %s", error)
            return
        await self.do(cast(Presses, press.client.presses), press)


async def become(press: Press, outcome: Outcome) -> None:
    """The message says what came of it; one that was deleted meanwhile is said again."""
    if isinstance(outcome, Card) or _is_card(press):
        await _become_card(press, outcome)
        return
    page = outcome if isinstance(outcome, Page) else Page(outcome)
    begun = False

    async def send(**message: Any) -> None:
        nonlocal begun
        if begun:
            private = press.message is not None and press.message.flags.ephemeral
            await press.followup.send(ephemeral=private, **message)
            return
        if file := message.pop("file", None):
            message["attachments"] = [file]
        await press.edit_original_response(view=page.view, **message)
        begun = True

    try:
        await send_pieces(send, page.text, name="memory.md")
    except ChatGone:
        await whisper(press, page)


async def _become_card(press: Press, outcome: Outcome) -> None:
    """The message becomes a card, once for ever: Discord takes no plain text in its place any more."""
    card = outcome if isinstance(outcome, Card) else _of_text(press, outcome)
    made = rendered(card)
    try:
        with discord_errors():
            await press.edit_original_response(
                content=None, view=made.view, attachments=made.files, allowed_mentions=SILENT
            )
    except ChatError as error:
        log.info("a card could not be shown, so it is said as a text: %s", error)
        await send_pieces(partial(press.followup.send, ephemeral=True), card.as_text(), name="memory.md")
    else:
        if rest := card.rest():
            await send_pieces(partial(press.followup.send, ephemeral=True), rest, name="memory.md")


def _of_text(press: Press, outcome: str | Page) -> Card:
    """The card for an outcome that is no more than a text."""
    text = outcome.text if isinstance(outcome, Page) else outcome
    return Card("", [Entry(text)], colour=frame_of(press.message))


def _is_card(press: Press) -> bool:
    return press.message is not None and press.message.flags.components_v2


async def _settle_down(press: Press, *, once: bool) -> None:
    """Leave nothing to press; a card stays as it is, unless its buttons work only `once`."""
    if press.message is None or (_is_card(press) and not once):
        return
    view = rendered(closed(press.message)).view if _is_card(press) else None
    try:
        with discord_errors():
            await press.edit_original_response(view=view)
    except ChatError as error:
        log.info("the buttons of a message stay: %s", error)


async def whisper(press: Press, outcome: str | Page) -> None:
    """Say something to the person who pressed, and to nobody else."""
    page = outcome if isinstance(outcome, Page) else Page(outcome)
    more: dict[str, Any] = {} if page.view is None else {"view": page.view}
    with discord_errors():
        await press.followup.send(clip(page.text, 2000), ephemeral=True, allowed_mentions=SILENT, **more)
