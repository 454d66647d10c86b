"""A card as a message of Discord: a view of Components V2, and the files of its pictures."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeVar

import discord

from discoclaw.bot.cards.card import Button, Card, Entry, Menu, Style, body
from discoclaw.bot.cards.turning import ASKED_ID, asked_in, turn_buttons
from discoclaw.bot.pages import SILENT
from discoclaw.bot.texts.markup import NOTE
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatBlocked, ChatError, ChatForbidden, ChatGone, ChatUnavailable
from discoclaw.core.text import clip

_ROW = 5
_CHANNELS = (
    discord.ChannelType.text,
    discord.ChannelType.news,
    discord.ChannelType.forum,
    discord.ChannelType.media,
    discord.ChannelType.voice,
    discord.ChannelType.stage_voice,
)
STYLES: dict[Style, discord.ButtonStyle] = {
    "grey": discord.ButtonStyle.secondary,
    "blue": discord.ButtonStyle.primary,
    "green": discord.ButtonStyle.success,
    "red": discord.ButtonStyle.danger,
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page of a card, ready to be sent once."""

    view: discord.ui.LayoutView
    files: list[discord.File]


def rendered(card: Card) -> Rendered:
    """The page of a card that is to be shown. Needs a running event loop, as views do."""
    page, pages, rows = card.shown()
    box: discord.ui.Container[Any] = discord.ui.Container(accent_colour=card.colour)
    above = [card.note] if card.note is not None else []
    above += [Entry(card.titled(), apart=bool(above))] if card.titled() else []
    spaced = card.free() >= len(rows)  # rows without a button stand close together
    for place, entry in enumerate([*above, *rows]):
        line = entry.apart or place == len(above)
        if place and (line or (spaced and entry.control is None)):
            box.add_item(discord.ui.Separator(visible=line))
        box.add_item(_part(entry, page))
    if card.pictures:
        if above or rows:
            box.add_item(discord.ui.Separator(visible=False))
        gallery: discord.ui.MediaGallery[Any] = discord.ui.MediaGallery()
        for picture in card.pictures:
            gallery.add_item(media=f"attachment://{picture.name}", description=picture.description or None)
        box.add_item(gallery)
    if card.bottom():
        box.add_item(discord.ui.Separator(visible=False))
        box.add_item(discord.ui.TextDisplay(card.bottom()))
    if pages > 1 and card.turn is not None:
        if asked := asked_in(card.turn):
            box.add_item(discord.ui.TextDisplay(f"-# {asked}", id=ASKED_ID))
        box.add_item(_row(turn_buttons(card.turn, page, pages)))
    for menu in card.menus:
        box.add_item(discord.ui.ActionRow(_menu(menu)))
    for some in _rows(card.controls):
        box.add_item(_row(some))
    view = discord.ui.LayoutView(timeout=None)
    for part in [box] if card.colour is not None else list(box.children):
        view.add_item(part)
    # All buttons are registered by the patterns of their ids; a view that is stopped is not kept in RAM.
    view.stop()
    return Rendered(view, [discord.File(BytesIO(one.data), filename=one.name) for one in card.pictures])


def _part(entry: Entry, page: int) -> discord.ui.Item[Any]:
    if entry.control is None:
        return discord.ui.TextDisplay(body(entry))
    return discord.ui.Section(body(entry), accessory=_button(entry.control, page))


def _rows(buttons: Sequence[Button]) -> Iterator[Sequence[Button]]:
    for start in range(0, len(buttons), _ROW):
        yield buttons[start : start + _ROW]


def _row(buttons: Sequence[Button]) -> discord.ui.ActionRow[Any]:
    return discord.ui.ActionRow(*map(_button, buttons))


def _button(one: Button, page: int = 0) -> discord.ui.Button[Any]:
    if one.url:
        return discord.ui.Button(label=one.label, url=one.url)
    style, custom_id = STYLES[one.style], one.custom_id.replace("{page}", str(page))
    return discord.ui.Button(label=one.label[:80], style=style, custom_id=custom_id, disabled=one.disabled)


def _menu(one: Menu) -> discord.ui.Select[Any] | discord.ui.ChannelSelect[Any]:
    if one.channels:
        return discord.ui.ChannelSelect(
            custom_id=one.custom_id, placeholder=one.hint, channel_types=list(_CHANNELS)
        )
    return select(one)


def below(controls: Sequence[Button], menus: Sequence[Menu] = ()) -> discord.ui.View:
    """Buttons and menus below a plain text."""
    view = discord.ui.View(timeout=None)
    for one in [*map(_menu, menus), *map(_button, controls)]:
        view.add_item(one)
    view.stop()  # as the view of a card is
    return view


def select(one: Menu) -> discord.ui.Select[Any]:
    """A menu of words, as discord.py has it."""
    options = [
        discord.SelectOption(label=label, description=below or None, value=value)
        for label, below, value in one.options
    ]
    return discord.ui.Select(
        custom_id=one.custom_id, placeholder=one.hint, min_values=1, max_values=one.most, options=options
    )


# ----------------------------------------------------------------------
# Sends a card, and what stands in for it where Discord takes none.

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
