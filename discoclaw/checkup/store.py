"""The store: its database if it is one, every ledger, and what models cost by its log and the budgets.

Everything is only read, also while the bot runs.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from time import time

from discoclaw.app.models import config_of, prices_of
from discoclaw.checkup.topic import finding
from discoclaw.core.budgets import SMALL_FROM, Limit, Span, Spent
from discoclaw.core.errors import MemoryFault, NewerSchema, SettingsError, faulting
from discoclaw.core.health import Finding
from discoclaw.core.model import Usage
from discoclaw.core.usage import Call, dollars
from discoclaw.memory.status import Status, status_of
from discoclaw.memory.stores import POSTGRES, Disks
from discoclaw.memory.subjects.inspect import held, subjects, unfinished
from discoclaw.models.providers import open_models
from discoclaw.settings import Settings
from discoclaw.show.words import count, line
from discoclaw.storage import disks_of
from discoclaw.store.files import read_in_thread
from discoclaw.usage.log import UsageLog

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


def unfinished_in(status: Status, name: str) -> list[Finding]:
    """A finding of this name if an erasing is unfinished in a store."""
    if not status.erasings:
        return []
    text = f"the erasing of {count(len(status.erasings), 'memory')} is unfinished"
    return [Finding(name, "warning", text, "start the bot, which finishes it")]


def _processes(settings: Settings) -> list[Finding]:
    with disks_of(settings) as stores:
        try:
            status = status_of(stores)
        except MemoryFault as fault:
            return [Finding("processes", "bad", str(fault), "see docs/admins/postgresql.md")]
    found = [Finding("processes", "bad", one, "see `discoclaw status`") for one in status.wrong()]
    found += unfinished_in(status, "erasing")
    if found:
        return found
    processes = status.together.processes if status.together is not None else ()
    alive = [one for one in processes if one.alive and one.kind == "bot"]
    if not alive:
        return [Finding("processes", "good", "no process of the bot uses it now")]
    hosts = ", ".join(sorted({line(one.host) for one in alive}))
    return [Finding("processes", "good", f"{len(alive)} of the bot use it ({hosts})")]


# ---------------------------------------------------------------------- ledgers


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
    with faulting("the store can't be read"):
        damaged = await read_in_thread(stores.check)
        elsewhere = await read_in_thread(stores.elsewhere) if damaged is None else []
    if damaged is not None:
        text, _, way_out = damaged.partition("; ")
        yield Finding("store", "bad", text, way_out or REPAIR)
        return
    for one in elsewhere:
        text, _, way_out = one.partition("; ")
        yield Finding("other store", "warning", text, way_out)
    disk, memories, commits, wrong = stores.used, 0, 0, 0
    names = await read_in_thread(subjects, disk)
    erasing = await read_in_thread(unfinished, disk)
    for number, name in enumerate(names, start=1):
        progress(f"checking ledgers: {number:,} of {len(names):,}")
        if name in erasing:
            continue
        memories += 1
        try:
            seen = await read_in_thread(held, disk, name)
            faults = seen.faults
            commits += len(seen.commits)
        except NewerSchema:
            raise
        except MemoryFault as fault:
            faults = (str(fault),)
        if faults and (wrong := wrong + 1) <= MOST_TOLD:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            yield Finding("ledgers", "bad", f"{name}: {line(faults[0], 300)}{more}", REPAIR)
    if wrong > MOST_TOLD:
        yield Finding("ledgers", "bad", f"{wrong - MOST_TOLD} more are damaged", REPAIR)
    elif not wrong:
        counted = f"{count(memories, 'memory')} with {count(commits, 'commit')}"
        yield Finding("ledgers", "good", f"{counted}: every hash is right")


# ---------------------------------------------------------------------- costs


def cost_of(settings: Settings, used: Mapping[str, Usage]) -> str:
    """The cost of what models used, in dollars; "" if that is nothing, or if a price isn't known."""
    try:
        table = prices_of(settings)
    except SettingsError:
        return ""  # which `costs` says
    priced = [(table.of(model), usage) for model, usage in used.items()]
    cost = sum(price.cost(usage) for (price, _), usage in priced)
    return dollars(cost) if cost and all(known for (_, known), _ in priced) else ""


async def costs(settings: Settings) -> AsyncIterator[Finding]:
    """Prices of the configured models, and each budget with what is spent of it."""
    table, names = prices_of(settings), list[str]()
    with suppress(SettingsError):  # models that can't be opened, as another topic says
        models = open_models(config_of(settings))
        await models.close()
        asked = (settings.model, settings.summary_model, settings.durable_model)
        names += dict.fromkeys(map(models.id_of, asked))
    free = [name for name in names if table.costs_nothing(name)]
    unknown = [name for name in names if not table.of(name)[1]]
    known = [name for name in names if name not in free and name not in unknown]
    if free:
        offline = settings.model_provider == "offline"
        where = "the offline model" if offline else "a model on this network"
        which = f" ({', '.join(map(line, free))})" if len(free) < len(names) else ""
        yield Finding("prices", "good", f"{where} costs nothing{which}; its tokens are counted")
    for one in unknown:
        text = f"no price of {line(one)} is known, so each call counts as if it were the dearest model"
        yield Finding("prices", "warning", text, "write it into a file, and set DISCOCLAW_PRICES to that")
    if known and not unknown:
        yield Finding("prices", "good", f"known for {', '.join(map(line, known))}")

    if not settings.budget:
        if not names or len(free) < len(names):
            text = "there is none, so nothing bounds what models cost"
            yield Finding("budget", "off", text, "set DISCOCLAW_BUDGET, for example 5/day")
        return
    spent: Mapping[Limit, Spent] = {}
    if not in_database(settings) or await has_tables(settings):
        with suppress(OSError, MemoryFault):  # the store's own topic says that
            spent = await read_in_thread(lambda: dict(_sums(settings)))
    for limit in settings.budget:
        whose = "everything" if limit.scope == "all" else f"each {limit.scope}"
        text, used = f"{dollars(limit.nano)} a {limit.period} for {whose}", spent.get(limit)
        if used is not None:
            text += f": {dollars(used.nano)} spent ({used.percent} %)"
        if used is None or used.percent < SMALL_FROM:
            yield Finding("budget", "good", text)
            continue
        all_spent = f"memory alone answers until the {limit.period} is over"
        text += f"; {all_spent if used.percent >= 100 else 'the small model answers'}"
        yield Finding("budget", "warning", text, "raise DISCOCLAW_BUDGET, or wait")


def _sums(settings: Settings) -> Iterator[tuple[Limit, Spent]]:
    """How much is spent of each budget of everything. Blocking."""
    now = int(time() * 1000)
    with disks_of(settings) as stores:
        if not stores.used.remembers:
            return
        for limit in settings.budget:
            if limit.scope == "all":
                span = Span.at(now, limit.period, settings.zone)
                records = UsageLog(stores.used).load(now, span.begin)
                nano = sum(one.nano for one in records if isinstance(one, Call) and one.at >= span.begin)
                yield limit, Spent(limit, "", nano, span)
