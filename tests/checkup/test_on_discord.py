"""What `discoclaw doctor` finds out from Discord, each fault made on the loopback Discord."""

import pytest

from discoclaw.bot.looking import PERMISSIONS
from tests.checkup.conftest import Desk, Found
from tests.process.house import TOKEN
from tests.servers.discord_things import TALK, VIEW_CHANNEL

ATTACH, HISTORY = 1 << 15, 1 << 16


async def asked(desk: Desk, **changes: str | None) -> Found:
    return await desk.found("--only", "discord", **changes)


@pytest.mark.parametrize(
    ("token", "line"),
    [
        (f"'{TOKEN}'", "token: DISCORD_TOKEN=…: has quotation marks around it; leave them out"),
        (f"{TOKEN[:10]} {TOKEN[10:]}", "has spaces or line breaks in it; copy the token once more"),
        ("sk-ant-api03-abcdef", "token: DISCORD_TOKEN=…: is a key of Anthropic's"),
        ("0123456789abcdefABCDEF0123456789", "token: DISCORD_TOKEN=…: is the application's client secret"),
        (f"{TOKEN}x", "token: DISCORD_TOKEN=…: Discord does not accept this token; copy it again"),
    ],
)
async def test_a_wrong_token(desk: Desk, token: str, line: str) -> None:
    found = await asked(desk, DISCORD_TOKEN=token)
    assert (found.exit_code, len(found.lines())) == (1, 1)
    assert line in found.only("discord", "bad")


async def test_an_intent_that_is_off(desk: Desk) -> None:
    desk.discord.describe_application(flags=1 << 12)
    found = await asked(desk)
    assert found.only("discord", "bad") == (
        "intents: the message content intent is off, so the bot can't connect; "
        "enable it at https://discord.com/developers/applications, under Bot"
    )


async def test_a_bot_that_nobody_invited(desk: Desk) -> None:
    desk.discord.throw_out()
    (line,) = [one for one in (await asked(desk)).lines("discord", "bad") if one.startswith("servers")]
    assert line.startswith(
        "servers: the bot is on no server; invite it: https://discord.com/oauth2/authorize?"
    )
    assert f"client_id={desk.discord.application_id}" in line and f"permissions={PERMISSIONS.value}" in line


@pytest.mark.parametrize(("ahead_s", "way"), [(95, "behind"), (-95, "ahead of")])
async def test_a_clock_that_is_wrong(desk: Desk, ahead_s: float, way: str) -> None:
    desk.discord.set_clock(ahead_s=ahead_s)
    found = await asked(desk)
    (line,) = [one for one in found.lines("discord", "warning") if one.startswith("clock")]
    assert f" s {way} Discord's: dates in answers" in line and "turn on time synchronisation" in line
    assert found.exit_code == 0


async def test_permissions_that_are_missing_by_channel(desk: Desk) -> None:
    staff = desk.discord.add_channel("staff")
    for role in desk.discord.guild.given[desk.discord.bot.id]:
        role.permissions = TALK
    staff.overwrites.append(
        {"id": str(desk.discord.bot.id), "type": 1, "allow": "0", "deny": str(ATTACH | HISTORY)}
    )
    found = await asked(desk)
    assert found.only("discord", "bad") == (
        "permissions: #staff on The Club: missing attach files, read message history; "
        "give the bot's role these permissions there"
    )
    assert "permissions: the bot has every permission it needs in 1 channel" in found.lines("discord", "good")
    assert (await asked(desk, DISCORD_CHANNEL_IDS=str(desk.talk.id))).exit_code == 0


