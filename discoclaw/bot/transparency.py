"""The transparency channel: one pinned message a person, edited in place, showing what is remembered.

A mirror that follows the ledger; it may lag or fail, and nothing else notices. Private items are not shown,
nor the summary of a place that not all who read the channel can read, and of people who want no memory
nothing is. Of somebody whose memory was erased the message is deleted, which is a step of the erasing: it is
done again until it succeeds.
When a summary is purged, every message that shows one is renewed; the cursor `transparency-renewals` says
how often that was `wanted` and `done`.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress

import discord

from discoclaw.bot import wire
from discoclaw.bot.access import knows_all
from discoclaw.bot.layout import SILENT
from discoclaw.bot.wire import discord_errors
from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import ChatError, ChatGone
from discoclaw.core.message import Inbound
from discoclaw.core.purge import Derived, Outcome, Phase, Purge
from discoclaw.core.subject import BOT, person_of, user_of, user_subject
from discoclaw.core.text import clip, speaker, utf16_length
from discoclaw.core.view import View
from discoclaw.core.yours import named
from discoclaw.memory.changes import Listener
from discoclaw.memory.conversations.rolling import NOTHING, NoSummaries, Rolling, RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.markup import ago, plain, words
from discoclaw.show.words import count

log = logging.getLogger(__name__)

CURSOR = "transparency"
"""The cursor that notes which message is about whom; also the name of this step of an erasing."""
RENEWALS = "transparency-renewals"
MOST_MESSAGES = 5_000
"""How many messages of the channel are looked through for what an erased person left."""
TextPlace = discord.TextChannel | discord.Thread | discord.VoiceChannel


class Transparency(Derived, Listener):
    """Mirrors subjects into the channel `channel_id`; which message is about whom is kept in `cursors`."""

    name = "transparency messages"

    def __init__(
        self,
        client: discord.Client,
        channel_id: str,
        memory: Memory,
        rolling: RollingMemory | NoSummaries,
        cursors: Cursors,
        consent: Consent = UNLIMITED,
    ) -> None:
        self._consent = consent
        self._client = client
        self._channel_id = int(channel_id)
        self._memory = memory
        self._rolling = rolling
        self._cursors = cursors
        self._talked_in: dict[str, tuple[str, str]] = {}
        self._names: dict[str, str] = {}
        self._one = asyncio.Lock()
        self.follower = Follower("transparency", self.mirror, ledgers=memory.ledgers, cursors=cursors)
        """Has `mirror` called for a subject, soon and until it succeeds."""

    async def catch_up(self) -> None:
        """Have everything mirrored that is due: Discord can be reached."""
        for subject in self._memory.pending_erasures(CURSOR):
            self.follower.touch(subject)  # its message still has to be deleted
        if await self.has_renewals():
            self.follower.touch(BOT)
        await self.follower.catch_up()

    def heard(self, message: Inbound) -> None:
        """Note where a person last talked with us in public: the summary of that place is shown with them."""
        self._names[message.author.id] = message.author.name
        if not message.place.private:
            self._talked_in[message.author.id] = (message.session_key, f"#{message.place.name}")

    def outside(self, subject: str) -> Collection[str]:
        return (CURSOR,)

    def chosen(self, user_id: str) -> None:
        self.follower.touch(user_subject(user_id))

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        return self._renew(purge) if phase == "disk" and not purge.erases else None

    async def _renew(self, purge: Purge) -> None:
        """Have the messages with summaries renewed if the summary of an open conversation is purged."""
        for key in sorted(purge.sessions):
            if person_of(key) is None and (await self._cursors.get(f"summary-{key}")).get("again"):
                await self._cursors.update(RENEWALS, lambda now: {**now, "wanted": _times(now, "wanted") + 1})
                self.follower.touch(BOT)  # nobody's own message: what is due is done with whatever comes next
                break

    async def has_renewals(self) -> bool:
        """Whether messages have to be renewed."""
        known = await self._cursors.get(RENEWALS)
        return _times(known, "wanted") > _times(known, "done")

    async def mirror(self, subject: str) -> None:
        """Bring one person's message up to date, and what is due for renewal.

        Raises ChatError or MemoryFault when that fails.
        """
        await self._mirror(subject)
        if await self.has_renewals():
            wanted = _times(await self._cursors.get(RENEWALS), "wanted")
            with discord_errors():
                shown = [message async for message in self._ours(await self._channel())]
            for message, person in shown:
                if has_summary(message.content):
                    await self._mirror(user_subject(person))
            await self._cursors.update(RENEWALS, lambda now: {**now, "done": wanted})

    async def _mirror(self, subject: str) -> None:
        """Bring one person's message up to date. Raises ChatError or MemoryFault when that fails."""
        user_id = user_of(subject)
        if user_id is None:
            return
        if subject in self._memory.pending_erasures(CURSOR):
            await self.remove(subject)
        async with self._one:
            view = await self._memory.view(subject)
            known = await self._cursors.get(CURSOR)
            if not view.commits and user_id not in known and self._memory.erased_at(subject) >= 0:
                return  # who was erased is not shown again before there is something to show
            if user_id not in self._names:
                user = self._client.get_user(int(user_id)) if user_id.isdigit() else None
                if user is None and user_id.isdigit() and not knows_all(self._client):
                    with suppress(ChatError), discord_errors():
                        user = await self._client.fetch_user(int(user_id))
                self._names[user_id] = user.display_name if user is not None else "someone"
            name = plain(speaker(self._names[user_id]))
            opted_out = self._consent.opted_out(user_id)
            if opted_out and user_id not in known:
                return
            with discord_errors():
                channel = await self._channel()
            # The summary of where they last talked, if all who read the channel can read that place.
            key, place = self._talked_in.get(user_id, ("", ""))
            there = self._client.get_channel(int(key.rpartition(":")[2])) if key else None
            may = isinstance(there, wire.GuildPlace) and wire.all_read(channel, there)
            rolling = await self._rolling.get(key) if may else NOTHING
            text = snapshot(name, user_id, view, rolling, place)
            if opted_out:
                text = nothing_of(name, user_id)
            with discord_errors():
                message_id = await self._show(channel, user_id, known.get(user_id), text)
            if known.get(user_id) != message_id:
                await self._cursors.update(CURSOR, lambda now: {**now, user_id: message_id})

    async def remove(self, subject: str) -> None:
        """Delete the message of somebody whose memory was erased, and what others' messages show of them.

        Raises ChatError when Discord fails, and MemoryFault; then it is to be done again.
        """
        user_id = user_of(subject)
        if user_id is None:
            return
        async with self._one:
            known = (await self._cursors.get(CURSOR)).get(user_id)
            with discord_errors():
                with_summaries = await self._delete(user_id, known if isinstance(known, str) else "")
            self._talked_in.pop(user_id, None)
            self._names.pop(user_id, None)
            if known is not None:
                await self._cursors.update(
                    CURSOR, lambda now: {key: note for key, note in now.items() if key != user_id}
                )
        # Conversations the person took part in have no summary any more; others' messages still show it.
        for other in with_summaries:
            await self.mirror(user_subject(other))
        await self._memory.finish_step(subject, CURSOR)

    async def _delete(self, user_id: str, known: str) -> set[str]:
        """Delete every message about a person. Returns whose messages show the summary of a conversation."""
        try:
            channel = await self._channel()
        except discord.NotFound:
            log.warning("the transparency channel %s is gone, and what it showed with it", self._channel_id)
            return set()
        if known.isdigit():
            await _delete(channel.get_partial_message(int(known)))
        with_summaries: set[str] = set()
        async for message, person in self._ours(channel):
            if person == user_id:
                await _delete(message)
            elif has_summary(message.content):
                with_summaries.add(person)
        return with_summaries

    async def _ours(self, channel: TextPlace) -> AsyncIterator[tuple[discord.Message, str]]:
        """Our messages in the channel and whom (user id) each is about, also those we lost the note of."""
        async for message in channel.history(limit=MOST_MESSAGES):
            person = about(message.content) if message.author == self._client.user else None
            if person is not None:
                yield message, person

    async def _channel(self) -> TextPlace:
        known = self._client.get_channel(self._channel_id)
        channel = known or await self._client.fetch_channel(self._channel_id)
        if not isinstance(channel, TextPlace):
            raise ChatGone(f"DISCOCLAW_MEMORY_CHANNEL_ID={self._channel_id} isn't a channel for messages")
        return channel

    async def _show(self, channel: TextPlace, user_id: str, known: object, text: str) -> str:
        """Edit the person's message, or send and pin a new one. Returns its id."""
        if known is None:
            known = await self._pinned(channel, user_id)
        if isinstance(known, str) and known.isdigit():
            try:
                await channel.get_partial_message(int(known)).edit(content=text, allowed_mentions=SILENT)
                return known
            except discord.NotFound:
                log.info("a message of the transparency channel is gone; a new one is made")
        sent = await channel.send(text, allowed_mentions=SILENT)
        try:
            with discord_errors():
                await sent.pin()
        except ChatError as error:
            log.warning("a message of the transparency channel could not be pinned: %s", error)
        return str(sent.id)

    async def _pinned(self, channel: TextPlace, user_id: str) -> str | None:
        """A message of ours about the person that is pinned there, from before our notes were lost."""
        async for message in channel.pins():
            if message.author == self._client.user and about(message.content) == user_id:
                return str(message.id)
        return None


