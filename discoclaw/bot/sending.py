"""The messages of one answer, as calls of Discord: typing, sending, editing, and trying again.

A send is tried again with the same nonce, so that Discord drops a double. The messages of an answer have
nonces that its question gives (`turn_id`): if two processes answer one, or one that was killed is followed by
another, both send the same nonces, and Discord gives the later one the message that is there.
discord.py itself waits out rate limits and repeats 500, 502 and 504 for half a minute; our own two repeats
are for what it raises at once: 503, and connections that break. A message with several links shows no preview
of the pages. Knows nothing else about what the messages say, nor where they end.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import discord

from discoclaw.bot.answer_rows import LABELS, NO_BUTTONS, Row
from discoclaw.bot.layout import SILENT, buttons_below, file_of, send_either
from discoclaw.bot.split import Piece
from discoclaw.bot.wire import discord_errors, worth_retrying
from discoclaw.core.errors import ChatBlocked, ChatError, ChatGone, ChatUnavailable
from discoclaw.show.answer import Answer, Button

T = TypeVar("T")

log = logging.getLogger(__name__)

_TYPING_LASTS_S = 8.0  # Discord shows it for 10 s
_TYPING_TIMES = 75  # ten minutes: a turn that never ends must not type for ever
_LINK = re.compile(r"(?<!<)https?://[^\s<>()\[\]\"'`*|]+")  # Discord shows no preview of <https://…>


def has_links(text: str) -> bool:
    """Whether a text has links to several pages: previews of all of them would bury what it says."""
    return len({link.rstrip(".,:;!?/") for link in _LINK.findall(text)}) > 1


async def stop(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, if it still runs, and wait until it has ended."""
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])


Sent: TypeAlias = discord.Message | discord.PartialMessage


class Followups:
    """The followups of an interaction, which only the person who gave the command sees.

    Discord takes them for 15 minutes, and no nonce with them. They show no previews of links, because
    discord.py can't change that in an edit.
    """

    def __init__(self, interaction: discord.Interaction[Any]) -> None:
        self._followup = interaction.followup

    async def send(self, content: str | None = None, *, nonce: object = 0, **options: Any) -> discord.Message:
        """Send a message that only that person sees."""
        options["suppress_embeds"] = True
        send: Any = self._followup.send  # none of its overloads takes options from a dict
        if content is not None:  # a card has none
            options["content"] = content
        message: discord.Message = await send(ephemeral=True, wait=True, **options)
        return message

    async def typing(self) -> None:
        """Do nothing: the deferred answer says that we are thinking."""


Channel: TypeAlias = discord.abc.Messageable | Followups
"""The target of an answer."""


class Typing:
    """Shows that we are typing, until it is stopped. It is started once at most."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to type."""
        if self._task is None:
            self._task = asyncio.create_task(self._type())

    async def stop(self) -> None:
        """No longer renew it; Discord shows it until a message comes, or for some seconds."""
        await stop(self._task)

    async def _type(self) -> None:
        await asyncio.sleep(0)  # the model is asked first
        try:
            for _ in range(_TYPING_TIMES):
                with discord_errors():
                    await self._channel.typing()
                await asyncio.sleep(_TYPING_LASTS_S)
        except ChatError as error:
            log.debug("typing is not shown: %s", error)


