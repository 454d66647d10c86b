"""The demo: a simulated Discord on one page of a browser, with three people and the bot.

simcord simulates Discord in this process; the bot is the same as for `discoclaw run`. Its memory is stored in
`data/demo/`, so that it remembers you the next time.
"""

import logging
import secrets
import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from pydantic import SecretStr

from discoclaw import settings as settings_module
from discoclaw.app import build, stop_asked
from discoclaw.core.actions import Allowed
from discoclaw.core.model import VENDOR, split
from discoclaw.core.policy import AutoSave
from discoclaw.demo.feed import Feed, Held
from discoclaw.demo.serve import Site
from discoclaw.demo.world import GUILD_ID, World
from discoclaw.memory.subjects.store import Memory
from discoclaw.program import program
from discoclaw.settings import EMBEDDED, Settings
from discoclaw.settings_types import Listen
from discoclaw.web.listening import Listener

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
NO_ACCOUNT: dict[str, object] = {"nostr_relays": (EMBEDDED,), "nostr_mode": "mirror", "nostr_flush_s": 2.0}
"""Settings for a mirror that needs no account anywhere: a relay inside the program."""
_TEXT = """\
Open this page:  {address}

The bot's memory is in files that you can open and edit: {folder}/
Stop with Ctrl-C. The next demo knows you again; `{command} demo --fresh` forgets."""


async def show(*, channel: str, port: int, fresh: bool, say: Callable[[str], None]) -> None:
    """Serve the page until stopped. Raises SettingsError if the port can't be used."""
    world = World(channel)
    settings = demo_settings(owner=str(world.you.id))
    held, token = Held(settings), secrets.token_urlsafe(24)
    site = Site(world, Feed(world, held), token, about(world, settings))
    listener = Listener(site.application(), Listen(HOST, port), "--port")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(listener.close)
        await listener.start()  # first: nothing is forgotten when the port can't be used
        if fresh:
            _forget(settings)
        app = build(settings)
        app.storage.memory.join(held)
        app.seen.watch = held.asked
        stack.push_async_callback(world.env.shutdown)  # after the app, whose end may send answers
        await stack.enter_async_context(app)
        await world.env.connect(app.client)
        assert app.client.user is not None
        await app.client.user.edit(username="DiscoClaw")
        address = f"http://{HOST}:{listener.port}/#{token}"
        say(_TEXT.format(address=address, folder=settings.memory_dir, command=program()))
        with stop_asked() as stop:
            await stop.wait()
        await listener.close()  # else the pages that look would hold up the end


def about(world: World, settings: Settings) -> dict[str, object]:
    """The facts that the page is told once."""
    offline = settings.model_provider == "offline"
    return {
        "home": str(world.general.id),
        "model": "" if offline else settings.model,
        "folder": str(settings.memory_dir),
        "steps": steps(world),
    }


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
            "actions": Allowed.everywhere(),
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


# ---------------------------------------------------------------------- the first steps


def steps(world: World) -> list[dict[str, Any]]:
    """The steps. An act is said by the person `who` in the channel `where` (ids); `go` only opens that."""
    you, sam, _ = (str(one) for one in world.people)
    general, other, private = (str(one.id) for one in (world.general, world.other, world.private))

    def act(who: str, where: str, say: str, label: str, **more: Any) -> dict[str, Any]:
        return {"who": who, "where": where, "say": say, "label": label, **more}

    here, there = f"#{world.general.name}", f"#{world.other.name}"
    return [
        {
            "id": "say",
            "title": "Say something about yourself",
            "about": "It remembers, and says what it remembered.",
            "acts": [act(you, general, "I prefer tabs over spaces", f"Say it in {here}")],
        },
        {
            "id": "ask",
            "title": "Ask somewhere else",
            "about": "It knows you in another channel too. When Sam asks, it knows nothing about Sam.",
            "acts": [
                act(you, other, "What do I prefer?", f"Ask in {there}"),
                act(sam, other, "What do I prefer?", "Ask as Sam"),
            ],
        },
        {
            "id": "private",
            "title": "Say something private",
            "about": "What you say in direct messages stays there.",
            "acts": [
                act(you, private, "I'm allergic to penicillin", "Say it in a direct message"),
                act(you, private, "What am I allergic to?", "Ask there"),
                act(you, general, "What am I allergic to?", f"Ask in {here}"),
            ],
        },
        {
            "id": "change",
            "title": "Contradict yourself",
            "about": "What you told it to remember, only you can change: it asks you which is right.",
            "acts": [
                act(you, other, "!memory remember My favourite dish is lasagne", "Have it remember a dish"),
                act(you, other, "My favourite dish is pizza", "Say another one"),
                act(you, private, "", "See its question", go=True),
            ],
        },
        {
            "id": "look",
            "title": "See it, and take it back",
            "about": "Everything it knows about you is yours to read, to change and to delete.",
            "acts": [
                act(you, private, "/memory show", "Show my memory"),
                act(you, private, "/memory preview", "What would it tell the model?"),
                act(you, private, "/memory forget penicillin", "Forget the allergy"),
            ],
        },
    ]
