"""The whole program in this process, as people meet it: a simulated Discord, a model server, files, commands.

    async with start() as world:
        world.brain.learns("User likes tea.", about="tea")
        await world.says(world.ann, world.general, "I like tea")
        assert world.memories(world.ann) == ["User likes tea."]

discord.py, the SDK, the files and HTTP are real. Tests of this folder import nothing of the program but what
is imported here: `build`, `Settings` and the command line. They look at what people, admins and other
programs see: messages and cards, what the model was sent, files, what a command prints.

What surprises: `!memory forget <words>` asks which memory is meant, unless the words are all of its text. A
first answer brings a welcome (if `welcome=True`) only where the bot was mentioned or written to. What follows
an opt-out or an erasing is on the disk after `world.settle()`.
"""

import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import copy_context
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anthropic  # noqa: F401
import discord
import simcord
from typer.testing import CliRunner, Result

from discoclaw.app import App, build
from discoclaw.cli.main import cli
from discoclaw.settings import Settings
from tests.contract.brain import Brain, is_talk, message_of
from tests.contract.cards import said
from tests.contract.simulated import quicken
from tests.servers.messages_api import MessagesServer, Received

GUILD_ID = 100_000_000_000_000_001
OURS = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_", "OPENAI_")
"""How the names of the program's environment variables begin."""

quicken()
# The bot imports anthropic with its first start. Here that is while tests are collected, so that no garbage
# collection looks at the 150,000 objects it makes.


