"""The composition root: every part is built here once, in order, and closed in reverse.

    settings → memory, rolling, cursors → Nostr → models → loops → talk → client (commands, mirrors)

`build` touches neither disk nor network. `async with App` opens the memory; `run` then connects to Discord.
"""

import asyncio
import logging
import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import aiohttp
import discord
import yarl

from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.commands.context import CommandContext
from discoclaw.bot.commands.dispatch import Commands
from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.deletions import forget_deleted
from discoclaw.bot.past import Past
from discoclaw.bot.presses import Presses
from discoclaw.bot.questions import Questions
from discoclaw.bot.receipts import Receipts
from discoclaw.bot.sync import sync_if_changed
from discoclaw.bot.transparency import CURSOR as TRANSPARENCY
from discoclaw.bot.transparency import Transparency
from discoclaw.core.autosave import AutoSave
from discoclaw.core.consolidate import Report
from discoclaw.core.errors import ChatUnavailable, EmbeddingError, SettingsError
from discoclaw.core.ports import Clock, Model
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_of, user_subject
from discoclaw.embed.providers import EmbeddingConfig, open_embedder
from discoclaw.loops.consolidate import Consolidator, suggest
from discoclaw.loops.embedding import Embedding
from discoclaw.loops.facts import FactsLoop
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.hygiene import Hygiene
from discoclaw.loops.schedule import Loops
from discoclaw.loops.summary import SummaryLoop
from discoclaw.loops.traits import Traits
from discoclaw.memory.conversations.clears import Clears
from discoclaw.memory.conversations.responses import Responses
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.port import CURSORS, GROUPS, PROFILES, ROLLING
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import Memory
from discoclaw.mirroring import erase_step, keys_for, redactor_for, wish_of
from discoclaw.models.anthropic.provider import AnthropicProvider
from discoclaw.models.redacting import RedactingModel
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.event import Keys
from discoclaw.nostr.outgoing.views import CHOSEN, SESSION
from discoclaw.prompt.assemble import Budget
from discoclaw.recall.rank import Ranker
from discoclaw.search.item_index import ItemIndex
from discoclaw.session.archive_rules import rules_of
from discoclaw.session.archiving import Archiving
from discoclaw.session.caching import CachingModel
from discoclaw.session.content import Content
from discoclaw.session.desk import Desk
from discoclaw.session.finding import Finder, words_of
from discoclaw.session.hatch import Hatchery, HatchingContext
from discoclaw.session.meaning import Meaning
from discoclaw.session.parts import Parts
from discoclaw.session.talk import Talk
from discoclaw.session.window import Windows
from discoclaw.settings import Settings

log = logging.getLogger(__name__)


