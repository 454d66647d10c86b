"""What can happen in the loopback Discord: every act changes the world and tells the gateway sessions.

The bot acts through REST and the users through the test, but both come here, so that an event looks the same
whoever caused it.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from tests.servers.discord_gateway import (
    DIRECT_MESSAGES,
    DIRECT_REACTIONS,
    GUILD_MESSAGES,
    GUILD_REACTIONS,
    GUILDS,
    Gateway,
)
from tests.servers.discord_payloads import gateway_message
from tests.servers.discord_things import (
    DEFAULT,
    PINS_ADD,
    PUBLIC_THREAD,
    REPLY,
    THREAD_CREATED,
    THREAD_STARTER,
    Attachment,
    Channel,
    Json,
    Message,
    User,
)
from tests.servers.discord_world import World


class Acts:
    """The changes of one world, each with its gateway event."""

    def __init__(self, world: World, gateway: Gateway) -> None:
        self._world = world
        self._gateway = gateway
        self.cdn_base = ""  # known once the port is
        self.attachments: dict[int, Attachment] = {}

    def attach(
        self, channel: Channel, filename: str, data: bytes, description: str | None = None
    ) -> Attachment:
        """Keeps an uploaded file, to be served under its url."""
        made = self._world.snowflake()
        url = f"{self.cdn_base}/attachments/{channel.id}/{made}/{quote(filename)}"
        kind = mimetypes.guess_type(filename)[0] or "application/octet-stream"
        self.attachments[made] = Attachment(made, filename, data, url, kind, description)
        return self.attachments[made]

    def whisper(self, channel: Channel, author: User, content: str, **fields: Any) -> Message:
        """A new message that is in no channel and no event, as an ephemeral one."""
        place = self._world.next_change()
        made = self._world.snowflake()
        message = Message(made, channel, author, content, created=place, changed=place, **fields)
        message.versions.append(content)
        return message

    def post(self, channel: Channel, author: User, content: str, **fields: Any) -> Message:
        """A new message: MESSAGE_CREATE."""
        if fields.get("reply_to") is not None:
            fields.setdefault("type", REPLY)
        message = self.whisper(channel, author, content, **fields)
        channel.messages[message.id] = message
        self._tell("MESSAGE_CREATE", channel, gateway_message(self._world, message))
        return message

    def edit(self, message: Message, **fields: Any) -> None:
        """New content, embeds, attachments .. of a message: MESSAGE_UPDATE with an edit time."""
        for name, value in fields.items():
            setattr(message, name, value)
        message.edited_at = datetime.now(UTC)
        message.changed = self._world.next_change()
        message.versions.append(message.content)
        self._updated(message)

    def delete(self, message: Message) -> None:
        message.deleted = True
        del message.channel.messages[message.id]
        ids = {"id": str(message.id), "channel_id": str(message.channel.id)}
        self._tell("MESSAGE_DELETE", message.channel, self._placed(message.channel, ids))

    def pin(self, message: Message) -> None:
        """Pins it and, as Discord does, posts a system message of type 6 that points to it."""
        if message.pinned:
            return
        message.pinned_at = datetime.now(UTC)
        self._pins_changed(message)
        self.post(message.channel, self._world.bot, "", type=PINS_ADD, reply_to=message)

    def unpin(self, message: Message) -> None:
        if message.pinned:
            message.pinned_at = None
            self._pins_changed(message)

    def react(self, message: Message, user: User, emoji: str, *, added: bool) -> None:
        """A reaction set or taken back; nothing is told when it was so already."""
        users = message.reactions.setdefault(emoji, [])
        if (user in users) == added:
            return
        if added:
            users.append(user)
        else:
            users.remove(user)
        if not users:
            del message.reactions[emoji]
        data = {
            "user_id": str(user.id),
            "message_id": str(message.id),
            "channel_id": str(message.channel.id),
            "emoji": {"id": None, "name": emoji},
            "burst": False,
            "type": 0,
        }
        guild = message.channel.guild
        if added and guild is not None:
            data["member"] = guild.member_payload(user)
        event = "MESSAGE_REACTION_ADD" if added else "MESSAGE_REACTION_REMOVE"
        intent = DIRECT_REACTIONS if guild is None else GUILD_REACTIONS
        self._send(event, message.channel, self._placed(message.channel, data), intent=intent)

    def open_thread(
        self,
        parent: Channel,
        name: str,
        owner: User,
        *,
        start: Message | None = None,
        kind: int = PUBLIC_THREAD,
    ) -> Channel:
        """A thread; one that starts from a message has its id, and a starter message (type 21) inside."""
        made = start.id if start else self._world.snowflake()
        members = list(dict.fromkeys((owner, self._world.bot)))
        thread = Channel(
            made, name, type=kind, guild=parent.guild, parent=parent, owner=owner, thread_members=members
        )
        self._world.channels[thread.id] = thread
        joined = self._world.thread_member_payload(thread, self._world.bot)
        shown = self._world.channel_payload(thread)
        created = {**shown, "newly_created": True, "member": joined}
        self._send("THREAD_CREATE", thread, created, intent=GUILDS)
        if start is not None:
            start.thread = thread
            self._updated(start)
            self.post(thread, start.author, "", type=THREAD_STARTER, reply_to=start)
        elif kind == PUBLIC_THREAD:
            self.post(parent, owner, name, type=THREAD_CREATED)
        return thread

    def change_channel(self, channel: Channel, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(channel, name, value)
        self._about_channel("UPDATE", channel)

    def announce_channel(self, channel: Channel) -> None:
        """CHANNEL_CREATE for a channel that the world already has."""
        self._about_channel("CREATE", channel)

    def delete_channel(self, channel: Channel) -> None:
        """Also its threads, without an event of their own, as at Discord."""
        for found in [*self._world.channels.values()]:
            if found is channel or found.parent is channel:
                del self._world.channels[found.id]
        self._about_channel("DELETE", channel)

    def _about_channel(self, verb: str, channel: Channel) -> None:
        event = f"THREAD_{verb}" if channel.is_thread else f"CHANNEL_{verb}"
        self._send(event, channel, self._world.channel_payload(channel), intent=GUILDS)

    def _pins_changed(self, message: Message) -> None:
        self._updated(message)
        data: Json = {"channel_id": str(message.channel.id), "last_pin_timestamp": None}
        if message.pinned_at is not None:
            data["last_pin_timestamp"] = message.pinned_at.isoformat()
        self._send("CHANNEL_PINS_UPDATE", message.channel, self._placed(message.channel, data))

    def _updated(self, message: Message) -> None:
        if message.id not in message.channel.messages:
            return
        self._tell("MESSAGE_UPDATE", message.channel, gateway_message(self._world, message))

    def _tell(self, event: str, channel: Channel, data: Json) -> None:
        self._send(event, channel, data, intent=DIRECT_MESSAGES if channel.is_dm else GUILD_MESSAGES)

    def _send(self, event: str, channel: Channel, data: Json, *, intent: int = 0) -> None:
        """Sends an event about a channel to the sessions of its guild's shard."""
        self._gateway.dispatch(event, data, intent=intent, guild_id=channel.guild_id)

    def _placed(self, channel: Channel, data: Json) -> Json:
        return data if channel.is_dm else {**data, "guild_id": str(channel.guild_id)}


def bot_said(messages: Iterable[Message], bot: User) -> list[Message]:
    """The messages that the bot wrote itself, without the system messages in its name."""
    return [message for message in messages if message.author is bot and message.type in (DEFAULT, REPLY)]
