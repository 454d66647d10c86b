"""The connection to Discord: who may speak, what is heard, and who is answered. `Door` is what is behind it.

Closed by default: with an empty allowlist nobody is answered. Messages are heard (they enter the window)
in allowed channels only; a thread goes by its parent.
"""

import asyncio
import hashlib
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast
from weakref import WeakValueDictionary

import discord
from discord import app_commands
from discord.ext import commands

from discoclaw.bot import gateway, voice, wire, words
from discoclaw.bot.access import Access, Elsewhere
from discoclaw.bot.deliver import Answer
from discoclaw.bot.gateway import Connected
from discoclaw.bot.layout import SILENT
from discoclaw.bot.pairing import Pairing
from discoclaw.bot.sending import Below
from discoclaw.bot.threads import OpenThreads
from discoclaw.bot.voice import Voices
from discoclaw.bot.wire import discord_errors
from discoclaw.bot.words import Request
from discoclaw.core.errors import ChatError
from discoclaw.core.message import Inbound, Me, Said
from discoclaw.core.ports import Hearer, Processes
from discoclaw.core.redact import Redactor
from discoclaw.core.shards import EVERY, Shards
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.live import LiveConfig
from discoclaw.session.archiving import Archiving
from discoclaw.session.deleted_messages import DeletedMessages, Edited
from discoclaw.session.delivery import Delivery
from discoclaw.session.talk import Talk
from discoclaw.session.turn import texts_about
from discoclaw.settings import Settings

log = logging.getLogger(__name__)


async def nothing_missed(message: Inbound) -> None:
    """Nothing is to be taken in before a message."""


@dataclass(frozen=True, slots=True)
class Door:
    """What is behind the client: the parts to which it hands what arrives from Discord.

    `pressed` takes what people press and the forms they send. A message may ask for what a command does
    (`request_of`), which is then `requested`. `hearers` hear of the gateway's sessions, `setup` runs after
    login, and `ready` whenever the servers of all shards are known; each in its order. `heard` is told of
    each message of somebody who may talk to us. `missed` is awaited before a message is taken in, and takes
    in what was missed before it.
    """

    talk: Talk
    delivery: Delivery
    deleted_messages: DeletedMessages
    voices: Voices
    archiving: Archiving
    request_of: Callable[[Inbound], Request | None]
    requested: Callable[[discord.Message, Request], Awaitable[None]]
    pressed: Callable[[discord.Interaction[Any]], Awaitable[None]]
    hearers: tuple[Hearer, ...]
    setup: tuple[Callable[[], Awaitable[None]], ...]
    ready: tuple[Callable[[], Awaitable[None]], ...]
    heard: tuple[Callable[[Inbound], None], ...]
    missed: Callable[[Inbound], Awaitable[None]]


