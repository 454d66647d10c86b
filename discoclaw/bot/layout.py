"""Answers as messages of Discord: as a card, which is a view of Components V2, or as a text.

Buttons and menus are made from their custom ids; `bot.buttons` has the classes that Discord's presses reach.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from types import MappingProxyType
from typing import Any, TypeVar

import discord

from discoclaw.bot.split import Attachment, Message, Piece, split
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatBlocked, ChatError, ChatForbidden, ChatGone, ChatUnavailable
from discoclaw.core.text import clip, scrub
from discoclaw.show.answer import (
    ASKED_ID,
    Answer,
    Button,
    File,
    Menu,
    Row,
    Style,
    asked_in,
    turn_buttons,
)
from discoclaw.show.markup import NOTE, without_times

log = logging.getLogger(__name__)

T = TypeVar("T")
SILENT = discord.AllowedMentions.none()
"""Nobody is pinged, the person we reply to included."""
NO_CARD = f"{NOTE}(Discord didn't take this as a card, so here it is as text.)"

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


def rendered(card: Answer) -> Rendered:
    """The page of a card that is to be shown. Needs a running event loop, as views do."""
    page, pages, rows = card.shown()
    box: discord.ui.Container[Any] = discord.ui.Container(accent_colour=card.colour)
    above = [card.note] if card.note is not None else []
    above += [Row(card.titled(), apart=bool(above))] if card.titled() else []
    spaced = card.free() >= len(rows)  # rows without a button stand close together
    for place, row in enumerate([*above, *rows]):
        line = row.apart or bool(row.title) or place == len(above)
        if place and (line or (spaced and row.control is None)):
            box.add_item(discord.ui.Separator(visible=line))
        if row.control is None:
            box.add_item(discord.ui.TextDisplay(row.body()))
        else:
            box.add_item(discord.ui.Section(row.body(), accessory=_button(row.control, page)))
    if card.files:
        if above or rows:
            box.add_item(discord.ui.Separator(visible=False))
        gallery: discord.ui.MediaGallery[Any] = discord.ui.MediaGallery()
        for picture in card.files:
            gallery.add_item(media=f"attachment://{picture.name}", description=picture.description or None)
        box.add_item(gallery)
    if card.bottom():
        box.add_item(discord.ui.Separator(visible=False))
        box.add_item(discord.ui.TextDisplay(card.bottom()))
    if pages > 1 and card.turn is not None:
        if asked := asked_in(card.turn):
            box.add_item(discord.ui.TextDisplay(f"-# {asked}", id=ASKED_ID))
        box.add_item(discord.ui.ActionRow(*map(_button, turn_buttons(card.turn, page, pages))))
    for menu in card.menus:
        box.add_item(discord.ui.ActionRow(_menu(menu)))
    for start in range(0, len(card.controls), _ROW):
        box.add_item(discord.ui.ActionRow(*map(_button, card.controls[start : start + _ROW])))
    view = discord.ui.LayoutView(timeout=None)
    for part in [box] if card.colour is not None else list(box.children):
        view.add_item(part)
    # All buttons are registered by the patterns of their ids; a view that is stopped is not kept in RAM.
    view.stop()
    return Rendered(view, files_of(card.files))


def files_of(files: Sequence[File]) -> list[discord.File]:
    """Files to send once: sending closes them."""
    return [discord.File(BytesIO(one.data), one.name, description=one.description or None) for one in files]


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
    options = [
        discord.SelectOption(label=label, description=below or None, value=value, default=value in one.ticked)
        for label, below, value in one.options
    ]
    return discord.ui.Select(
        custom_id=one.custom_id, placeholder=one.hint, min_values=1, max_values=one.most, options=options
    )


def buttons_below(controls: Sequence[Button], menus: Sequence[Menu] = ()) -> discord.ui.View | None:
    """Menus and buttons below a plain text; None if there are none."""
    if not controls and not menus:
        return None
    view = discord.ui.View(timeout=None)
    for one in [*map(_menu, menus), *map(_button, controls)]:
        view.add_item(one)
    view.stop()  # as the view of a card is
    return view


# ----------------------------------------------------------------------
# Sends a card, and what stands in for it where Discord takes none.


class NotAsCard(ChatError):
    """Discord takes the message, but not as a card: its text form is for that."""


async def send_card(send: Callable[..., Awaitable[T]], card: Answer, **options: Any) -> T:
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


async def send_either(send: Callable[..., Awaitable[T]], card: Answer, **options: Any) -> T:
    """Send a card, or where Discord takes none, the same as a text with its buttons. Raises ChatError."""
    try:
        return await send_card(send, card, **options)
    except NotAsCard:
        text = card.as_text(in_private=True)
        if not text.startswith(NOTE):
            text = f"{NO_CARD}\n{text}"  # which is also how the text is known to be no talk
        controls = [*(one.control for one in card.rows if one.control is not None), *card.controls]
        if (view := buttons_below(controls, card.menus)) is not None:
            options["view"] = view
        with discord_errors():
            return await send(clip(text, 2000), allowed_mentions=SILENT, **options)


async def send_answer(
    send: Callable[..., Awaitable[object]], answer: Answer, *, as_card: bool, in_private: bool
) -> None:
    """Send an answer as a card or as texts, each in as many messages as it takes. Raises ChatError."""
    if as_card and not answer.plain:
        try:
            await send_card(send, answer)
        except NotAsCard:
            answer = replace(answer, foot=(*answer.foot, NO_CARD))
        else:
            if rest := answer.rest():
                await send_pieces(send, rest, name="memory.md")
            return
    more: dict[str, Any] = {}
    if (view := buttons_below(answer.controls, answer.menus)) is not None:
        more["view"] = view
    if answer.files:
        more["files"] = files_of(answer.files)
    await send_pieces(send, answer.as_text(in_private=in_private), name="memory.md", last=more)


# ----------------------------------------------------------------------
# A text that is finished, sent as messages: the long lists of commands.


async def send_pieces(
    send: Callable[..., Awaitable[object]],
    text: str,
    *,
    most: int = 4,
    name: str = "text.md",
    last: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Send a long text as messages, in order; as one file when it would be more than `most` of them.

    `send` is `channel.send`, `interaction.followup.send` with its options filled in, or the like. The last
    message has the `view` and the `files` of `last`. Raises ChatError.
    """
    text = scrub(text)
    pieces = split(text)
    if len(pieces) > most:
        lines = text.count("\n") + (not text.endswith("\n"))
        text = without_times(text)
        pieces = [Attachment(name=name, content=text, text=f"`{name}` ({lines:,} lines)")]
    for piece in pieces:
        options = dict(last) if piece is pieces[-1] else {}
        if (file := file_of(piece)) is not None:
            options["files"] = [file, *options.get("files", ())]
        with discord_errors():
            await send(content=piece.text, allowed_mentions=SILENT, **options)


