"""The composition root: every moving part is built here once, and whole when it is handed on.

`build` touches neither disk nor network. `async with App` opens the memory; `run` then connects to Discord.
The parts are built in the order in which they need each other; the lists at the end of `build` say in which
order they start, and what there is of personal data and of checks of the health. What the settings switch off
is not in them. Where somebody else needs a stand-in for it, that does nothing.
"""

import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from discoclaw.app import monitoring
from discoclaw.app.app import App, Sharding
from discoclaw.app.followers import (
    Relays,
    mirror_of,
    mirrored,
    mirroring,
    questions_of,
    relays_now,
    reminding_of,
    sole_follower,
    sole_reminding,
    touch_all,
)
from discoclaw.app.models import (
    asked_back_of,
    counted_transcriber,
    facts_loop,
    meaning_of,
    meaning_of_talk,
    models_of,
    summary_loop,
)
from discoclaw.app.monitoring import CommitCounter, Health, LoopLag, Watch
from discoclaw.app.page import Page
from discoclaw.app.services import OnDisk, Part, Sole
from discoclaw.bot.absence import Absence, Bounds, deliver
from discoclaw.bot.actions import DiscordHands
from discoclaw.bot.client import DiscoClaw, Door, nothing_missed, sync_if_changed
from discoclaw.bot.commands.context import CommandContext, Telling
from discoclaw.bot.commands.dispatch import Commands
from discoclaw.bot.commands.table import CATALOGUE, CONTROLS
from discoclaw.bot.files import Download, Links
from discoclaw.bot.gateway import finding as connection
from discoclaw.bot.past import Past
from discoclaw.bot.pressed import taken
from discoclaw.bot.receipts import Receipts
from discoclaw.bot.sending import tell_owner
from discoclaw.bot.sharded import ShardedDiscoClaw
from discoclaw.bot.transparency import Transparency
from discoclaw.bot.voice import Limits as VoiceLimits
from discoclaw.bot.voice import Voices
from discoclaw.commands.spec import Catalogue, Need
from discoclaw.core.consolidate import ConsolidationReport
from discoclaw.core.health import Check, Seen
from discoclaw.core.message import Me
from discoclaw.core.policy import AutoSave
from discoclaw.core.ports import Clock, History, MirrorControl, Model, NoMirror, Service
from discoclaw.core.purge import Derived
from discoclaw.core.redact import PLAIN
from discoclaw.loops.consolidate import Consolidator, NoConsolidator
from discoclaw.loops.facts import NoFacts
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.hygiene import Beside, Hygiene
from discoclaw.loops.nearest import Nearest
from discoclaw.loops.schedule import Cadence, Loops
from discoclaw.loops.summary import NoSummary
from discoclaw.memory.changes import Listener as Changes
from discoclaw.memory.conversations.inboxes import Inboxes
from discoclaw.memory.subjects.follow import Follower
from discoclaw.prompt.assemble import Budget
from discoclaw.recall.rank import Ranker
from discoclaw.session import tools
from discoclaw.session.actions import Actions
from discoclaw.session.agent import Agent, Asking, Explained
from discoclaw.session.archiving import Archiving
from discoclaw.session.archiving import Rules as ArchiveRules
from discoclaw.session.compact import AnswerRules
from discoclaw.session.conversation import Conversation
from discoclaw.session.deleted_messages import DeletedMessages
from discoclaw.session.delivery import Branching, Delivery, Record
from discoclaw.session.desk import Desk
from discoclaw.session.files.attaching import Attachments
from discoclaw.session.files.attaching import Bounds as FileBounds
from discoclaw.session.files.reading import Limits as FileLimits
from discoclaw.session.files.reading import Reader
from discoclaw.session.files.shelf import Shelf
from discoclaw.session.gather import Content, Gatherer
from discoclaw.session.hatch import Hatchery, HatchingRules
from discoclaw.session.hearing import Listener, Refill
from discoclaw.session.live_settings import LiveSettings
from discoclaw.session.meaning import NoMeaning, NoTalkMeaning
from discoclaw.session.prepare import ItemSearch, Preparation
from discoclaw.session.talk import Talk
from discoclaw.session.toolbox import Toolbox, ToolParts
from discoclaw.session.turn import Stops, Turns, Windows
from discoclaw.settings import Settings
from discoclaw.storage import build as build_storage
from discoclaw.usage.accounts import Accounts
from discoclaw.usage.accounts import Rules as UsageRules
from discoclaw.usage.accounts import Telling as BudgetNews
from discoclaw.usage.log import UsageLog
from discoclaw.usage.metered import prices

