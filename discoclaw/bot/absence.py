"""Reads what was said while the bot was away: after a start, and after a connection that was lost for good.

The inboxes say where each conversation was left. Discord says in which channels anything is newer; only these
are read, and those with talk of the last days, where something may have been edited or deleted: three at a
time, and first those in which somebody writes now. Of each channel the newest messages of a gap are read,
bounded by number and age; what was answered is told by Discord's own history: our answers are replies.
Answers that Discord did not take then are shown later (`deliver`).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import discord

from discoclaw.bot import wire
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.deliver import in_dm
from discoclaw.bot.past import newest_since
from discoclaw.bot.sending import Below
from discoclaw.bot.voice import shows_words, words_in
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, ChatUnavailable
from discoclaw.core.health import UnderWay
from discoclaw.core.inbox import KEPT, Inbox, Open
from discoclaw.core.message import Inbound
from discoclaw.core.ports import Clock, Hearer
from discoclaw.core.shards import Shards
from discoclaw.core.subject import person_of
from discoclaw.core.times import snowflake_at
from discoclaw.memory.conversations.undelivered import Unsent
from discoclaw.session.agent import tell
from discoclaw.session.hearing import HISTORY_WAIT_S
from discoclaw.session.talk import Missed
from discoclaw.show.words import count
from discoclaw.work import Background, Worker

log = logging.getLogger(__name__)

HOUR_MS: Final = 3_600_000
COMMAND_STOPPED: Final = (
    "I was stopped while I worked on this, and can't say whether it was done. "
    "Please look with `!memory show`."
)
AT_ONCE: Final = 3
"""The most channels that are read at the same time."""
MOST_CHANNELS: Final = 500
"""The most channels that are read after one gap: those with the newest messages."""
TAKING_S: Final = 10.0
"""How long a message waits until what was missed before it is taken in: Discord is asked about people and
threads meanwhile, and a recording is transcribed."""
DM_DAYS: Final = 30
"""Discord does not list direct messages: those are asked for whose person has talked with us since. Those of
others are read when they write again (`Inboxes.since`)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most messages of a conversation that are caught up with, and the most hours back; 0 is off."""

    hours: int
    messages: int


class Absence(Background, Hearer):
    """Catches up with what `client` missed. Discord's READY starts the work."""

    _grace_s = 0.0  # what was not read is read after the next start

    def __init__(self, client: DiscoClaw, bounds: Bounds, *, clock: Clock) -> None:
        self._client = client
        self._bounds = bounds
        self._clock = clock
        self._read_count = self._asked_count = 0
        """The messages that were read, and those of them that are to be answered."""
        self._worker = Worker("catching up", self._read, at_once=AT_ONCE, idle=self._report)
        self._reading: dict[str, bool] = {}
        """The channels that are being read, and whether all that was missed there is known by now."""
        self._passed: set[str] = set()
        """Channels for which a message has waited in vain: until they are read, none waits there again."""

    def under_way(self) -> UnderWay | None:
        """How far it is; None if nothing is left to read."""
        left = self._worker.waiting + len(self._reading)
        if not left:
            return None
        asked = self._asked_count
        text = f"{asked} of these messages ask for an answer; {count(left, 'channel')} still to read"
        return UnderWay("Reading what was missed", text, self._read_count)

    # ------------------------------------------------------------------ when

    def began(self, shards: Shards) -> None:
        """A new session of the gateway: nothing of what was missed will be sent again."""
        self._client.talk.inboxes.fall_behind(shards)

    async def ready(self, shards: Shards) -> None:
        """Note all channels of these shards in which something may have been missed."""
        inboxes = self._client.talk.inboxes
        channels = sorted(self._behind(shards) | self._unheard(shards), key=lambda pair: -pair[1])
        inboxes.all_reached(shards)
        for channel_id, _ in channels[:MOST_CHANNELS]:
            self._worker.note(channel_id)
        self._worker.hurry()  # those that could not be read before, too
        for channel_id, _ in channels[MOST_CHANNELS:]:
            self._give_up(channel_id)
        if len(channels) > 1:
            log.info("catching up: reading %d channels", min(len(channels), MOST_CHANNELS))

    def resumed(self, shards: Shards) -> None:
        """The session goes on, and nothing was missed; but answers may not have reached Discord."""
        for inbox in self._client.talk.inboxes.all_interrupted().values():
            if shards.have(inbox.guild_id):
                self._worker.note(inbox.channel_id, first=True)

    async def read_before(self, message: Inbound) -> None:
        """Take in what was missed in a conversation before this message, so that answers keep their order.

        If its history can't be read in time, the message doesn't wait for that; nor if something hangs.
        """
        channel_id, place = message.place.channel_id, message.place
        if place.kind == "dm" and not message.author.allowed:
            return  # nothing is kept about strangers
        if channel_id not in self._reading and self._client.talk.inboxes.has_gap(message.session_key, place):
            self._worker.note(channel_id, first=True)
        if channel_id in self._passed or not self._worker.busy(channel_id):
            return
        if await self._is_read(channel_id, HISTORY_WAIT_S):
            return
        if not (self._reading.get(channel_id) and await self._is_read(channel_id, TAKING_S)):
            self._passed.add(channel_id)

    async def _is_read(self, channel_id: str, within_s: float) -> bool:
        """Wait until nothing of a channel is being read. False if that takes longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._worker.settle(channel_id)
                return True
        return False

    def _behind(self, shards: Shards) -> set[tuple[str, int]]:
        """The channels with a gap: their ids, and their newest messages as far as we know them."""
        inboxes, found = self._client.talk.inboxes, set[tuple[str, int]]()
        for key, inbox in inboxes.behind(shards).items():
            channel = self._client.get_channel(int(inbox.channel_id))
            newest = getattr(channel, "last_message_id", None) or inbox.newest
            days = DM_DAYS * 24 if channel is None else self._bounds.hours
            recent = inbox.newest >= self._oldest(days)
            if recent or newest > inbox.newest or inboxes.interrupted(key):
                found.add((inbox.channel_id, max(newest, inbox.newest)))
            else:
                self._client.talk.caught_up(key)
        return found

    def _unheard(self, shards: Shards) -> set[tuple[str, int]]:
        """The channels in which nothing was heard before the gap, and something was said since."""
        inboxes, found = self._client.talk.inboxes, set[tuple[str, int]]()
        guilds = [one for one in self._client.guilds if shards.have(str(one.id))]
        channels = [one for guild in guilds for one in (*guild.channels, *guild.threads)]
        for channel in (one for one in channels if isinstance(one, discord.abc.Messageable)):
            since, newest = inboxes.since(str(channel.guild.id)), channel.last_message_id or 0
            if not since or newest <= since:
                continue
            place = wire.place_of(channel)
            key = place.session_key("")
            if not inboxes.knows(key) and self._client.listens(channel):
                inboxes.reach(key, place)
                found.add((str(channel.id), newest))
        return found

    # ------------------------------------------------------------------ reading

    async def _read(self, channel_id: str) -> None:
        self._reading[channel_id] = False
        try:
            await self._catch_up_with(channel_id)
        except (ChatForbidden, ChatGone) as error:
            if self._reading[channel_id]:  # it can be read, and something else failed
                raise
            log.info("the channel %s cannot be caught up with: %s", channel_id, error)
            self._give_up(channel_id)
        finally:
            del self._reading[channel_id]
            self._passed.discard(channel_id)

    def _give_up(self, channel_id: str) -> None:
        """Leave the gap of a channel that can't be read unread, and its questions unanswered."""
        inboxes = self._client.talk.inboxes
        for key, inbox in {**inboxes.behind(), **inboxes.all_interrupted()}.items():
            if inbox.channel_id == channel_id:
                inboxes.end(key, map(str, inboxes.interrupted(key)), True)
                self._client.talk.caught_up(key)

    async def _report(self, channels: Collection[str]) -> None:
        """Say in the log what was caught up with."""
        if self._read_count or self._asked_count:
            log.info(
                "caught up: %d missed messages in %d channels, %d of them to be answered",
                self._read_count,
                len(channels),
                self._asked_count,
            )
        self._read_count = self._asked_count = 0

    # ------------------------------------------------------------------ one channel

    def _oldest(self, hours: int) -> int:
        """The id of a message that is so many hours old."""
        return snowflake_at(self._clock() - hours * HOUR_MS)

    async def _catch_up_with(self, channel_id: str) -> None:
        """Catch up with one channel. Raises ChatForbidden, ChatGone, and ChatUnavailable for another try."""
        inboxes = self._client.talk.inboxes
        channel = await channel_of(self._client, channel_id)
        key, place = _session_key(channel), wire.place_of(channel)
        inbox = inboxes.reach(key, place)
        open_now, handled = inboxes.interrupted(key), list(inbox.handled)
        messages, oldest = await self._since(channel, inbox, open_now)
        self._reading[channel_id] = True
        if self._client.listens(channel):
            # Where the bot takes part, the window and the loops get what was said before a restart.
            if messages and (open_now or any(self._is_ours(one) for one in messages)):
                first_new = str(messages[-1].id + 1)
                await self._client.talk.restore(wire.place_of(channel, self._client.redactor), key, first_new)
            await self._follow_changes(key, channel_id, [one for one in handled if one > oldest], messages)
            new: list[str] = []
            try:
                self._asked_count += await self._taken(key, inbox, open_now, messages, new)
            except BaseException:
                self._client.talk.inboxes.give_back(key, new)  # the next try begins with them
                raise
            self._read_count += len(new)
            for message_id in new:
                self._client.talk.inboxes.heard(key, message_id)
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
        oldest = max(since, self._oldest(self._bounds.hours))
        most = self._bounds.messages + KEPT
        found, oldest = await newest_since(channel, oldest, most, set(open_now))
        for message_id in open_now.keys() - {one.id for one in found}:  # they were deleted
            where: Any = self._client.get_channel(message_id) or channel  # the thread that grew out of it
            for one in open_now[message_id].shown:  # half an answer
                try:
                    with discord_errors():
                        await discord.PartialMessage(channel=where, id=int(one)).delete()
                except ChatError as error:
                    log.info("a part of an interrupted answer stays: %s", error)
            self._client.talk.inboxes.end(_session_key(channel), [str(message_id)], True)
        return found, oldest

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
                # It is not repeated: it may have been carried out.
                done, told = message.id in answers, client.answer(message, lambda *_: None)
                if done:
                    await told.drop()
                else:
                    done = await tell(told, COMMAND_STOPPED, key)
                client.talk.inboxes.end(key, [str(message.id)], done)
            elif await client.is_command(heard):
                if not answered:
                    await client.carry_out(message, heard)
            else:
                reply = partial(client.answer, message, half=half)
                missed.append((message, Missed(heard, reply, is_open, bool(half), answered)))
        # Side by side: a recording takes seconds.
        listened = (self._listened(message, one, spoken.get(message.id, "")) for message, one in missed)
        return await client.talk.take_missed(await asyncio.gather(*listened), self._clock())

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


