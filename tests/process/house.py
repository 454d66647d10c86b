"""`discoclaw run` as its users run it: a process of its own, told everything by its environment.

A `House` has a Discord and a Messages API on the loopback address, a folder for the bot's files, and the
bot's lives one after another on those files. Tests share one as long as none has ended it: `running()` gives
the bot that runs, or begins its next life: from nothing, which takes seconds, or as a fork (`forks`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from discoclaw.core import titles
from tests.citing import cited, own_of
from tests.process.forks import Forks, Life, Source
from tests.servers.discord_bell import Bell
from tests.servers.discord_server import Channel, DiscordServer, Message, User
from tests.servers.messages_api import Behaviour, MessagesServer, Received, json_answer, text

TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
KEY = "sk-ant-api03-0123456789abcdefABCDEF-loopback"

START_S = 60.0  # a start is seconds of imports, and a loaded machine makes many of few
PATIENCE = 30.0
LEARNED_S = 10.0  # what was said is learned right behind the answer, and not at the next turn

OURS = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_")


class Brain:
    """What the Messages server answers, by what a request is about.

    Talk and loops ask side by side, so a plain queue of answers would go to whoever asks first.
    """

    def __init__(self) -> None:
        self._answers: list[tuple[str, deque[Behaviour]]] = []
        self._learned: list[tuple[str, Any]] = []
        self.usual: Callable[[str], Behaviour] = lambda message: text("ok")

    def answer(self, about: str, *behaviours: Behaviour) -> None:
        """The answers to messages that hold `about`, one after another."""
        self._answers.append((about, deque(behaviours)))

    def learn(self, about: str, *texts: str, kind: str = "preference") -> None:
        """What extraction makes of a person's message that holds `about`."""
        upserts = [{"kind": kind, "text": one, "tags": []} for one in texts]
        self._learned.append((about, {"upserts": upserts, "deprecations": []}))

    def __call__(self, request: Received) -> Behaviour:
        if is_talk(request):
            for about, behaviours in self._answers:
                if behaviours and about in message_of(request):
                    return behaviours.popleft()
            return self.usual(message_of(request))
        if "summary" in request.body["output_config"]["format"]["schema"]["properties"]:
            return json_answer({"summary": "They talked."})
        own = "\n".join(own_of(request.prompt).values())
        found = next((value for about, value in self._learned if about in own), {"upserts": []})
        return json_answer(cited(found, request.prompt))


def is_talk(request: Received) -> bool:
    """Whether a request is a turn of a talk, and not one of the loops'."""
    return "output_config" not in request.body


def message_of(request: Received) -> str:
    """What the person said, out of the prompt of a turn."""
    return request.prompt.rpartition(titles.MESSAGE)[2]


class Bot:
    """One life of the bot: its process and what it printed."""

    def __init__(self, process: Process | Life) -> None:
        self.process = process
        self.stdout = self.stderr = ""
        self._bell = Bell()
        self._readers = (asyncio.create_task(self._read_stdout()), asyncio.create_task(self._read_stderr()))

    @property
    def runs(self) -> bool:
        return self.process.returncode is None

    async def logged(self, words: str, *, patience_s: float = PATIENCE) -> str:
        """The first line of the log that holds `words`."""

        def found() -> str | None:
            return next((line for line in self.stderr.splitlines() if words in line), None)

        return await self._bell.wait_until(
            found, lambda: f"no {words!r} in the log:\n{self.stderr}", patience_s
        )

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()

    async def ended(self, patience_s: float = PATIENCE) -> int:
        """Its exit code, once it has ended and everything it printed is read."""
        try:
            async with asyncio.timeout(patience_s):
                code = await self.process.wait()
                await asyncio.gather(*self._readers)
        except TimeoutError:
            raise TimeoutError(f"it still runs after {patience_s} s:\n{self.stderr}") from None
        return code

    async def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.stdout += line.decode()

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.stderr += line.decode()
            await self._bell.ring()


