"""The demo's Discord: one server with three channels and a thread, three people, and their direct messages.

Everything is made in a fixed order, before the bot logs in: ids follow the order, so it knows you again.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import discord
import simcord
from simcord.backend.access import channel_accessible

GUILD_ID: Final = 100_000_000_000_000_001
OTHER_CHANNELS: Final = {"cooking": "Recipes, and what to eat", "general": "Anything else"}
"""Names for the second channel: the first of these names that the first one doesn't have."""
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
        """The acts for a channel: simcord has others for direct messages than for servers."""
        return self.member if channel.guild is not None else self.member.user


def id_of(named: str) -> int:
    """The id that a page names; 0, which nothing has, if that isn't an id."""
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
        """The list of channels as a person sees it; threads follow their channel."""
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


# ---------------------------------------------------------------------- simcord in real time

TYPING_S: Final = 9.0
"""How long Discord shows that somebody types."""


class LiveEnv(simcord.Env):
    """A simulated Discord in real time. Build its servers and people, then `connect` a client.

    Ids are the same in every run, since the clock stands still until then. simcord takes one act at a time:
    hold `acting` around each. It ends at once, and what the bot does about it is told to who is `watching`.
    """

    def __init__(self) -> None:
        nobody: Any = None  # the client comes later: who owns the bot is one of its settings
        super().__init__(nobody, check_errors=False)
        self.acting = asyncio.Lock()
        self._watching: set[asyncio.Event] = set()
        self._typing: dict[tuple[int, int], float] = {}
        # Both are for reports of tests, and grow for ever. Only the first sees ephemeral messages change.
        self.backend.transcript = _Told(self._happened)
        self.backend.http_requests = _Told(lambda entry: None)

    async def connect(self, client: discord.Client) -> None:
        """Let the clock run, log a client in, and wait until it knows the servers."""
        clock: Any = _RealTime()
        self.backend.clock = clock
        self.bot = client
        await self.start()
        await client.wait_until_ready()

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever something has happened. Who waits for it clears it."""
        event = asyncio.Event()
        self._watching.add(event)
        try:
            yield event
        finally:
            self._watching.discard(event)

    def typing(self, channel_id: int) -> list[int]:
        """The ids of those who type in a channel."""
        now = time.monotonic()
        self._typing = {key: until for key, until in self._typing.items() if until > now}
        return sorted(who for where, who in self._typing if where == channel_id)

    def _happened(self, entry: tuple[str, str, Any]) -> None:
        kind, name, payload = entry
        if (kind, name) == ("GATEWAY", "TYPING_START"):
            who = int(payload["channel_id"]), int(payload["user_id"])
            self._typing[who] = time.monotonic() + TYPING_S
        elif (kind, name) == ("GATEWAY", "MESSAGE_CREATE"):
            self._typing.pop((int(payload["channel_id"]), int(payload["author"]["id"])), None)
        # A request is noted before it is carried out.
        asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        for event in self._watching:
            event.set()

    # ------------------------------------------------------------------ what simcord does otherwise

    @contextmanager
    def _bot_scope(self) -> Iterator[None]:
        """Tasks and timers made in the scope of simcord would be tracked, and awaited by every action."""
        with self.time_context():  # what else there is in that scope: how discord.py answers interactions
            yield

    async def _settle_internal(self, **_: Any) -> None:
        """End an action at once."""
        await asyncio.sleep(0)


class _Told(list[Any]):
    """A list that keeps nothing, and tells of what is appended to it."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, entry: Any) -> None:
        self._tell(entry)


class _RealTime:
    """The clock of the simulated Discord: that of this machine."""

    _began = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    @property
    def elapsed(self) -> float:
        """Seconds since the clock's first moment, which is simcord's own."""
        return time.time() - self._began

    def now(self) -> datetime:
        return datetime.now(UTC)

    def advance(self, seconds: float) -> None:
        """Time passes by itself."""
