"""What Discord would have sent, for driving a discord.py client without a Discord.

A client is made to know itself and one server as if it had connected, and its REST calls are answered at once
by the callable it is given. Everything between the two is discord.py's own code.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import discord
from discord.user import ClientUser

from bench.world import BOT, CHANNEL, FIRST_MESSAGE, GUILD, OWNER

_ALL = str((1 << 53) - 1)
_THEN = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


async def connect(client: discord.Client, sent: Callable[[str], None]) -> None:
    """Make `client` believe that it is connected. `sent` is told of each message it sends."""
    await client._async_setup_hook()
    state = client._connection
    state.user = ClientUser(state=state, data=_user(BOT, "Disco", bot=True))
    state.application_id = BOT
    numbers = iter(range(10**18 * 5, 10**18 * 6))

    async def answer(route: discord.http.Route, **options: Any) -> Any:
        if route.method == "GET":
            return []
        if route.method == "POST" and route.path.endswith("/messages"):
            params = options.get("form") or options.get("json") or {}
            content = params.get("content", "") if isinstance(params, dict) else ""
            sent(content)
            return message_payload(next(numbers), content, author=BOT)
        if route.method == "PATCH" and "/messages/" in route.path:  # an edit, on a machine that is slow
            return message_payload(next(numbers), "", author=BOT)
        return None

    client.http.request = answer  # type: ignore[method-assign]
    state.parse_guild_create(_guild())


def message_payload(number: int, text: str, *, author: int = OWNER) -> Any:
    """A message as MESSAGE_CREATE brings it."""
    member = {"roles": [], "joined_at": _THEN, "deaf": False, "mute": False, "flags": 0}
    return {
        "id": str(number if author == BOT else FIRST_MESSAGE + number),
        "type": 0,
        "channel_id": str(CHANNEL),
        "guild_id": str(GUILD),
        "author": _user(author, "Ann"),
        "member": member,
        "content": text,
        "timestamp": _THEN,
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "components": [],
        "pinned": False,
        "flags": 0,
    }


def _user(identity: int, name: str, *, bot: bool = False) -> Any:
    made = {"id": str(identity), "username": name.lower(), "global_name": name, "discriminator": "0"}
    return {**made, "avatar": None, "bot": bot}


def _guild() -> Any:
    role = {"id": str(GUILD), "name": "@everyone", "permissions": _ALL, "position": 0, "color": 0}
    role |= {"colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}}
    role |= {"hoist": False, "managed": False, "mentionable": False, "flags": 0}
    channel = {"id": str(CHANNEL), "type": 0, "name": "talk", "position": 0, "permission_overwrites": []}
    member = {"user": _user(BOT, "Disco", bot=True), "roles": [], "joined_at": _THEN, "deaf": False}
    return {
        "id": str(GUILD),
        "name": "The Club",
        "owner_id": str(OWNER),
        "roles": [role],
        "emojis": [],
        "stickers": [],
        "features": [],
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "afk_timeout": 300,
        "premium_tier": 0,
        "preferred_locale": "en-US",
        "nsfw_level": 0,
        "mfa_level": 0,
        "system_channel_flags": 0,
        "unavailable": False,
        "large": False,
        "joined_at": _THEN,
        "member_count": 2,
        "members": [{**member, "mute": False, "flags": 0}],
        "channels": [{**channel, "topic": None, "nsfw": False, "parent_id": None, "rate_limit_per_user": 0}],
        "threads": [],
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }
