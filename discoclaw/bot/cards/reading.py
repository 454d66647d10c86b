"""Reads a card of ours back from the message that shows it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import discord

from discoclaw.bot.cards.card import GREY, MOST_PARTS, Card, Entry
from discoclaw.bot.texts.markup import NOTE, unmarked


def texts_of(message: discord.Message | None) -> Mapping[int, str]:
    """The texts of a card by the ids of their components."""
    return {one.id: one.content for one in _texts(message) if one.id}


def texts_shown(message: discord.Message) -> str:
    """All that a message says, as a text or as a card, as it is written."""
    return "\n".join([message.content, *(one.content for one in _texts(message))])


def words_of(message: discord.Message) -> str:
    """All that a message says, as a text or as a card, as people read it: nothing is escaped."""
    return unmarked(texts_shown(message))


def parts_of(components: Sequence[Any]) -> Iterator[Any]:
    """Components, and all that are in them."""
    for part in components:
        yield part
        yield from parts_of(getattr(part, "children", ()))
        yield from parts_of([one for one in [getattr(part, "accessory", None)] if one is not None])


def can_be_pressed(message: discord.Message) -> bool:
    """Whether a message has buttons or menus."""
    return any(isinstance(one, discord.Button | discord.SelectMenu) for one in _parts(message))


def frame_of(message: discord.Message | None) -> int | None:
    """The colour of what a card says next: None for one without a frame."""
    return GREY if any(isinstance(one, discord.Container) for one in _parts(message)) else None


def closed(message: discord.Message, *foot: str) -> Card:
    """A card without its buttons, with more small print below it."""
    lines = [part.removeprefix(NOTE) for part in foot]
    rows = [Entry(one.content) for one in _texts(message)]
    return Card("", rows, foot=lines, most=MOST_PARTS, colour=frame_of(message))


def _texts(message: discord.Message | None) -> list[discord.TextDisplay]:
    return [one for one in _parts(message) if isinstance(one, discord.TextDisplay)]


def _parts(message: discord.Message | None) -> Iterator[Any]:
    return parts_of(message.components if message is not None else [])
