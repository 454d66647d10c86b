"""A text that is finished, sent as messages: the long lists of commands. And what every sending needs.

Knows nothing about live views, editing or trying again, nor which channel or interaction it sends to.
"""

from collections.abc import Awaitable
from io import BytesIO
from typing import Protocol

import discord

from discoclaw.bot.split import Attachment, Message, Piece, split
from discoclaw.bot.texts.markup import without_times
from discoclaw.bot.wire import discord_errors
from discoclaw.core.text import scrub

SILENT = discord.AllowedMentions.none()
"""Nobody is pinged, the person we reply to included."""


class Send(Protocol):
    """Sends one message: `channel.send`, `interaction.followup.send` with its options filled in, …"""

    def __call__(
        self, *, content: str, allowed_mentions: discord.AllowedMentions, file: discord.File = ...
    ) -> Awaitable[object]: ...


async def send_pieces(send: Send, text: str, *, most: int = 4, name: str = "text.md") -> None:
    """Send a long text as messages, in order; as one file when it would be more than `most` of them."""
    text = scrub(text)
    pieces = split(text)
    if len(pieces) > most:
        lines = text.count("\n") + (not text.endswith("\n"))
        text = without_times(text)
        pieces = [Attachment(name=name, content=text, text=f"`{name}` ({lines:,} lines)")]
    for piece in pieces:
        options = {"file": file} if (file := file_of(piece)) else {}
        with discord_errors():
            await send(content=piece.text, allowed_mentions=SILENT, **options)


def file_of(piece: Piece) -> discord.File | None:
    """The file a piece carries; a new one each time, for sending closes it."""
    if isinstance(piece, Message):
        return None
    return discord.File(BytesIO(piece.content.encode()), filename=piece.name)