# ----------------------------------------------------------------------
# Shows answers behind their turn, because Discord did not take them: where they were asked for, or in a DM.
#
# Whether Discord took a message can't be known after a connection broke, or after a kill. So what it has of
# an answer is looked for in its history, and becomes part of the answer. Knows nothing about when that is
# tried.

Shown: TypeAlias = Callable[[str, str], None]
IN_DM: Final = "Discord didn't take my answer{place} when you asked, so here it is:"
TOO_LATE: Final = (
    "Discord didn't take my answer to this in time, and I couldn't send it to you in a DM either. "
    "If it still matters, please ask me again."
)
MOST_LOOKED_AT: Final = 50
"""Messages behind a question among which is what Discord has of its answer."""
_LONG: Final = 200
"""From this length on, a message that isn't a reply is known by its text."""


async def deliver(client: DiscoClaw, kept: Unsent, late: bool, shown: Shown) -> tuple[Inbound, str] | None:
    """Show an answer where it was asked for, or in a DM. Returns the question and the answer's first id.

    None if the talk doesn't have the answer: its question is gone, or it was shown in a DM. Raises
    ChatUnavailable.
    """
    try:
        if not kept.held.asked_id:
            await _in_dm(client, kept, shown)
            return None
        return await _where_asked(client, kept, shown, late=late)
    except ChatUnavailable:
        raise
    except ChatGone as error:
        log.info("the question of an answer is gone: %s", error)
    except ChatError as error:
        log.warning("an answer could not be delivered: %s", error)
    return None