T = TypeVar("T")


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
    """Build the program. `model` and `small_model` replace the real ones (offline, tests).

    A `model` alone stands for both; `history` replaces Discord's. `catalogue` are the commands in Discord,
    `toolbox` the model's tools. `me` is who the bot is where it never logs in to Discord.
    Raises SettingsError when there is neither a key nor an address of a model.
    """
    # Everything on disk, and the connection to Discord, which sends and knows the servers. What arrives from
    # there goes through the door, which is built last.
    keys, redactor = None, PLAIN
    if settings.has_keys:
        from discoclaw.mirroring import find_or_make_keys, redactor_for  # 60 MB with the Nostr library

        keys = find_or_make_keys(settings)
        redactor = redactor_for(settings, keys)
    storage = build_storage(settings, clock=clock, redactor=redactor)
    people, consent = storage.people, storage.consent
    purger, processes = storage.purger, storage.processes
    answers, rolling = storage.conversations.answers, storage.conversations.rolling
    client = (DiscoClaw if settings.shards is None else ShardedDiscoClaw)(
        settings, redactor, storage.live, storage.cursors, processes
    )
    me = me or client.me
    disk = OnDisk(storage)
    nostr = mirror_of(settings, keys, storage, clock=clock, redactor=redactor)

    # What models cost, and the models.
    priced = prices(settings.prices).table  # a wrong file stops the start, whichever models there are
    budget_news = BudgetNews(settings.owners, partial(tell_owner, client), storage.cursors, clock=clock)
    accounts = Accounts(
        UsageLog(storage.memory.disk) if storage.memory.disk.remembers else None,
        clock=clock,
        rules=UsageRules(settings.budget, settings.zone, names_people=storage.remembers),
        consent=consent,
        news=budget_news.news,
    )
    caches = settings.response_cache and storage.remembers
    models = models_of(
        settings,
        accounts,
        clock=clock,
        redactor=redactor,
        responses=storage.conversations.responses if caches else None,
        model=model,
        small_model=small_model,
    )

    # Finding: memories by their words, and by vectors where there is a provider; and what was said.
    ranker = Ranker(
        settings.fade,
        storage.terms.documents,
        text_weight=settings.text_weight,
        vector_weight=settings.vector_weight,
        depth=settings.enrich_depth,
    )
    meaning = meaning_of(settings, storage, accounts)
    found = meaning or NoMeaning()
    items = ItemSearch(
        ranker,
        storage.terms,
        found,
        people.last_used,
        clock=clock,
        me=me,
        usual_limit=settings.recall_limit,
        prompt_chars=settings.inject_max_chars,
    )
    nearest = Nearest(
        meaning.embedding if meaning is not None else None, storage.terms.documents, floor=lambda: found.floor
    )
    of_talk = meaning_of_talk(settings, storage, meaning, clock=clock) if meaning is not None else None
    # It also runs where archiving is off, to remove what was stored before.
    archiving = Archiving(
        storage.conversations.archive,
        ArchiveRules(
            storage.places if storage.memory.disk.remembers else AutoSave(),
            settings.hygiene_max_age_s * 1000,
            consent,
        ),
        clock=clock,
        meaning=of_talk[0] if of_talk is not None else NoTalkMeaning(),
        processes=processes,
    )

    # What shows memory without being asked. Questions and the transparency channel follow the ledger.
    asked_back = asked_back_of(settings, storage, clock)
    receipts = Receipts(client, storage.places.receipts) if storage.remembers else None
    transparency = None
    if storage.remembers and settings.memory_channel is not None:
        transparency = Transparency(
            client, settings.memory_channel, storage.memory, storage.summaries, storage.cursors, consent
        )
    questions = questions_of(client, storage, models, asked_back) if storage.remembers else None
    reminding = reminding_of(client, storage, settings.zone, clock) if storage.remembers else None
    followers: list[Follower] = _there(transparency.follower if transparency is not None else None, questions)

    # Learning from talk.
    inboxes = Inboxes(
        storage.cursors,
        consent,
        catches_up=settings.catch_up_hours > 0,
        names_people=storage.remembers,
        shared=processes.shared,
    )
    hygiene = Hygiene(
        storage.used,
        people.last_used,
        storage.cursors,
        clock=clock,
        rules=settings.decay,
        roll=random.Random().random,
        beside=Beside(archiving.expire, people.tool_log.expire, processes),
        consent=consent,
    )
    heartbeat = Heartbeat(
        Consolidator(models.facts, storage.memory, clock=clock, nearest=nearest)
        if storage.remembers
        else NoConsolidator(),
        storage.used,
        storage.cursors,
        clock=clock,
        every_minutes=settings.heartbeat_minutes if storage.remembers else 0,
        consent=consent,
        first=hygiene.run,
        processes=processes,
    )

    async def consolidate(subject: str, branch: str | None, why: Mapping[str, str]) -> ConsolidationReport:
        return await heartbeat.now(subject, branch, **why)

    extracts = storage.remembers and settings.extraction_enabled
    own = (settings, storage, me, clock)
    loops = Loops(
        clock=clock,
        summary=summary_loop(*own, models.summary, models.reads) if storage.sums_up else NoSummary(),
        facts=facts_loop(*own, models.facts, models.reads, nearest) if extracts else NoFacts(),
        cadence=Cadence(settings.summary_every, settings.durable_every, settings.history_budget),
        learned=partial(touch_all, followers),
        consent=consent,
        behind=inboxes.is_behind,
        processes=processes,
    )

    # Hearing: the windows, the files, the interview about the bot's personality.
    windows = Windows(clock=clock, capacity=settings.context_history, idle_ms=settings.idle_s * 1000)
    explained, stops = Explained(), Stops()
    rules = AnswerRules(settings.max_tokens, models.reads, storage.remembers, hygiene.compacted)
    hatchery = Hatchery(
        HatchingRules(settings.owners, rules, settings.commands_enabled, memory=storage.remembers),
        models.named,
        storage.used,
        storage.cursors,
        windows,
        loops,
        consent,
        clock=clock,
        me=me,
    )
    past = history or Past(
        client, client.access.may_say, client.me, settings.owners, redactor, client.waits, client.passed
    )
    download = Download(client, settings.discord_api)
    shelf = Shelf(
        Reader(download, FileLimits(settings.file_max_mb * 1_000_000, settings.file_max_chars), redactor),
        clock=clock,
        most=settings.files_kept_mb * 1_000_000,
    )
    listener = Listener(windows, loops, archiving, hatchery, people.profiles, people.groups, shelf, stops)
    refill = Refill(listener, past, consent, purger, answers, clock=clock)
    deleted_messages = DeletedMessages(
        storage.memory,
        purger,
        answers,
        listener,
        storage.cursors,
        consent,
        sessions_of=inboxes.sessions_of,
        clock=clock,
    )

    # Answering: the steps of a turn, and the queue in which messages wait for theirs.
    turns = Turns(storage.live, consent, windows, storage.places, processes)
    branching = Branching(turns, loops, models.summary, client.threads, redactor)
    record = Record(loops, archiving, purger, branching, clock=clock, me=me, redactor=redactor)
    delivery = Delivery(turns, storage.undelivered, inboxes, answers, partial(deliver, client), record)
    offered = toolbox if settings.tools_enabled else tools.NONE
    actions = Actions(DiscordHands(client), storage.places, storage.cursors, clock)
    files_at_once = settings.files_per_message if settings.files_enabled else 0
    learns = extracts and settings.commands_enabled
    agent = Agent(
        stops,
        hatchery,
        Preparation(
            refill,
            Gatherer(
                storage.used,
                Content(settings.content_dir),
                people.last_used if settings.fade.idle_days > 0 else None,
                storage.summaries,
                storage.cursors,
                people.groups,
                people.profiles,
                owners=sorted(settings.owners),
            ),
            items,
            Attachments(
                shelf,
                Links(client),
                consent,
                FileBounds(files_at_once, settings.older_files, models.reads),
                refill.usable,
            ),
            Budget(history=settings.history_budget, total=settings.prompt_budget),
            zone=settings.zone,
            rules=rules,
            tools=lambda turn, reads: (*offered.offered(reads), *actions.offered(turn)),
        ),
        Conversation(
            models.chat,
            offered,
            ToolParts(storage.used, items, people.choices, consolidate, purger, settings.zone),
            archiving,
            people.tool_log,
            actions,
            rules=rules,
            redactor=redactor,
        ),
        delivery,
        Asking(storage.used, asked_back, welcomes=learns and settings.welcome),
        explained,
    )
    desk = Desk(waiting_limit=settings.waiting_messages, running_limit=settings.concurrent_turns or 16)
    talk = Talk(turns, listener, inboxes, answers, agent, desk)

    async def close_talk() -> None:
        await desk.close(settings.shutdown_grace_s)
        await talk.refusals.close()

    # The door: commands, buttons, voice messages, what was missed.
    mirror: MirrorControl = nostr or NoMirror()
    off: list[Need] = []  # the needs of commands that the settings switch off
    off += [] if storage.remembers else ["memory", "tidying"]
    off += [] if storage.sums_up else ["summaries"]
    off += [] if nostr is not None else ["mirror"]
    context = CommandContext(
        storage.used,
        storage.summaries,
        people.choices,
        people.last_used,
        LiveSettings(
            storage.places,
            people.changed_by,
            models.named,
            folder=settings.memory_dir,
            clock=clock,
            allowlist=settings.allowlist,
            models=models.names,
            answers=models.answers,
            archives=storage.memory.disk.remembers,
        ),
        loops=loops,
        hatchery=hatchery,
        archiving=archiving,
        explained=explained,
        consolidate=consolidate,
        mirror=mirror,
        accounts=accounts,
        models_seen=models.seen,
        off=frozenset(off),
    )
    telling = Telling(client, purger)
    commands = Commands(client, context, telling, catalogue)
    ears = Seen(clock)
    voices = Voices(
        client,
        talk,
        download,
        counted_transcriber(settings, accounts, ears),
        VoiceLimits(settings.transcribe_max_s, settings.transcribe_timeout_s),
        redactor,
        clock=clock,
    )
    bounds = Bounds(settings.catch_up_hours, settings.catch_up_messages)
    absence = Absence(client, bounds, clock=clock)

    async def set_up() -> None:
        if settings.commands_enabled:
            commands.register()
        async with processes.lease("slash-commands"):
            await sync_if_changed(client.tree, storage.cursors)

    ready = [receipts.connected] if receipts is not None else []
    ready += [one.catch_up for one in (transparency, questions) if one is not None]
    ready += [reminding.ready] if reminding is not None else []
    door = Door(
        talk,
        delivery,
        deleted_messages,
        voices,
        archiving,
        commands.request_of,
        commands.requested,
        pressed=partial(taken, commands, CONTROLS),
        hearers=(delivery, absence) if bounds.hours else (delivery,),  # what needs no model comes first
        setup=(set_up,),
        ready=tuple(ready),
        heard=(transparency.heard,) if transparency is not None else (),
        missed=absence.read_before if bounds.hours else nothing_missed,
    )
    client.open(door)
    sharding = Sharding(settings.shards, processes, client, inboxes, store=storage.memory.disk.name)

    # How everything is, in this order.
    lag = LoopLag()
    relays: Callable[[], Relays] = Relays
    if nostr is not None:
        relays = partial(relays_now, nostr, clock)
    checks: list[Check] = _there(
        monitoring.background,
        monitoring.hanging,
        lambda: [lag.finding()],
        disk.health,
        lambda: monitoring.of_budgets(accounts),
        (lambda: [relays().finding()]) if nostr is not None else None,
        *models.health,
        (lambda: [monitoring.of_embeddings(meaning)]) if meaning is not None else None,
        lambda: [connection(client, client.connected, client.shards_served)],
        lambda: [monitoring.queue(desk)],
        (lambda: [monitoring.of_ears(ears)]) if settings.transcribe_url is not None else None,
    )
    health = Health(checks)
    page = metrics = None
    if settings.page is not None:
        page = Page(settings, client, storage, context, health, absence, nostr, clock)
    if settings.metrics is not None:
        from discoclaw.app import measures  # 13 MB with Prometheus, and more with a server

        small = (settings.summary_model, settings.durable_model, settings.model_provider)
        named = {settings.model, *small, settings.transcribe_model, settings.embedding_model} - {""}
        known = measures.known_model(named, priced)
        measured = measures.Measured(health, talk, lag, client, models.seen, accounts, relays, known)
        metrics = measures.server(settings.metrics, measured)

    # What runs, in the order in which it starts. It settles and closes in reverse: what gives others work
    # comes last. The leases of the shards end when we leave the store, and at that moment our claims do: who
    # has them next answers what we have claimed and no longer answer, which it may not while we count as
    # living. The page comes before the mirror, whose start may be a recovery: it shows how far that is.
    # Each process purges what it is told of, and one purges what others left.
    left = Part(purger.start, purger.settle, purger.rest)
    services: list[Service] = _there(
        page and page.errors,
        metrics,
        lag,
        Watch(health),
        sharding,
        *disk.services,
        page,
        accounts,
        budget_news,
        nostr and mirroring(nostr, storage),
        Part(closing=storage.live.close),
        people.profiles,
        people.groups,
        people.tool_log,
        *models.services,
        storage.terms,
        meaning,
        of_talk and of_talk[1],
        archiving,
        shelf,
        questions and sole_follower("questions", questions, client, storage),
        sole_follower("transparency", transparency.follower, client, storage) if transparency else None,
        receipts,
        client.threads,
        Part(closing=client.close),  # after the last answer was sent
        reminding and sole_reminding(reminding, client, storage),
        hygiene,
        loops,
        heartbeat,
        hatchery,
        inboxes,
        answers,
        refill,
        Part(settling=purger.settle, closing=purger.close),
        Sole("withdrawals", [Part(rolling.finish_clears), left], processes),
        deleted_messages,
        branching,
        delivery,
        Part(settling=desk.settle, closing=close_talk),
        Part(closing=commands.close),
        voices,
        absence,
    )

    # What has personal data, in the order in which an erasing visits it, and what listens to changes.
    joins: list[Derived | Changes] = _there(
        *(page.joins if page is not None else ()),
        CommitCounter(talk.counts),
        accounts,
        budget_news,
        *mirrored(nostr, storage),
        *(meaning.joins if meaning is not None else ()),
        archiving,
        shelf,
        client.threads,
        receipts,
        transparency,
        *followers,
        reminding,
        inboxes,
        windows,
        hatchery,
        explained,
        ranker,
        refill,
        deleted_messages,
        talk.chosen,
    )
    storage.memory.join(*joins)
    return App(settings, client, storage, talk, sharding, accounts, mirror, models.seen, services, health)


# ---------------------------------------------------------------------- parts of parts


def _there(*parts: T | None) -> list[T]:
    """The parts that are not switched off, in their order."""
    return [one for one in parts if one is not None]
