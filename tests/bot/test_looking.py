"""What Discord says about the bot, and what can be wrong with a token, over the loopback Discord."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from discord import Permissions

from discoclaw.bot.looking import PERMISSIONS, Bot, invite_link, lacking, look
from discoclaw.core.errors import ChatError, ChatUnavailable, SettingsError
from tests.servers.discord_server import DiscordServer
from tests.servers.discord_things import MESSAGE_CONTENT, TALK, TEND, VIEW_CHANNEL

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    async with DiscordServer(token=TOKEN) as server:
        yield server


async def seen(discord: DiscordServer) -> Bot:
    return await look(TOKEN, api=discord.rest_base)


async def test_who_the_bot_is_and_where(discord: DiscordServer) -> None:
    bot = await seen(discord)
    assert (bot.id, bot.name) == (str(discord.bot.id), "Disco")
    assert bot.application_id == str(discord.application_id)
    assert bot.owners == (str(discord.owner.id),) and bot.team == ""
    assert [(one.id, one.name, one.lacks) for one in bot.guilds] == [(str(discord.guild_id), "The Club", ())]
    assert not bot.more_guilds
    assert bot.message_content and not bot.members and not bot.presences
    assert bot.clock_ahead_s is not None and abs(bot.clock_ahead_s) < 10
    assert {call.method for call in discord.requests} == {"GET"}


async def test_the_members_of_a_team_own_its_application(discord: DiscordServer) -> None:
    ann, bea = discord.add_user("Ann"), discord.add_user("Bea")
    discord.describe_application(team=[ann, bea])
    bot = await seen(discord)
    assert (bot.team, bot.owners) == ("The Team", (str(ann.id), str(bea.id)))


async def test_an_intent_that_is_off_is_seen(discord: DiscordServer) -> None:
    discord.describe_application(flags=1 << 14)
    bot = await seen(discord)
    assert not bot.message_content and bot.members
    discord.describe_application(flags=MESSAGE_CONTENT >> 1)  # of a verified bot
    assert (await seen(discord)).message_content


async def test_permissions_that_a_server_does_not_give_are_named(discord: DiscordServer) -> None:
    club = discord.add_guild("Quiet Club")
    club.roles[club.id].permissions = VIEW_CHANNEL
    for role in club.given[discord.bot.id]:
        role.permissions = TALK & ~(1 << 15) & ~(1 << 16)
    (lacks,) = [one.lacks for one in (await seen(discord)).guilds if one.name == "Quiet Club"]
    assert lacks == ("attach files", "read message history")
    for role in club.given[discord.bot.id]:
        role.permissions = 1 << 3  # an administrator may do everything
    assert all(not one.lacks for one in (await seen(discord)).guilds)
    assert PERMISSIONS.value & TEND == PERMISSIONS.value


async def test_a_clock_that_is_wrong_is_measured(discord: DiscordServer) -> None:
    discord.set_clock(ahead_s=-90)
    ahead = (await seen(discord)).clock_ahead_s
    assert ahead is not None and 85 < ahead < 95


def test_the_link_for_inviting_has_the_scopes_and_permissions_of_the_readme() -> None:
    assert invite_link("1234") == (
        "https://discord.com/oauth2/authorize?client_id=1234&scope=bot+applications.commands"
        f"&permissions={PERMISSIONS.value}"
    )
    assert sorted(lacking(Permissions.none())) == [
        "attach files",
        "create public threads",
        "read message history",
        "send messages",
        "send messages in threads",
        "view channels",
    ]


async def test_a_token_that_discord_refuses_is_one_line_without_the_token(discord: DiscordServer) -> None:
    with pytest.raises(SettingsError, match="Discord does not accept this token") as raised:
        await look(f"{TOKEN}X", api=discord.rest_base)
    assert raised.value.__cause__ is None
    assert not any(part in str(raised.value) for part in TOKEN.split("."))


async def test_spaces_around_a_token_do_not_matter(discord: DiscordServer) -> None:
    assert (await look(f" {TOKEN}\n", api=discord.rest_base)).name == "Disco"


async def test_a_discord_that_fails_or_is_not_there_is_one_line(discord: DiscordServer) -> None:
    discord.fail_next("GET", "/oauth2/applications/@me", 403)
    with pytest.raises(ChatError, match="does not allow it"):
        await seen(discord)
    with pytest.raises(ChatUnavailable, match="no connection to Discord"):
        await look(TOKEN, api="http://127.0.0.1:1/api/v10")


@pytest.mark.parametrize(
    ("body", "kind"), [("<html>Welcome</html>", "text/html"), ('{"ok": true}', "application/json")]
)
async def test_what_is_not_discord_is_said_to_be_that(body: str, kind: str) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=body, content_type=kind)

    app = web.Application()
    app.router.add_get("/{tail:.*}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = "http://{}:{}".format(*runner.addresses[0][:2])
        with pytest.raises(ChatError, match=f"answers at {address} doesn't speak Discord's API"):
            await look(TOKEN, api=address)
    finally:
        await runner.cleanup()