def now_ms() -> int:
    """The system's clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@contextmanager
def stop_asked() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set; behind the block they end the program at once again."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    # Windows has no such handlers; there Ctrl-C raises KeyboardInterrupt.
    with suppress(NotImplementedError):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        with suppress(NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


class App:
    """The running program. `client` is the discord.py client, `talk` what it talks to, `memory` the store."""

    def __init__(
        self,
        settings: Settings,
        client: DiscoClaw,
        loops: Loops,
        shelves: "_Shelves",
        models: "_Models",
        heartbeat: Heartbeat,
        hygiene: Hygiene,
        followers: list[Follower],
        receipts: Receipts | None,
        door: NostrAdapter | None,
    ) -> None:
        self.settings = settings
        self.client = client
        self.talk = client.talk
        self.loops = loops
        self.memory = shelves.memory
        self.rolling = shelves.rolling
        self._folder = shelves.folder
        self._choices = shelves.choices
        self.live = shelves.live
        self._heartbeat = heartbeat
        self.hygiene = hygiene
        self._models = (models.chat, models.summary, models.facts)
        self._followers = followers
        self._receipts = receipts
        self.door = door
        self.meaning = client.talk.parts.meaning
        self._finder = client.talk.parts.finder
        self.tool_log = shelves.tool_log
        self.clears = shelves.clears
        self.profiles = shelves.profiles
        self.groups = shelves.groups
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Take the memory folder. Raises FolderInUse or MemoryFault."""
        if self.settings.discord_api is not None:
            discord.http.Route.BASE = self.settings.discord_api
        if self.settings.discord_gateway is not None:
            discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(self.settings.discord_gateway)
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(self._folder.open)
            stack.callback(self._folder.close)
            if self.door is not None:  # first: what it brings back is read by those that follow
                await self.door.open()
                stack.push_async_callback(self.door.close)
                await self.door.hydrate()
            await asyncio.to_thread(self._choices.load)
            await asyncio.to_thread(self.live.load)
            stack.push_async_callback(self.live.close)
            if self.profiles is not None and self.groups is not None:
                stack.push_async_callback(self.profiles.close)
                stack.push_async_callback(self.groups.close)
            if self.talk.parts.archiving is not None:
                self.talk.parts.archiving.start()
                stack.push_async_callback(self.talk.parts.archiving.close)
            for model in self._models:
                stack.push_async_callback(model.close)
            for follower in self._followers:
                stack.push_async_callback(follower.close)
            if self._receipts is not None:
                stack.push_async_callback(self._receipts.close)
            if self.tool_log is not None:
                stack.push_async_callback(self.tool_log.close)
            if self._finder is not None:
                stack.push_async_callback(self._finder.close)
            if self.meaning is not None:
                self.meaning.start()
                stack.push_async_callback(self.meaning.close)
            stack.push_async_callback(self.hygiene.close)
            stack.push_async_callback(self.loops.close)
            if self.door is not None:
                await self.door.start()
            self._heartbeat.start()
            stack.push_async_callback(self._heartbeat.close)
            stack.push_async_callback(self.client.close)
            stack.push_async_callback(self.talk.desk.close, self.settings.shutdown_grace_s)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish what runs, then close everything in reverse."""
        await self._stack.aclose()

    async def run(self) -> None:
        """Connect to Discord and stay until the client is closed. Raises SettingsError without a token."""
        if self.settings.token is None:
            raise SettingsError("DISCORD_TOKEN is not set; set it, or try `discoclaw demo`, which needs none")
        try:
            await self.client.start(self.settings.token.get_secret_value())
        except discord.LoginFailure:
            raise SettingsError("DISCORD_TOKEN=…: Discord does not accept this token") from None
        except discord.PrivilegedIntentsRequired:
            raise SettingsError(
                "the bot may not read messages: enable the “message content” intent at "
                "https://discord.com/developers/applications, under Bot"
            ) from None
        except (aiohttp.ClientError, OSError, discord.HTTPException, discord.GatewayNotFound) as error:
            raise self._unreachable(error) from None
        except AttributeError as error:
            # discord.py 2.7 stumbles over its own missing socket when the very first connection fails.
            if getattr(self.client, "ws", None) is not None:
                raise
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> ChatUnavailable:
        where = f" at {self.settings.discord_api}" if self.settings.discord_api else ""
        return ChatUnavailable(
            f"Discord can not be reached{where} ({type(error).__name__}); "
            "check the network, or DISCORD_API_BASE and DISCORD_GATEWAY"
        )

    async def settle(self) -> None:
        """Wait until no turn, loop or mirror is at work."""
        await self.talk.desk.settle()
        if self.talk.parts.archiving is not None:
            await self.talk.parts.archiving.flush()
        if self.tool_log is not None:
            await self.tool_log.flush()
        if isinstance(chat := self._models[0], CachingModel):
            await chat.settle()
        await self.loops.settle()
        if self.profiles is not None and self.groups is not None:
            await self.profiles.settle()
            await self.groups.settle()
        if self._finder is not None:
            await self._finder.settle()
        for follower in self._followers:
            await follower.settle()
        if self._receipts is not None:
            await self._receipts.settle()
        if self.door is not None:
            await self.door.settle()


@dataclass(frozen=True, slots=True)
class _Shelves:
    """Where memory is kept. What is switched off is None; `folder` is always there.

    There are `profiles` and `groups` where there is a `memory`.
    """

    folder: Memory
    memory: Memory | None
    rolling: RollingMemory | None
    cursors: Cursors
    choices: Choices
    responses: Responses
    live: LiveConfig
    clears: Clears
    tool_log: ToolLog | None
    profiles: Profiles | None
    groups: Groups | None


@dataclass(frozen=True, slots=True)
class _Models:
    """The chat's model and the loops' small ones."""

    chat: Model
    summary: Model
    facts: Model


def build(
    settings: Settings, *, model: Model | None = None, small_model: Model | None = None, clock: Clock = now_ms
) -> App:
    """Build every part once. `model` and `small_model` replace the real ones (offline, tests).

    A `model` alone stands for both. Raises SettingsError when there is neither a key nor an address of one.
    """
    client = DiscoClaw(settings)
    keys = keys_for(settings)
    redactor = client.redactor = redactor_for(settings, keys)
    shelves = _shelves(settings, clock, redactor)
    client.live = shelves.live
    door = _door(settings, keys, shelves, redactor, clock)
    models = _cleaned(_models(settings, model, small_model), redactor)
    models = _cached(settings, shelves, models, clock)
    followers: list[Follower] = []
    loops = _loops(settings, shelves, models, client, clock, followers)
    access = LastUsed(shelves.memory, shelves.cursors, clock=clock) if shelves.memory is not None else None
    archiving = _archiving(settings, shelves, clock)
    hygiene = _hygiene(settings, shelves, access, archiving, clock)
    heartbeat = _heartbeat(settings, shelves, models, hygiene, clock)
    windows = Windows(clock=clock, capacity=settings.context_history, idle_ms=settings.idle_s * 1000)
    hatchery = _hatchery(settings, shelves, models, client, windows, loops, clock)
    parts = Parts(
        model=models.chat,
        recall=Ranker(
            settings.fade,
            text_weight=settings.text_weight,
            vector_weight=settings.vector_weight,
            depth=settings.enrich_depth,
        ),
        windows=windows,
        content=Content(settings.content_dir),
        loops=loops,
        history=Past(client, client.access, client.me, settings.owners, redactor),
        clock=clock,
        budget=Budget(history=settings.history_budget, total=settings.prompt_budget),
        memory=shelves.memory,
        rolling=shelves.rolling,
        inject_chars=settings.inject_max_chars,
        max_tokens=settings.max_tokens,
        context_tokens=settings.context_tokens,
        dm_privacy=settings.dm_privacy,
        me=client.me,
        personas=settings.personas,
        choices=shelves.choices,
        tidy=partial(_tidy, heartbeat) if shelves.memory is not None else None,
        compacted=hygiene.compacted,
        access=access,
        fade=settings.fade.idle_days > 0,
        recall_limit=settings.recall_limit,
        hatchery=hatchery,
        meaning=_meaning(settings, shelves),
        finder=_finder(settings, shelves, clock),
        archiving=archiving,
        profiles=shelves.profiles,
        groups=shelves.groups,
        owners=settings.owners,
        tool_log=shelves.tool_log,
        redactor=redactor,
    )
    desk = Desk(waiting_limit=settings.waiting_messages, running_limit=settings.concurrent_turns or 16)
    client.talk = Talk(parts, desk)
    _add_erasing(shelves.folder, client.talk)
    _add_transparency(settings, shelves, client, followers)
    _add_questions(shelves, models, client, followers)
    receipts = _add_receipts(settings, shelves, client)
    client.setup_hooks.append(hatchery.load)
    forget_deleted(client, archiving)
    _add_commands(settings, shelves, client, parts, hatchery, archiving, door)
    return App(settings, client, loops, shelves, models, heartbeat, hygiene, followers, receipts, door)


def _door(
    settings: Settings, keys: Keys | None, shelves: _Shelves, redactor: Redactor, clock: Clock
) -> NostrAdapter | None:
    """The Nostr door, if there is one; it is told of everything that changes on disk."""
    wish = wish_of(settings, keys)
    if wish is None:
        # What was mirrored before is to be erased there once it is on again.
        shelves.folder.eraser.steps.append(erase_step(settings, shelves.folder.disk))
        return None
    door = NostrAdapter(
        wish,
        shelves.folder,
        clock=clock,
        redactor=redactor,
        config=shelves.live,
        unheard=shelves.choices.unheard_until,
    )
    for part in (shelves.profiles, shelves.groups, shelves.tool_log):
        if part is not None:
            part.changed.append(door.touched)
    shelves.choices.changed.append(lambda: door.touched(CHOSEN, soon=True))
    if shelves.rolling is not None:
        shelves.rolling.changed.append(lambda session_key: door.touched(f"{SESSION}{session_key}"))
    return door


def _shelves(settings: Settings, clock: Clock, redactor: Redactor) -> _Shelves:
    root, idle_ms = settings.memory_dir, settings.idle_s * 1000
    stores = disks(settings.store, root, durable=settings.durable_dir, rolling=settings.summary_dir)
    clears = Clears(stores.used, clock=clock)
    rolling = RollingMemory(stores.used.documents(ROLLING), clock=clock, idle_ms=idle_ms, clears=clears)
    cursors = Cursors(stores.used.documents(CURSORS))
    responses = Responses(
        settings.data_dir / "cache" / "responses",
        clock=clock,
        ttl_ms=settings.cache_ttl_s * 1000,
        most=settings.cache_max_entries,
        idle_ms=idle_ms,
        erased_at=lambda subject: folder.erased_at(subject),
    )
    folder = Memory(
        root,
        clock=clock,
        durable_folder=settings.durable_dir,
        max_items=settings.max_items,
        idle_ms=idle_ms,
        disks=stores,
        rolling=rolling,
        cursors=cursors,
        responses=responses,
    )
    choices = Choices(stores.used.documents(""))
    folder.eraser.held.append(clears.held)
    memory = folder if settings.durable_enabled and stores.used.remembers else None
    return _Shelves(
        folder,
        memory,
        rolling if settings.summary_enabled and stores.used.remembers else None,
        cursors,
        choices,
        responses,
        LiveConfig(stores.used.documents(""), clock=clock, settings=settings.wishes),
        clears,
        _tool_log(folder, choices, clock, redactor) if stores.used.remembers else None,
        _profiles(memory, choices, clock, idle_ms) if memory is not None else None,
        _groups(memory, clock, idle_ms, redactor) if memory is not None else None,
    )


def _profiles(memory: Memory, choices: Choices, clock: Clock, idle_ms: int) -> Profiles:
    documents = memory.disk.documents(PROFILES)
    return Profiles(documents, memory, clock=clock, opted_out=choices.opted_out, idle_ms=idle_ms)


def _groups(memory: Memory, clock: Clock, idle_ms: int, redactor: Redactor) -> Groups:
    return Groups(memory.disk.documents(GROUPS), memory, clock=clock, idle_ms=idle_ms, redactor=redactor)


def _tool_log(folder: Memory, choices: Choices, clock: Clock, redactor: Redactor) -> ToolLog:
    """Which tools were called for whom; nothing of somebody who wants no memory, or was erased since."""

    def unwanted_until(subject: str) -> int:
        return max(choices.unheard_until(user_of(subject) or ""), folder.erased_at(subject))

    tool_log = ToolLog(folder.disk, clock=clock, unwanted_until=unwanted_until, redactor=redactor)
    folder.eraser.held.append(tool_log.held)
    return tool_log


def _cleaned(models: _Models, redactor: Redactor) -> _Models:
    """The models, those of the loops without secrets in what they answer."""
    facts, summary = RedactingModel(models.facts, redactor), RedactingModel(models.summary, redactor)
    return replace(models, facts=facts, summary=summary)


def _models(settings: Settings, model: Model | None, small: Model | None) -> _Models:
    if model is not None:
        return _Models(model, small or model, small or model)
    if settings.api_key is None and settings.base_url is None:
        raise SettingsError(
            "ANTHROPIC_API_KEY is not set; set it, or ANTHROPIC_BASE_URL for a local model, "
            "or try `discoclaw demo`, which needs neither"
        )
    door = AnthropicProvider(
        api_key=settings.api_key.get_secret_value() if settings.api_key is not None else None,
        base_url=settings.base_url,
        connect_timeout_s=settings.connect_timeout_s,
    )
    return _Models(
        door.model(settings.model, total_timeout_s=settings.model_timeout_s),
        small or door.model(settings.summary_model, total_timeout_s=settings.loop_timeout_s),
        small or door.model(settings.durable_model, total_timeout_s=settings.loop_timeout_s),
    )


def _cached(settings: Settings, shelves: _Shelves, models: _Models, clock: Clock) -> _Models:
    """The models, the chat's behind its cache if there is one."""
    if not settings.response_cache:
        return models
    return replace(models, chat=CachingModel(models.chat, settings.model, shelves.responses, clock=clock))