def file_of(piece: Piece) -> discord.File | None:
    """The file a piece carries; a new one each time, for sending closes it."""
    if isinstance(piece, Message):
        return None
    return discord.File(BytesIO(piece.content.encode()), filename=piece.name)


# ---------------------------------------------------------------------- forms

LONGEST = 4000
"""The most that Discord lets people type into one field, in characters."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field to type in. `text` stands in it at first; `long`: it has several lines."""

    name: str
    label: str
    text: str = ""
    long: bool = True
    required: bool = True
    most: int = LONGEST


@dataclass(frozen=True, slots=True)
class Form:
    """A modal to open: its custom id, its title and its fields."""

    custom_id: str
    title: str
    fields: Sequence[Field]


async def open_form(interaction: discord.Interaction[Any], form: Form) -> None:
    """Open a modal, as the first response to an interaction. Raises ChatError."""
    modal = discord.ui.Modal(title=form.title[:45], custom_id=form.custom_id, timeout=None)
    for field in form.fields:
        style = discord.TextStyle.paragraph if field.long else discord.TextStyle.short
        box: discord.ui.TextInput[Any] = discord.ui.TextInput(
            custom_id=field.name,
            style=style,
            default=field.text[: field.most] or None,
            required=field.required,
            max_length=field.most,
        )
        modal.add_item(discord.ui.Label(text=field.label[:45], component=box))
    modal.stop()  # as the view of a card is
    with discord_errors():
        await interaction.response.send_modal(modal)
