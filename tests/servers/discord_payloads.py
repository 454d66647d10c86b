"""How a message of the loopback Discord looks as JSON: in a REST answer, and in a gateway event."""

from __future__ import annotations

from tests.servers.discord_world import (
    HAS_THREAD,
    REPLY,
    THREAD_STARTER,
    Json,
    Message,
    World,
    snowflake_time,
)


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
    made = message_payload(world, message)
    if message.channel.is_dm:
        return made
    made["guild_id"] = str(world.guild_id)
    if message.author.id in world.members:
        made["member"] = message.author.member_payload(with_user=False)
    made["mentions"] = [
        {**user.payload(), "member": user.member_payload(with_user=False)} for user in message.mentions
    ]
    return made


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
        reference["guild_id"] = str(world.guild_id)
    if message.type not in (REPLY, THREAD_STARTER) or not nested:
        return {"message_reference": reference}
    shown = None if target.deleted else message_payload(world, target, nested=False)
    return {"message_reference": reference, "referenced_message": shown}