class House:
    """The servers, the people, the folder, and the bot's lives. Ann and Bea may talk to it, Guy may not."""

    def __init__(self, folder: Path, *, forks: Source | None = None) -> None:
        self.folder = folder
        self._forks = Forks(forks) if forks is not None else None
        self.data = folder / "data"
        self.discord = DiscordServer(token=TOKEN)
        self.brain = Brain()
        self.model = MessagesServer(default=self.brain)
        self.ann, self.bea, self.guy = (self.discord.add_user(name) for name in ("Ann", "Bea", "Guy"))
        self.lives: list[Bot] = []
        self._now: tuple[Bot, dict[str, str]] | None = None  # the connected bot, and what it was told

    async def __aenter__(self) -> Self:
        await self.discord.__aenter__()
        await self.model.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for bot in self.lives:
            if bot.runs:
                bot.kill()
            await bot.ended()
        if self._forks is not None:
            await self._forks.close()
        await self.model.__aexit__()
        await self.discord.__aexit__()
        assert [f"{call.method} {call.path}" for call in self.discord.unknown] == []

    # --- the bot's lives ---

    def environment(self, **changes: str | None) -> dict[str, str]:
        """All that the bot is told; a change to None leaves a variable out."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        told: dict[str, str | None] = {
            "DISCORD_TOKEN": TOKEN,
            "DISCORD_API_BASE": self.discord.rest_base,
            "DISCORD_GATEWAY": self.discord.gateway_url,
            "DISCORD_ALLOW_USER_IDS": f"{self.ann.id}, {self.bea.id}",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.model.base_url,
            "DISCOCLAW_DATA_DIR": str(self.data),
            "DISCOCLAW_DURABLE_EVERY_N_TURNS": "1",
            "DISCOCLAW_EDIT_INTERVAL_S": "0.1",
            "DISCOCLAW_LOG_LEVEL": "DEBUG",
            "DISCOCLAW_WELCOME": "0",  # one more message below the first answer
            **changes,
        }
        return inherited | {name: value for name, value in told.items() if value is not None}

    async def start(self, **changes: str | None) -> Bot:
        """Begin a life and wait for nothing."""
        environment = self.environment(**changes)
        if self._forks is not None:
            self.lives.append(Bot(await self._forks.start(self.folder, environment)))
            return self.lives[-1]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "discoclaw", "run"),
            cwd=self.folder,
            env=environment,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        self.lives.append(Bot(process))
        return self.lives[-1]

    async def running(self, **changes: str) -> Bot:
        """The bot of these settings, connected: the one that runs, or a new one on the same files."""
        if self._now is not None and self._now[0].runs:
            bot, told = self._now
            if told == changes:
                return bot
            bot.terminate()
            await bot.ended()
        before = len(self.discord.received("identify"))
        bot = await self.start(**changes)
        self._now = (bot, changes)
        try:
            await self.discord.wait_for_gateway("identify", count=before + 1, timeout=START_S)
        except TimeoutError:
            raise TimeoutError(f"it did not come up:\n{bot.stderr}") from None
        return bot

    def printed(self) -> str:
        """Everything that any of its lives has printed so far."""
        return "".join(life.stdout + life.stderr for life in self.lives)

    # --- talking ---

    async def ask(self, person: User, channel: Channel, words: str) -> Message:
        """Mention the bot and say something."""
        return await self.discord.say(person, channel, f"{self.discord.bot.mention} {words}")

    async def answered_to(self, person: User, channel: Channel, words: str) -> None:
        """Mention the bot and say something, and wait for its reply to that."""
        asked = await self.ask(person, channel, words)
        await self.discord.wait_for_message(
            channel, predicate=lambda message: message.reply_to is asked, timeout=PATIENCE
        )

    async def answered(self, channel: Channel, words: str = "") -> Message:
        """The bot's answer there that holds `words`, as it first did."""
        return await self.discord.wait_for_message(channel, words, timeout=PATIENCE)

    def texts(self, channel: Channel) -> list[str]:
        return [message.content for message in self.discord.bot_messages(channel)]

    def request(self, about: str) -> Received:
        """The newest request for an answer to a message that holds `about`."""
        talk = [one for one in self.model.requests if is_talk(one) and about in message_of(one)]
        return talk[-1]

    # --- what is on disk ---

    def inbox(self) -> dict[str, Any]:
        """What is on disk of each conversation, by its key."""
        files = [self.data / "memory" / "cursors" / f"inbox{which}.json" for which in ("", "_recent")]
        return {
            key: one for file in files if file.exists() for key, one in json.loads(file.read_text()).items()
        }

    def open_on_disk(self) -> dict[str, list[str]]:
        """The messages that wait for their answer there, with what was shown of it."""
        return {one["id"]: one["shown"] for inbox in self.inbox().values() for one in inbox["open"]}

    def durable(self, person: User) -> list[str]:
        """The texts of a person's active items, as their file has them."""
        path = self.data / "memory" / "durable" / f"{person.id}.json"
        items = json.loads(path.read_bytes())["items"] if path.exists() else []
        return [item["text"] for item in items if item["status"] == "active"]

    async def remembers(self, person: User, words: str) -> None:
        """Wait until a person's file holds an item with `words`."""
        async with asyncio.timeout(LEARNED_S):
            while not any(words in one for one in self.durable(person)):  # noqa: ASYNC110 - a file rings no bell
                await asyncio.sleep(0.02)