class Sender:
    """Sends the messages of one answer. The first one is a reply to `to`, if there is one."""

    def __init__(
        self,
        channel: Channel,
        to: discord.Message | discord.PartialMessage | None,
        retry_after_s: Sequence[float],
        shown: Callable[[str, str], None] = lambda message_id, channel_id: None,
    ) -> None:
        self._channel = channel
        self._to = to
        self._retry_after_s = tuple(retry_after_s)
        self._shown = shown
        self.typing = Typing(channel)
        self.first: Sent | None = None
        """The first message that is still there."""
        self.buttons = True
        """Whether buttons are sent: until Discord refuses them."""
        self.turn_id = ""
        """The turn's id, by which Discord knows each message of the answer; "" if only we answer it."""
        self.sent: list[Sent] = []
        """All messages of the answer, and its cards."""
        self.count = 0
        """How many nonces were used."""

    def to(self, channel: discord.abc.Messageable) -> "Sender":
        """A sender for another channel, in which the first message isn't a reply."""
        sender = Sender(channel, None, self._retry_after_s, self._shown)
        sender.turn_id = f"{self.turn_id}t" if self.turn_id else ""
        return sender

    async def send(self, piece: Piece, row: Row = NO_BUTTONS) -> discord.Message:
        """Send a piece, with these buttons below it.

        Typing stops before: only a message ends it, and it must not begin again behind that.
        """
        await self.typing.stop()
        send: Any = self._channel.send  # none of its overloads takes options from a dict
        options: dict[str, Any] = {"allowed_mentions": SILENT, "nonce": self._nonce()}
        options["suppress_embeds"] = has_links(piece.text)
        if self._to is not None and self.first is None:
            options["reference"] = discord.MessageReference.from_message(self._to, fail_if_not_exists=False)

        async def call() -> discord.Message:
            if file := file_of(piece):
                options["file"] = file  # a new one for each try: sending closes it
            view = {"view": _view(row)} if row and self.buttons else {}
            message: discord.Message = await send(piece.text, **options, **view)
            return message

        async def without_refused() -> discord.Message:
            try:
                return await self.repeated(call)
            except ChatError as error:
                if not (row and self._refuses_buttons(error)):
                    raise
                return await self.repeated(call)

        try:
            message = await without_refused()
        except (ChatBlocked, ChatGone, ChatUnavailable):
            raise
        except ChatError:
            # A reply needs the right to read the history, and not every kind of message takes one.
            if options.pop("reference", None) is None:
                raise
            message = await without_refused()
        self._note(message)
        if self.turn_id and message.content.strip() != piece.text.strip():
            # It had been sent before, maybe by a process that was killed, with what was to be said then.
            await self.edit(message, piece, row)
        return message

    def _nonce(self) -> str | int:
        """The nonce of the next message: one of its own, unless others may answer the same."""
        self.count += 1
        return f"{self.turn_id}.{self.count}" if self.turn_id else secrets.randbits(63)

    async def send_offer(self, card: Answer) -> None:
        """Send a card, silently and not as a reply."""
        self.sent.append(await self.repeated(lambda: send_either(self._channel.send, card, silent=True)))

    async def edit(self, message: Sent, piece: Piece, row: Row | None = None) -> None:
        """Give a message another text, maybe a file, and unless it is None another row. Tried once."""
        options: dict[str, Any] = {"content": piece.text, "allowed_mentions": SILENT}
        if file := file_of(piece):
            options["attachments"] = [file]
        if row is not None and (self.buttons or not row):
            options["view"] = _view(row)
        if isinstance(message, discord.Message) and not isinstance(message, discord.WebhookMessage):
            options["suppress"] = has_links(piece.text)  # without it, discord.py brings previews back
        edit: Any = message.edit
        try:
            with discord_errors():
                await edit(**options)
        except ChatError as error:
            if not (row and self._refuses_buttons(error)):
                raise
            await self.edit(message, piece, NO_BUTTONS)
        self.first = self.first or message
        if message not in self.sent:
            self._note(message)

    def _note(self, message: Sent) -> None:
        """A message belongs to the answer."""
        self.first = self.first or message
        self.sent.append(message)
        self._shown(str(message.id), str(message.channel.id))

    async def unsend(self) -> None:
        """Delete all of its messages. What Discord doesn't delete stays, with a line in the log."""
        for message in self.sent:
            try:
                await self.repeated(partial(self.delete, message))
            except ChatError as error:
                log.info("a part of an answer to a deleted message stays: %s", error)

    def _refuses_buttons(self, error: ChatError) -> bool:
        """Whether Discord refused a message for its buttons. From now on there are none."""
        refused = self.buttons and "components" in getattr(error.__cause__, "text", "")
        if refused:
            log.info("an answer has no buttons: %s", error)
            self.buttons = False
        return refused

    async def delete(self, message: Sent) -> None:
        """Delete a message of ours. Tried once."""
        with discord_errors():
            await message.delete()

    def forget(self, message: Sent | None) -> None:
        """A message was deleted; if it was the first one, the next one is."""
        if self.first is message:
            self.first = None

    async def repeated(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call Discord, and again after a pause when that may help. Raises ChatError."""
        for pause in self._retry_after_s:
            try:
                with discord_errors():
                    return await call()
            except ChatUnavailable as error:
                if not worth_retrying(error):
                    raise
                log.info("trying again in %s s: %s", pause, error)
            await asyncio.sleep(pause)
        with discord_errors():
            return await call()


def _view(row: Row) -> discord.ui.View | None:
    """The buttons below a message; None takes those away that are there."""
    return buttons_below([Button(one, LABELS[one.partition(":")[0]]) for one in row])
