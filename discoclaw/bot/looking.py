"""What Discord says about the bot, asked over REST: no gateway, nothing sent, nothing changed.

`discoclaw init` checks a token with it, `discoclaw doctor` everything that Discord knows. Knows nothing about
settings, nor about what is right or wrong.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import aiohttp
import discord

from discoclaw.bot.wire import chat_error
from discoclaw.core.errors import ChatError, ChatUnavailable, SettingsError
from discoclaw.core.redact import without_login
from discoclaw.show.words import quoted

PERMISSIONS: Final = discord.Permissions(
    view_channel=True,
    send_messages=True,
    create_public_threads=True,
    send_messages_in_threads=True,
    attach_files=True,
    read_message_history=True,
)
"""Permissions that the bot needs in a channel."""
SCOPES: Final = ("bot", "applications.commands")
PATIENCE_S = 20.0
"""The longest that one look takes, with discord.py's own retries."""
MOST_GUILDS = 200
"""How many servers are listed: one page of Discord's answer."""
_NAMES = {"read_messages": "view channels"}
"""Discord's present names of permissions, where discord.py has old ones."""


@dataclass(frozen=True, slots=True)
class Guild:
    """A server that the bot is in. `lacks`: the permissions of `PERMISSIONS` that its roles don't give."""

    id: str
    name: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bot:
    """The bot as Discord knows it.

    `owners` are the ids of those whose application it is, `team` is the name of their team or "".
    `message_content`, `members`, `presences`: whether that privileged intent is enabled. `more_guilds`: there
    are more servers than `guilds`. `clock_ahead_s`: how many seconds this machine's clock is ahead of
    Discord's; None if Discord didn't say its time.
    """

    id: str
    name: str
    application_id: str
    owners: tuple[str, ...]
    team: str
    message_content: bool
    members: bool
    presences: bool
    guilds: tuple[Guild, ...]
    more_guilds: bool
    clock_ahead_s: float | None


def invite_link(application_id: str) -> str:
    """The page where somebody invites the bot to a server, with the scopes and permissions it needs."""
    return discord.utils.oauth_url(int(application_id), permissions=PERMISSIONS, scopes=SCOPES)


def lacking(has: discord.Permissions) -> tuple[str, ...]:
    """The permissions of `PERMISSIONS` that are missing, as the README names them."""
    if has.administrator:
        return ()
    missing = (name for name, wanted in PERMISSIONS if wanted and not getattr(has, name))
    return tuple(_NAMES.get(name) or name.replace("_", " ") for name in missing)


async def look(token: str, *, api: str | None) -> Bot:
    """Ask Discord who the bot is and where. `api`: the address of another REST API than Discord's.

    Raises SettingsError for a token that Discord refuses, and ChatError otherwise.
    """
    async with logged_in(token, api=api) as session:
        return await session.bot()


class Session:
    """A client that has logged in but is not connected."""

    def __init__(self, client: discord.Client, api: str | None, dates: "_Dates") -> None:
        self.client = client
        self.api = api
        self._dates = dates

    async def bot(self) -> Bot:
        """The bot, and the servers it is in. Raises ChatError."""
        client = self.client
        user, application = client.user, client.application
        assert user is not None and application is not None  # it has logged in
        with understood(self.api):
            found = await client.http.get_guilds(MOST_GUILDS, with_counts=False)
            guilds = [_guild(one["id"], one["name"], one["permissions"]) for one in found]
        team, flags = application.team, application.flags
        owners = [member.id for member in team.members] if team is not None else [application.owner.id]
        return Bot(
            id=str(user.id),
            name=user.display_name,
            application_id=str(application.id),
            owners=tuple(map(str, owners)),
            team=team.name if team is not None else "",
            message_content=flags.gateway_message_content or flags.gateway_message_content_limited,
            members=flags.gateway_guild_members or flags.gateway_guild_members_limited,
            presences=flags.gateway_presence or flags.gateway_presence_limited,
            guilds=tuple(guilds),
            more_guilds=len(guilds) == MOST_GUILDS,
            clock_ahead_s=self._dates.ahead_s,
        )


@asynccontextmanager
async def logged_in(token: str, *, api: str | None, within_s: float = PATIENCE_S) -> AsyncIterator[Session]:
    """A session, closed after the block, which has at most `within_s`; else this raises ChatUnavailable.

    Raises SettingsError for a token that Discord refuses, and ChatError otherwise.
    """
    dates = _Dates()
    client = discord.Client(intents=discord.Intents(guilds=True), http_trace=dates.trace())
    with at(api):
        try:
            async with asyncio.timeout(within_s):
                with understood(api):
                    await client.login(token)
                yield Session(client, api, dates)
        except TimeoutError:
            raise ChatUnavailable(f"{_where(api)} doesn't answer within {within_s:.0f} s") from None
        finally:
            await client.close()


