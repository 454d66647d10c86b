"""The endpoints for programs that watch the bot, and what `/metrics` shows, read when somebody asks.

    /healthz    200: the process lives, and its event loop runs. A blocked one doesn't answer
    /readyz     200 or 503, and as JSON what works and what doesn't
    /metrics    everything that is measured, for Prometheus; docs/admins/monitoring.md explains each

Whoever reaches the address may ask, so nothing here names anybody. Every label comes from a list in the
program or in the settings: a name that somebody else chose is "other". Prometheus takes 13 MB, so this is
imported only where DISCOCLAW_METRICS is set.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from discoclaw import __version__
from discoclaw.app.followers import Relays
from discoclaw.app.monitoring import SLOW_S, Health, LoopLag
from discoclaw.bot.client import DiscoClaw
from discoclaw.core.budgets import Spent
from discoclaw.core.health import Counts, Ended, Finding, Histogram, Last, Seen, Why, as_json, healthy
from discoclaw.core.usage import DOLLAR, Total
from discoclaw.session.talk import Talk
from discoclaw.settings_types import Listen
from discoclaw.store.threads import WRITES, Written, running
from discoclaw.usage.accounts import Accounts
from discoclaw.web.listening import Listener
from discoclaw.work import Work, at_work

PREFIX: Final = "discoclaw_"
STATES: Final = {"good": 0, "off": 0, "unknown": 1, "warning": 2, "bad": 3}

Rows = Iterable[tuple[Sequence[str], float]]


@dataclass(frozen=True, slots=True, eq=False)
class Measured(Collector):
    """The parts whose numbers are shown. `known` tells models that may be named from others."""

    health: Health
    talk: Talk
    lag: LoopLag
    client: DiscoClaw
    seen: Seen
    accounts: Accounts
    relays: Callable[[], Relays]
    known: Callable[[str], str]

    def collect(self) -> Iterator[Metric]:
        """Everything that is measured, as it is now."""
        yield from of_health(self.health())
        yield from of_answers(self.talk.counts, self.talk.desk.waiting, self.talk.desk.oldest_s)
        yield from of_work(at_work())
        yield from of_loop(self.lag.times, self.lag.last_s, len(running(SLOW_S)))
        yield from of_store(WRITES.state(), self.client.processes.in_touch)
        yield from of_gateway(self.client)
        yield from of_models(self.seen.last)
        yield from of_usage(self.accounts.ended, self.accounts.all_spent(), self.known)
        yield from of_relays(self.relays())

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it measures nothing yet."""
        return ()


