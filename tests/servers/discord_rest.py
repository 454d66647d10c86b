"""The other REST routes of the loopback Discord: login, users, guilds, channels, threads, commands.

Modelled: what a talking bot asks for.  Not modelled: forum posts, webhooks, roles, invites,
audit log; a call to one of them is answered 501 and remembered in `DiscordServer.unknown`.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from tests.servers.discord_acts import Acts
from tests.servers.discord_http import ApiError, Call
from tests.servers.discord_messages import MessageRoutes
from tests.servers.discord_things import Channel, Guild, Json, User
from tests.servers.discord_world import World


class GuildRoutes:
    """Handlers by method and path for everything but messages."""

    def __init__(self, world: World, acts: Acts, messages: MessageRoutes) -> None:
        self._world = world
        self._acts = acts
        self._messages = messages
        self.commands: dict[int | None, list[Json]] = {}  # by guild id; None holds the global ones

    def table(self) -> list[tuple[str, str, Any]]:
        """Every route here."""
        channel, guild = "/channels/{channel}", "/guilds/{guild}"
        commands = "/applications/{application}/commands"
        guild_commands = "/applications/{application}/guilds/{guild}/commands"
        return [
            ("GET", "/users/@me", self.me),
            ("GET", "/oauth2/applications/@me", self.application),
            ("GET", "/applications/@me", self.application),
            ("POST", "/users/@me/channels", self.open_dm),
            ("GET", "/users/@me/guilds", self.guilds),
            ("GET", "/users/{user}", self.user),
            ("GET", guild, self.guild),
            ("GET", guild + "/roles", self.roles),
            ("GET", guild + "/channels", self.channels),
            ("GET", guild + "/members", self.members),
            ("GET", guild + "/members/{user}", self.member),
            ("GET", guild + "/threads/active", self.active_threads),
            ("GET", channel, self.read_channel),
            ("PATCH", channel, self.change_channel),
            ("DELETE", channel, self.delete_channel),
            ("POST", channel + "/threads", self.open_thread),
            ("POST", channel + "/messages/{message}/threads", self.open_thread_at),
            ("GET", channel + "/threads/archived/public", self.archived_threads),
            ("GET", channel + "/thread-members", self.thread_members),
            ("PUT", channel + "/thread-members/@me", self.join_thread),
            ("PUT", channel + "/thread-members/{user}", self.join_thread),
            ("DELETE", channel + "/thread-members/@me", self.leave_thread),
            ("GET", commands, self.read_commands),
            ("PUT", commands, self.write_commands),
            ("GET", guild_commands, self.read_commands),
            ("PUT", guild_commands, self.write_commands),
        ]

    async def me(self, call: Call) -> Json:
        return {**self._world.bot.payload(), "verified": True, "mfa_enabled": False, "flags": 0}

    async def application(self, call: Call) -> Json:
        return {
            "id": str(self._world.application_id),
            "name": self._world.bot.name,
            "description": "",
            "icon": None,
            "bot_public": False,
            "bot_require_code_grant": False,
            "owner": self._world.owner.payload(),
            "team": self._world.team,
            "verify_key": "0" * 64,
            "flags": self._world.application_flags,
            "integration_types_config": self._world.installs,
        }

    async def open_dm(self, call: Call) -> Json:
        user = self._find_user(int(call.json["recipient_id"]))
        if user.bot:
            raise ApiError(400, 50007, "Cannot send messages to this user")
        return self._world.channel_payload(self._world.dm_with(user))

    async def user(self, call: Call) -> Json:
        return self._find_user(call.id("user")).payload()

    async def guilds(self, call: Call) -> list[Json]:
        """By id, at most 200; `before` pages backwards, and each page is in ascending order all the same."""
        query = call.request.query
        limit, after = int(query.get("limit", 200)), int(query.get("after", 0))
        found = [self._world.guilds[each] for each in sorted(self._world.guilds) if each > after]
        if "before" in query:
            found = [guild for guild in found if guild.id < int(query["before"])][-limit:]
        return [self._guild_in_list(guild) for guild in found[:limit]]

    async def guild(self, call: Call) -> Json:
        guild = self._find_guild(call)
        return guild.payload() | {"approximate_member_count": len(guild.members)}

    async def roles(self, call: Call) -> list[Json]:
        return [role.payload() for role in self._find_guild(call).roles.values()]

    async def channels(self, call: Call) -> list[Json]:
        found = self._world.channels_of(self._find_guild(call))
        return [self._world.channel_payload(each) for each in found if not each.is_thread]

    async def members(self, call: Call) -> list[Json]:
        guild = self._find_guild(call)
        after, limit = int(call.request.query.get("after", 0)), int(call.request.query.get("limit", 1))
        found = sorted((user for user in guild.members.values() if user.id > after), key=lambda u: u.id)
        return [guild.member_payload(user) for user in found[:limit]]

    async def member(self, call: Call) -> Json:
        guild, user = self._find_guild(call), self._find_user(call.id("user"))
        if user.id not in guild.members:
            raise ApiError(404, 10007, "Unknown Member")
        return guild.member_payload(user)

    async def active_threads(self, call: Call) -> Json:
        found = self._world.channels_of(self._find_guild(call))
        return self._threads([each for each in found if not each.archived])

    async def archived_threads(self, call: Call) -> Json:
        parent = self._messages.channel(call)
        found = [each for each in self._world.channels.values() if each.archived and each.parent is parent]
        return self._threads(found)

    async def read_channel(self, call: Call) -> Json:
        return self._world.channel_payload(self._messages.channel(call))

    async def change_channel(self, call: Call) -> Json:
        """Name, topic, archived and locked; other settings are accepted without effect."""
        channel = self._messages.channel(call)
        known = {
            name: call.json[name] for name in ("name", "topic", "archived", "locked") if name in call.json
        }
        self._acts.change_channel(channel, **known)
        return self._world.channel_payload(channel)

    async def delete_channel(self, call: Call) -> Json:
        channel = self._messages.channel(call)
        self._acts.delete_channel(channel)
        return self._world.channel_payload(channel)

    async def open_thread(self, call: Call) -> Json:
        parent, kind = self._messages.channel(call), call.json.get("type", 12)
        thread = self._acts.open_thread(parent, call.json["name"], self._world.bot, kind=kind)
        return self._world.channel_payload(thread)

    async def open_thread_at(self, call: Call) -> Json:
        message = self._messages.message(call)
        if message.thread is not None:
            raise ApiError(400, 160004, "A thread has already been created for this message")
        name = call.json["name"]
        thread = self._acts.open_thread(message.channel, name, self._world.bot, start=message)
        return self._world.channel_payload(thread)

    async def thread_members(self, call: Call) -> list[Json]:
        thread = self._messages.channel(call)
        return [self._world.thread_member_payload(thread, user) for user in thread.thread_members]

    async def join_thread(self, call: Call) -> None:
        """The bot (`@me`) or a named user joins; no event is told."""
        thread = self._messages.channel(call)
        user = self._find_user(call.id("user")) if "user" in call.args else self._world.bot
        if user not in thread.thread_members:
            thread.thread_members.append(user)

    async def leave_thread(self, call: Call) -> None:
        thread = self._messages.channel(call)
        thread.thread_members = [user for user in thread.thread_members if user is not self._world.bot]

    async def read_commands(self, call: Call) -> list[Json]:
        return self.commands.get(self._command_scope(call), [])

    async def write_commands(self, call: Call) -> list[Json]:
        """Replaces the whole list; a command of the same name and type keeps its id, as at Discord."""
        scope = self._command_scope(call)
        known = {(old["name"], old["type"]): old["id"] for old in self.commands.get(scope, [])}
        made = []
        for draft in call.request.json or []:
            command = {"description": "", "type": 1, **draft, "version": str(self._world.snowflake())}
            command["id"] = known.get((command["name"], command["type"]), str(self._world.snowflake()))
            command["application_id"] = str(self._world.application_id)
            if scope is not None:
                command["guild_id"] = str(scope)
            made.append(command)
        self.commands[scope] = made
        return made

    def _command_scope(self, call: Call) -> int | None:
        if call.id("application") != self._world.application_id:
            raise ApiError(403, 20012, "You are not authorized to perform this action on this application")
        if "guild" in call.args:
            return self._find_guild(call).id
        return None

    def _threads(self, channels: list[Channel]) -> Json:
        threads = [each for each in channels if each.is_thread]
        joined = [self._world.thread_member_payload(each, self._world.bot) for each in threads]
        shown = [self._world.channel_payload(each) for each in threads]
        return {"threads": shown, "members": joined, "has_more": False}

    def _find_user(self, user_id: int) -> User:
        found = self._world.users.get(user_id)
        if found is None:
            raise ApiError(404, 10013, "Unknown User")
        return found

    def _find_guild(self, call: Call) -> Guild:
        found = self._world.guilds.get(call.id("guild"))
        if found is None:
            raise ApiError(404, 10004, "Unknown Guild")
        return found

    def _guild_in_list(self, guild: Guild) -> Json:
        """A guild as the list of the bot's guilds shows it: parts only, and the bot's own permissions."""
        shown = {key: value for key, value in guild.payload().items() if key in ("id", "name", "features")}
        given = [guild.roles[guild.id], *guild.given[self._world.bot.id]]
        permissions = reduce(or_, (role.permissions for role in given))
        owned = guild.owner is self._world.bot
        shown |= {"icon": None, "banner": None, "owner": owned, "permissions": str(permissions)}
        return shown | {"approximate_member_count": len(guild.members), "approximate_presence_count": 0}