@contextmanager
def understood(api: str | None) -> Iterator[None]:
    """Around calls of discord.py: what it raises becomes ours. An answer of another form is not Discord's."""
    try:
        yield
    except discord.LoginFailure:
        raise SettingsError(
            "DISCORD_TOKEN=…: Discord does not accept this token; copy it again from the developer portal, "
            "under Bot (Reset Token makes a new one, and the old one ends)"
        ) from None
    except (discord.HTTPException, discord.RateLimited, aiohttp.ClientError, OSError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise chat_error(error) from None
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ChatError(
            f"what answers at {_where(api)} doesn't speak Discord's API; check DISCORD_API_BASE"
        ) from None


@contextmanager
def at(api: str | None) -> Iterator[None]:
    """Point discord.py to another REST API, and back after the block."""
    usual = discord.http.Route.BASE
    discord.http.Route.BASE = api or usual
    try:
        yield
    finally:
        discord.http.Route.BASE = usual


def _where(api: str | None) -> str:
    return without_login(api or "Discord")


def _guild(guild_id: str | int, name: str, permissions: str) -> Guild:
    return Guild(str(guild_id), name, lacking(discord.Permissions(int(permissions))))


class _Dates:
    """The time that Discord's first answer states, against this machine's."""

    def __init__(self) -> None:
        self.ahead_s: float | None = None

    def trace(self) -> aiohttp.TraceConfig:
        """The trace that discord.py passes to its HTTP session: our only way to the headers of an answer."""
        config = aiohttp.TraceConfig()
        config.on_request_end.append(self._ended)
        return config

    async def _ended(self, _session: object, _context: object, params: aiohttp.TraceRequestEndParams) -> None:
        if self.ahead_s is not None or (stated := params.response.headers.get("Date")) is None:
            return
        try:
            when: datetime = parsedate_to_datetime(stated)
            self.ahead_s = time.time() - when.timestamp()
        except (ValueError, OverflowError):
            pass  # an odd server; the clock is then unknown


# ----------------------------------------------------------------------
# What Discord says about servers, channels, people and commands, over REST. Nothing is sent or changed.
#
# Goes on where `looking` ends, in the same session. Knows nothing about what is right or wrong.

SLASH, MESSAGE_MENU = 1, 3
"""Discord's numbers of the kinds of commands that we have."""
_TALKED_IN = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.ForumChannel


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a server. `lacks`: what the bot needs there and may not. `name` is without "#"."""

    id: str
    name: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """A server with its roles by id, and the channels that can be talked in, by id."""

    id: str
    name: str
    roles: Mapping[str, str]
    channels: Mapping[str, Channel]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A channel that is in none of the servers that were looked at.

    `parent`: it is a thread of that channel. `hidden`: the bot may not see it.
    """

    parent: str | None = None
    hidden: bool = False


async def server(session: Session, guild_id: str) -> Server:
    """A server that the bot is in: three requests. Raises ChatError."""
    client = session.client
    assert client.user is not None  # it has logged in
    with understood(session.api):
        guild = await client.fetch_guild(int(guild_id), with_counts=False)
        us = await guild.fetch_member(client.user.id)
        channels = {
            str(one.id): Channel(str(one.id), one.name, lacking(one.permissions_for(us)))
            for one in await guild.fetch_channels()
            if isinstance(one, _TALKED_IN)
        }
    return Server(guild_id, guild.name, {str(role.id): role.name for role in guild.roles}, channels)


async def channel(session: Session, channel_id: str) -> Elsewhere | None:
    """A channel by its id; None if there is none. Raises ChatError."""
    with understood(session.api):
        try:
            found: Mapping[str, Any] = await session.client.http.get_channel(int(channel_id))
        except discord.NotFound:
            return None
        except discord.Forbidden:
            return Elsewhere(hidden=True)
    return Elsewhere(parent=str(found["parent_id"]) if found.get("thread_metadata") else None)


async def commands_there(session: Session) -> frozenset[tuple[str, int]]:
    """Name and kind of every global command that Discord has of the bot. Raises ChatError."""
    application = session.client.application
    assert application is not None  # it has logged in
    with understood(session.api):
        found = await session.client.http.get_global_commands(application.id)
    return frozenset((one["name"], int(one.get("type", SLASH))) for one in found)


# ----------------------------------------------------------------------
# What Discord says about people, over REST. Goes on where `looking` ends, without the bot's own commands.


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on Discord. `bot`: it is a program's account."""

    id: str
    name: str
    bot: bool


async def person(session: Session, user_id: str) -> Person | None:
    """The person with this id; None if nobody has it. Raises ChatError."""
    with understood(session.api):
        try:
            user = await session.client.fetch_user(int(user_id))
        except discord.NotFound:
            return None
    return Person(str(user.id), user.display_name, user.bot)


async def people(token: str, ids: Iterable[str], *, api: str | None) -> dict[str, Person | None]:
    """The person with each of these ids; None where nobody has it. Raises as `looking.look` does."""
    async with logged_in(token, api=api) as session:
        return {one: await person(session, one) for one in ids}


async def described(token: str, user_id: str, *, api: str | None) -> str:
    """An account: names, id, and on which of the bot's first servers it is. Raises as `looking.look` does.

    The name that people choose freely stands last and in quotes: it may look like the rest of it.
    """
    async with logged_in(token, api=api) as session:
        on = list[str]()
        with understood(api):
            user = await session.client.fetch_user(int(user_id))
        for guild in (await session.bot()).guilds[:10]:
            with understood(api), suppress(discord.NotFound):
                await session.client.http.get_member(int(guild.id), int(user_id))
                on.append(guild.name)
        where = f"on {', '.join(on) or 'no server of the bot'}"
        return f"@{user.name} ({user_id}), {where}, who goes by {quoted(user.display_name)}"
