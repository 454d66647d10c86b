"""A conversation's past, read from Discord's history: the port `History`."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import discord

from discoclaw.bot import wire, words
from discoclaw.bot.voice import notes_behind, shows_words, words_in
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.bot.words import request_of
from discoclaw.core.message import Me, Place, Said
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.show.markup import NOTE
from discoclaw.work import step

PAGE: Final = 100
"""Messages read at once, the most that Discord gives."""


@dataclass(frozen=True, slots=True)
class Past:
    """Reads history with `client`; `owners` and `may_say` mark the lines' authors.

    `waits`: whether a message is still to be handled; `passed`: whether it was said where we were not to
    listen.
    """

    client: discord.Client
    may_say: Callable[[discord.Message], Awaitable[bool]]
    me: Callable[[], Me]
    owners: frozenset[str]
    redactor: Redactor = PLAIN
    waits: Callable[[discord.Message], bool] = lambda message: False
    passed: Callable[[discord.Message], bool] = lambda message: False

    async def pages(self, place: Place, message_id: str) -> AsyncGenerator[list[Said], None]:
        """The messages before `message_id`, newest page first, without commands and their answers.

        Our receipts and questions aren't talk either. What a voice message says is taken from our note below
        it. A thread that grew out of a message begins with that message. Raises ChatError.
        """
        noted: list[discord.Message] = []
        channel = await channel_of(self.client, place.channel_id)
        before = discord.Object(int(message_id))
        while True:
            with discord_errors():
                messages = [message async for message in channel.history(limit=PAGE, before=before)][::-1]
            last = len(messages) < PAGE
            before = discord.Object(messages[0].id) if messages else before
            if last and isinstance(channel, discord.Thread):
                with discord_errors():
                    messages = [*await _starter(channel, self.client.user), *messages]
            noted += filter(shows_words, messages)  # those of one voice message may be on two pages
            yield await self._talk(messages, words_in(noted, self.client.user))
            if last:
                return

    async def _talk(self, messages: Sequence[discord.Message], spoken: Mapping[int, str]) -> list[Said]:
        """The lines of talk among these messages; `spoken` are the words of voice messages.

        A voice message that is still being listened to is heard as soon as it has words.
        """
        me, clean = self.me(), self.redactor
        ours = [message.reference for message in messages if message.author == self.client.user]
        answered = {reference.message_id for reference in ours if reference is not None}
        texts = {message.id: words.text_of(message, me) for message in messages}
        asked = {key for key, text in texts.items() if text[:1] in ("!", "/") or request_of(text, me.name)}
        commands = {key for key, text in texts.items() if wire.is_command(text)} | (asked & answered)
        talk = [
            message
            for message in messages
            if wire.is_talk(message)
            and not self.passed(message)
            and message.id not in commands
            and not (message.reference is not None and message.reference.message_id in commands)
            # ours that is small print, or a card
            and not (
                message.author == self.client.user
                and (message.content.startswith(NOTE) or message.flags.components_v2)
            )
            and not (wire.is_voice(message) and message.id not in spoken and self.waits(message))
        ]
        authors = {wire.author_id(message): message for message in talk}
        known = await asyncio.gather(*map(self.may_say, authors.values()))
        guests = {author for author, allowed in zip(authors, known, strict=True) if not allowed}
        return _with_addressees(
            wire.said(
                message,
                me,
                owners=self.owners,
                guest=wire.author_id(message) in guests,
                redactor=clean,
                words=spoken.get(message.id, ""),
            )
            for message in talk
        )


async def newest_since(
    channel: "wire.Channel", oldest: int, most: int, also: Set[int]
) -> tuple[list[discord.Message], int]:
    """The `most` newest messages behind the id `oldest`, and those of `also`, oldest first.

    Also the id behind which every message that is still there was read. Raises ChatError.
    """
    found: dict[int, discord.Message] = {}
    with discord_errors():
        async for message in channel.history(limit=most):
            step()  # Discord may slow down whoever reads much
            if message.id <= oldest:
                break
            found[message.id] = message
        if len(found) >= most:
            oldest = min(found)
        for message_id in also - found.keys():
            with suppress(discord.NotFound):
                found[message_id] = await channel.fetch_message(message_id)
    return [found[message_id] for message_id in sorted(found)], oldest


def _with_addressees(talk: Iterable[Said]) -> list[Said]:
    """The lines; a long answer is several messages in a row, of which only the first is a reply.

    That is a guess, for messages of which nobody noted whom they were for.
    """
    found: list[Said] = []
    for said in talk:
        before = found[-1] if found else said
        if said.by_us and before.by_us and not said.of:
            said = replace(said, to_id=before.to_id, of=before.of, of_gone=before.of_gone)
        found.append(said)
    return found


async def starter_of(thread: discord.Thread) -> discord.Message | None:
    """The message that a thread grew out of; None if it grew out of none, or that is gone."""
    if not isinstance(thread.parent, discord.TextChannel):
        return None
    try:
        return thread.starter_message or await thread.parent.fetch_message(thread.id)
    except (discord.NotFound, discord.Forbidden):
        return None


async def _starter(thread: discord.Thread, me: discord.abc.User | None) -> list[discord.Message]:
    """The message a thread grew out of; a forum post's own first message is in the thread itself.

    Behind a voice message come the notes of `me` with its words, which stand where it does.
    """
    if (first := await starter_of(thread)) is None:
        return []
    voice = wire.is_voice(first)
    return [first, *(await notes_behind(first.channel, {first.id}, me) if voice else ())]
