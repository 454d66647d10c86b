"""What calls of models cost here, and the budgets that bound them: prices that are missing, what is spent."""

from collections.abc import AsyncIterator, Iterator, Mapping
from time import time

from discoclaw.app.models import config_of, prices_of
from discoclaw.checkup.store import has_tables, in_database
from discoclaw.core.budgets import SMALL_FROM, Limit, Span, Spent
from discoclaw.core.errors import MemoryFault, SettingsError
from discoclaw.core.health import Finding
from discoclaw.core.model import Usage
from discoclaw.core.usage import Call, Prices, dollars
from discoclaw.models.providers import open_models
from discoclaw.settings import Settings
from discoclaw.show.words import line
from discoclaw.storage import disks_of
from discoclaw.store.files import read_in_thread
from discoclaw.usage.log import UsageLog


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
    table, names = prices_of(settings), await _named(settings)
    for one in _prices(settings, names, table):
        yield one
    if not settings.budget:
        if not names or not all(map(table.costs_nothing, names)):
            text = "there is none, so nothing bounds what models cost"
            yield Finding("budget", "off", text, "set DISCOCLAW_BUDGET, for example 5/day")
        return
    spent = await _spent(settings)
    for limit in settings.budget:
        yield _budget(limit, spent.get(limit))


async def _named(settings: Settings) -> list[str]:
    """The configured models as they are counted; none if they can't be opened, as another topic says."""
    try:
        models = open_models(config_of(settings))
    except SettingsError:
        return []
    await models.close()
    names = (settings.model, settings.summary_model, settings.durable_model)
    return list(dict.fromkeys(map(models.id_of, names)))


def _prices(settings: Settings, names: list[str], table: Prices) -> Iterator[Finding]:
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


def _budget(limit: Limit, spent: Spent | None) -> Finding:
    """One budget, and how much of it is spent, if that is one number."""
    whose = "everything" if limit.scope == "all" else f"each {limit.scope}"
    name = f"{dollars(limit.nano)} a {limit.period} for {whose}"
    if spent is None:
        return Finding("budget", "good", name)
    text = f"{name}: {dollars(spent.nano)} spent ({spent.percent} %)"
    if spent.percent >= 100:
        text += f"; memory alone answers until the {limit.period} is over"
        return Finding("budget", "warning", text, "raise DISCOCLAW_BUDGET, or wait")
    if spent.percent >= SMALL_FROM:
        text += "; the small model answers"
        return Finding("budget", "warning", text, "raise DISCOCLAW_BUDGET, or wait")
    return Finding("budget", "good", text)


async def _spent(settings: Settings) -> Mapping[Limit, Spent]:
    """The sum spent of each budget of everything; none if the log can't be read."""
    if in_database(settings) and not await has_tables(settings):
        return {}
    try:
        return await read_in_thread(lambda: dict(_sums(settings)))
    except (OSError, MemoryFault):
        return {}  # the store's own topic says that


def _sums(settings: Settings) -> Iterator[tuple[Limit, Spent]]:
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