async def _where_asked(
    client: DiscoClaw, kept: Unsent, shown: Shown, *, late: bool
) -> tuple[Inbound, str] | None:
    held, text = kept.held, kept.held.text
    channel = asked_in = await channel_of(client, held.asked_in)
    with discord_errors():
        asked = await asked_in.fetch_message(int(held.asked_id))
    heard = await client.heard(asked, strict=True)
    if heard is None or not heard.author.allowed:
        return None
    if late and asked.guild is not None:
        try:
            await _in_dm(client, kept, shown)
            return None
        except ChatUnavailable:
            raise
        except ChatError as error:
            log.info("an answer is too late, and its person takes no DM: %s", error)
            text = TOO_LATE
    within = None
    if held.channel_id != held.asked_in:
        channel = await channel_of(client, held.channel_id)
        within = channel if isinstance(channel, discord.Thread) else None
    # What Discord has of the answer.
    apart, found = channel.id != asked.channel.id, set(map(int, kept.held.shown))
    history = channel.history(limit=MOST_LOOKED_AT, after=asked, oldest_first=True)
    with discord_errors():
        said = [one async for one in history if one.author == client.user and one.content.strip()]
    for one in said:
        to = one.reference.message_id if one.reference is not None else None
        known = to == asked.id or (to is None and (apart or len(one.content) >= _LONG))
        if known and one.content.strip() in kept.held.text:
            found.add(one.id)
    half = [str(one) for one in sorted(found)]
    below = Below(kept.user_id, held.asked_id, kept.ids[-1])
    answer = client.answer(asked, shown, half, below, within, held.turn_id, anew=False)
    try:
        await answer.push(text)
        answer_id = await answer.finish(kept.ending)
    finally:
        await answer.close()
    if answer_id is None or text is TOO_LATE:
        return None
    place = wire.place_of(channel, client.redactor)
    key = place.session_key(heard.author.id)
    message = replace(heard, id=kept.ids[-1], place=place, session_key=key, sent_at=kept.said_at)
    return message, answer_id


async def _in_dm(client: DiscoClaw, kept: Unsent, shown: Shown) -> None:
    """Send an answer to its person. Raises ChatError."""
    user_id, where = int(kept.user_id), kept.held.asked_in
    with discord_errors():
        person = client.get_user(user_id) or await client.fetch_user(user_id)
    place = f" in <#{where}>" if where else ""
    await in_dm(person, f"{IN_DM.format(place=place)}\n\n{kept.held.text}", shown)
