"""`discoclaw run` and what no Discord should send: one bad event is one line in the log, and no more."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.process.house import PATIENCE, Bot, House
from tests.servers.discord_payloads import gateway_message

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True
ELSEWHERE = "4242"  # a server of its own, so that a deletion that happens to be whole takes nothing away
WHEN = "2026-01-01T00:00:00+00:00"
WRONG: tuple[Any, ...] = (None, [], {}, "x", -1, True)


def events(house: House) -> dict[str, Any]:
    """A whole event of every kind that we subscribe to."""
    discord, talk = house.discord, house.discord.add_channel("bad-events")
    world = discord._world
    said = gateway_message(world, discord._acts.post(talk, house.guy, "just a word"))
    channel = {**world.channel_payload(talk), "id": "77", "guild_id": ELSEWHERE}
    thread = {**channel, "id": "78", "type": 11, "parent_id": "77", "owner_id": str(house.guy.id)}
    thread["thread_metadata"] = {"archived": False, "auto_archive_duration": 60, "archive_timestamp": WHEN}
    role = {"id": "79", "name": "role", "permissions": "0", "position": 1, "color": 0, "hoist": False}
    role |= {"managed": False, "mentionable": False, "colors": {"primary_color": 0}}
    guild = {**discord.guild.payload(), "id": ELSEWHERE, "unavailable": False, "channels": [channel]}
    guild |= {"members": [], "threads": [thread], "voice_states": [], "presences": []}
    ids = {"id": said["id"], "channel_id": said["channel_id"], "guild_id": said["guild_id"]}
    pressed = {
        "id": "80",
        "application_id": str(discord.application_id),
        "type": 3,
        "token": "t",
        "version": 1,
    }
    pressed |= {"channel_id": str(talk.id), "guild_id": str(discord.guild_id), "message": said}
    pressed |= {
        "member": discord.guild.member_payload(house.guy),
        "data": {"custom_id": "x", "component_type": 2},
    }
    return {
        "MESSAGE_CREATE": said,
        "MESSAGE_UPDATE": said,
        "MESSAGE_DELETE": ids,
        "MESSAGE_DELETE_BULK": {**ids, "ids": [said["id"]]},
        "GUILD_CREATE": guild,
        "GUILD_UPDATE": guild,
        "GUILD_DELETE": {"id": ELSEWHERE, "unavailable": False},
        "GUILD_ROLE_CREATE": {"guild_id": ELSEWHERE, "role": role},
        "GUILD_ROLE_UPDATE": {"guild_id": ELSEWHERE, "role": role},
        "GUILD_ROLE_DELETE": {"guild_id": ELSEWHERE, "role_id": "79"},
        "CHANNEL_CREATE": channel,
        "CHANNEL_UPDATE": channel,
        "CHANNEL_DELETE": channel,
        "CHANNEL_PINS_UPDATE": {"channel_id": "77", "guild_id": ELSEWHERE, "last_pin_timestamp": None},
        "THREAD_CREATE": thread,
        "THREAD_UPDATE": thread,
        "THREAD_DELETE": {"id": "78", "guild_id": ELSEWHERE, "parent_id": "77", "type": 11},
        "THREAD_LIST_SYNC": {"guild_id": ELSEWHERE, "threads": [thread], "members": []},
        "THREAD_MEMBER_UPDATE": {"id": "78", "guild_id": ELSEWHERE, "user_id": str(discord.bot.id)},
        "THREAD_MEMBERS_UPDATE": {"id": "78", "guild_id": ELSEWHERE, "member_count": 1},
        "GUILD_MEMBER_UPDATE": {"guild_id": str(discord.guild_id), **discord.guild.member_payload(house.guy)},
        "STAGE_INSTANCE_CREATE": {"id": "81", "guild_id": ELSEWHERE, "channel_id": "77", "topic": "x"},
        "INTERACTION_CREATE": pressed,
    }


def spoiled(event: Any) -> Iterator[Any]:
    """An event without each of its fields, with each of them wrong, and as something else altogether."""
    yield from ({}, {"id": "5"}, {**event, "type": 9_999, "of_tomorrow": {"a": [1]}}, [], "x", None)
    for field in event:
        yield {key: value for key, value in event.items() if key != field}
        yield from ({**event, field: wrong} for wrong in WRONG)


async def begun(house: House) -> Bot:
    """A life whose connection has not failed yet: the pauses between connections grow."""
    bot = await house.running()
    bot.terminate()
    await bot.ended()
    return await house.running()


async def answers(house: House, bot: Bot, channel: str) -> None:
    talk = house.discord.add_channel(channel)
    await house.ask(house.ann, talk, "are you still there?")
    await house.answered(talk, "ok")
    assert bot.runs


class TestABadEvent:
    async def test_ends_nothing_and_fills_no_log(self, house: House) -> None:
        bot = await house.running()
        kinds = events(house)
        for name, event in kinds.items():
            for bad in spoiled(event):
                house.discord.gateway.dispatch(name, bad)
        assert sum(len([*spoiled(event)]) for event in kinds.values()) > 1_000
        await answers(house, bot, "after a flood")
        lines = [line for line in bot.stderr.splitlines() if "a malformed gateway event" in line]
        assert any("MESSAGE_CREATE" in line and "KeyError" in line for line in lines)
        assert len(lines) <= len(kinds)
        # Some are whole enough to reach a handler of ours, and each may say once that it failed.
        assert bot.stderr.count("discoclaw.bot.gateway: on_") <= 2

    async def test_of_a_server_in_ready_hides_no_other_server(self, house: House) -> None:
        bot = await begun(house)
        house.discord.gateway.more_guilds[:] = [{"name": "no id"}, None, "x", {"id": None}]
        before = len(house.discord.received("identify"))
        house.discord.invalidate_sessions()
        await house.discord.wait_for_gateway("identify", count=before + 1, timeout=PATIENCE)
        house.discord.gateway.more_guilds.clear()
        await bot.logged("4 of its servers have no id")
        await answers(house, bot, "after ready")


class TestWhatCannotBeUsedAtAll:
    @pytest.mark.parametrize("ready", [{}, {"session_id": "x", "resume_gateway_url": "y", "guilds": []}])
    async def test_ready_is_followed_by_a_new_connection(self, house: House, ready: Any) -> None:
        bot = await begun(house)
        house.discord.gateway.ready_instead.append(ready)
        before = len(house.discord.received("identify"))
        house.discord.invalidate_sessions()
        await house.discord.wait_for_gateway("identify", count=before + 2, timeout=PATIENCE)
        await answers(house, bot, "after no ready")

    @pytest.mark.parametrize(
        "frame", ["no json", "[]", '{"op": 10, "d": null}', '{"op": 0, "t": [1], "d": 1}']
    )
    async def test_frame_is_followed_by_a_new_connection(self, house: House, frame: str) -> None:
        bot = await begun(house)
        before = len(house.discord.received("identify"))
        for socket in house.discord.gateway.sockets:
            socket.send_text(frame)
        await house.discord.wait_for_gateway("identify", count=before + 1, timeout=PATIENCE)
        await answers(house, bot, "after a frame")
        assert "a frame that cannot be used" in bot.stderr
        assert "Traceback" not in bot.stderr