def _finder(settings: Settings, shelves: _Shelves, clock: Clock) -> Finder | None:
    if shelves.memory is None:
        return None
    index = ItemIndex(shelves.folder.items_folder, words_of, clock=clock, idle_ms=settings.idle_s * 1000)
    return Finder(shelves.memory, index, clock=clock)


def _meaning(settings: Settings, shelves: _Shelves) -> Meaning | None:
    """Vectors, if the settings ask for them and they can be had; else one line says why not."""
    memory, choices = shelves.memory, shelves.choices
    wish = EmbeddingConfig(
        provider=settings.embedding_provider,
        model=settings.embedding_model,
        base_url=settings.embedding_url,
        key=settings.embedding_key.get_secret_value() if settings.embedding_key is not None else None,
        openai_key=settings.openai_key.get_secret_value() if settings.openai_key is not None else None,
        auto=settings.embedding_auto,
    )
    try:
        embedder = open_embedder(wish)
    except EmbeddingError as error:
        log.warning("vectors are switched off: %s", error)
        return None
    if embedder is None or memory is None:
        return None

    def skip(subject: str) -> bool:
        # Nobody asks for vectors of who we are, nor of a group, and what these say is not to be sent around.
        return (user_id := user_of(subject)) is None or choices.opted_out(user_id)

    return Meaning(embedder, Embedding(embedder, memory, memory.vectors, skip=skip))


