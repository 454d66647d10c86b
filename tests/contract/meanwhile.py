"""What people do while the bot is still at work: none of these waits for it.

goes_on = asyncio.Event()
world.brain.says(text("One sheep. ", "Two.", hold=goes_on))
writes(world, world.ann, world.general, "Count sheep")
await until(lambda: labels(world.general.last_message) == ["Stop"])
press(world, world.ann, world.general.last_message)
await world.settle()
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import discord
from simcord import interactions
from simcord.backend import serializers
from simcord.components import walk_components
from simcord.results import InteractionResult, to_discord_message

from tests.contract.world import GUILD_ID, World


async def until(true: Callable[[], object]) -> None:
    """Wait for a state. Raises TimeoutError if it does not come."""
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def writes(world: World, person: Any, place: Any, words: str, **how: Any) -> discord.Message:
    """Somebody (a person, or the bot itself) writes; `how` is what else Discord knows of a message."""
    made = world.env.backend.create_message(place.id, person.id, words, **how)
    return to_discord_message(world.env, made)


def as_seen(world: World, message: Any) -> dict[str, Any]:
    """A message as it is shown now, for a press that comes when it may have changed."""
    backend = world.env.backend
    return dict(serializers.message_payload(backend, backend.get_message(message.channel.id, message.id)))


def press(world: World, person: Any, message: Any) -> InteractionResult:
    """Press the first button of a message, or of one `as_seen`."""
    shown = message if isinstance(message, dict) else as_seen(world, message)
    button = next(one for one in walk_components(shown["components"]) if one["type"] == 2)
    data = {"custom_id": button["custom_id"], "component_type": 2}
    record, payload = interactions.base_payload(
        world.env.backend,
        type=3,
        channel_id=int(shown["channel_id"]),
        guild_id=GUILD_ID,
        user_id=person.id,
        data=data,
    )
    record.source_message_id = int(shown["id"])
    world.env.backend.emit("INTERACTION_CREATE", {**payload, "message": shown})
    return InteractionResult(world.env, record)


async def thread_in(world: World, channel: Any, name: str = "a talk") -> Any:
    """A public thread in a channel."""
    parent = world.env.bot.get_channel(channel.id)
    assert isinstance(parent, discord.TextChannel)
    made = await parent.create_thread(name=name, type=discord.ChannelType.public_thread)
    await world.env.settle()
    return next(thread for thread in channel.threads if thread.id == made.id)


async def tidied(world: World, **changes: Any) -> None:
    """Restart the bot, which makes up for the round of tidying that is overdue by then, and wait for it."""
    beats = world.data / "memory" / "cursors" / "heartbeat.json"
    now = world._now()
    await world.restart(**changes)
    await until(lambda: beats.exists() and json.loads(beats.read_bytes()).get("at") == now)
    await world.restart()  # a round under way ends before that


def put(world: World, person: Any, place: Any, words: str, **given: Any) -> int:
    """Put somebody's message into a channel, without waiting for anything. Returns its id."""
    return int(world.env.backend.create_message(place.id, person.id, words, **given).id)


async def answered(world: World, person: Any, place: Any, words: str) -> str:
    """Somebody writes while the bot is busy with something else; returns the answer to that message."""
    message_id = put(world, person, place, words)

    def answers() -> list[str]:
        shown = place.history()
        return [one.content for one in shown if one.reference and one.reference.message_id == message_id]

    await until(lambda: bool(answers()))
    return answers()[-1]
