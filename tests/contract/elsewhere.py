"""Interactions from where the bot is not a member, as Discord sends them to an app that a person installed.

The simulated Discord has no such places, so the events are made here. What the bot answers goes to the
interaction's own record, whose messages are kept beside the person's direct messages.
"""

from typing import Any

from simcord.backend import serializers
from simcord.results import InteractionResult

from tests.contract.world import World

GROUP_DM, FOREIGN_CHANNEL, FOREIGN_GUILD = (
    900_000_000_000_000_001,
    900_000_000_000_000_002,
    900_000_000_000_000_003,
)
SLASH, MESSAGE_MENU, STRING = 1, 3, 3
COMMAND, MODAL = 2, 5


async def in_group_dm(world: World, person: Any, data: dict[str, Any]) -> InteractionResult:
    """Use a command in a direct message of a group that the bot isn't in."""
    channel = {"id": str(GROUP_DM), "type": 3, "name": None, "recipients": [], "last_message_id": None}
    user = dict(serializers.user_payload(world.env.backend.get_user(person.id)))
    return await _used(world, person, data, {"channel": channel, "context": 2, "user": user})


async def on_foreign_server(
    world: World, person: Any, data: dict[str, Any], *roles: int
) -> InteractionResult:
    """Use a command on a server that the bot isn't in, where the person has these roles."""
    channel = {
        "id": str(FOREIGN_CHANNEL),
        "type": 0,
        "name": "plans",
        "guild_id": str(FOREIGN_GUILD),
        "position": 0,
        "permissions": "0",
        "parent_id": None,
        "topic": None,
        "nsfw": False,
        "last_message_id": None,
        "flags": 0,
    }
    member = {
        "user": dict(serializers.user_payload(world.env.backend.get_user(person.id))),
        "roles": [str(role) for role in roles],
        "joined_at": "2026-01-01T00:00:00+00:00",
        "deaf": False,
        "mute": False,
        "flags": 0,
        "permissions": "0",
    }
    guild = {"id": str(FOREIGN_GUILD), "locale": "en-US", "features": []}
    place = {
        "channel": channel,
        "guild_id": str(FOREIGN_GUILD),
        "guild": guild,
        "member": member,
        "context": 0,
    }
    return await _used(world, person, data, place)


def slash(world: World, name: str, **options: str) -> dict[str, Any]:
    """A slash command, as people write it."""
    root, *below = name.split()
    given: list[dict[str, Any]] = [
        {"name": key, "type": STRING, "value": one} for key, one in options.items()
    ]
    for one in reversed(below):
        given = [{"name": one, "type": 1, "options": given}]
    known = world.env.backend.find_command(root, None, type=SLASH)
    assert known is not None
    return {"id": known["id"], "name": root, "type": SLASH, "options": given}


def chosen(world: World, name: str, message_id: int, author: Any, text: str) -> dict[str, Any]:
    """A command in the menu of somebody's message there."""
    known = world.env.backend.find_command(name, None, type=MESSAGE_MENU)
    assert known is not None
    message = {
        "id": str(message_id),
        "channel_id": str(GROUP_DM),
        "author": dict(serializers.user_payload(world.env.backend.get_user(author.id))),
        "content": text,
        "timestamp": world.env.now().isoformat(),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "pinned": False,
        "type": 0,
        "components": [],
    }
    data = {"id": known["id"], "name": name, "type": MESSAGE_MENU, "target_id": str(message_id)}
    return {**data, "resolved": {"messages": {str(message_id): message}}}


async def submitted(world: World, person: Any, form: InteractionResult, **values: str) -> InteractionResult:
    """Send a form that was opened in the direct message of a group."""
    assert form.modal is not None
    fields = [
        {"type": 18, "id": n, "component": {"type": 4, "id": 10 + n, "custom_id": key, "value": value}}
        for n, (key, value) in enumerate(values.items(), 1)
    ]
    data = {"custom_id": form.modal["custom_id"], "components": fields}
    channel = {"id": str(GROUP_DM), "type": 3, "name": None, "recipients": [], "last_message_id": None}
    user = dict(serializers.user_payload(world.env.backend.get_user(person.id)))
    place = {"channel": channel, "context": 2, "user": user}
    return await _used(world, person, data, place, kind=MODAL)


async def _used(
    world: World, person: Any, data: dict[str, Any], place: dict[str, Any], *, kind: int = COMMAND
) -> InteractionResult:
    backend = world.env.backend
    dm = person.dm_channel if hasattr(person, "dm_channel") else world.ann_dm
    record = backend.new_interaction(kind, dm.id, person.id, None)
    payload = {
        "id": str(record.id),
        "application_id": str(backend.application_id),
        "type": kind,
        "token": record.token,
        "version": 1,
        "data": data,
        "channel_id": place["channel"]["id"],
        "locale": "en-US",
        "entitlements": [],
        "authorizing_integration_owners": {"1": str(person.id)},
        "attachment_size_limit": 26_214_400,
        "app_permissions": "0",
        **place,
    }
    backend.emit("INTERACTION_CREATE", payload)
    await world.settle()
    return InteractionResult(world.env, record)