class DiscoClaw(commands.Bot):
    """The connection to Discord. What arrives goes through the door, which `open` opens before it starts."""

    shards_served: Shards = EVERY
    """The shards whose events come to this client; `sharded` has a client for several."""

    def __init__(
        self, settings: Settings, redactor: Redactor, live: LiveConfig, cursors: Cursors, processes: Processes
    ) -> None:
        """`live` says where to listen; in `cursors`, processes tell each other of their servers."""
        intents = discord.Intents.none()
        intents.guilds = intents.messages = intents.message_content = True
        # We have no voice; without this, each start warns of its missing libraries.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        super().__init__(
            command_prefix=_prefix,
            help_command=None,
            intents=intents,
            allowed_mentions=SILENT,
            case_insensitive=True,
        )
        self.threads = OpenThreads(self)
        self.add_listener(self.threads.on_raw_message_delete)
        self.add_listener(self.threads.on_raw_bulk_message_delete)
        self._faults = gateway.Faults()
        gateway.guard(self._connection.parsers, self._faults)
        self.settings = settings
        self.redactor = redactor
        self.processes = processes
        self.elsewhere = Elsewhere(self, settings.allowlist, cursors)
        self.access = Access(settings.allowlist, self, live, self.elsewhere)
        self.connected = Connected()
        self._in_order: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self.pairing = Pairing(settings.token.get_secret_value() if settings.token is not None else "")

    def open(self, door: Door) -> None:
        """Hand what arrives to the parts behind a door. Called once, before the client logs in."""
        self.door = door
        self.talk, self.delivery, self.deleted_messages = door.talk, door.delivery, door.deleted_messages
        self.voices = door.voices
        self.sessions = Sessions((self.connected, self.elsewhere, *door.hearers))

    def me(self) -> Me:
        """Ourselves. Raises RuntimeError before we are logged in."""
        if self.user is None:
            raise RuntimeError("not logged in yet")
        return Me(str(self.user.id), self.user.display_name)

    async def connect(self, *, reconnect: bool = True) -> None:
        """Stay connected until the client is closed, whatever the gateway sends."""
        await gateway.stay_connected(self, partial(super().connect, reconnect=reconnect))

    async def on_error(self, event_method: str, /, *_args: object, **_named: object) -> None:
        """A handler failed: one traceback in the log, and not one for each of a flood of bad events."""
        self._faults.bad(event_method, sys.exc_info()[1], ours=True)

    async def setup_hook(self) -> None:
        for hook in self.door.setup:
            await hook()

    async def claims(self, interaction: discord.Interaction[Any]) -> bool:
        """Whether this process is to do what a command or a press asks for, and not another one.

        What others changed of what that reads is dropped, as with a message.
        """
        return await self.processes.claim(str(interaction.id), texts_about(str(interaction.user.id)))

    async def answers(self, message_id: int) -> bool:
        """Whether this process is still to answer a text command. See `Turn.keep`, as for a turn."""
        return self.processes.in_touch or await self.processes.claim(str(message_id))

    async def look(self, interaction: discord.Interaction[Any]) -> None:
        """Bring this process up to date before it shows something: a form, or what completes a command."""
        await self.processes.look(texts_about(str(interaction.user.id)))

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        await self.door.pressed(interaction)

    async def on_ready(self) -> None:
        await self.greet()
        await self.sessions.ready(EVERY)

    async def greet(self) -> None:
        """Say in the log who and where we are, and tell all who waited for that."""
        log.info("logged in as %s, in %d servers", self.user, len(self.guilds))
        if self.access.allowlist.closed:
            log.warning(
                "the allowlist is empty, so nobody is answered: "
                "set DISCORD_ALLOW_USER_IDS or DISCORD_ALLOW_ROLE_IDS, or run `discoclaw pair`"
            )
        self.talk.listener.windows.reopen()  # a later READY means a gap that Discord does not fill
        for hook in self.door.ready:
            await hook()

    async def on_connect(self) -> None:
        self.sessions.began(EVERY)

    async def on_resumed(self) -> None:
        self.sessions.resumed(EVERY)

    async def on_disconnect(self) -> None:
        self.connected.lost(EVERY)

    async def hang_up(self) -> None:
        """Receive nothing more, though answers may still be sent. `connect` was given up before."""

    async def on_message(self, message: discord.Message) -> None:
        """Hear a message of a channel we listen to; a text command goes to the commands instead."""
        if (heard := await self._taken(message)) is None:
            return
        if self.access.allowlist.closed and heard.mentions_us:
            await self.pairing.answer(message)
        # A recording takes its time. If we end meanwhile, the message was not handled, and is read again.
        spoken = await self.voices.listen(message, heard)
        try:
            if await self.is_command(heard):  # and not what was spoken: commands are typed
                await self.carry_out(message, heard)
            elif spoken.told:
                await self.talk.hear(spoken.message)
            else:
                await self.talk.receive(spoken.message, partial(self.answer, message))
        finally:
            self.talk.inboxes.heard(heard.session_key, heard.id)

    async def _taken(self, message: discord.Message) -> Inbound | None:
        """A message as the parts inside know it. None if it is not to be handled, or was before.

        Messages of a channel are taken in one after another, each after what was missed there before it.
        """
        assert self.user is not None
        async with self._in_order.setdefault(message.channel.id, asyncio.Lock()):
            heard = await self.heard(message)
            if heard is None:
                place = wire.place_of(message.channel)
                if message.author.id != self.user.id and self.access.deaf(place):
                    # else it would be read once we listen again
                    self.talk.inboxes.pass_over(place, wire.session_key(message), [message.id])
                return None
            await self.door.missed(heard)
            first = await self.talk.first_time(heard)
            # Once we can answer nobody any more, it stays unhandled: the next start reads it again.
            return heard if first and not self.is_closed() else None

    async def heard(self, message: discord.Message, *, strict: bool = False) -> Inbound | None:
        """A message as the parts inside know it. None if it is ours, or no talk that we listen to.

        With `strict` it raises ChatUnavailable when Discord cannot say who its author is.
        """
        assert self.user is not None
        if message.author.id == self.user.id or not wire.is_talk(message):
            return None
        await self.access.refresh()
        place, owners = wire.place_of(message.channel, self.redactor), self.settings.owners
        if not self.access.listens(place):
            return None
        may_talk = await self.access.may_say(message, strict=strict)
        heard = wire.inbound(
            message, self.user, place, owners=owners, may_talk=may_talk, redactor=self.redactor
        )
        if may_talk:
            for hook in self.door.heard:
                hook(heard)
        # It may reply to a voice message, or to our note below one. Its words are looked for in the talk, and
        # then in the channel. Without them, nothing is quoted.
        original = message.reference.resolved if message.reference is not None else None
        if heard.quoted is None or not isinstance(original, discord.Message):
            return heard
        if (voice_id := voice.voice_id(original, self.user)) is None:
            return heard
        recent = self.talk.listener.windows.recent(heard.session_key)
        said = next((one for one in recent if one.id == str(voice_id)), None)
        try:
            said = said or await self.meant_by(original)
        except ChatError as error:
            log.info("a voice message that somebody replies to is not quoted: %s", error)
            return replace(heard, quoted=None)
        return replace(heard, quoted=said)

    async def is_command(self, heard: Inbound) -> bool:
        """Whether a message is a text command, or asks us in a few plain words for what one does."""
        if not self.settings.commands_enabled or wire.is_command(heard.text):
            return self.settings.commands_enabled
        about_another = heard.attachments or (heard.quoted is not None and not heard.quoted.by_us)
        if about_another or self.door.request_of(heard) is None:
            return False
        return await self.talk.takes_requests(heard)

    async def carry_out(self, message: discord.Message, heard: Inbound) -> None:
        """Carry out a text command, if its author may talk to us."""
        if not heard.author.allowed:
            return
        if wire.is_command(heard.text):
            await self.process_commands(message)
        elif (asked := self.door.request_of(heard)) is not None:
            await self.door.requested(message, asked)

    def answer(
        self,
        message: discord.Message,
        shown: Callable[[str, str], None],
        half: Sequence[str] = (),
        below: Below | None = None,
        within: discord.Thread | None = None,
        turn_id: str = "",
        anew: bool = True,
    ) -> Answer:
        """Begin the answer to a message; see `Answer`. `below`: the buttons, if not those of a message.

        `within`: the thread that grew out of the message, if the answer goes on there.
        """
        whose, asked_id = wire.author_id(message), str(message.id)
        buttons = (below or Below(whose, asked_id, asked_id)) if self.settings.answer_buttons else None
        pace_s = self.settings.edit_interval_s
        answer = Answer(message, self.threads, pace_s, shown, half, buttons, turn_id, anew)
        if within is not None:
            answer.be_in(within, half)
        answer.start()
        return answer

    # Raw events: the others come only for messages discord.py still has in its cache.

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        message = payload.message
        if self.user is None or message.author.id == self.user.id or not wire.is_talk(message):
            return
        before = payload.cached_message
        self.amend(message, before)
        if before is not None and wire.is_talk(before) and before.content != message.content:
            await self.threads.edited(message, self.said(before).text, self.said(message).text)

    def amend(self, message: discord.Message, before: discord.Message | None = None) -> None:
        """Take over an edit; `before` is the message as it was, if that is known.

        Also where we don't listen: somebody may have chosen that the message is remembered.
        """
        if wire.is_voice(message):
            return  # nobody can edit a recording, and its words are not in the message
        if wire.is_webhook(message):
            return  # an edit is found by the message's id alone, and might change somebody's words
        before = before if before is not None and wire.is_talk(before) else None
        old = self.said(before).text if before is not None else None
        now, key = self.said(message), wire.session_key(message)
        same = before is not None and words.written(before) == words.written(message)
        if message.edited_at is None or same:  # Discord added a preview or votes: nobody took anything back
            if old != now.text:
                self.talk.listener.amend(now, key)
            return
        place = wire.place_of(message.channel, self.redactor)
        self.deleted_messages.edited(Edited(now, place, key, partial(self._hears, message)), old)

    async def _hears(self, message: discord.Message) -> bool:
        return self.listens(message.channel) and await self.access.may_say(message)

    def said(self, message: discord.Message) -> Said:
        """A message as a line of the talk; whether its author may talk to us is not asked."""
        owners, clean = self.settings.owners, self.redactor
        return wire.said(message, self.me(), owners=owners, guest=False, redactor=clean)

    async def meant_by(self, message: discord.Message) -> Said:
        """The message that somebody means who points at `message`, with its words. Raises ChatError."""
        voice_id = voice.voice_id(message, self.user)
        if voice_id not in (None, message.id):
            with discord_errors():
                message = await message.channel.fetch_message(voice_id)
        return wire.said(
            message,
            self.me(),
            owners=self.settings.owners,
            guest=not await self.access.may_say(message),
            redactor=self.redactor,
            words=await voice.words_below(message, self.user),
        )

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        known = [payload.cached_message] if payload.cached_message is not None else []
        await self._gone(payload.channel_id, {payload.message_id}, known)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        await self._gone(payload.channel_id, payload.message_ids, payload.cached_messages)

    async def _gone(self, channel_id: int, message_ids: set[int], known: Sequence[discord.Message]) -> None:
        """Messages were deleted, maybe where we don't listen: what rests on them alone is taken back."""
        channel = self.get_channel(channel_id)
        key, heard = None, True  # a DM is known by its person, and Discord names only the channel
        if isinstance(channel, discord.Thread | discord.abc.GuildChannel):
            place = wire.place_of(cast("wire.Channel", channel))
            key, heard = place.session_key(""), self.access.listens(place)
        said = [self.said(one) for one in known if wire.is_talk(one) and not wire.is_voice(one)]
        commands = {one.id for one in said if wire.is_command(one.text)}
        talk = [one for one in map(str, message_ids) if one not in commands]
        self.deleted_messages.deleted(talk, str(channel_id), key, said)
        if heard:
            await self.voices.remove_notes(channel_id, message_ids, known)

    async def on_thread_create(self, thread: discord.Thread) -> None:
        """Join threads of channels we listen to: without that, Discord tells us little of private ones."""
        if self.listens(thread):
            try:
                with discord_errors():
                    await thread.join()
            except ChatError as error:
                log.info("the thread %s could not be joined: %s", thread.id, error)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        """The archive follows when a channel is deleted."""
        await self.door.archiving.forget_channel(str(channel.id))

    async def on_raw_thread_delete(self, payload: discord.RawThreadDeleteEvent) -> None:
        """The archive follows when a thread is deleted."""
        await self.door.archiving.forget_channel(str(payload.thread_id))

    def waits(self, message: discord.Message) -> bool:
        """Whether a message is still to be handled, or is being handled."""
        return self.talk.inboxes.waits(wire.session_key(message), message.id)

    def passed(self, message: discord.Message) -> bool:
        """Whether a message was said where we were not to listen."""
        return self.talk.inboxes.passed(wire.session_key(message), message.id)

    def listens(self, channel: "wire.Channel | discord.Thread") -> bool:
        """Whether we hear what is said in a channel."""
        return self.access.listens(wire.place_of(channel))


def _prefix(_client: commands.Bot, message: discord.Message) -> str:
    """`!` or `/` and all before it, which is our mention at most: `wire.is_command` has made sure of that."""
    found = wire.COMMAND.search(message.content)
    return message.content[: found.start() + 1] if found is not None else "!"


class Sessions(Hearer):
    """All who hear of the sessions, as one."""

    def __init__(self, hearers: tuple[Hearer, ...]) -> None:
        self._hearers = hearers

    def began(self, shards: Shards) -> None:
        for hearer in self._hearers:
            hearer.began(shards)

    async def ready(self, shards: Shards) -> None:
        for hearer in self._hearers:
            await hearer.ready(shards)

    def resumed(self, shards: Shards) -> None:
        for hearer in self._hearers:
            hearer.resumed(shards)


# ----------------------------------------------------------------------
# Slash commands are sent to Discord only when they changed: syncing at every start meets a rate limit.

CURSOR = "slash-commands"


async def sync_if_changed(tree: app_commands.CommandTree[Any], cursors: Cursors) -> bool:
    """Sync when our commands differ from those last synced, or Discord no longer has them.

    Returns whether it synced. A failure is a warning: text commands work without it.
    """
    local = [command.to_dict(tree) for command in tree.get_commands()]
    digest = hashlib.sha256(json.dumps(local, sort_keys=True, default=str).encode()).hexdigest()
    known = await cursors.get(CURSOR)
    try:
        with discord_errors():
            remote = {(command.name, command.type) for command in await tree.fetch_commands()}
            here = {(command["name"], discord.AppCommandType(command["type"])) for command in local}
            if known.get("sha256") == digest and remote == here:
                return False
            await tree.sync()
    except ChatError as error:
        log.warning("slash commands could not be synced: %s", error)
        return False
    await cursors.put(CURSOR, {"sha256": digest})
    log.info("slash commands were synced with Discord")
    return True