def _loops(
    settings: Settings,
    shelves: _Shelves,
    models: _Models,
    client: DiscoClaw,
    clock: Clock,
    followers: list[Follower],
) -> Loops:
    summary = facts = None
    if shelves.rolling is not None:
        summary = SummaryLoop(
            models.summary,
            shelves.rolling,
            shelves.cursors,
            me=client.me,
            max_chars=settings.summary_max_chars,
            erased_at=lambda user_id: shelves.folder.erased_at(user_subject(user_id)),
            groups=shelves.groups,
        )
    if shelves.memory is not None and settings.extraction_enabled:
        facts = FactsLoop(
            models.facts,
            shelves.memory,
            shelves.cursors,
            dm_privacy=settings.dm_privacy,
            personas=settings.personas,
            unheard=shelves.choices.unheard_until,
            traits=Traits(shelves.memory, settings.owners),
        )

    def learned(user_id: str) -> None:
        for follower in followers:
            follower.touch(user_subject(user_id))

    return Loops(
        clock=clock,
        summary=summary,
        facts=facts,
        summary_every=settings.summary_every,
        facts_every=settings.durable_every,
        window_chars=settings.history_budget,
        learned=learned,
        unheard=shelves.choices.unheard_until,
    )


def _archiving(settings: Settings, shelves: _Shelves, clock: Clock) -> Archiving:
    """The archive of talk, also where nothing is kept: what was kept before is to go."""

    def erased_at(user_id: str) -> int:
        return shelves.folder.erased_at(user_subject(user_id))

    saved = settings.auto_save if shelves.folder.disk.remembers else AutoSave()
    rules = rules_of(saved, settings.hygiene_max_age_s, shelves.choices, erased_at)
    return Archiving(shelves.folder.archive, rules, clock=clock)


