"""Endpoints for programs that watch the bot: whether it lives, whether it is ready, and its metrics.

    /healthz    200: the process lives, and its event loop runs. A blocked one doesn't answer
    /readyz     200 or 503, and as JSON what works and what doesn't
    /metrics    everything that is measured, for Prometheus

Knows nothing about what is measured. Whoever reaches the address may ask, so nothing here names anybody.
"""

from collections.abc import Callable, Iterable

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from discoclaw.core.health import Finding, as_json

Measures = Callable[[], Iterable[Metric]]


class _Measured(Collector):
    """Collects from `measures` at the moment of the question."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures

    def collect(self) -> Iterable[Metric]:
        return self._measures()

    def describe(self) -> Iterable[Metric]:
        return ()  # so that registering it measures nothing yet


def registry_of(measures: Measures) -> CollectorRegistry:
    """A registry of our own, so that nothing is in it that another library measures."""
    registry = CollectorRegistry()
    registry.register(_Measured(measures))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def application(health: Callable[[], list[Finding]], registry: CollectorRegistry) -> web.Application:
    """The three addresses, as an `aiohttp` application."""

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        body = as_json(health())
        return web.json_response(body, status=200 if body["ready"] else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", alive), web.get("/readyz", ready), web.get("/metrics", metrics)])
    return app
