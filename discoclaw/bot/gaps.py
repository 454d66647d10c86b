"""Reads what one channel has that was missed, and takes it in.

The newest messages of a gap are read, bounded by number and age. What was answered is told by Discord's own
history: our answers are replies.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.past import newest_since
from discoclaw.bot.voice import shows_words, words_in
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.core.errors import ChatError, ChatUnavailable
from discoclaw.core.inbox import KEPT, Inbox, Open
from discoclaw.core.message import Inbound
from discoclaw.core.ports import Clock
from discoclaw.core.subject import person_of
from discoclaw.core.times import snowflake_at
from discoclaw.session.talk import CatchUp, Missed
from discoclaw.session.turn import tell

log = logging.getLogger(__name__)

HOUR_MS: Final = 3_600_000
COMMAND_STOPPED: Final = (
    "I was stopped while I worked on this, and can't say whether it was done. "
    "Please look with `!memory show`."
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most messages of a conversation that are caught up with, and the most hours back; 0 is off."""

    hours: int
    messages: int


class Gaps:
    """Catches up with the channels of `client`. `read_count` and `asked_count` say with how much.

    These are the messages that were read, and those of them that are to be answered.
    """

    def __init__(self, client: DiscoClaw, catch_up: CatchUp, bounds: Bounds, *, clock: Clock) -> None:
        self._client = client
        self._catch_up = catch_up
        self._bounds = bounds
        self._clock = clock
        self.read_count = self.asked_count = 0

    def oldest(self, hours: int) -> int:
        """The id of a message that is so many hours old."""
        return snowflake_at(self._clock() - hours * HOUR_MS)

    async def read(self, channel_id: str, found: Callable[[], None]) -> None:
        """Catch up with one channel. `found` is called once all that was missed there is known.

        Raises ChatForbidden, ChatGone, and ChatUnavailable if it is to be tried again.
        """
        inboxes = self._client.talk.inboxes
        channel = await channel_of(self._client, channel_id)
        key, place = _session_key(channel), wire.place_of(channel)
        inbox = inboxes.reach(key, place)
        open_now, handled = inboxes.interrupted(key), list(inbox.handled)
        messages, oldest = await self._since(channel, inbox, open_now)
        found()
        if self._client.listens(channel):
            await self._restore(channel, key, open_now, messages)
            await self._follow_changes(key, channel_id, [one for one in handled if one > oldest], messages)
            await self._take(key, inbox, open_now, messages)
        else:
            inboxes.pass_over(place, key, (one.id for one in messages if not self._is_ours(one)))
        self._client.talk.caught_up(key)

    async def _since(
        self, channel: Any, inbox: Inbox, open_now: Mapping[int, Open]
    ) -> tuple[Sequence[discord.Message], int]:
        """The newest messages since the inbox's floor, oldest first, and all that are open.

        Also the id behind which every message that is still there was read.
        """
        # From the oldest open one on: an answer to it may be there, though nothing says so on our disk.
        since = min([inbox.floor, *(message_id - 1 for message_id in open_now)])
        oldest = max(since, self.oldest(self._bounds.hours))
        most = self._bounds.messages + KEPT
        found, oldest = await newest_since(channel, oldest, most, set(open_now))
        for message_id in open_now.keys() - {one.id for one in found}:  # they were deleted
            where = self._client.get_channel(message_id) or channel  # the thread that grew out of it
            await self._remove(where, open_now[message_id].shown)
            self._client.talk.inboxes.end(_session_key(channel), [str(message_id)], True)
        return found, oldest

    async def _restore(
        self, channel: Any, key: str, open_now: Collection[int], messages: Sequence[discord.Message]
    ) -> None:
        """Let the window and the loops have what was said before a restart, where the bot takes part."""
        if messages and (open_now or any(self._is_ours(one) for one in messages)):
            first_new = str(messages[-1].id + 1)
            await self._client.talk.restore(wire.place_of(channel, self._client.redactor), key, first_new)

    async def _follow_changes(
        self, key: str, channel_id: str, handled: Collection[int], messages: Sequence[discord.Message]
    ) -> None:
        """Follow what was edited or deleted of the messages that were handled before they were read."""
        there = {message.id: message for message in messages}
        gone = [str(one) for one in handled if one not in there]
        if gone:
            self._client.deleted_messages.deleted(gone, channel_id, key)
        for one in handled:
            if one in there and there[one].edited_at is not None:
                self._client.amend(there[one])
        if gone:  # Discord is asked about these, so they come last
            await self._client.voices.remove_notes(int(channel_id), list(map(int, gone)))
            if person_of(key) is None:
                await self._client.threads.deleted([int(one) for one in gone])

    async def _take(
        self, key: str, inbox: Inbox, open_now: Mapping[int, Open], messages: Sequence[discord.Message]
    ) -> None:
        """Hear the new messages, and answer those that were for us."""
        new: list[str] = []
        try:
            self.asked_count += await self._taken(key, inbox, open_now, messages, new)
        except BaseException:
            self._client.talk.inboxes.give_back(key, new)  # the next try begins with them
            raise
        self.read_count += len(new)
        for message_id in new:
            self._client.talk.inboxes.heard(key, message_id)

    async def _taken(
        self,
        key: str,
        inbox: Inbox,
        open_now: Mapping[int, Open],
        messages: Sequence[discord.Message],
        new: list[str],
    ) -> int:
        """Hear the new messages, and add their ids to `new`. Returns how many will be answered."""
        client, answers = self._client, await self._answers(messages)
        spoken = words_in(messages, client.user)
        missed: list[tuple[discord.Message, Missed]] = []
        for message in messages:
            is_open = message.id in open_now
            if self._is_ours(message) or (inbox.has(message.id) and not is_open):
                continue
            heard = await self._heard(message)
            if is_open and (heard is None or not heard.author.allowed):
                client.talk.inboxes.end(key, [str(message.id)], True)  # it may no longer be answered
                continue
            if heard is None or not (is_open or await client.talk.first_time(heard)):
                continue
            if not is_open:
                new.append(heard.id)
            shown = open_now[message.id].shown if is_open else []
            half = (shown or answers.get(message.id, [])) if is_open else []
            answered = not is_open and message.id in answers
            if is_open and open_now[message.id].command:
                await self._settle_command(message, key, answered=message.id in answers)
            elif await client.is_command(heard):
                if not answered:
                    await client.carry_out(message, heard)
            else:
                reply = partial(client.answer, message, half=half)
                missed.append((message, Missed(heard, reply, is_open, bool(half), answered)))
        # Side by side: a recording takes seconds.
        listened = (self._listened(message, one, spoken.get(message.id, "")) for message, one in missed)
        return await self._catch_up.take(await asyncio.gather(*listened))

    async def _listened(self, message: discord.Message, missed: Missed, words: str) -> Missed:
        """A missed message with its spoken words, which are shown unless its answer alone is missing."""
        if missed.answered and not words:
            return missed  # it has its answer without them
        heard, show = missed.message, not missed.open
        spoken = await self._client.voices.listen(message, heard, known=words, show=show)
        if spoken.told and missed.open:
            self._client.talk.inboxes.end(heard.session_key, [heard.id], True)
        return replace(missed, message=spoken.message, answered=missed.answered or spoken.told)

    async def _heard(self, message: discord.Message) -> Inbound | None:
        """A message as the parts inside know it. None also for one that cannot be read."""
        try:
            return await self._client.heard(message, strict=True)
        except ChatUnavailable:
            raise  # who somebody is cannot be asked right now, so the channel is read again later
        except Exception:  # a named edge: one odd message must not cost all others of the gap
            log.exception("the missed message %s could not be read", message.id)
            return None

    async def _settle_command(self, message: discord.Message, key: str, *, answered: bool) -> None:
        """Say that a command was interrupted. It is not repeated: it may have been carried out."""
        reply = self._client.answer(message, lambda *_: None)
        done = answered or await tell(reply, COMMAND_STOPPED, key)
        if answered:
            await reply.drop()
        self._client.talk.inboxes.end(key, [str(message.id)], done)

    async def _remove(self, channel: Any, message_ids: Sequence[str]) -> None:
        """Remove messages of half an answer: the first one is written anew, unless its question is gone."""
        for message_id in message_ids:
            try:
                with discord_errors():
                    await discord.PartialMessage(channel=channel, id=int(message_id)).delete()
            except ChatError as error:
                log.info("a part of an interrupted answer stays: %s", error)

    async def _answers(self, messages: Sequence[discord.Message]) -> Mapping[int, list[str]]:
        """Our answers to these messages, by the message: replies among them, and threads that we opened."""
        found: dict[int, list[str]] = {}
        for message in messages:
            if self._is_ours(message) and shows_words(message):
                continue
            if self._is_ours(message) and message.reference is not None and message.reference.message_id:
                found.setdefault(message.reference.message_id, []).append(str(message.id))
            elif message.flags.has_thread and (ours := await self._client.threads.answer_below(message)):
                found.setdefault(message.id, []).extend(ours)
        return found

    def _is_ours(self, message: discord.Message) -> bool:
        return self._client.user is not None and message.author.id == self._client.user.id


def _session_key(channel: Any) -> str:
    person = getattr(channel, "recipient", None)
    return wire.place_of(channel).session_key(str(person.id) if person is not None else "")
