"""The image's command and health check, as its Dockerfile has them, on an empty volume.

What Docker adds (another user, a read-only root, no capabilities) needs root, so it isn't tried here.
"""

import asyncio
import json
import os
import re
import shlex
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
import pytest_asyncio

from tests.process.house import OURS, START_S, Bot, House

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCKERFILE = Path(__file__).parents[2] / "deploy" / "Dockerfile"
VOLUME = "/data"
INSTALLED = "/opt/discoclaw"


@dataclass(frozen=True, slots=True)
class Image:
    """What the last stage of a Dockerfile says about a container."""

    environment: dict[str, str]
    command: list[str]
    health: list[str]

    @classmethod
    def of(cls, dockerfile: str) -> Self:
        last = re.sub(r"\\\n", " ", dockerfile).rpartition("\nFROM ")[2]
        said = dict(re.findall(r"^([A-Z]+) +(.+)$", last, re.M))
        return cls(
            dict(word.split("=", 1) for word in shlex.split(said["ENV"])),
            json.loads(said["ENTRYPOINT"]) + json.loads(said["CMD"]),
            json.loads(said["HEALTHCHECK"].partition(" CMD ")[2]),
        )


class Container:
    """The image with a volume, this checkout as what is installed in it, and a port that is free."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._image = Image.of(DOCKERFILE.read_text(encoding="utf-8"))
        self.volume = house.folder / "volume"
        self.volume.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._metrics = f"127.0.0.1:{free.getsockname()[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What the image sets, and below it what the admin's `.env` says."""
        image = dict(self._image.environment)
        del image["PYTHONDONTWRITEBYTECODE"]  # pip compiled what is in the image; a checkout may not be yet
        assert (image["DISCOCLAW_DATA_DIR"], image["DISCOCLAW_METRICS"]) == (VOLUME, "127.0.0.1:9464")
        told = {name: value for name, value in self._house.environment().items() if name.startswith(OURS)}
        return {
            **told,
            **image,
            "PATH": image["PATH"].replace(INSTALLED, sys.prefix).replace("$PATH", os.defpath),
            "DISCOCLAW_DATA_DIR": str(self.volume),
            "DISCOCLAW_METRICS": self._metrics,
        }

    async def start(self) -> Bot:
        """Run the image's command."""
        bot = Bot(await self._process(self._image.command))
        self._house.lives.append(bot)
        return bot

    async def health(self) -> tuple[bool, str]:
        """What the image's health check says, and why. Its exit code is 0 or 1: Docker reserves 2."""
        check = Bot(await self._process(self._image.health))
        code = await check.ended()
        assert code in (0, 1), check.stderr
        return code == 0, check.stdout

    async def becomes(self, healthy: bool) -> str:
        """Ask until the health check says so, as Docker does. Returns why."""
        why = ""
        try:
            async with asyncio.timeout(START_S):
                while True:
                    is_healthy, why = await self.health()
                    if is_healthy == healthy:
                        return why
        except TimeoutError:
            raise TimeoutError(f"the last health check said:\n{why}") from None

    async def _process(self, command: list[str]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command, cwd=self.volume, env=self.environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def container(house: House) -> Container:
    return Container(house)


async def test_it_is_healthy_while_the_bot_is_connected_and_only_then(
    house: House, container: Container
) -> None:
    lobby = house.discord.add_channel("lobby")
    assert (await container.health())[0] is False
    bot = await container.start()
    # Each health check is a process of its own, so it waits until there is something to see.
    await house.discord.wait_for_gateway("identify", timeout=START_S)
    await house.answered_to(house.ann, lobby, "hello")
    await container.becomes(healthy=True)
    async with house.discord.outage():
        assert "Discord: not connected" in await container.becomes(healthy=False)
    await house.answered_to(house.ann, lobby, "hello again")
    await container.becomes(healthy=True)
    bot.terminate()
    assert await bot.ended() == 0
    assert (await container.health())[0] is False
    assert {path.name for path in house.folder.iterdir()} == {container.volume.name}  # it wrote nowhere else
