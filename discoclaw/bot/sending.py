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
from typing import Any, Final, TypeAlias, TypeVar

import discord

from discoclaw.bot.layout import SILENT, buttons_below, file_of, send_either
from discoclaw.bot.split import Piece
from discoclaw.bot.wire import discord_errors, worth_retrying
from discoclaw.core.errors import (
    ChatBlocked,
    ChatError,
    ChatForbidden,
    ChatGone,
    ChatTooLong,
    ChatUnavailable,
)
from discoclaw.core.ports import Ending
from discoclaw.core.values import dataclass
from discoclaw.show.answer import Answer, Button
from discoclaw.show.markup import NOTE

# ----------------------------------------------------------------------
# Which buttons stand below an answer, as custom ids: all that a press needs to know stands in them.

Row: TypeAlias = tuple[str, ...]
"""The custom ids of the buttons below a message."""
NO_BUTTONS: Final[Row] = ()
LABELS: Final = {"stop": "Stop", "again": "Again", "more": "Go on"}
"""What each button says, by the beginning of its custom id."""
LONGEST: Final = 100
"""Discord's limit for a custom id."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Below:
    """The buttons that may stand below an answer to a person's message.

    `turn_id` is what is being answered: that message, or a press that asked for the rest of an answer. The
    rest can't be given again by itself, so there is no button for that below it; but if it is missing, it can
    be asked for once more.
    """

    user_id: str
    asked_id: str
    turn_id: str

    def live(self) -> Row:
        """While the answer is written."""
        return (f"stop:{self.user_id}:{self.turn_id}",)

    def after(self, ending: Ending, above: Sequence[int]) -> Row:
        """Below the last message of an answer; `above` are its other messages, oldest first."""
        more = f"more:{self.user_id}:{self.asked_id}"
        if ending == "other":
            return NO_BUTTONS
        if self.turn_id != self.asked_id:
            return NO_BUTTONS if ending == "whole" else (more,)
        again = self._again(above)
        return (again, more) if ending == "cut" else (again,)

    def _again(self, above: Sequence[int]) -> str:
        """The button that knows all messages of its answer, as distances: ids would not fit."""
        custom_id, before = f"again:{self.user_id}:{self.asked_id}:", int(self.asked_id)
        for message_id in above:
            longer = f"{custom_id}{_base36(message_id - before)}."
            if len(longer) > LONGEST:
                break  # a message that stays is better than no button
            custom_id, before = longer, message_id
        return custom_id


def above(asked_id: str, distances: str) -> list[int]:
    """The other messages of an answer, as its button knows them."""
    found, before = [], int(asked_id)
    for distance in filter(None, distances.split(".")):
        before += int(distance, 36)
        found.append(before)
    return found


def _base36(number: int) -> str:
    digits = ""
    while number > 0:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


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
        self.count += 1
        # A nonce of its own, unless others may answer the same.
        nonce = f"{self.turn_id}.{self.count}" if self.turn_id else secrets.randbits(63)
        options: dict[str, Any] = {"allowed_mentions": SILENT, "nonce": nonce}
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


# ----------------------------------------------------------------------
# What follows when Discord refuses an answer: the person gets it in a DM, and a sentence where they asked.
#
# An answer holds nothing that was not to be said in the open, so its person may have it in a DM as well.
# Where they asked, a sentence says what happened, as far as anything can be said there. Blocked words are not
# repeated.

ANSWER, REST = "my answer", "the rest of my answer"
TOO_LATE = "Discord brought me your command too late, so I did nothing. Please try it again."

_IN_DM: tuple[tuple[type[ChatError], str], ...] = (
    (ChatBlocked, "The server's AutoMod blocked {what} in {place}, so here it is:"),
    (ChatForbidden, "I'm not allowed to write in {place}, so here is {what}. An admin can change that."),
    (ChatGone, "The place where you asked me is gone, so here is {what}:"),
    (ChatTooLong, "I'm not allowed to attach files in {place}, so here is {what}:"),
    (ChatError, "Discord didn't take {what} in {place}, so here it is:"),
)
_THERE: tuple[tuple[type[ChatError], str], ...] = (
    (ChatBlocked, "This server's AutoMod blocked {what}."),
    (ChatTooLong, "{What} is too long for messages, and I'm not allowed to attach files here."),
    (ChatError, "Discord didn't take {what}."),
)
_SENT = " I've sent it to you in a DM."
_NOT_SENT = " I couldn't send it to you in a DM either."


async def elsewhere(
    error: ChatError,
    *,
    what: str,
    place: str,
    in_dm: Callable[[str], Awaitable[object]] | None,
    there: Callable[[str], Awaitable[object]],
) -> None:
    """Deliver what was refused with `error` in a DM, below a sentence, and say so where it was asked for.

    `in_dm` is None if it was asked for in a DM. Both raise ChatError; then there is only a line in the log.
    """
    sent = in_dm is not None and await _tried(in_dm, _sentence(_IN_DM, error, what, place))
    if isinstance(error, ChatForbidden | ChatGone | ChatUnavailable):
        return  # nothing can be said there
    where = "" if in_dm is None else _SENT if sent else _NOT_SENT
    await _tried(there, _sentence(_THERE, error, what, place) + where)


def _sentence(table: tuple[tuple[type[ChatError], str], ...], error: ChatError, what: str, place: str) -> str:
    text = next(text for kind, text in table if isinstance(error, kind))
    return text.format(what=what, What=what[:1].upper() + what[1:], place=place)


async def _tried(send: Callable[[str], Awaitable[object]], text: str) -> bool:
    try:
        await send(text)
    except ChatError as error:
        log.info("a person could not be told that an answer was refused: %s", error)
        return False
    return True


# ----------------------------------------------------------------------
# Direct messages to the bot's owners that answer nothing they wrote.


async def tell_owner(client: discord.Client, owner: str, text: str) -> None:
    """Send an owner (user id) a text in small print, which isn't part of the talk. Raises ChatError."""
    if not client.is_ready():
        raise ChatUnavailable("Discord is not connected yet")
    with discord_errors():
        user = client.get_user(int(owner)) or await client.fetch_user(int(owner))
        await user.send(f"{NOTE}{text}", allowed_mentions=SILENT, suppress_embeds=True)
