"""The composition root: every part is built here once, in the order in which it starts.

    settings → disk, usage, mirror, people → models → finding, archive, learning → hearing, answering, talk
    talk → chat, commands, voice, catching up
    all → monitoring, which starts first, so that one can ask how the start is getting on

`build` touches neither disk nor network. `async with App` opens the memory; `run` then connects to Discord.
Each feature is built in its own module of this package; see `feature` for what it says about itself.
"""

import time
from collections.abc import Callable

from discoclaw.app.answering import Answering
from discoclaw.app.app import App
from discoclaw.app.archive import Archived
from discoclaw.app.basics import Basics
from discoclaw.app.catching_up import CatchingUp
from discoclaw.app.chat import Chat
from discoclaw.app.commanding import Commanding, command_context
from discoclaw.app.disk import OnDisk
from discoclaw.app.doing import Doing
from discoclaw.app.files import Files
from discoclaw.app.finding import Finding
from discoclaw.app.hearing import Hearing
from discoclaw.app.learning import Learning
from discoclaw.app.mirror import Mirror
from discoclaw.app.models import Models
from discoclaw.app.monitoring import Monitoring
from discoclaw.app.page import Page, Troubles
from discoclaw.app.people import People
from discoclaw.app.sharding import Sharding
from discoclaw.app.talk import Talking
from discoclaw.app.usage import Usage
from discoclaw.app.voice import Voice
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.spec import Catalogue
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.past import Past
from discoclaw.bot.sharded import ShardedDiscoClaw
from discoclaw.core.message import Me
from discoclaw.core.ports import Clock, History, Model
from discoclaw.core.redact import PLAIN
from discoclaw.session import tools
from discoclaw.session.tools.base import Toolbox
from discoclaw.settings import Settings


def now_ms() -> int:
    """The system's clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def build(
    settings: Settings,
    *,
    model: Model | None = None,
    small_model: Model | None = None,
    history: History | None = None,
    clock: Clock = now_ms,
    catalogue: Catalogue = CATALOGUE,
    toolbox: Toolbox = tools.ALL,
    me: Callable[[], Me] | None = None,
) -> App:
    """Build every part once. `model` and `small_model` replace the real ones (offline, tests).

    A `model` alone stands for both; `history` replaces Discord's. `catalogue` are the commands in Discord,
    `toolbox` the model's tools. `me` is who the bot is where it never logs in to Discord.
    Raises SettingsError when there is neither a key nor an address of a model.
    """
    keys, redactor = None, PLAIN
    if settings.has_keys:
        from discoclaw.mirroring import find_or_make_keys, redactor_for  # 60 MB with the Nostr library

        keys = find_or_make_keys(settings)
        redactor = redactor_for(settings, keys)
    client = (DiscoClaw if settings.shards is None else ShardedDiscoClaw)(settings, redactor)
    basics = Basics(settings, clock, redactor, me or client.me)
    disk = OnDisk(basics)
    mirror = Mirror(basics, keys, disk)
    people = People(disk)
    usage = Usage(basics, disk, client)
    models = Models(basics, disk, usage, model, small_model)
    finding = Finding(basics, disk, usage)
    archive = Archived(basics, disk, finding)
    learning = Learning(basics, disk, models, archive, finding)
    files = Files(basics, disk, models, client)
    past = history or Past(
        client, client.access, client.me, settings.owners, redactor, client.waits, client.passed
    )
    hearing = Hearing(basics, disk, models, archive, finding, learning, files, past)
    answering = Answering(basics, disk, models, archive, finding, learning, hearing, toolbox)
    talk = Talking(basics, disk, models, learning, hearing, answering, client.threads)
    client.talk = talk.talk
    client.retractions = hearing.retractions
    sharding = Sharding(basics, disk, client, learning.inboxes)
    chat = Chat(basics, client, disk, models, learning)
    context = command_context(basics, disk, mirror, usage, models, archive, learning, hearing)
    commanding = Commanding(basics, client, disk, archive, context, catalogue)
    voice = Voice(basics, client, usage, talk)
    missed = CatchingUp(basics, client, talk)
    troubles = Troubles(basics)
    doing = Doing(mirror, missed)
    page = Page(basics, troubles, client, disk, doing, context)
    # In the order in which they start. They settle and close in reverse: what gives others work comes last.
    # The leases of the shards end when we leave the store, and at that moment our claims do: who has them
    # next answers what we have claimed and no longer answer, which it may not while we count as living.
    monitoring = Monitoring(basics, client, disk, mirror, usage, models, talk)
    # The page comes before the mirror, whose start may be a recovery from relays: it shows how far that is.
    features = [troubles, monitoring, sharding, disk, page, usage, mirror, people, models, finding, archive]
    features += [files, chat, learning, hearing, answering, talk, commanding, voice, missed]
    app = App(settings, client, features)
    monitoring.everything = page.everything = app.health
    return app