def _hygiene(
    settings: Settings, shelves: _Shelves, access: LastUsed | None, archiving: Archiving, clock: Clock
) -> Hygiene:
    return Hygiene(
        shelves.memory,
        access,
        shelves.cursors,
        clock=clock,
        rules=settings.decay,
        roll=random.Random().random,
        purge=archiving.purge,
        lines=shelves.tool_log.purge if shelves.tool_log is not None else None,
        skip=shelves.choices.opted_out,
    )


def _heartbeat(
    settings: Settings, shelves: _Shelves, models: _Models, hygiene: Hygiene, clock: Clock
) -> Heartbeat:
    """The heartbeat; without a memory there is nothing to consolidate, and it looks after the rest."""
    return Heartbeat(
        Consolidator(models.facts, shelves.folder, clock=clock),
        shelves.folder,
        shelves.cursors,
        clock=clock,
        every_minutes=settings.heartbeat_minutes if shelves.memory is not None else 0,
        skip=shelves.choices.opted_out,
        first=hygiene.run,
    )


async def _tidy(heartbeat: Heartbeat, subject: str, branch: str | None, why: Mapping[str, str]) -> Report:
    """A consolidation that a model asked for while it answered."""
    return await heartbeat.now(subject, branch, **why)


def _hatchery(
    settings: Settings,
    shelves: _Shelves,
    models: _Models,
    client: DiscoClaw,
    windows: Windows,
    loops: Loops,
    clock: Clock,
) -> Hatchery:
    return Hatchery(
        HatchingContext(
            owners=settings.owners,
            memory=shelves.memory,
            cursors=shelves.cursors,
            model=models.chat,
            windows=windows,
            loops=loops,
            remembers=lambda user_id: not shelves.choices.opted_out(user_id),
            clock=clock,
            me=client.me,
            max_tokens=settings.max_tokens,
            dm_privacy=settings.dm_privacy,
            commands=settings.commands_enabled,
        )
    )


