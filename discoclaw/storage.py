"""Everything on disk, built once from the settings, for the bot and for the command line alike.

Parts with personal data are registered here for erasing (`memory.personal`), in the order in which an erasing
visits them. Code that builds a part with personal data in RAM adds it to the same registry.
Building touches no disk; `open` takes the folder. Independent of Discord and of models.
"""

from dataclasses import dataclass

from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Clock, Processes
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.memory.changed_by import ChangedBy
from discoclaw.memory.changes import Changes
from discoclaw.memory.conversations.answers import Answers
from discoclaw.memory.conversations.clears import Clears
from discoclaw.memory.conversations.responses import Responses
from discoclaw.memory.conversations.rolling import NoSummaries, RollingMemory
from discoclaw.memory.conversations.undelivered import Undelivered
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.live import LiveConfig, PlaceRules
from discoclaw.memory.people.choices import Choices, KnownConsent
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.processes import processes_of
from discoclaw.memory.purge import Purger
from discoclaw.memory.stores import Disks, disks
from discoclaw.memory.subjects.store import STORE_OFF, AnyMemory, Memory, NoMemory
from discoclaw.search.archive import Archive
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.search.vectors import VectorCache
from discoclaw.session.kept_terms import KeptTerms
from discoclaw.settings import Settings, data_folders
from discoclaw.show.words import count
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING, Disk
from discoclaw.usage.accounts import Accounts
from discoclaw.usage.log import UsageLog


@dataclass(frozen=True, slots=True)
class People:
    """What is known about people and channels beside their memory."""

    choices: Choices
    profiles: Profiles
    groups: Groups
    last_used: LastUsed
    tool_log: ToolLog
    changed_by: ChangedBy


