"""How messages and guilds of the loopback Discord look as JSON, in REST answers and gateway events."""

from __future__ import annotations

from tests.servers.discord_things import (
    HAS_THREAD,
    REPLY,
    THREAD_STARTER,
    Guild,
    Json,
    Message,
    snowflake_time,
)
from tests.servers.discord_world import World


def message_payload(world: World, message: Message, *, nested: bool = True) -> Json:
    """A message as REST answers show it, the message it replies to one level deep, as at Discord."""
    made: Json = {
        "id": str(message.id),
        "channel_id": str(message.channel.id),
        "type": message.type,
        "author": message.author.payload(),
        "content": message.content,
        "timestamp": snowflake_time(message.id).isoformat(),
        "edited_timestamp": message.edited_at.isoformat() if message.edited_at else None,
        "tts": False,
        "mention_everyone": "@everyone" in message.content and not message.author.bot,
        "mentions": [user.payload() for user in message.mentions],
        "mention_roles": [],
        "attachments": [attachment.payload() for attachment in message.attachments],
        "embeds": message.embeds,
        "components": message.components,
        "pinned": message.pinned,
        "flags": message.flags | (HAS_THREAD if message.thread else 0),
    }
    if message.nonce is not None:
        made["nonce"] = message.nonce
    if message.reactions:
        made["reactions"] = _reactions(world, message)
    if message.thread is not None:
        made["thread"] = world.channel_payload(message.thread)
    if message.reply_to is not None:
        made |= _reference(world, message, message.reply_to, nested=nested)
    return made


def gateway_message(world: World, message: Message) -> Json:
    """A message as MESSAGE_CREATE and MESSAGE_UPDATE show it: in a guild also `guild_id` and members."""
    made, guild = message_payload(world, message), message.channel.guild
    if guild is None:
        return made
    made["guild_id"] = str(guild.id)
    if message.author.id in guild.members:
        made["member"] = guild.member_payload(message.author, with_user=False)
    made["mentions"] = [
        {**user.payload(), "member": guild.member_payload(user, with_user=False)} for user in message.mentions
    ]
    return made


def guild_create(world: World, guild: Guild, *, everyone: bool) -> Json:
    """A guild as GUILD_CREATE shows it; without `everyone`, the bot is the only member in the list."""
    shown = list(guild.members.values()) if everyone else [world.bot]
    channels = world.channels_of(guild)
    return {
        **guild.payload(),
        "unavailable": False,
        "large": False,
        "joined_at": guild.member_payload(world.bot)["joined_at"],
        "member_count": len(guild.members),
        "members": [guild.member_payload(user) for user in shown],
        "channels": [world.channel_payload(found) for found in channels if not found.is_thread],
        "threads": [
            world.channel_payload(found) for found in channels if found.is_thread and not found.archived
        ],
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }


def _reactions(world: World, message: Message) -> list[Json]:
    return [
        {
            "emoji": {"id": None, "name": emoji},
            "count": len(users),
            "me": world.bot in users,
            "me_burst": False,
        }
        for emoji, users in message.reactions.items()
    ]


def _reference(world: World, message: Message, target: Message, *, nested: bool) -> Json:
    reference = {"type": 0, "message_id": str(target.id), "channel_id": str(target.channel.id)}
    if not target.channel.is_dm:
        reference["guild_id"] = str(target.channel.guild_id)
    if message.type not in (REPLY, THREAD_STARTER) or not nested:
        return {"message_reference": reference}
    shown = None if target.deleted else message_payload(world, target, nested=False)
    return {"message_reference": reference, "referenced_message": shown}
