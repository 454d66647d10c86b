"""Sends a card, and what stands in for it where Discord takes none."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from discoclaw.bot.cards.card import Card
from discoclaw.bot.cards.layout import below, rendered
from discoclaw.bot.pages import SILENT
from discoclaw.bot.texts.markup import NOTE
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatBlocked, ChatError, ChatForbidden, ChatGone, ChatUnavailable
from discoclaw.core.text import clip

log = logging.getLogger(__name__)

T = TypeVar("T")
NO_CARD = f"{NOTE}(Discord didn't take this as a card, so here it is as text.)"


class NotAsCard(ChatError):
    """Discord takes the message, but not as a card: its text form is for that."""


async def send_card(send: Callable[..., Awaitable[T]], card: Card, **options: Any) -> T:
    """Send a card. Raises NotAsCard, and any other ChatError if a text would not be taken either."""
    made = rendered(card)
    if made.files:
        options["files"] = made.files
    try:
        with discord_errors():
            return await send(view=made.view, allowed_mentions=SILENT, **options)
    except (ChatGone, ChatUnavailable, ChatBlocked):
        raise
    except ChatError as error:
        # Only files need a right of their own: who may write may use components.
        if isinstance(error, ChatForbidden) and not made.files:
            raise
        log.warning("a card was not taken, so it is sent as a text: %s", error)
        raise NotAsCard(str(error)) from error


async def send_either(send: Callable[..., Awaitable[T]], card: Card, **options: Any) -> T:
    """Send a card, or where Discord takes none, the same as a text with its buttons. Raises ChatError."""
    try:
        return await send_card(send, card, **options)
    except NotAsCard:
        text = card.as_text()
        if not text.startswith(NOTE):
            text = f"{NO_CARD}\n{text}"  # which is also how the text is known to be no talk
        controls = [*(one.control for one in card.entries if one.control is not None), *card.controls]
        view = below(controls, card.menus)
        with discord_errors():
            return await send(clip(text, 2000), view=view, allowed_mentions=SILENT, **options)