@dataclass(frozen=True, slots=True)
class Conversations:
    """What is stored of talk: summaries, when they were cleared, whom the bot's answers were for, cached
    answers of the model, the archive.

    `unused` are archives of other stores, which may be left from before: erasing and taking back reach them.
    """

    rolling: RollingMemory
    clears: Clears
    answers: Answers
    responses: Responses
    archive: Archive
    unused: tuple[Archive, ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """All of it. `live` is the configuration that applies at once, `places` what it says about places,
    `cursors` the progress of each follower, `undelivered` the answers that the chat has not taken yet, and
    `processes` those that share the store.

    Answers use `used` and `summaries`, and learning goes into them. If people are not remembered, or
    conversations not summarised, these are empty stand-ins; `memory` and `conversations` still reach what was
    stored before, to erase it.
    """

    memory: Memory
    used: AnyMemory
    summaries: RollingMemory | NoSummaries
    people: People
    conversations: Conversations
    vectors: VectorCache
    terms: KeptTerms
    cursors: Cursors
    live: LiveConfig
    places: PlaceRules
    consent: KnownConsent
    purger: Purger
    undelivered: Undelivered
    processes: Processes

    @property
    def remembers(self) -> bool:
        """Whether people are remembered."""
        return self.used is self.memory

    @property
    def sums_up(self) -> bool:
        """Whether conversations are summarised."""
        return self.summaries is self.conversations.rolling

    def open(self, *, beside: bool = False) -> None:
        """Take the folder, and finish interrupted erasings. Blocking; see `Memory.open`.

        `beside`: a running bot may keep the folder, if processes share the store.
        """
        self.memory.open(beside=beside)

    def load(self) -> None:
        """Read what is needed at once: erasings, choices, configuration. Blocking. Raises MemoryFault."""
        self.memory.catch_up()
        self.people.choices.load()
        self.people.changed_by.load()
        self.live.load()

    def close(self) -> None:
        """Close all files, and release the folder. Blocking."""
        for archive in (self.conversations.archive, *self.conversations.unused):
            archive.close()
        self.vectors.close()
        self.memory.close()


def other_folders(settings: Settings) -> list[str]:
    """A sentence for each data folder with memories that the settings don't name; it may be the bot's."""
    own, told = settings.data_dir.resolve(), list[str]()
    for folder in dict.fromkeys(one.resolve() for one in data_folders()):
        try:
            if folder == own or not (folder / "memory").is_dir():
                continue
            with disks("files", folder / "memory") as stores:
                people = sum(len(one.ledgers.by_age()) for one in (stores.used, *stores.beside))
            has = f"has {count(people, 'memory')} too" if people else ""
        except (OSError, MemoryFault):
            has = "may have memories too, and can't be read"
        if has:
            told.append(f"{folder} {has}; let DISCOCLAW_DATA_DIR name the bot's folder, and move the other")
    return told


def disks_of(settings: Settings) -> Disks:
    """The stores that the settings configure."""
    return disks(
        settings.store.get_secret_value(),
        settings.memory_dir,
        durable=settings.durable_dir,
        rolling=settings.summary_dir,
    )


def build(
    settings: Settings,
    *,
    clock: Clock,
    redactor: Redactor = PLAIN,
    for_admin: bool = False,
    stores: Disks | None = None,
    processes: Processes | None = None,
) -> Storage:
    """Build every part, and register it for erasings and for notifications of what is recorded.

    For an admin this includes what the settings switch off for the bot. `stores` are those of the settings by
    default; `processes` share the one that is used.
    """
    stores, idle_ms = stores or disks_of(settings), settings.idle_s * 1000
    disk, changes, cache = stores.used, Changes(), settings.data_dir / "cache"
    processes = processes or processes_of(disk, changes, "tool" if for_admin else "bot")
    cursors = Cursors(disk.documents(CURSORS), clock=clock)
    live = LiveConfig(disk.documents(""), clock=clock, settings=settings.overrides, shared=disk.shared)
    places = PlaceRules(live, settings.personas, settings.auto_save, settings.actions)
    memory = Memory(
        stores,
        clock=clock,
        max_items=settings.max_items,
        idle_ms=idle_ms,
        cursors=cursors,
        dm_privacy=places.dm_privacy,
        processes=processes,
        changes=changes,
    )
    choices = Choices(disk, changes, asks=places.asks_first)
    consent = KnownConsent(choices, memory.tombstones)

    # What is stored of talk.
    clears = Clears(disk, clock=clock)
    rolling = RollingMemory(
        disk.documents(ROLLING), clock=clock, idle_ms=idle_ms, clears=clears, cursors=cursors, changes=changes
    )
    responses = Responses(
        cache / "responses",
        clock=clock,
        ttl_ms=settings.cache_ttl_s * 1000,
        most=settings.cache_max_entries,
        idle_ms=idle_ms,
        consent=consent,
    )
    archive, unused = _archives(settings, disk, clock)
    answers = Answers(disk, keeps=settings.durable_enabled or settings.summary_enabled)
    conversations = Conversations(rolling, clears, answers, responses, archive, unused)

    # What is used of it all.
    used: AnyMemory = memory
    summaries: RollingMemory | NoSummaries = rolling
    if not disk.remembers:
        used, summaries = NoMemory(STORE_OFF), NoSummaries(STORE_OFF)
    elif not for_admin:
        used = memory if settings.durable_enabled else NoMemory()
        summaries = rolling if settings.summary_enabled else NoSummaries()
    purger = Purger(
        used,
        memory.eraser,
        memory.personal,
        cursors,
        consent,
        shared=disk.shared,
        choosers=choices.people,
    )
    undelivered = Undelivered(cursors, consent, purger, keeps=disk.remembers, redactor=redactor)

    # What is known about people and channels.
    last_used = LastUsed(memory, cursors, clock=clock)
    tool_log = ToolLog(disk, clock=clock, consent=consent, redactor=redactor, changes=changes)
    on = used is memory
    profiles = Profiles(
        disk.documents(PROFILES), memory, clock=clock, consent=consent, idle_ms=idle_ms, on=on
    )
    groups = Groups(
        disk.documents(GROUPS),
        memory,
        clock=clock,
        consent=consent,
        idle_ms=idle_ms,
        redactor=redactor,
        on=on,
    )
    changed_by = ChangedBy(disk.documents(""))
    people = People(choices, profiles, groups, last_used, tool_log, changed_by)
    vectors, terms = VectorCache(cache / "vectors.sqlite"), KeptTerms(cache, used)

    # An erasing visits them in this order: first, work under way learns that it may no longer be stored.
    memory.join(live, choices, consent, answers, undelivered)
    memory.join(rolling, clears)  # a clear holds the one while it writes the other
    memory.join(tool_log, profiles, groups, last_used, changed_by)
    memory.join(responses, archive, *unused, vectors, terms)
    shared = disk.shared and settings.nostr_relays
    if shared or settings.outbox_path.exists():  # copies have to be erased on relays even if mirroring is off
        from discoclaw.mirroring import relay_copies  # an import that most commands do not need

        memory.join(relay_copies(settings, disk))
    memory.join(purger)
    if for_admin and disk.remembers:  # the bot's own accounts are a feature, as they count calls too
        memory.join(Accounts(UsageLog(disk), clock=clock))
    return Storage(
        memory,
        used,
        summaries,
        people,
        conversations,
        vectors,
        terms,
        cursors,
        live,
        places,
        consent,
        purger,
        undelivered,
        processes,
    )


def _archives(settings: Settings, disk: Disk, clock: Clock) -> tuple[Archive, tuple[Archive, ...]]:
    """The archive of a store, and those of other stores that may be left."""
    in_file = Archive(ArchiveFile(settings.memory_dir / "archive.sqlite", clock=clock))
    if disk.name != "postgresql":  # the only store that has tables for it
        return in_file, ()
    from discoclaw.search.archive_tables import ArchiveTables
    from discoclaw.store.postgres.disk import PostgresDisk  # an extra, slow to import

    assert isinstance(disk, PostgresDisk)
    in_file.name, in_file.local = "archive of another store", True
    return Archive(ArchiveTables(disk.tables)), (in_file,)