def server(at: Listen, measured: Measured) -> Listener:
    """What answers the three addresses, listening `at` one of this machine's."""
    registry = CollectorRegistry()  # our own, so that nothing is in it that another library measures
    registry.register(measured)
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        body = as_json(measured.health())
        return web.json_response(body, status=200 if body["ready"] else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", alive), web.get("/readyz", ready), web.get("/metrics", metrics)])
    return Listener(app, at, "DISCOCLAW_METRICS")


# ---------------------------------------------------------------------- forms


def gauge(name: str, text: str, value: float) -> Metric:
    """A number that goes up and down."""
    return GaugeMetricFamily(PREFIX + name, text, value=value)


def counter(name: str, text: str, value: float) -> Metric:
    """A number that only grows, until the next start."""
    return CounterMetricFamily(PREFIX + name, text, value=value)


def gauges(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    """A gauge for each row of label values."""
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for values, number in rows:
        family.add_metric(list(values), number)
    return family


def counters(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    """A counter for each row of label values."""
    family = CounterMetricFamily(PREFIX + name, text, labels=labels)
    for values, number in rows:
        family.add_metric(list(values), number)
    return family


def histogram(name: str, text: str, values: Histogram) -> Metric:
    """Times (s), sorted into ranges."""
    family = HistogramMetricFamily(PREFIX + name, text)
    counts = [("+Inf" if math.isinf(bound) else f"{bound:g}", count) for bound, count in values.up_to()]
    family.add_metric([], counts, values.sum)
    return family


# ---------------------------------------------------------------------- what there is to measure


def of_health(findings: Collection[Finding]) -> Iterator[Metric]:
    """Whether the bot is ready, and each finding."""
    yield gauges("info", "The version of the program.", ["version"], [([__version__], 1)])
    yield gauge("ready", "1 if nothing is bad, as /readyz says.", healthy(findings))
    worst: dict[str, int] = {}
    for one in findings:
        worst[one.name] = max(worst.get(one.name, 0), STATES[one.state])
    text = "How something is: 0 good, 1 unknown, 2 a warning, 3 bad."
    yield gauges("finding_state", text, ["name"], [([name], state) for name, state in worst.items()])


def of_answers(counts: Counts, waiting: int, oldest_s: float) -> Iterator[Metric]:
    """Messages, answers, and how long people wait."""
    yield counter("messages_heard", "Messages of people in channels that the bot listens to.", counts.heard)
    yield counter("messages_asked", "Messages that were to be answered.", counts.asked)
    endings = [([how], counts.answers[how]) for how in get_args(Ended)]
    yield counters("answers", "Answers, by how they ended.", ["ending"], endings)
    reasons = [
        ([why], counts.unanswered[why]) for why in {**dict.fromkeys(get_args(Why)), **counts.unanswered}
    ]
    text = "Messages that were to be answered and were not, by the reason."
    yield counters("unanswered", text, ["reason"], reasons)
    yield histogram("first_shown_seconds", "From a message to the first that is shown.", counts.shown)
    yield histogram("answer_seconds", "From a message to the end of its answer.", counts.told)
    yield gauge("queue_waiting", "Messages that wait for their turn.", waiting)
    yield gauge("queue_oldest_seconds", "How long the one that has waited longest has waited.", oldest_s)
    yield counter("commits", "Commits to memories.", counts.commits)


def of_work(work: Collection[Work]) -> Iterator[Metric]:
    """The background workers; those of the same name are added up."""

    def total(value: Callable[[Work], float]) -> Rows:
        return [([name], sum(map(value, ones))) for name, ones in by_name.items()]

    def most(value: Callable[[Work], float], pick: Callable[[Iterable[float]], float] = max) -> Rows:
        return [([name], pick(map(value, ones))) for name, ones in by_name.items()]

    by_name: dict[str, list[Work]] = {}
    for one in work:
        by_name.setdefault(one.name, []).append(one)
    label = ["worker"]
    yield gauges("worker_running", "Jobs that run.", label, total(lambda one: one.running))
    yield gauges("worker_waiting", "Jobs that are due or failed.", label, total(lambda one: one.waiting))
    yield gauges(
        "worker_failing", "Jobs that failed when they last ran.", label, total(lambda one: one.failing)
    )
    text = "For how long a job has got nowhere."
    yield gauges("worker_stalled_seconds", text, label, most(lambda one: max(one.longest_s, one.stuck_s)))
    text = "How long ago a job last began, got on or ended."
    yield gauges("worker_idle_seconds", text, label, most(lambda one: one.idle_s, min))
    outcomes = (("done", lambda one: one.done), ("failed", lambda one: one.failed))
    rows = [([*name, outcome], n) for outcome, value in outcomes for name, n in total(value)]
    yield counters("worker_jobs", "Jobs that ended, by how.", ["worker", "outcome"], rows)


def of_loop(lag: Histogram, last_s: float, hanging: int) -> Iterator[Metric]:
    """The event loop, and calls in threads."""
    yield histogram("loop_lag_seconds", "How late the event loop was, measured twice a second.", lag)
    yield gauge("loop_lag_last_seconds", "How late it was the last time.", last_s)
    yield gauge(
        "threads_hanging", "Calls in threads, most of them to a disk, that take longer than 10 s.", hanging
    )


def of_store(written: Written, in_touch: bool) -> Iterator[Metric]:
    """The store."""
    rows = [(["done"], written.done), (["failed"], written.failed)]
    yield counters("store_writes", "Writes to the store, by how they ended.", ["outcome"], rows)
    text = "For how long no write has worked; 0 if the last one did."
    yield gauge("store_failing_seconds", text, written.failing_s or 0.0)
    yield gauge("store_in_touch", "0 if a database can't be reached.", in_touch)


def of_gateway(client: DiscoClaw) -> Iterator[Metric]:
    """The connection to Discord."""
    away = len(client.connected.away(client.shards_served))
    rows = [(["connected"], len(client.shards_served.ids) - away), (["away"], away)]
    text = "Discord's shards of this process, by whether they are connected."
    yield gauges("shards", text, ["state"], rows)
    known = not away and math.isfinite(client.latency)
    latency: Rows = [((), client.latency)] if known else []
    text = "How long Discord took to acknowledge the last heartbeat, if a shard is connected."
    yield gauges("gateway_latency_seconds", text, [], latency)


def of_models(seen: Mapping[str, Last]) -> Iterator[Metric]:
    """When the models last answered and failed."""
    answered = [([purpose], last.answered / 1000) for purpose, last in seen.items() if last.answered]
    failed = [([purpose], last.failed / 1000) for purpose, last in seen.items() if last.failed]
    label = ["purpose"]
    text = "When a model last answered, in seconds since 1970."
    yield gauges("model_answered_timestamp_seconds", text, label, answered)
    text = "When the server of a model last failed, in seconds since 1970."
    yield gauges("model_failed_timestamp_seconds", text, label, failed)


def of_relays(relays: Relays) -> Iterator[Metric]:
    """The mirror on relays."""
    rows = [(["connected"], relays.connected), (["away"], relays.away)]
    yield gauges("relays", "Nostr relays, by whether they are connected.", ["state"], rows)
    yield gauge("outbox_waiting", "Events that the relay that lacks most doesn't have yet.", relays.waiting)
    yield gauge("outbox_oldest_seconds", "How long the oldest of them has waited.", relays.oldest_ms / 1000)
    yield gauge("outbox_refused", "Events that a relay refused for good.", relays.refused)


# ---------------------------------------------------------------------- usage

TOKENS: Final = ("input", "output", "cache_read", "cache_write")


def of_usage(
    ended: Mapping[tuple[str, str], Total], budgets: Iterable[Spent], label: Callable[[str], str]
) -> Iterator[Metric]:
    """Tokens and money of the calls that `ended`, by purpose and model, and what is spent of the budgets.

    `label` turns a model's name, which a server may have made up, into a known one.
    """
    tokens, searches, seconds, cost = (Counter[tuple[str, ...]]() for _ in range(4))
    for (purpose, model), total in ended.items():
        row = (purpose, label(model))
        tokens.update({(*row, kind): getattr(total.usage, f"{kind}_tokens") for kind in TOKENS})
        searches[row] += total.usage.searches
        seconds[row] += total.usage.seconds
        cost[row] += total.nano
    labels = ["purpose", "model"]
    text = "Tokens that servers counted, or that are estimated where they don't."
    yield counters("tokens", text, [*labels, "kind"], tokens.items())
    yield counters("searches", "Searches on the web that models made.", labels, searches.items())
    yield counters("transcribed_seconds", "Seconds of sound that were listened to.", labels, seconds.items())
    dollars = [(row, nano / DOLLAR) for row, nano in cost.items()]
    yield counters("cost_dollars", "What calls cost, by the prices that are known.", labels, dollars)
    most: dict[tuple[str, ...], float] = {}
    for one in budgets:
        row = (one.limit.scope, one.limit.period)
        most[row] = max(most.get(row, 0.0), one.percent / 100)
    text = "How much of a budget is spent, 1 for all; of several alike, the one that is spent most."
    yield gauges("budget_spent_ratio", text, ["scope", "period"], most.items())


def known_model(names: Collection[str], table: Collection[str]) -> Callable[[str], str]:
    """How a model is named in a label: as in the settings or the price table, else "other"."""

    def label(model: str) -> str:
        if model in names:
            return model
        return max((one for one in table if model.startswith(one)), key=len, default="other")

    return label
