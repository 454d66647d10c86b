"""Several processes of `discoclaw run` on one PostgreSQL and one Discord that shards.

Each process has its own data folder and log, its own shards, and its own line to the database, which a test
delays, holds or cuts for that one alone. People, servers and the model are those of `House`. What people were
promised is noted in `promises`, and checked there.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.citing import cited, own_of, talk_of
from tests.process.forks import Source
from tests.process.house import PATIENCE, START_S, Bot, Brain, House, is_talk
from tests.process.promises import Promises, is_notice
from tests.servers.discord_server import Channel, Guild, Message, User
from tests.servers.line import Line
from tests.servers.messages_api import Behaviour, Received, json_answer
from tests.servers.postgres import Postgres

PROCESSES, SHARDS = 4, 8
RESTART_S = 1.0
"""The pause of a supervisor before it starts a process again."""
WAITING = "waiting until that ends"
TOKENS = re.compile(r"\bzq[0-9]+x\b")
LIKED = re.compile(r"\bI like (zq[0-9]+x)\b")


class Gossip(Brain):
    """A model that repeats all it is told: it learns what somebody likes, and sums up every such word."""

    def __call__(self, request: Received) -> Behaviour:
        if is_talk(request):
            return super().__call__(request)
        if "summary" in request.body["output_config"]["format"]["schema"]["properties"]:
            words = dict.fromkeys(TOKENS.findall("\n".join(text for *_, text in talk_of(request.prompt))))
            lines = [f"- They talked about {word}." for word in words]
            return json_answer({"summary": "\n".join(lines) or "They talked."})
        liked = LIKED.findall("\n".join(own_of(request.prompt).values()))
        upserts = [
            {"kind": "preference", "text": f"User likes {word}", "tags": [], "source": f"I like {word}"}
            for word in dict.fromkeys(liked)
        ]
        return json_answer(cited({"upserts": upserts, "deprecations": []}, request.prompt))


class Member:
    """One of the processes: its shards, its data folder, its line to the database, and its lives."""

    def __init__(self, fleet: Fleet, number: int, shards: str, line: Line) -> None:
        self._fleet = fleet
        self.number = number
        self.shards = shards
        self.line = line
        self.data = fleet.folder / f"data-{number}"
        self.bot: Bot | None = None
        self.told: dict[str, str] = {}

    @property
    def shard_ids(self) -> list[int]:
        first, _, last = self.shards.partition("/")[0].partition("-")
        return list(range(int(first), int(last or first) + 1))

    @property
    def runs(self) -> bool:
        return self.bot is not None and self.bot.runs

    async def start(self, **changes: str) -> Bot:
        """Begin a life, and wait for nothing."""
        self.told = changes
        self.bot = await self._fleet.start(
            DISCOCLAW_DATA_DIR=str(self.data),
            DISCOCLAW_STORE=self.line.url(self._fleet.url),
            DISCOCLAW_SHARDS=self.shards,
            **changes,
        )
        return self.bot

    async def connected(self, patience_s: float = START_S) -> None:
        """Wait until some process serves each of its shards."""
        assert self.bot is not None
        shards = [
            asyncio.create_task(self._fleet.discord.wait_for_shard(shard, SHARDS, timeout=patience_s))
            for shard in self.shard_ids
        ]
        ended = asyncio.create_task(self.bot.process.wait())
        all_here = asyncio.gather(*shards)
        try:
            await asyncio.wait({ended, all_here}, return_when=asyncio.FIRST_COMPLETED)
            if not all_here.done():
                raise TimeoutError("it ended")
            await all_here
        except TimeoutError as error:
            raise TimeoutError(f"{error}; {self.shards} said:\n{self.log()}") from None
        finally:
            for one in (ended, *shards):
                one.cancel()

    async def kept_up(self) -> None:
        """Wait for the same, and start it again when it ends, as its supervisor would."""
        while True:
            try:
                await self.connected()
                return
            except TimeoutError:
                if self.runs:
                    raise
            await asyncio.sleep(RESTART_S)
            await self.start(**self.told)

    async def kill9(self) -> None:
        assert self.bot is not None
        self.bot.kill()
        await self.bot.ended()

    async def end(self) -> int:
        """Stop it as its admin would."""
        assert self.bot is not None
        self.bot.terminate()
        return await self.bot.ended()

    async def waits(self) -> None:
        """Wait until it says that it waits for its shards. As long as it ends instead, start it again."""
        while True:
            assert self.bot is not None
            said = asyncio.create_task(self.bot.logged(WAITING))
            ended = asyncio.create_task(self.bot.process.wait())
            await asyncio.wait({said, ended}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            if self.runs:
                await said
                return
            said.cancel()
            await asyncio.sleep(RESTART_S)
            await self.start(**self.told)

    def stop(self) -> None:
        """SIGSTOP: it stays as it is, and does nothing."""
        assert self.bot is not None
        self.bot.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.bot is not None
        self.bot.process.send_signal(signal.SIGCONT)

    def log(self, last: int = 60) -> str:
        return "" if self.bot is None else "\n".join(self.bot.stderr.splitlines()[-last:])


class Fleet(House):
    """The processes, and everything that they share.

    `home` is a server on shard 1, and there is one more for each other process but the first, which has the
    direct messages. Everybody whom `person` makes is in all of them.
    """

    def __init__(
        self, folder: Path, postgres: Postgres, *, forks: Source | None = None, processes: int = PROCESSES
    ) -> None:
        super().__init__(folder, forks=forks)
        self.postgres = postgres
        self.url = postgres.new_database()
        self.brain = Gossip()
        self.model.default = self.brain
        self.discord.identify_limits.max_concurrency = 16  # as Discord gives large bots
        self.role = self.discord.add_role("people")
        self.guilds = [
            self.discord.add_guild(f"Guild {shard}", shard=(shard, SHARDS)) for shard in (1, 3, 5, 7)
        ]
        self.roles = {guild.id: self.discord.add_role("people", guild=guild) for guild in self.guilds}
        self.promises = Promises(self)
        self._words, self._numbers = itertools.count(1), itertools.count()
        self._each = SHARDS // processes
        self.resources = ExitStack()
        self.members: list[Member] = []
        self._processes = processes
        self._hosts: tuple[User, list[Channel]] | None = None
        self.troubled: set[Member] = set()
        """Those to which something was done since `up`."""
        self.in_pairs: set[Member] = set()
        """Those that were to be replaced since then, and those that replace them."""

    async def __aenter__(self) -> Self:
        for number in range(self._processes):
            self.add_member(number * self._each)
        return await super().__aenter__()

    async def __aexit__(self, *about: object) -> None:
        for member in self.members:
            if member.runs:
                member.go_on()
        await super().__aexit__(*about)
        self.resources.close()

    def environment(self, **changes: str | None) -> dict[str, str]:
        allowed = ",".join(str(role.id) for role in (self.role, *self.roles.values()))
        mine = {
            "DISCORD_ALLOW_ROLE_IDS": allowed,
            "DISCORD_ALLOW_USER_IDS": None,
            "DISCOCLAW_SUMMARY_EVERY_N_TURNS": "2",
            "DISCOCLAW_LOG_LEVEL": os.environ.get("FLEET_LOG", "INFO"),
        }
        return super().environment(**mine, **changes)

    # --- processes ---

    def add_member(self, first: int) -> Member:
        """One more process, for the shards from this one on; nobody has started it yet."""
        line = self.resources.enter_context(Line(self.postgres.port))
        shards = f"{first}-{first + self._each - 1}/{SHARDS}"
        member = Member(self, next(self._numbers), shards, line)
        self.members.append(member)
        return member

    async def up(self) -> None:
        """Let every process run, and every shard be connected."""
        self.troubled.clear()
        self.in_pairs.clear()
        members = self.members[: self._processes]
        for member in members:
            if not member.runs:
                await member.start(**member.told)
        async with asyncio.timeout(START_S):
            for member in members:
                await member.kept_up()

    def twin(self, member: Member) -> Member:
        """A second process for the shards of another one."""
        return self.add_member(member.shard_ids[0])

    async def one_of(self, first: Member, second: Member) -> None:
        """Wait until the second process has the shards and the first one has ended."""
        assert first.bot is not None
        await second.connected()
        await first.bot.ended()
        self.members.remove(second)
        self.members[self.members.index(first)] = second

    def moved_to(self, server: Postgres) -> None:
        """Another server has the database from now on."""
        self.url = server.url(urlsplit(self.url).path.lstrip("/"))
        self.postgres = server
        for member in self.members:
            member.line.lead_to(server.port)

    def serves(self, place: Channel) -> Member:
        """The process whose shards a channel's events come to."""
        shard = place.guild.shard(SHARDS) if place.guild is not None else 0
        return next(one for one in self.members if shard in one.shard_ids)

    def logs(self) -> str:
        """The ends of the logs of all lives."""
        return "\n".join(
            f"--- life {number}, {bot.process.returncode}\n{_end_of(bot.stderr)}"
            for number, bot in enumerate(self.lives)
        )

    # --- people ---

    def person(self, name: str) -> User:
        """Somebody who is a member of all servers, and may talk to the bot."""
        user = self.discord.add_user(name, roles=[self.role])
        for guild in self.guilds:
            self.discord.join(user, guild, roles=[self.roles[guild.id]])
        return user

    def place(self, guild: Guild, name: str) -> Channel:
        return self.discord.add_channel(name, guild=guild)

    def word(self) -> str:
        """A word that nobody has said before."""
        return f"zq{next(self._words)}x"

    async def greeted(self) -> None:
        """Let each shard have handled something: before that, a process that is killed leaves no trace."""
        if self._hosts is None:
            self._hosts = self.person("Host"), [self.place(one, "entrance") for one in self.guilds]
        host, places = self._hosts
        for place in (*places, self.discord.dm(host)):
            await self.asks(host, place, "good morning")
        await self.promises.answered(host)

    async def asks(self, person: User, place: Channel, words: str = "how are you?") -> Message:
        """Ask something, which is to be answered once."""
        asked = await self.ask(person, place, f"{words} {self.word()}")
        self.promises.asked.append(asked)
        return asked

    async def likes(self, person: User, place: Channel) -> Message:
        """Tell the bot what one likes, from which it learns."""
        return await self.asks(person, place, f"I like {self.word()}, you know.")

    async def remember(self, person: User, place: Channel) -> Message:
        """Have something remembered."""
        return await self.commands(person, place, f"remember I keep {self.word()}")

    async def commands(self, person: User, place: Channel, words: str) -> Message:
        """Give a text command, which is to be answered once."""
        said = await self.discord.say(person, place, f"!memory {words}")
        self.promises.asked.append(said)
        return said

    async def replied(self, message: Message, words: str = "", patience_s: float = PATIENCE) -> Message:
        """The bot's reply to a message, once it holds `words`."""
        try:
            return await self.discord.wait_for_message(
                message.channel,
                words,
                predicate=lambda one: one.reply_to is message and not is_notice(one),
                after=message,
                timeout=patience_s,
            )
        except TimeoutError as error:
            raise TimeoutError(
                f"{message.content!r}: {error}\n{self.serves(message.channel).log()}"
            ) from None

    async def erased(self, person: User, place: Channel) -> Message:
        """Have everything about somebody erased, and wait until that is said to be done."""
        said = self.promises.said_by(person)
        command = await self.commands(person, place, "erase --yes")
        answer = await self.replied(command, patience_s=2 * PATIENCE)
        await self.promises.erased(said, answer)
        return answer

    async def learned(self, said: Message) -> None:
        """Wait until what somebody likes is in their ledger."""
        await self.promises.learned(said)

    async def opted_out(self, person: User, place: Channel) -> Message:
        """Have somebody opt out, and wait for the answer."""
        command = await self.commands(person, place, "optout")
        answer = await self.replied(command)
        self.promises.opted_out(person, answer)
        return answer


def _end_of(log: str) -> str:
    return "\n".join(line[:300] for line in log.splitlines()[-40:])
