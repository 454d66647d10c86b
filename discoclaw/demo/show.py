"""`discoclaw demo`: one page in the browser, one channel, you and the bot, and real files on disk.

Discord is simulated by simcord, in this process; the bot is the one `discoclaw run` starts. Its memory is
kept under `data/demo/`, so that it remembers you the next time.
"""

import asyncio
import logging
import shutil
import socket
import time
from collections.abc import Callable

import simcord

from discoclaw import settings as settings_module
from discoclaw.app import build, stop_asked
from discoclaw.core.errors import SettingsError
from discoclaw.memory.subjects.store import Memory
from discoclaw.settings import EMBEDDED, Settings

log = logging.getLogger(__name__)

GUILD_ID = 100_000_000_000_000_001
TICK_S = 0.5

NO_ACCOUNT: dict[str, object] = {"nostr_relays": (EMBEDDED,), "nostr_mode": "mirror", "nostr_flush_s": 2.0}
"""A mirror without an account anywhere."""

INTRODUCTION = """\
DiscoClaw is waiting for you at

    {url}

Three things to try, in this order:
  1. I prefer tabs over spaces            (say a few things about yourself)
  2. What do I prefer?                    (it answers from what it remembers)
  3. !memory show                         (see it all; !memory forget … takes it back)

What it remembers is on disk, in files you can open and edit:
  {durable}/      what is remembered of you
  {rolling}/      the summary of the conversation
  {ledger}/       the history of it all
The same on the command line:
  DISCOCLAW_DATA_DIR={data} .venv/bin/discoclaw memory list

All of it is mirrored, encrypted, to a Nostr relay in this program:
  DISCOCLAW_DATA_DIR={data} NOSTR_RELAYS=embedded .venv/bin/discoclaw nostr status
Stop this, delete {root}, and `… discoclaw nostr recover` brings it back.

{model} Stop with Ctrl-C."""


async def show(*, channel: str, port: int, fresh: bool, say: Callable[[str], None]) -> None:
    """Serve the page until stopped. Raises SettingsError when the port is taken."""
    settings = demo_settings()
    _check_port(port)
    if fresh:
        _forget(settings)
    app = build(settings)
    async with app, simcord.run(app.client, settle_timeout=600, check_errors=False) as env:
        clock = asyncio.create_task(_keep_time(env), name="simulated time")
        guild = env.create_guild("DiscoClaw demo", id=GUILD_ID)
        assert app.client.user is not None
        await app.client.user.edit(username="DiscoClaw")
        room = guild.create_text_channel(channel, topic="Trying out a bot that remembers")
        visitor = guild.add_member(env.create_user("you"))
        await env.settle()
        try:
            async with env.preview(room, viewers=[visitor], layout="channel", port=port) as page:
                root = settings.memory_dir
                say(
                    INTRODUCTION.format(
                        url=page.url,
                        data=settings.data_dir,
                        root=root,
                        durable=root / "durable",
                        rolling=root / "rolling",
                        ledger=root / "ledger",
                        model=(
                            "The model is offline (no ANTHROPIC_API_KEY): it only repeats what it remembers."
                            if settings.model_provider == "offline"
                            else f"The model is {settings.model}."
                        ),
                    )
                )
                with stop_asked() as stop:
                    await stop.wait()
        finally:
            clock.cancel()


def _check_port(port: int) -> None:
    """Raises SettingsError when somebody has the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SettingsError(f"port {port} cannot be used ({error.strerror}); try --port 0") from None


def _forget(settings: Settings) -> None:
    """Delete what earlier demos learned, unless one is running: it holds the folder."""
    folder = settings.memory_dir
    memory = Memory(folder, clock=lambda: 0)
    memory.open()
    try:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != ".lock":
                path.unlink()
        for beside in ("cache", "nostr"):  # the relay would bring it back
            shutil.rmtree(settings.data_dir / beside, ignore_errors=True)
    finally:
        memory.close()


def demo_settings() -> Settings:
    """The settings of the environment, with what makes a demo: everybody may talk, and is answered at once.

    Extraction runs after every turn and the summary after every second, so that one sees them work.
    """
    base = settings_module.load()
    without_a_model = base.api_key is None and base.base_url is None
    return base.model_copy(
        update={
            "data_dir": base.data_dir / "demo",
            "store": "files",  # a demo is about what one can see
            # The role everybody on a server has carries the server's id.
            "allow_roles": frozenset({str(GUILD_ID)}),
            "channels": frozenset(),
            "respond_mode": "all",
            "summary_every": 2,
            "durable_every": 1,
            "durable_dir": None,
            "summary_dir": None,
            "memory_channel": None,
            **({"model_provider": "offline"} if without_a_model else {}),
            **(NO_ACCOUNT if not base.nostr_relays else {}),
        }
    )


async def _keep_time(env: simcord.Env) -> None:
    """Let the simulated clock, which stands still, follow the real one: messages then have real times."""
    while True:
        behind = time.time() - env.now().timestamp()
        if behind > 0:
            env.backend.clock.advance(behind)
        await asyncio.sleep(TICK_S)
