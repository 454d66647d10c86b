"""What the running bot says about itself at DISCOCLAW_METRICS."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeAlias, get_args

from discoclaw.core.health import Finding, State
from discoclaw.memory.disk import lock_holder
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.settings import Settings
from discoclaw.settings_types import Listen
from discoclaw.show.words import line

Asks: TypeAlias = Callable[[Listen], tuple[Mapping[str, Any] | None, str]]
"""Asks /readyz: returns what it says, or None and why it says nothing of use. Blocking."""


async def running(settings: Settings, ask: Asks) -> AsyncIterator[Finding]:
    """What the bot found out about itself, if it runs and can be asked."""
    runs = await read_in_thread(lock_holder.locked, settings.memory_dir)
    if settings.metrics is None or not settings.metrics.port:
        text = "it can't be asked how it is, because DISCOCLAW_METRICS is not set"
        way_out = "set an address and a port, for example 127.0.0.1:9464" if runs else ""
        yield Finding("the bot", "off", text, way_out)
        return
    said, fault = await read_in_thread(ask, settings.metrics)
    if said is None:
        text, _, way_out = fault.partition("; ")
        # Without the lock it doesn't run, which is nothing wrong.
        yield Finding("the bot", "unknown" if runs is False else "bad", text, way_out)
        return
    found = [_finding(one) for one in said["findings"] if isinstance(one, Mapping)]
    for one in found:
        yield one
    if said.get("ready") is True:
        yield Finding("the bot", "good", "it says that it is ready")
    elif all(one.state != "bad" for one in found):
        yield Finding("the bot", "bad", "it says that it isn't ready", "see its log")


def _finding(said: Mapping[str, Any]) -> Finding:
    name, text, way_out = (line(str(said.get(key, ""))) for key in ("name", "text", "wayOut"))
    state: State = next((one for one in get_args(State) if one == said.get("state")), "unknown")
    return Finding(name, state, text, way_out)