def _add_erasing(folder: Memory, talk: Talk) -> None:
    """Let the conversations know of an erasing, and ask them where the person has talked."""

    def told(subject: str, at: int, sessions: frozenset[str]) -> None:
        if (user_id := user_of(subject)) is not None:
            talk.erase(user_id, sessions, at)

    def asked(subject: str) -> set[str]:
        user_id = user_of(subject)
        return talk.sessions_of(user_id) if user_id is not None else set()

    folder.eraser.told.append(told)
    folder.eraser.asked.append(asked)


def _add_transparency(
    settings: Settings, shelves: _Shelves, client: DiscoClaw, followers: list[Follower]
) -> None:
    if settings.memory_channel is None or shelves.memory is None:
        return
    mirror = Transparency(client, settings.memory_channel, shelves.memory, shelves.rolling, shelves.cursors)
    follower = Follower(
        "transparency", mirror.mirror, ledgers=shelves.folder.ledgers, cursors=shelves.cursors
    )
    memory = shelves.memory

    async def catch_up() -> None:
        for subject in memory.pending_erasures(TRANSPARENCY):
            follower.touch(subject)  # its message is still to be deleted
        await follower.catch_up()

    memory.changed.append(follower.touch)
    memory.eraser.outside.add(TRANSPARENCY)
    client.heard_hooks.append(mirror.heard)
    client.ready_hooks.append(catch_up)
    followers.append(follower)


def _add_questions(shelves: _Shelves, models: _Models, client: DiscoClaw, followers: list[Follower]) -> None:
    if shelves.memory is None:
        return
    questions = Questions(
        client,
        client.access,
        shelves.memory,
        shelves.choices,
        shelves.cursors,
        partial(suggest, models.facts),
    )
    follower = Follower("questions", questions.ask, ledgers=shelves.folder.ledgers, cursors=shelves.cursors)
    shelves.memory.changed.append(follower.touch)
    client.ready_hooks.append(follower.catch_up)
    followers.append(follower)


def _add_receipts(settings: Settings, shelves: _Shelves, client: DiscoClaw) -> Receipts | None:
    if not settings.receipts or shelves.memory is None:
        return None
    receipts = Receipts(client)
    shelves.memory.committed.append(receipts.committed)
    return receipts


def _add_commands(
    settings: Settings,
    shelves: _Shelves,
    client: DiscoClaw,
    parts: Parts,
    hatchery: Hatchery,
    archiving: Archiving,
    door: NostrAdapter | None,
) -> None:
    context = CommandContext(
        shelves.memory,
        shelves.rolling,
        shelves.choices,
        settings.dm_privacy,
        cleared=parts.loops.reset,
        hatchery=hatchery,
        archiving=archiving,
        tidy=parts.tidy,
        mirrored=door,
        last_used=parts.access,
    )
    client.presses = Presses(context, owners=settings.owners, may_talk=client.access.may_talk)

    async def setup() -> None:
        if settings.commands_enabled:
            Commands(client, context, CATALOGUE).register()
        await sync_if_changed(client.tree, shelves.cursors)

    client.setup_hooks.append(setup)
