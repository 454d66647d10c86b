"""The list of everything that `discoclaw doctor` looks at, in the order in which people read it."""

from collections.abc import Callable
from functools import partial

from discoclaw.checkup.answers import Examined, answers, learns
from discoclaw.checkup.costs import costs
from discoclaw.checkup.environment import environment
from discoclaw.checkup.folder import folder
from discoclaw.checkup.learning import learning
from discoclaw.checkup.on_discord import on_discord
from discoclaw.checkup.program import program
from discoclaw.checkup.running import Asks, running
from discoclaw.checkup.services import embeddings, relays, voice
from discoclaw.checkup.store import database, ledgers
from discoclaw.checkup.topic import Topic
from discoclaw.settings import Settings

NAMES = (
    "program",
    "settings",
    "folder",
    "discord",
    "model",
    "learning",
    "embeddings",
    "voice",
    "mirror",
    "database",
    "ledgers",
    "costs",
    "bot",
)
"""The topics there are, for the command line."""
LONG_S = 3600.0
"""For what has a limit of its own for each step, and may have many steps."""

Progress = Callable[[str], None]
"""Called with a line that says how far something long has come."""


def topics(seen: Examined, *, quick: bool, progress: Progress, ask: Asks) -> list[Topic]:
    """Everything that these settings allow to look at. `quick` leaves out what takes a minute.

    `ask` asks the running bot how it is.
    """
    settings = seen.settings
    found = [
        *without_settings(settings, ()),
        Topic("folder", "Data folder", partial(folder, settings)),
        Topic("discord", "Discord", partial(on_discord, settings), within_s=90.0),
        Topic("model", "Model", partial(answers, seen), within_s=LONG_S),
        Topic("embeddings", "Embeddings", partial(embeddings, settings), within_s=150.0),
        Topic(
            "voice", "Voice messages", partial(voice, settings), within_s=settings.transcribe_timeout_s + 10
        ),
        Topic("mirror", "Mirror", partial(relays, settings), within_s=60.0),
        Topic("database", "PostgreSQL", partial(database, settings), within_s=60.0),
        Topic("ledgers", "Memories", partial(ledgers, settings, progress), within_s=LONG_S),
        Topic("costs", "Costs", partial(costs, settings)),
        Topic("bot", "The running bot", partial(running, settings, ask)),
    ]
    if not quick and settings.model_provider != "offline" and learns(settings):
        found.insert(5, Topic("learning", "Learning", partial(learning, seen, progress), within_s=LONG_S))
    return found


def without_settings(settings: Settings | None, faults: tuple[str, ...]) -> list[Topic]:
    """What can be looked at even if the settings can't be read. `faults` are the lines that say why."""
    return [
        Topic("program", "Program", partial(program, settings)),
        Topic("settings", "Settings", partial(environment, faults)),
    ]
