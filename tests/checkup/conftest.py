"""Somebody who types `discoclaw doctor`: a loopback Discord, a loopback model, and a folder."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from discoclaw.checkup.answers import WANTED
from discoclaw.memory.stores import Disks, disks
from tests.cli.shell import Runner
from tests.evals.answers import as_summary, perfect
from tests.process.house import KEY, OURS, TOKEN
from tests.servers.discord_server import DiscordServer
from tests.servers.messages_api import Answer, Behaviour, MessagesServer, Received, text, tool_use


class Brain:
    """A model that can everything. A test changes what it does by replacing one of the attributes.

    It uses the tools as told, learns as the evals want it, and sees.
    """

    def __init__(self) -> None:
        self.talk: Callable[[Received], Behaviour] = lambda _: text("Hel", "lo.")
        self.tools: Callable[[Received], Behaviour] = lambda _: tool_use(
            ("t1", "memory_store", {"text": f"User's teapot is {WANTED}."})
        )
        self.learns: Callable[[str], str] = perfect
        self.sums_up: Callable[[str], str] = lambda _: as_summary("Anna moves the release to Friday.")
        self.sees: Callable[[Received], Behaviour] = lambda _: text("Yellow.")

    def __call__(self, request: Received) -> Behaviour:
        blocks = [
            one
            for message in request.body["messages"]
            if isinstance(message["content"], list)
            for one in message["content"]
        ]
        kinds = {one["type"] for one in blocks}
        if "output_config" in request.body:
            fields = request.body["output_config"]["format"]["schema"]["properties"]
            answer = self.sums_up if "summary" in fields else self.learns
            return _whole(answer(request.prompt))
        if "tool_result" in kinds:
            return text("I'll ", "remember ", "that.")
        if "image" in kinds:
            return self.sees(request)
        return self.tools(request) if request.body.get("tools") else self.talk(request)


def _whole(answer: str) -> Answer:
    return text(answer)


class Desk:
    """The folder, the servers, and the settings; `doctor(...)` types the command there."""

    def __init__(self, folder: Path, discord: DiscordServer, model: MessagesServer, brain: Brain) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.discord = discord
        self.model = model
        self.brain = brain
        self.owner = discord.add_user("Olga")
        self.ann = discord.add_user("Ann")
        self.talk = discord.add_channel("talk")

    @property
    def settings(self) -> dict[str, str]:
        return {
            "DISCORD_TOKEN": TOKEN,
            "DISCORD_API_BASE": self.discord.rest_base,
            "DISCORD_ALLOW_USER_IDS": str(self.ann.id),
            "DISCOCLAW_OWNER_IDS": str(self.owner.id),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.model.base_url,
            "DISCOCLAW_DATA_DIR": str(self.data),
        }

    async def doctor(self, *words: str, **changes: str | None) -> Result:
        """Run the command in another thread, because the servers live in this one."""
        unset = {name: None for name in os.environ if name.startswith((*OURS, "EMBEDDING_", "NOSTR_"))}
        environment = {**unset, **self.settings, "COLUMNS": "100", **changes}
        return await asyncio.to_thread(_typed, words, environment)

    async def found(self, *words: str, **changes: str | None) -> "Found":
        """What it finds, by topic and name."""
        result = await self.doctor(*words, "--json", **changes)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return Found(result)


def _typed(words: tuple[str, ...], environment: dict[str, str | None]) -> Result:
    from discoclaw.cli.main import cli

    return Runner().invoke(cli, ["doctor", *words], env=environment)


class Found:
    """What `--json` says."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.exit_code = result.exit_code
        self.json: dict[str, Any] = json.loads(result.stdout)

    def lines(self, topic: str = "", state: str = "") -> list[str]:
        """`name: text; way out` of the findings of a topic, or all."""
        return [
            f"{one['name']}: {one['text']}" + (f"; {one['wayOut']}" if one["wayOut"] else "")
            for one in self.json["findings"]
            if topic in ("", one["topic"]) and state in ("", one["state"])
        ]

    def only(self, topic: str, state: str) -> str:
        """The one line of this topic and state."""
        (one,) = self.lines(topic, state)
        return one


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    brain = Brain()
    monkeypatch.chdir(tmp_path)
    async with DiscordServer(token=TOKEN) as discord, MessagesServer(default=brain) as model:
        yield Desk(tmp_path, discord, model, brain)


def disk_of(data: Path, store: str) -> Disks:
    """The stores of a data folder."""
    return disks(store, data / "memory")
