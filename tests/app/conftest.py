"""The whole bot on a simulated Discord: real discord.py, real files, the offline model or a scripted one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import discord
import pytest
import simcord
from simcord.results import to_discord_message

from discoclaw.app import App, build
from discoclaw.core.ports import Model
from discoclaw.loops.hygiene import Hygiene
from discoclaw.memory.subjects.store import Memory
from discoclaw.models.anthropic.provider import AnthropicModel, AnthropicProvider
from discoclaw.models.offline.model import OfflineModel
from discoclaw.nostr import adapter
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.outgoing.mirror import Pace
from discoclaw.settings import Settings
from tests.contract.cards import said
from tests.contract.providers import PROVIDERS, Provider, served
from tests.servers.messages_api import MessagesServer

T = TypeVar("T")
GUILD_ID = 100_000_000_000_000_001

simcord.Env._settle_internal.__kwdefaults__["idle"] = 0.005
"""How often the simulated Discord looks whether the bot is quiet. It looks once too early after nearly every
message, and would then sleep for 50 ms; a test has many messages."""


def _newest(channel: Any) -> discord.Message | None:
    """The newest message of a channel. simcord makes all of them for it, and copies each deeply."""
    kept = channel._env.backend.messages.get(channel.id, {})
    seen = [message for message in kept.values() if message.visible_to(None)]
    return to_discord_message(channel._env, max(seen, key=lambda one: one.id)) if seen else None


simcord.ChannelHandle.last_message = property(_newest)


@pytest.fixture(params=PROVIDERS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    """Each provider in turn, with its server."""
    found = served(request.param)
    async with found.server:
        found.server.default = found.answer
        yield found


@pytest.fixture
async def server() -> AsyncIterator[MessagesServer]:
    """A Messages API on loopback, which answers what a test scripts."""
    async with MessagesServer() as running:
        yield running


@pytest.fixture
async def model(server: MessagesServer) -> AsyncIterator[AnthropicModel]:
    """The real SDK's model at that server."""
    provider = AnthropicProvider(base_url=server.base_url, connect_timeout_s=1)
    yield provider.model("haiku", total_timeout_s=10)
    await provider.close()


class World:
    """A bot and a small server: two open channels, a hidden one, and two people on the allowlist.

    `folder` holds `data/` and `content/`. Times are those of the simulated Discord, which stand still.
    """

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.app: App
        self.env: simcord.Env
        self._stack = stack
        self._running = AsyncExitStack()

    async def begin(self, model: Model | None, changes: dict[str, Any]) -> None:
        self._model, self._changes = model, changes
        await self._start_app()
        self.env = await self._stack.enter_async_context(simcord.run(self.app.client, settle_timeout=20))
        self.guild = self.env.create_guild("Home", id=GUILD_ID)
        self.general = self.guild.create_text_channel("general")
        self.dev = self.guild.create_text_channel("dev")
        nobody = {self.guild.default_role: discord.PermissionOverwrite(view_channel=False)}
        self.hidden = self.guild.create_text_channel("hidden", overwrites=nobody)
        ann = self.env.create_user("ann")
        self.ann = self.guild.add_member(ann)
        self.ann_dm = ann.dm_channel
        self.bob = self.guild.add_member(self.env.create_user("bob"))
        await self.env.settle()

    async def _start_app(self) -> None:
        changes = dict(self._changes)
        added = {name: changes.pop(name) for name in ("catalogue", "toolbox") if name in changes}
        settings = settings_for(self.folder, **changes)
        # Where the settings name a server, its models answer.
        named = settings.base_url or settings.openai_url or settings.model_servers
        model = self._model or (None if named else OfflineModel())
        self.app = build(settings, model=model, clock=self._now, **added)
        await self._running.enter_async_context(self.app)

    def _now(self) -> int:
        env = getattr(self, "env", None)
        return int(env.now().timestamp() * 1000) if env is not None else 0

    async def restart(
        self,
        model: Model | None = None,
        *,
        meanwhile: Callable[[], None] = lambda: None,
        before_login: Callable[[], Awaitable[None]] | None = None,
        **changes: Any,
    ) -> None:
        """Stop the bot and start a new one on the same files and the same Discord."""
        self._model, self._changes = model or self._model, {**self._changes, **changes}
        await self._running.aclose()
        meanwhile()
        self._running = AsyncExitStack()
        await self._start_app()
        if before_login is not None:
            await before_login()
        await self.env.restart_bot(self.app.client)

    async def settle(self) -> None:
        """Wait for turns, loops and mirrors."""
        await self.env.settle()
        await self.app.settle()

    async def end(self) -> None:
        await self._running.aclose()

    @property
    def model(self) -> Any:
        """The model that the bot was given."""
        return self._model

    @property
    def memory(self) -> Memory:
        return self.app.storage.memory

    @property
    def hygiene(self) -> Hygiene:
        return running(self.app, Hygiene)

    @property
    def mirror(self) -> NostrAdapter:
        """The mirror on relays, where there is one."""
        assert isinstance(self.app.mirror, NostrAdapter)
        return self.app.mirror

    def durable(self, person: Any) -> Path:
        return self.folder / "data" / "memory" / "durable" / f"{person.id}.json"

    def answer(self, channel: Any) -> str:
        """The newest message of a channel."""
        return said(channel.last_message)

    def shown(self, channel: Any) -> list[str]:
        """What a channel shows, oldest first."""
        return [said(message) for message in channel.history()]


def running(app: App, kind: type[T]) -> T:
    """The part of a type among those that run."""
    (found,) = (one for one in app.services if isinstance(one, kind))
    return found


Start = Callable[..., AbstractAsyncContextManager[World]]


def settings_for(folder: Path, **changes: Any) -> Settings:
    """Settings that read no environment: everybody on the server may talk and is always answered."""
    values = {
        "allow_roles": frozenset({str(GUILD_ID)}),
        "respond_mode": "all",
        "data_dir": folder / "data",
        "content_dir": folder / "content",
        "edit_interval_s": 0.05,
        "summary_every": 2,
        "durable_every": 1,
        "shutdown_grace_s": 2.0,
        "welcome": False,  # one more message below somebody's first answer
    }
    return Settings(_env_file=None, **{**values, **changes})


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """`async with start(model=…, **settings) as world`."""
    # Between two runs of the mirror is a second, for which every message of a test would wait.
    monkeypatch.setattr(adapter, "Pace", partial(Pace, gap_s=0.0))

    @asynccontextmanager
    async def begin(model: Model | None = None, **changes: Any) -> AsyncIterator[World]:
        async with AsyncExitStack() as stack:
            world = World(tmp_path, stack)
            try:
                await world.begin(model, changes)
                yield world
                await world.settle()
            finally:
                await world.end()

    return begin
