"""Shows answers behind their turn, because Discord did not take them: where they were asked for, or in a DM.

Whether Discord took a message can't be known after a connection broke, or after a kill. So what it has of an
answer is looked for in its history, and becomes part of the answer. Knows nothing about when that is tried.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

import discord

from discoclaw.bot import wire
from discoclaw.bot.answer_rows import Below
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.deliver import in_dm
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.core.errors import ChatError, ChatGone, ChatUnavailable
from discoclaw.core.message import Inbound
from discoclaw.memory.conversations.undelivered import Unsent

log = logging.getLogger(__name__)

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


class LateAnswers:
    """The port `Deliverer`, for `client`."""

    def __init__(self, client: DiscoClaw) -> None:
        self._client = client

    async def deliver(self, kept: Unsent, *, late: bool, shown: Shown) -> tuple[Inbound, str] | None:
        """Show an answer where it was asked for, or in a DM. Returns the question and the answer's first id.

        None if the talk doesn't have the answer: its question is gone, or it was shown in a DM. Raises
        ChatUnavailable.
        """
        try:
            if not kept.held.asked_id:
                await self._in_dm(kept, shown)
                return None
            return await self._where_asked(kept, shown, late=late)
        except ChatUnavailable:
            raise
        except ChatGone as error:
            log.info("the question of an answer is gone: %s", error)
        except ChatError as error:
            log.warning("an answer could not be delivered: %s", error)
        return None

    async def _where_asked(self, kept: Unsent, shown: Shown, *, late: bool) -> tuple[Inbound, str] | None:
        client, held, text = self._client, kept.held, kept.held.text
        channel = asked_in = await channel_of(client, held.asked_in)
        with discord_errors():
            asked = await asked_in.fetch_message(int(held.asked_id))
        heard = await client.heard(asked, strict=True)
        if heard is None or not heard.author.allowed:
            return None
        if late and asked.guild is not None:
            try:
                await self._in_dm(kept, shown)
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
        half = await self._there(kept, channel, asked)
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

    async def _there(self, kept: Unsent, channel: "wire.Channel", asked: discord.Message) -> list[str]:
        """The ids of the messages that Discord has of an answer, oldest first. Raises ChatError."""
        apart, found = channel.id != asked.channel.id, set(map(int, kept.held.shown))
        history = channel.history(limit=MOST_LOOKED_AT, after=asked, oldest_first=True)
        with discord_errors():
            said = [one async for one in history if one.author == self._client.user and one.content.strip()]
        for one in said:
            to = one.reference.message_id if one.reference is not None else None
            known = to == asked.id or (to is None and (apart or len(one.content) >= _LONG))
            if known and one.content.strip() in kept.held.text:
                found.add(one.id)
        return [str(one) for one in sorted(found)]

    async def _in_dm(self, kept: Unsent, shown: Shown) -> None:
        """Send an answer to its person. Raises ChatError."""
        user_id, where = int(kept.user_id), kept.held.asked_in
        with discord_errors():
            person = self._client.get_user(user_id) or await self._client.fetch_user(user_id)
        place = f" in <#{where}>" if where else ""
        await in_dm(person, f"{IN_DM.format(place=place)}\n\n{kept.held.text}", shown)
