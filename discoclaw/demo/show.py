"""The demo: a page in the browser with one channel, you and the bot, and real files on disk.

simcord simulates Discord in this process; the bot is the same as for `discoclaw run`. Its memory is stored in
`data/demo/`, so that it remembers you the next time.
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
"""Settings for a mirror that needs no account anywhere: a relay inside the program."""

INTRODUCTION = """\
Talk with DiscoClaw at

    {url}

Try these three messages, in this order:
  1. I prefer tabs over spaces            (or anything else about yourself)
  2. What do I prefer?                    (it answers from memory)
  3. !memory show                         (see it all; !memory forget … removes something)

Its memory is in files that you can open and edit:
  {durable}/      what the bot remembers about you
  {rolling}/      the summary of the conversation
  {ledger}/       the history of every change
You can see the same on the command line:
  DISCOCLAW_DATA_DIR={data} .venv/bin/discoclaw memory list

Everything is mirrored, encrypted, to a Nostr relay inside this program:
  DISCOCLAW_DATA_DIR={data} NOSTR_RELAYS=embedded .venv/bin/discoclaw nostr status
Stop the demo and delete {root}; `… discoclaw nostr recover` restores it.

{model} Stop with Ctrl-C."""


async def show(*, channel: str, port: int, fresh: bool, say: Callable[[str], None]) -> None:
    """Serve the page until stopped. Raises SettingsError if the port cannot be used."""
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
                            "The built-in offline model answers: it only repeats what it remembers. "
                            "Set ANTHROPIC_API_KEY for a real one."
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
    """Raise SettingsError if the port cannot be used. simcord's own error would be a traceback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SettingsError(f"can't use port {port}: {error.strerror}; try --port 0") from None


def _forget(settings: Settings) -> None:
    """Delete what earlier demos learned. Raises FolderInUse while a demo is running."""
    folder = settings.memory_dir
    memory = Memory(folder, clock=lambda: 0)
    memory.open()
    try:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != ".lock":
                path.unlink()
        for beside in ("cache", "nostr"):  # else it would be recovered from the embedded relay
            shutil.rmtree(settings.data_dir / beside, ignore_errors=True)
    finally:
        memory.close()


def demo_settings() -> Settings:
    """The settings of the environment, changed for a demo: everybody may talk, and is always answered.

    Extraction runs after every turn and the summary after every second one, so that you can watch them work.
    """
    base = settings_module.load()
    without_a_model = base.api_key is None and base.base_url is None
    return base.model_copy(
        update={
            "data_dir": base.data_dir / "demo",
            "store": "files",  # so that there is something to look at
            # Everybody on a server has the role whose id is the server's.
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
    """Let the simulated clock, which stands still by itself, follow the real one."""
    while True:
        behind = time.time() - env.now().timestamp()
        if behind > 0:
            env.backend.clock.advance(behind)
        await asyncio.sleep(TICK_S)
