"""Threads that we open for answers: opened below the question, renamed, and found again.

Discord gives a thread that grows out of a message that message's id. A thread whose name may tell what
somebody took back gets another one, soon after.
Knows nothing about what is said in them.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Any, Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.past import starter_of
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, ChatUnavailable
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.session.delivery import renamed
from discoclaw.work import Background, Worker

log = logging.getLogger(__name__)

FORGOTTEN = "Forgotten question"
"""The name of a thread whose name would tell what its person took back, or who was erased."""
DELETED = "Deleted question"
"""The name of a thread whose question was deleted: its first name, or its title, would still tell it."""
WITHIN_S: Final = 5.0
"""The longest an answer waits for its thread. discord.py itself waits for as long as Discord limits it."""
MOST_LOOKED_AT: Final = 10
"""The first messages of a thread among which is our answer to the message that it grew out of."""
MOST_ASKED: Final = 10
"""The most deleted messages below which Discord is asked for archived threads. A purge has more."""


class OpenThreads(Background, Derived):
    """The port `Threads`, and what the answers need to open one.

    `told`: channels where it was said that there are none. What is not renamed at the end keeps its name.
    """

    name = "names of threads"

    def __init__(self, client: discord.Client) -> None:
        self.client = client
        self.told: set[int] = set()
        self._taken_back: dict[str, list[Purge]] = {}
        self._worker = Worker("names of threads", self._rename_taken_back)

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Rename the threads that grew out of what somebody took back, and those that name it.

        Where they are erased, those that we opened for their questions.
        """
        if phase == ("ram" if purge.erases else "disk") and not purge.alone:  # such a thread has its name
            self._look_at(purge)

    def _look_at(self, purge: Purge) -> None:
        for thread_id in {one.removeprefix("discord:thread:") for one in (*purge.sessions, *purge.messages)}:
            if thread_id.isdigit():
                self._taken_back.setdefault(thread_id, []).append(purge)
                self._worker.note(thread_id)

    async def _rename_taken_back(self, thread_id: str) -> None:
        """Rename a thread of ours if its name may tell what was taken back. Raises ChatUnavailable."""
        taken = self._taken_back.get(thread_id, [])
        try:
            thread = await self._ours(int(thread_id), ask=True)
            if thread is not None and await self._may_tell(thread, taken):
                await _name(thread, FORGOTTEN)
        except (ChatForbidden, ChatGone) as error:
            log.info("the thread %s keeps its name: %s", thread_id, error)
        self._taken_back[thread_id] = [one for one in self._taken_back[thread_id] if one not in taken]
        if not self._taken_back[thread_id]:
            del self._taken_back[thread_id]

    async def _may_tell(self, thread: discord.Thread, taken: Iterable[Purge]) -> bool:
        """Whether a thread's name may tell any of this, by its question or its words. Raises ChatError."""
        if thread.name in (DELETED, FORGOTTEN):
            return False
        with discord_errors():
            asked = await starter_of(thread)
        whose = wire.author_id(asked) if asked is not None else ""
        return any(
            str(thread.id) in one.messages
            or (whose == one.user_id != "" and (one.everything or one.words.hold(thread.name)))
            for one in taken
        )

    async def open(self, message: discord.Message, name: str) -> discord.Thread:
        """The thread below a message; a new one unless there is one. Raises ChatError."""
        try:
            async with asyncio.timeout(WITHIN_S):
                if (thread := await self.below(message)) is not None:
                    return thread
                if not isinstance(message.channel, discord.TextChannel):
                    raise ChatForbidden("there are no threads in a channel of this kind")
                with discord_errors():
                    return await message.create_thread(name=name)
        except TimeoutError:
            raise ChatUnavailable(f"Discord opened no thread within {WITHIN_S:g} s") from None

    async def below(self, message: discord.Message) -> discord.Thread | None:
        """The thread that grew out of a message, if one did. Raises ChatError."""
        if message.guild is None:
            return None
        if (known := message.guild.get_thread(message.id)) is not None:
            return known
        if not message.flags.has_thread:
            return None
        try:
            with discord_errors():
                found: Any = await message.guild.fetch_channel(message.id)
        except ChatGone:
            return None
        return found if isinstance(found, discord.Thread) else None

    async def answer_below(self, message: discord.Message) -> list[str]:
        """Our messages at the beginning of the thread that we opened below one. Raises ChatUnavailable."""
        try:
            thread, user = await self.below(message), self.client.user
            if thread is None or user is None or thread.owner_id != user.id:
                return []
            with discord_errors():
                said = [one async for one in thread.history(limit=MOST_LOOKED_AT, oldest_first=True)]
        except (ChatForbidden, ChatGone) as error:
            log.info("the thread below %s cannot be read: %s", message.id, error)
            return []
        return [str(one.id) for one in said if wire.is_talk(one) and one.author.id == user.id]

    async def rename(self, thread_id: str, before: str, after: str) -> None:
        """Rename a thread unless somebody has renamed it. Raises ChatError."""
        with discord_errors():
            thread = await self.client.fetch_channel(int(thread_id))
            if isinstance(thread, discord.Thread) and thread.name == before:
                await thread.edit(name=after)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """A question was deleted, unless it was said in a direct message."""
        if payload.guild_id is not None:
            await self.deleted(
                [payload.message_id], [payload.cached_message] if payload.cached_message else []
            )

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        """Questions were deleted at once."""
        await self.deleted(payload.message_ids, payload.cached_messages)

    async def deleted(self, message_ids: Collection[int], known: Collection[discord.Message] = ()) -> None:
        """Questions were deleted: the threads that we opened below them no longer tell what they were."""
        bare = {one.id for one in known if _is_bare(one)}
        for message_id in message_ids:
            ask = len(message_ids) <= MOST_ASKED and message_id not in bare
            try:
                if (thread := await self._ours(message_id, ask=ask)) is not None and thread.name != DELETED:
                    await _name(thread, DELETED)
            except ChatError as error:
                log.info("the thread %s of a deleted question keeps its name: %s", message_id, error)

    async def edited(self, message: discord.Message, before: str, now: str) -> None:
        """A question was edited: the thread that we opened below it doesn't tell what it no longer says."""
        try:
            thread = await self._ours(message.id, ask=message.flags.has_thread)
            if thread is None:
                return
            name = renamed(thread.name, before, now, message.author.display_name)
            if name is not None:
                await _name(thread, name)
        except ChatError as error:
            log.info("the thread %s of an edited question keeps its name: %s", message.id, error)

    async def _ours(self, message_id: int, *, ask: bool) -> discord.Thread | None:
        """The thread that we opened below a message; `ask` about an archived one. Raises ChatError."""
        found: Any = self.client.get_channel(message_id)
        if found is None and ask:
            try:
                with discord_errors():
                    found = await self.client.fetch_channel(message_id)
            except (ChatGone, discord.InvalidData):
                return None
        user = self.client.user
        ours = isinstance(found, discord.Thread) and user is not None and found.owner_id == user.id
        return found if ours else None


def _is_bare(message: discord.Message) -> bool:
    """Whether no thread is below a message, as its flags tell. Those of a malformed one tell nothing."""
    told = isinstance(message.flags.value, int)
    return told and not message.flags.has_thread


async def _name(thread: discord.Thread, name: str) -> None:
    """Name a thread; an archived one has to be opened for that. Raises ChatError."""
    with discord_errors():
        if not thread.archived:
            await thread.edit(name=name)
            return
        await thread.edit(name=name, archived=False)
        await thread.edit(archived=True)
