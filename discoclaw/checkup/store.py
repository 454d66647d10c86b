"""The database if the store is one, and every ledger. They are only read, also while the bot runs."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from discoclaw.checkup.topic import finding
from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.core.health import Finding
from discoclaw.memory.status import Status, status_of
from discoclaw.memory.stores import POSTGRES, Disks
from discoclaw.memory.subjects.inspect import held, subjects, unfinished
from discoclaw.settings import Settings
from discoclaw.show.words import count, line
from discoclaw.storage import disks_of
from discoclaw.store.files import read_in_thread

MOST_TOLD = 5
REPAIR = "stop the bot and run `discoclaw memory verify --repair`, which keeps the original"


def in_database(settings: Settings) -> bool:
    """Whether the store is a database."""
    return settings.store.get_secret_value().startswith(POSTGRES)


async def database(settings: Settings) -> AsyncIterator[Finding]:
    """PostgreSQL: version, tables, rights, and who else uses it. No table is made."""
    if not in_database(settings):
        yield Finding("PostgreSQL", "off", "not used; the memory is in files")
        return
    from discoclaw.store.postgres.schema import look  # an extra, slow to import

    try:
        seen = await read_in_thread(look, settings.store.get_secret_value())
    except (MemoryFault, OSError) as error:
        text, _, way_out = str(error).partition("; ")
        yield Finding("PostgreSQL", "bad", text, way_out or "see docs/admins/postgresql.md")
        return
    yield Finding("PostgreSQL", "good", f"{seen.where}: PostgreSQL {seen.server}, {seen.size / 1e6:.0f} MB")
    if seen.read_only:
        text = "the database only takes reads"
        yield Finding("rights", "bad", text, "use the primary server (target_session_attrs=read-write)")
        return
    if not seen.may_write:
        text = "this user may not write there"
        yield Finding("rights", "bad", text, "let it own the database (ALTER DATABASE … OWNER TO …)")
    else:
        yield Finding("rights", "good", "this user may write there")
    if seen.tables is None:
        yield Finding("tables", "good", "there are none yet; the bot makes them at its first start")
    elif seen.tables > seen.newest:
        text = f"the tables have version {seen.tables}, newer than this program's {seen.newest}"
        yield Finding("tables", "bad", text, "update DiscoClaw")
    elif seen.tables < seen.newest:
        text = f"the tables have version {seen.tables}; the next start brings them to {seen.newest}"
        yield Finding("tables", "warning", text, "back up the database before you start the bot")
    else:
        yield Finding("tables", "good", f"version {seen.tables}")
        for one in await read_in_thread(_processes, settings):
            yield one


def _processes(settings: Settings) -> list[Finding]:
    with disks_of(settings) as stores:
        try:
            status = status_of(stores)
        except MemoryFault as fault:
            return [Finding("processes", "bad", str(fault), "see docs/admins/postgresql.md")]
    wrong = [Finding("processes", "bad", one, "see `discoclaw status`") for one in status.wrong()]
    return [*wrong, *_unfinished(status)] or [_living(status)]


def _unfinished(status: Status) -> list[Finding]:
    if not status.erasings:
        return []
    text = f"the erasing of {count(len(status.erasings), 'memory')} is unfinished"
    return [Finding("erasing", "warning", text, "start the bot, which finishes it")]


def _living(status: Status) -> Finding:
    processes = status.together.processes if status.together is not None else ()
    alive = [one for one in processes if one.alive and one.kind == "bot"]
    if not alive:
        return Finding("processes", "good", "no process of the bot uses it now")
    hosts = ", ".join(sorted({line(one.host) for one in alive}))
    return Finding("processes", "good", f"{len(alive)} of the bot use it ({hosts})")


# ---------------------------------------------------------------------- ledgers


@dataclass(slots=True)
class _Checked:
    """Counts and faults of all ledgers so far."""

    memories: int = 0
    commits: int = 0
    wrong: int = 0


async def ledgers(settings: Settings, progress: Callable[[str], None]) -> AsyncIterator[Finding]:
    """Every hash of every ledger, as `discoclaw memory verify` checks them."""
    if in_database(settings) and not await has_tables(settings):
        yield Finding("ledgers", "unknown", "not looked at: the database has none of this version")
        return
    with disks_of(settings) as stores:
        try:
            async for one in _ledgers(stores, progress):
                yield one
        except NewerSchema as error:
            yield Finding("ledgers", "bad", str(error), "update DiscoClaw")
        except MemoryFault as error:
            yield finding("ledgers", error)


async def has_tables(settings: Settings) -> bool:
    """Whether the database has the tables of this version, so that reading it makes none."""
    from discoclaw.store.postgres.schema import look  # as above

    try:
        seen = await read_in_thread(look, settings.store.get_secret_value())
    except (MemoryFault, OSError):
        return False  # which its own topic says
    return seen.tables == seen.newest


async def _ledgers(stores: Disks, progress: Callable[[str], None]) -> AsyncIterator[Finding]:
    try:
        damaged = await read_in_thread(stores.check)
        elsewhere = await read_in_thread(stores.elsewhere) if damaged is None else []
    except OSError as error:
        raise MemoryFault(f"the store can't be read: {error.strerror or error}") from error
    if damaged is not None:
        text, _, way_out = damaged.partition("; ")
        yield Finding("store", "bad", text, way_out or REPAIR)
        return
    for one in elsewhere:
        text, _, way_out = one.partition("; ")
        yield Finding("other store", "warning", text, way_out)
    disk, checked = stores.used, _Checked()
    names = await read_in_thread(subjects, disk)
    erasing = await read_in_thread(unfinished, disk)
    for number, name in enumerate(names, start=1):
        progress(f"checking ledgers: {number:,} of {len(names):,}")
        if name in erasing:
            continue
        async for wrong in _ledger(stores, name, checked):
            yield wrong
    counted = f"{count(checked.memories, 'memory')} with {count(checked.commits, 'commit')}"
    if checked.wrong > MOST_TOLD:
        yield Finding("ledgers", "bad", f"{checked.wrong - MOST_TOLD} more are damaged", REPAIR)
    elif not checked.wrong:
        yield Finding("ledgers", "good", f"{counted}: every hash is right")


async def _ledger(stores: Disks, name: str, checked: _Checked) -> AsyncIterator[Finding]:
    try:
        one = await read_in_thread(held, stores.used, name)
        faults = one.faults
        checked.commits += len(one.commits)
    except NewerSchema:
        raise
    except MemoryFault as fault:
        faults = (str(fault),)
    checked.memories += 1
    if faults:
        checked.wrong += 1
        if checked.wrong <= MOST_TOLD:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            yield Finding("ledgers", "bad", f"{name}: {line(faults[0], 300)}{more}", REPAIR)
