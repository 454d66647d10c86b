"""What calls of models cost here, and the budgets that bound them: prices that are missing, what is spent."""

from collections.abc import AsyncIterator, Iterator, Mapping
from time import time

from discoclaw.app.models import config_of
from discoclaw.app.usage import is_own
from discoclaw.checkup.store import has_tables, in_database
from discoclaw.core.budgets import SMALL_FROM, Limit, Span, Spent
from discoclaw.core.errors import MemoryFault, SettingsError
from discoclaw.core.health import Finding
from discoclaw.core.model import Usage
from discoclaw.core.prices import Prices
from discoclaw.core.usage import Call, dollars
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.models.providers import open_models
from discoclaw.settings import Settings
from discoclaw.show.words import line
from discoclaw.storage import disks_of
from discoclaw.usage.log import UsageLog
from discoclaw.usage.price_table import prices


def prices_of(settings: Settings) -> Prices:
    """The prices that apply here. Raises SettingsError for a file of prices that can't be used."""
    free = settings.model_provider == "offline" or is_own(settings.base_url)
    return prices(settings.prices, free=free)


def cost_of(settings: Settings, used: Mapping[str, Usage]) -> str:
    """What models used, in dollars; "" if that is nothing, or if a price isn't known."""
    try:
        table = prices_of(settings)
    except SettingsError:
        return ""  # which `costs` says
    priced = [(table.of(model), usage) for model, usage in used.items()]
    cost = sum(price.cost(usage) for (price, _), usage in priced)
    return dollars(cost) if cost and all(known for (_, known), _ in priced) else ""


async def costs(settings: Settings) -> AsyncIterator[Finding]:
    """Prices of the configured models, and each budget with what is spent of it."""
    table = prices_of(settings)
    async for one in _prices(settings, table):
        yield one
    if not settings.budget:
        if not table.free:
            text = "there is none, so nothing bounds what models cost"
            yield Finding("budget", "off", text, "set DISCOCLAW_BUDGET, for example 5/day")
        return
    spent = await _spent(settings)
    for limit in settings.budget:
        yield _budget(limit, spent.get(limit))


async def _prices(settings: Settings, table: Prices) -> AsyncIterator[Finding]:
    if table.free and not table.own:
        where = "the offline model" if settings.model_provider == "offline" else "a model on this network"
        yield Finding("prices", "good", f"{where} costs nothing; its tokens are counted")
        return
    try:
        models = open_models(config_of(settings))
    except SettingsError:
        return  # which the topic of the model says
    names = [models.id_of(one) for one in (settings.model, settings.summary_model, settings.durable_model)]
    await models.close()
    unknown = [one for one in dict.fromkeys(names) if not table.of(one)[1]]
    for one in unknown:
        text = f"no price of {line(one)} is known, so each call counts as if it were the dearest model"
        yield Finding("prices", "warning", text, "write it into a file, and set DISCOCLAW_PRICES to that")
    if not unknown:
        yield Finding("prices", "good", f"known for {', '.join(map(line, dict.fromkeys(names)))}")


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
    """What was spent of each budget of everything; none if the log can't be read."""
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