async def test_channels_in_the_settings_that_are_not_there_or_hidden(desk: Desk) -> None:
    hidden = desk.discord.add_channel("hidden")
    hidden.overwrites.append(
        {"id": str(desk.discord.bot.id), "type": 1, "allow": "0", "deny": str(VIEW_CHANNEL)}
    )
    thread = desk.discord.add_thread(desk.talk, "a thread")
    found = await asked(
        desk,
        DISCORD_CHANNEL_IDS=f"{hidden.id} {thread.id} 4242",
        DISCOCLAW_MEMORY_CHANNEL_ID="4243",
        DISCOCLAW_CHANNEL_PERSONAS="4244=coding,talk=coding",
    )
    assert set(found.lines("discord", "bad")) == {
        "permissions: #hidden on The Club: missing view channels, without which it may do nothing there; "
        "give the bot's role these permissions there",
        "DISCORD_CHANNEL_IDS: there is no channel 4242; correct DISCORD_CHANNEL_IDS",
        "DISCOCLAW_MEMORY_CHANNEL_ID: there is no channel 4243; correct DISCOCLAW_MEMORY_CHANNEL_ID",
        "DISCOCLAW_CHANNEL_PERSONAS: there is no channel 4244; correct DISCOCLAW_CHANNEL_PERSONAS",
    }
    assert "permissions: the bot has every permission it needs in 1 channel" in found.lines("discord", "good")


async def test_a_channel_of_a_server_that_the_bot_is_not_on(desk: Desk) -> None:
    desk.discord.fail_next("GET", "/channels/4242", 403, json={"code": 50001, "message": "Missing Access"})
    found = await asked(desk, DISCORD_CHANNEL_IDS=f"{desk.talk.id} 4242")
    assert found.only("discord", "bad").startswith(
        "permissions: the channel 4242 exists, but the bot may not see it; let its role view that channel"
    )


async def test_people_and_roles_that_are_nobody(desk: Desk) -> None:
    role = desk.discord.add_role("friends")
    found = await asked(
        desk,
        DISCOCLAW_OWNER_IDS="4242",
        DISCORD_ALLOW_USER_IDS=f"{desk.ann.id} {desk.discord.bot.id}",
        DISCORD_ALLOW_ROLE_IDS=f"{role.id} 4343",
    )
    assert found.lines("discord", "bad") == [
        "DISCORD_ALLOW_ROLE_IDS: no server of the bot has the role 4343; correct DISCORD_ALLOW_ROLE_IDS",
        "DISCOCLAW_OWNER_IDS: 4242 is nobody; correct DISCOCLAW_OWNER_IDS",
        f"DISCORD_ALLOW_USER_IDS: {desk.discord.bot.id} is the bot itself; correct DISCORD_ALLOW_USER_IDS",
    ]


async def test_an_empty_allowlist_and_no_owner(desk: Desk) -> None:
    found = await asked(desk, DISCORD_ALLOW_USER_IDS=None, DISCOCLAW_OWNER_IDS=None)
    assert found.only("discord", "bad") == (
        "who may talk: nobody: the bot answers nobody; set DISCORD_ALLOW_USER_IDS or DISCORD_ALLOW_ROLE_IDS"
    )
    assert any(str(desk.discord.owner.id) in one for one in found.lines("discord", "warning"))


async def test_a_server_that_cannot_be_looked_at_costs_the_others_nothing(desk: Desk) -> None:
    club = desk.discord.add_guild("Odd Club")
    desk.discord.fail_next("GET", f"/guilds/{club.id}/channels", 403)
    found = await asked(desk, DISCORD_ALLOW_ROLE_IDS="4343")
    unknown = found.lines("discord", "unknown")
    assert unknown[0].startswith("servers: Odd Club can't be looked at (Discord does not allow it")
    assert "no server of the bot has the role 4343 that was looked at" in unknown[1]
    assert "permissions: the bot has every permission it needs in 1 channel" in found.lines("discord", "good")
    assert found.exit_code == 0


async def test_a_discord_that_cannot_be_reached(desk: Desk) -> None:
    found = await asked(desk, DISCORD_API_BASE="http://127.0.0.1:1/api/v10")
    assert "Discord: no connection to Discord" in found.only("discord", "bad")
    assert "check the network, and DISCORD_API_BASE" in found.only("discord", "bad")