async def _delete(message: discord.PartialMessage | discord.Message) -> None:
    try:
        await message.delete()
    except discord.NotFound:
        log.info("a message of the transparency channel is gone already")


def _times(notes: Mapping[str, object], name: str) -> int:
    value = notes.get(name)
    return value if isinstance(value, int) else 0


# ---------------------------------------------------------------------- what a message shows

_ABOUT = re.compile(r"\*\*Memory of .*\((\d+)\)")
_SUMMARIES = ("**Summary of the conversation** (", "**Conversation memory** (")
"""How the part with a summary begins: now, and in messages of older versions."""


def snapshot(name: str, user_id: str, view: View, rolling: Rolling, place: str, *, limit: int = 2000) -> str:
    """A person's memory, at most `limit` UTF-16 units: only what may be shown to anybody.

    When there is no room for all, the newest items stay and the summary is cut to what half of the message
    leaves it.
    """
    items = [item for item in view.active() if item.facets.sensitivity == "normal"]
    items.sort(key=lambda item: -item.updated_at)
    changed = f"updated {ago(view.updated_at)}" if view.updated_at else "no changes yet"
    head = [f"**Memory of {name}** ({user_id})", changed, ""]
    head.append("**What I remember**")
    lines = [
        f"- [{item.kind}] {words(named(item.text, name))} (updated {ago(item.updated_at)})" for item in items
    ]
    tail: list[str] = []
    if rolling.summary:
        tail = ["", f"{_SUMMARIES[0]}{place}, updated {ago(rolling.updated_at)})"]
        used = _size([*head, *tail]) + min(_size(lines), limit // 2)
        tail.append(clip(rolling.summary, max(0, limit - used - 60)))
    room = limit - _size(head) - _size(tail) - utf16_length(_more(len(lines))) - 1
    kept = 0
    while kept < len(lines) and (room := room - utf16_length(lines[kept]) - 1) >= 0:
        kept += 1
    more = [_more(len(lines) - kept)] if kept < len(lines) else []
    return "\n".join([*head, *(lines[:kept] if lines else ["nothing yet"]), *tail, *more])


def nothing_of(name: str, user_id: str) -> str:
    """The channel's message about somebody who wants no memory."""
    return f"**Memory of {name}** ({user_id})\nwants no memory: I learn and use nothing"


def about(content: str) -> str | None:
    """The user id of whom a message of the channel is about; None for any other message."""
    found = _ABOUT.fullmatch(content.partition("\n")[0])
    return found[1] if found is not None else None


def has_summary(content: str) -> bool:
    """Whether a message of the channel shows the summary of a conversation."""
    return any(summary in content for summary in _SUMMARIES)


def _more(number: int) -> str:
    return f"(and {count(number, 'more memory')})"


def _size(lines: Sequence[str]) -> int:
    return sum(utf16_length(line) + 1 for line in lines)