class World:
    """A bot and a small server: two open channels, a hidden one, and two people on the allowlist.

    `folder` holds `data/` and `content/`. Times are those of the simulated Discord, which stand still until
    `env.advance_time`. `server` is the Messages API that the bot asks; `brain` is what it answers.
    """

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder, self.data = folder, folder / "data"
        self.brain = Brain()
        self.server = MessagesServer(default=self.brain, together=True)
        self.app: App
        self.env: simcord.Env
        self._stack = stack
        self._running = AsyncExitStack()
        self._changes: dict[str, Any] = {}

    async def begin(self, changes: dict[str, Any]) -> None:
        self._changes = changes
        await self._stack.enter_async_context(self.server)
        await self._start_app()
        self.env = await self._stack.enter_async_context(simcord.run(self.app.client, settle_timeout=20))
        self.guild = self.env.create_guild("Home", id=GUILD_ID)
        self.general = self.guild.create_text_channel("general")
        self.dev = self.guild.create_text_channel("dev")
        nobody = {self.guild.default_role: discord.PermissionOverwrite(view_channel=False)}
        self.hidden = self.guild.create_text_channel("hidden", overwrites=nobody)
        self.ann = self.guild.add_member(self.env.create_user("ann"))
        self.bob = self.guild.add_member(self.env.create_user("bob"))
        self.ann_dm, self.bob_dm = self.ann.user.dm_channel, self.bob.user.dm_channel
        await self.env.settle()

    async def _start_app(self) -> None:
        # No environment is read: everybody on the server may talk, and is answered without a mention.
        values = {
            "allow_roles": frozenset({str(GUILD_ID)}),
            "respond_mode": "all",
            "data_dir": self.data,
            "content_dir": self.folder / "content",
            "base_url": self.server.base_url,
            "edit_interval_s": 0.05,
            "summary_every": 2,
            "durable_every": 1,
            "shutdown_grace_s": 2.0,
            "welcome": False,  # one more message below somebody's first answer
            "context_tokens": 128_000,  # as if no server said it; each start asks ten times
        }
        values |= self._changes
        given = {name: values.pop(name) for name in ("model", "catalogue", "toolbox") if name in values}
        self.app = build(Settings(_env_file=None, **values), clock=self._now, **given)
        await self._running.enter_async_context(self.app)

    def _now(self) -> int:
        env = getattr(self, "env", None)
        return int(env.now().timestamp() * 1000) if env is not None else 0

    async def stop(self) -> None:
        """Stop the bot. Discord and the model server stay."""
        await self._running.aclose()

    async def restart(
        self,
        *,
        meanwhile: Callable[[], None] = lambda: None,
        before_login: Callable[[], Awaitable[None]] | None = None,
        **changes: Any,
    ) -> None:
        """Stop the bot and start a new one on the same files and the same Discord."""
        self._changes = {**self._changes, **changes}
        await self.stop()
        meanwhile()
        self._running = AsyncExitStack()
        await self._start_app()
        if before_login is not None:
            await before_login()
        await self.env.restart_bot(self.app.client)

    # --- talking ---

    async def settle(self) -> None:
        """Wait for turns, loops and mirrors."""
        await self.env.settle()
        await self.app.settle()

    async def says(self, person: Any, place: Any, words: str, **how: Any) -> str:
        """Somebody writes in a channel, or to the bot in their DM channel; returns the newest message there.

        Waits until the answer has come and what follows it (learning, a summary) is done.
        """
        direct = place.id == person.user.dm_channel.id
        await (person.send_dm(words, **how) if direct else person.send(place, words, **how))
        await self.settle()
        return self.answer(place)

    async def remember(self, person: Any, *texts: str) -> None:
        """Somebody has the bot remember these, one after another, in #general."""
        for one in texts:
            await person.send(self.general, f"!memory remember {one}")
        await self.settle()

    @property
    def mention(self) -> str:
        """How people address the bot."""
        return f"<@{self.env.bot.user.id}>"

    def answer(self, place: Any) -> str:
        """The newest message of a channel."""
        return said(place.last_message)

    def shown(self, place: Any) -> list[str]:
        """What a channel shows, oldest first."""
        return [said(message) for message in place.history()]

    # --- what the model was sent ---

    def turns(self, about: str = "") -> list[Received]:
        """The requests for answers to messages that hold `about`, oldest first."""
        return [one for one in self.server.requests if is_talk(one) and about in message_of(one)]

    def background(self, field: str = "") -> list[Received]:
        """The requests of the background loops whose answer has this field ("upserts", "summary")."""
        asked = [one for one in self.server.requests if not is_talk(one)]
        return [one for one in asked if not field or field in one.schema["properties"]]

    @property
    def prompt(self) -> str:
        """The user's part of the newest request for an answer."""
        content = self.turns()[-1].body["messages"][0]["content"]
        return content if isinstance(content, str) else "".join(one.get("text", "") for one in content)

    # --- what is on disk ---

    def durable(self, person: Any) -> Path:
        """The file that shows what is remembered about somebody."""
        return self.data / "memory" / "durable" / f"{person.id}.json"

    def items(self, person: Any) -> list[dict[str, Any]]:
        """All memories about somebody, as their file has them; also those that are no longer used."""
        path = self.durable(person)
        return json.loads(path.read_bytes())["items"] if path.exists() else []

    def memories(self, person: Any) -> list[str]:
        """The texts of the memories about somebody that are in use."""
        return [item["text"] for item in self.items(person) if item["status"] == "active"]

    def files_with(self, words: str) -> list[str]:
        """The files below `data/` that hold these words, as plain bytes."""
        wanted = words.encode()
        found = [path for path in self.data.rglob("*") if path.is_file() and wanted in path.read_bytes()]
        return sorted(str(path.relative_to(self.data)) for path in found)

    # --- the command line ---

    def cli(self, *words: str, typed: str | None = None, **environment: str) -> Result:
        """Type a command of `discoclaw` in the folder of this bot, in this process.

        It has a thread of its own, since a command runs its own event loop. For one that needs the bot's
        lock, call `stop` first.
        """
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
        ours = {"DISCOCLAW_DATA_DIR": str(self.data), "COLUMNS": "120", "TZ": "UTC", **environment}
        typing = partial(CliRunner().invoke, cli, list(words), input=typed, env={**unset, **ours})
        with ThreadPoolExecutor(1) as aside:
            return aside.submit(copy_context().run, typing).result()


Start = Callable[..., AbstractAsyncContextManager[World]]


def starting(folder: Path) -> Start:
    """`async with start(**settings) as world`; the settings are fields of `Settings`.

    Each world has a folder of its own. Tests of one part may also give a `model`, `catalogue` or `toolbox`
    for `build`.
    """
    folders = (folder / f"other-{number}" if number else folder for number in count())

    @asynccontextmanager
    async def begin(**changes: Any) -> AsyncIterator[World]:
        async with AsyncExitStack() as stack:
            world = World(next(folders), stack)
            try:
                await world.begin(changes)
                yield world
                await world.settle()
            finally:
                with contextlib.suppress(RuntimeError):  # it was stopped already
                    await world.stop()

    return begin
