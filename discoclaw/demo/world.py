"""The demo's Discord: one server with three channels and a thread, three people, and their direct messages.

Everything is made in a fixed order, before the bot logs in: ids follow the order, so it knows you again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import discord
import simcord
from simcord.backend.access import channel_accessible

from discoclaw.demo.live import LiveEnv

GUILD_ID: Final = 100_000_000_000_000_001
OTHER_CHANNELS: Final = {"cooking": "Recipes, and what to eat", "general": "Anything else"}
"""What the second channel is called: the first of these names that the first one doesn't have."""
_LATER: Final = "weekend-trip"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom you can be on the page. `about` says who that is."""

    about: str
    member: simcord.MemberActor

    @property
    def id(self) -> int:
        return self.member.id

    @property
    def name(self) -> str:
        """The name that is shown."""
        return self.member.user.global_name or self.member.name

    def on(self, channel: simcord.ChannelHandle) -> Any:
        """Who acts in a channel: simcord has other acts for direct messages than for servers."""
        return self.member if channel.guild is not None else self.member.user


def id_of(named: str) -> int:
    """The id that a page names; 0, which nothing has, if that is no id."""
    return int(named) if named.isascii() and named.isdigit() and len(named) <= 20 else 0


class World:
    """Everything there is before the bot logs in."""

    def __init__(self, channel: str) -> None:
        self.env = LiveEnv()
        make, hidden = self.env.create_user, discord.PermissionOverwrite(view_channel=False)
        shown = discord.PermissionOverwrite(view_channel=True)
        self.you, sam = make("you"), make("sam", global_name="Sam")
        # Discord offers the commands for admins only to people who may manage the server.
        self.guild = self.env.create_guild("DiscoClaw demo", id=GUILD_ID, owner=self.you)
        other, topic = next(one for one in OTHER_CHANNELS.items() if one[0] != channel)
        self.general = self.guild.create_text_channel(channel, topic="Trying out a bot that remembers")
        self.other = self.guild.create_text_channel(other, topic=topic)
        self.private = self.you.dm_channel
        mo = make("mo", global_name="Mo")
        admins = self.guild.create_role(
            "Admins", permissions=discord.Permissions(manage_guild=True, manage_messages=True)
        )
        self.staff = self.guild.create_text_channel(
            "staff",
            topic="Only you and Mo can read this",
            overwrites={
                self.guild.default_role: hidden,
                admins: shown,
                simcord.UserHandle(self.env, self.env.backend.bot_user): shown,  # else it is shut out as well
            },
        )
        self._members = [
            Person("You own the bot and the server", self.guild.add_member(self.you)),
            Person("Somebody else on the server", self.guild.add_member(sam)),
            Person("An admin of the server", self.guild.add_member(mo, roles=[admins])),
        ]
        self.people = {one.id: one for one in self._members}
        for user in (sam, mo):
            user.dm_channel  # noqa: B018 - made now, so that its id is the same in every run
        # Without a word in the channel, so that nothing stands there before you have said something.
        self.thread = self.env.backend.create_thread(self.general.id, _LATER, self.you.id, broadcast=False)

    def person(self, named: str) -> Person:
        """The person with an id. Raises SetupError."""
        if (found := self.people.get(id_of(named))) is None:
            raise simcord.SetupError("There is no such person")
        return found

    def channel(self, person: Person, named: str) -> simcord.ChannelHandle:
        """The channel with an id, if the person may see it. Raises SetupError."""
        backend = self.env.backend
        if not channel_accessible(backend, id_of(named), person.id, history=True):
            raise simcord.SetupError("There is no such channel")
        found = backend.get_channel(id_of(named))
        return simcord.ChannelHandle(self.env, self.guild if found.guild_id is not None else None, found)

    def places(self, person: Person) -> Iterator[dict[str, Any]]:
        """What a person sees in the list of channels; threads follow their channel."""
        backend = self.env.backend
        seen = [
            one
            for one in backend.channels.values()
            if channel_accessible(backend, one.id, person.id, history=True)
        ]
        everybody = self.guild.id
        for one in sorted(seen, key=lambda one: (one.guild_id is None, one.parent_id or one.id, one.id)):
            newest = max(backend.messages.get(one.id, ()), default=0)
            yield {
                "id": str(one.id),
                "name": one.name or backend.bot_user.name,
                "kind": "thread" if one.is_thread else "dm" if one.guild_id is None else "text",
                "topic": one.topic or "",
                "private": any(over.target_id == everybody and over.deny & 1024 for over in one.overwrites),
                "last": str(newest),
            }
