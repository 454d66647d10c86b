"""The buttons below an answer: Stop while it is written, then Again and Go on.

Again asks the same question again, and Go on for the rest of the answer. The question is read from Discord,
as it is now, so this outlives a restart. `sending.Below` says which of them stand
below an answer.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.answers import sentence
from discoclaw.bot.pressed import DONE_ALREADY, USER, Controls, Outcome, Press, Pressed, whisper
from discoclaw.bot.sending import Below, above
from discoclaw.bot.voice import Voices, words_below
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, NotNow, Refused
from discoclaw.core.message import Inbound, Said
from discoclaw.core.redact import Redactor
from discoclaw.session.deleted_messages import DeletedMessages
from discoclaw.session.talk import NOT_HERE, Talk

log = logging.getLogger(__name__)

GO_ON: Final = "go on"
"""The message to the model when somebody wants the rest of an answer."""
QUESTION_GONE: Final = "I can't find your question any more: it was deleted"
MOST_PRESSED: Final = 1_000
NO_ANSWER = "Discord doesn't answer me right now. Please try again in a moment."
ASKED = r"(?P<asked>\d{1,20})"


class Anew:
    """Answers again, and goes on with answers.

    `hear` makes an Inbound of a message, `said` a line of the talk; `answer` begins an answer to one.
    """

    def __init__(
        self,
        client: discord.Client,
        talk: Talk,
        deleted_messages: DeletedMessages,
        voices: Voices,
        hear: Callable[..., Awaitable[Inbound | None]],
        said: Callable[[discord.Message], Said],
        answer: Callable[..., Any],
        redactor: Redactor,
    ) -> None:
        self._client = client
        self._talk, self._deleted_messages, self._voices = talk, deleted_messages, voices
        self._hear, self._said, self._answer = hear, said, answer
        self._redactor = redactor
        self._pressed: dict[int, None] = {}
        """The messages whose buttons have done their work: a second press may come before they are gone."""

    async def stop(self, press: Press, turn_id: str) -> None:
        """The answer ends here. Raises Refused if it has ended, and this button was left behind."""
        stopped = self._talk.agent.stops.stop(turn_id, str(press.user.id))
        if stopped != "unknown":
            return  # what its turn shows last has other buttons
        with discord_errors():
            now = await press.original_response()
        if any(one.custom_id == f"stop:{press.user.id}:{turn_id}" for one in _buttons(now)):
            raise Refused(DONE_ALREADY)

    async def again(self, press: Press, asked_id: str, above: Sequence[int]) -> None:
        """The question is answered once more, instead of this answer. Raises Refused."""
        assert press.message is not None  # a button stands below one
        answer = [*above, press.message.id]
        await self._once(press, partial(self._again, press, asked_id, answer))

    async def more(self, press: Press, asked_id: str) -> None:
        """The answer goes on below. Raises Refused."""
        await self._once(press, partial(self._more, press, asked_id))

    async def _once(self, press: Press, act: Callable[[], Any]) -> None:
        assert press.message is not None  # a button stands below one
        key = press.message.id
        if key in self._pressed:
            raise Refused(DONE_ALREADY)
        self._pressed[key] = None
        if len(self._pressed) > MOST_PRESSED:
            del self._pressed[next(iter(self._pressed))]
        done = False
        try:
            done = await act()
        finally:
            if not done:
                self._pressed.pop(key, None)

    async def _again(self, press: Press, asked_id: str, answer: Sequence[int]) -> bool:
        channel, asked, read = await self._question(press, asked_id)
        if (heard := await self._spoken(asked, read)) is None:
            return False
        ids, key = [str(one) for one in answer], wire.place_of(channel).session_key(heard.author.id)
        forget = partial(self._deleted_messages.deleted, ids, str(channel.id), key)
        make = partial(self._answer, asked, turn_id=str(press.id))
        if not await self._talk.again(heard, make, ids[0], forget):
            return False
        for message_id in answer:
            try:
                with discord_errors():
                    await discord.PartialMessage(channel=channel, id=message_id).delete()
            except ChatError as error:
                log.info("a part of an answer that is given again stays: %s", error)
        return True

    async def _spoken(self, asked: discord.Message, heard: Inbound) -> Inbound | None:
        """A voice message with its words, any other message as it is. None if its author was told why not.

        The words stand below the recording, which is then not listened to once more. Raises ChatError.
        """
        if not wire.is_voice(asked):
            return heard
        known = await words_below(asked, self._client.user)
        spoken = await self._voices.listen(asked, heard, known=known, show=not known)
        return None if spoken.told else spoken.message

    async def _more(self, press: Press, asked_id: str) -> bool:
        answer = press.message
        assert answer is not None
        channel, asked, heard = await self._question(press, asked_id)
        place = wire.place_of(channel, self._redactor)
        wanted = replace(
            heard,
            id=str(press.id),
            place=place,
            session_key=place.session_key(heard.author.id),
            text=GO_ON,
            sent_at=int(press.created_at.timestamp() * 1000),
            quoted=self._said(answer),
            attachments=(),
            files=(),
            stands_for=(asked_id,),
        )
        below = Below(heard.author.id, asked_id, wanted.id)
        within = channel if channel.id != asked.channel.id else None
        make = partial(self._answer, asked, below=below, within=within, turn_id=wanted.id)
        if not await self._talk.go_on(wanted, make):
            return False
        try:
            with discord_errors():
                await press.edit_original_response(view=None)
        except ChatError as error:
            log.info("the buttons of an answer that goes on stay: %s", error)
        return True

    async def _question(self, press: Press, asked_id: str) -> tuple[Any, discord.Message, Inbound]:
        """The channel of a press, and the question as message and Inbound. Raises Refused and ChatError."""
        try:
            with discord_errors():
                channel: Any = await channel_of(self._client, str(press.channel_id))
                # A thread that grew out of the question has its id; the question stands above it.
                above = (
                    await channel_of(self._client, str(channel.parent_id))
                    if channel.id == int(asked_id)
                    else channel
                )
                asked: discord.Message = await above.fetch_message(int(asked_id))
            if asked.author.id != press.user.id:
                raise Refused(NOT_HERE)  # only a forged button says so
            asked.author = press.user  # a message that was fetched lacks the name and the roles here
            heard = await self._hear(asked, strict=True)
        except ChatGone as error:
            raise Refused(QUESTION_GONE) from error
        except ChatForbidden as error:
            raise Refused(NOT_HERE) from error
        if heard is None:
            raise Refused(NOT_HERE)
        return channel, asked, heard


def _buttons(message: discord.Message) -> list[discord.Button]:
    rows = (one for one in message.components if isinstance(one, discord.ActionRow))
    return [one for row in rows for one in row.children if isinstance(one, discord.Button)]


# ---------------------------------------------------------------------- the buttons


CONTROLS = Controls()
"""The client takes presses of these."""


async def _show(press: Press, outcome: Outcome) -> None:
    """The answer shows what came of it. Say what was taken back with the old one, or why nothing was done."""
    if outcome:
        await whisper(press, str(outcome).lstrip())


async def _done(act: Awaitable[None]) -> str:
    try:
        await act
    except NotNow as refusal:
        return sentence(refusal)  # the buttons stay
    except ChatError as error:
        log.warning("a button below an answer did nothing: %s", error)
        return NO_ANSWER
    return ""


@CONTROLS.on(rf"stop:{USER}:{ASKED}", needs=(), show=_show)
async def stop(at: Pressed) -> str:
    """End an answer that is being written."""
    return await _done(at.press.client.anew.stop(at.press, at.known["asked"]))


@CONTROLS.on(rf"again:{USER}:{ASKED}:(?P<above>[0-9a-z.]*)", needs=(), show=_show)
async def again(at: Pressed) -> str:
    """Have the same question answered once more."""
    asked = at.known["asked"]
    return await _done(at.press.client.anew.again(at.press, asked, above(asked, at.known["above"])))


@CONTROLS.on(rf"more:{USER}:{ASKED}", needs=(), show=_show)
async def more(at: Pressed) -> str:
    """Have an answer continued."""
    return await _done(at.press.client.anew.more(at.press, at.known["asked"]))
