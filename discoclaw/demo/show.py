"""The demo: a simulated Discord in the browser, with two people, two channels and direct messages.

simcord simulates Discord in this process; the bot is the same as for `discoclaw run`. Its memory is stored in
`data/demo/`, so that it remembers you the next time.
"""

import logging
import shutil
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

from pydantic import SecretStr

from discoclaw import settings as settings_module
from discoclaw.app import build, stop_asked
from discoclaw.core.autosave import AutoSave
from discoclaw.core.errors import SettingsError
from discoclaw.core.model_names import VENDOR, split
from discoclaw.demo.introduction import introduction
from discoclaw.demo.world import GUILD_ID, PAGES, World
from discoclaw.memory.subjects.store import Memory
from discoclaw.settings import EMBEDDED, Settings

log = logging.getLogger(__name__)

NO_ACCOUNT: dict[str, object] = {"nostr_relays": (EMBEDDED,), "nostr_mode": "mirror", "nostr_flush_s": 2.0}
"""Settings for a mirror that needs no account anywhere: a relay inside the program."""


async def show(*, channel: str, port: int, fresh: bool, say: Callable[[str], None]) -> None:
    """Serve the pages until stopped. Raises SettingsError if a port cannot be used."""
    for number in range(PAGES if port else 1):
        _check_port(port + number)
    world = World(channel)
    settings = demo_settings(owner=str(world.you.id))
    if fresh:
        _forget(settings)
    app = build(settings)
    app.client.tree.add_command(world.attach_command())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(world.env.shutdown)  # the last, since closing the app may send answers
        await stack.enter_async_context(app)
        await world.env.connect(app.client)
        assert app.client.user is not None
        await app.client.user.edit(username="DiscoClaw")
        pages = world.pages(port, settings.timezone)
        for page in pages.values():
            await stack.enter_async_context(page)
        say(introduction({name: page.url for name, page in pages.items()}, settings))
        with stop_asked() as stop:
            await stop.wait()


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


def demo_settings(*, owner: str) -> Settings:
    """The settings of the environment, changed for a demo: everybody may talk, and is always answered.

    Extraction runs after every turn and the summary after every second one, so that you can watch them work.
    """
    base = settings_module.load()
    provider = split(base.model)[0] or base.model_provider
    without_a_model = provider == VENDOR and base.api_key is None and base.base_url is None
    return base.model_copy(
        update={
            "data_dir": base.data_dir / "demo",
            "store": SecretStr("files"),  # so that there is something to look at
            # Everybody on a server has the role whose id is the server's.
            "allow_roles": frozenset({str(GUILD_ID)}),
            "channels": frozenset(),
            "owners": base.owners | {owner},
            "receipts": True,
            "auto_save": AutoSave(everywhere=True),
            "respond_mode": "all",
            "catch_up_hours": 0,  # a new Discord is empty, which looks as if everything was deleted
            "summary_every": 2,
            "durable_every": 1,
            "durable_dir": None,
            "summary_dir": None,
            "memory_channel": None,
            **({"model_provider": "offline"} if without_a_model else {}),
            **(NO_ACCOUNT if not base.nostr_relays else {}),
        }
    )
