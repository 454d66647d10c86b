"""Keeps one malformed gateway event from ending the bot: it becomes one line in the log.

discord.py reads each event with a function of `ConnectionState.parsers`, found by the event's name, and
nothing between that function and `Client.start` catches what it raises: a `MESSAGE_CREATE` without a channel
ends the program. All sockets of a client, also later ones, share that one dictionary. So `guard` replaces its
functions by ones that log and go on. That is narrower than another websocket class, which `Client.connect`
would have to be patched for, and nothing of discord.py's reading is repeated here.

Two things need more. A broken server in READY would hide all servers behind it, so it is left out. And a
READY or a frame that cannot be used at all leaves no session to go on with: `stay_connected` then connects
anew, after a growing pause, and so does `keep_connected` for one shard of several.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

import discord
from discord.backoff import ExponentialBackoff
from discord.gateway import DiscordWebSocket
from discord.shard import EventItem, EventType, Shard

from discoclaw.core.health import Finding
from discoclaw.core.ports import Hearer
from discoclaw.core.shards import Shards

log = logging.getLogger(__name__)

Parser = Callable[[Any], None]

QUIET_S = 60.0
"""For so long further bad events of the same name are only counted."""
LONGEST_PAUSE_S = 60.0
UNUSABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, zlib.error)
"""Errors of discord.py for a frame that is not what it expects."""
UNREADABLE = (*UNUSABLE, AssertionError, RuntimeError, discord.DiscordException)
"""Errors of discord.py for an event that is not what it expects."""


class Faults:
    """Lines in the log about bad events: one of each name in a while, with the number of those before."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[str, tuple[float, int]] = {}

    def bad(self, name: str, error: BaseException | None, *, ours: bool = False) -> None:
        """Note that an event could not be read or, with `ours`, that our handler of it failed."""
        now = self._now()
        until, more = self._seen.get(name, (0.0, 0))
        if now < until:
            self._seen[name] = (until, more + 1)
            return
        self._seen[name] = (now + QUIET_S, 0)
        counted = f", and {more} more since the last line about it" if more else ""
        if ours:
            log.error("%s failed: %s%s", name, _reason(error), counted, exc_info=error)
        else:
            log.warning("a malformed gateway event %s: %s%s", name, _reason(error), counted)


def guard(parsers: MutableMapping[str, Parser], faults: Faults) -> None:
    """Replace discord.py's parsers, by the name of their event, by guarded ones."""
    for name, parse in list(parsers.items()):
        parsers[name] = _ready(parse, faults) if name == "READY" else _guarded(name, parse, faults)


async def stay_connected(client: discord.Client, connect: Callable[[], Awaitable[None]]) -> None:
    """Connect, and again whenever a frame of the gateway cannot be used. Raises as `Client.connect` does."""
    pauses: ExponentialBackoff[Any] = ExponentialBackoff()
    while True:
        try:
            await connect()
            return
        except UNUSABLE as error:
            if client.is_closed() or client.ws is None:  # it never was connected
                raise
            await _hang_up(client.ws, pauses, error)


def keep_connected(shard: Shard, tasks: set[asyncio.Task[None]]) -> None:
    """Have one shard of several connect anew whenever a frame of the gateway cannot be used.

    discord.py would close all of them, and end the program. `tasks` keeps the tasks that do it.
    """
    pauses: ExponentialBackoff[Any] = ExponentialBackoff()
    put = shard._queue_put  # by it a shard tells its client what has become of it

    async def anew(error: Exception) -> None:
        await _hang_up(shard.ws, pauses, error)
        put(EventItem(EventType.reconnect, shard, error))

    def put_or_mend(item: EventItem) -> None:
        if item.type == EventType.terminate and isinstance(item.error, UNUSABLE):
            task = asyncio.create_task(anew(item.error))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        else:
            put(item)

    shard._queue_put = put_or_mend


async def _hang_up(socket: DiscordWebSocket, pauses: ExponentialBackoff[Any], error: Exception) -> None:
    """Give up a connection, and wait a while before the next one."""
    pause = min(pauses.delay(), LONGEST_PAUSE_S)
    log.warning(
        "the gateway sent a frame that cannot be used, connecting again in %.0f s: %s", pause, _reason(error)
    )
    await socket.close(code=4000)
    await asyncio.sleep(pause)


def _guarded(name: str, parse: Parser, faults: Faults) -> Parser:
    def guarded(data: Any) -> None:
        try:
            parse(data)
        except UNREADABLE as error:
            faults.bad(name, error)

    return guarded


def _ready(parse: Parser, faults: Faults) -> Parser:
    def guarded(data: Any) -> None:
        usable = [one for one in data["guilds"] if _is_guild(one)]
        if missing := len(data["guilds"]) - len(usable):
            faults.bad("READY", ValueError(f"{missing} of its servers have no id"))
        parse({**data, "guilds": usable})

    return guarded


def _is_guild(data: object) -> bool:
    return isinstance(data, Mapping) and str(data.get("id")).isdigit()


def _reason(error: BaseException | None) -> str:
    """An exception and where it arose, on one line."""
    frames = extract_tb(error.__traceback__) if error is not None else []
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}"[:200].split()) + where


# ----------------------------------------------------------------------
# Whether Discord's gateway is connected: for each of our shards, its session and its last heartbeat.

LATE_S: Final = 15.0
"""A heartbeat that is not acknowledged after this long counts as lost; Discord takes well under a second."""
EARLY: Final = 0.1
"""The part of an interval by which an acknowledgement may seem to come before its heartbeat: discord.py notes
the time of a heartbeat in a thread, which on a busy machine wakes up only after Discord has answered."""
NAME: Final = "Discord"


class Connected(Hearer):
    """Knows which shards have a session."""

    def __init__(self) -> None:
        self._ready: dict[int, float] = {}

    async def ready(self, shards: Shards) -> None:
        self.resumed(shards)

    def resumed(self, shards: Shards) -> None:
        self._ready.update(dict.fromkeys(shards.ids, time.monotonic()))

    def lost(self, shards: Shards) -> None:
        """A connection was lost."""
        for shard in shards.ids:
            self._ready.pop(shard, None)

    def away(self, shards: Shards) -> list[int]:
        """The shards, of these, that are not connected."""
        return [one for one in shards.ids if one not in self._ready]


def overdue_s(socket: Any) -> float:
    """For how long (s) a connection's last heartbeat has not been acknowledged; 0 if it was."""
    # discord.py publishes only the latency of the last one that was.
    beat = getattr(socket, "_keep_alive", None)
    if beat is None or beat._last_send - beat._last_ack <= EARLY * beat.interval:
        return 0.0
    now, unanswered_since = time.perf_counter(), beat._last_send
    if beat._last_send - beat._last_ack > 1.5 * beat.interval:  # nor was the one before
        unanswered_since = beat._last_ack + beat.interval
    return float(now - unanswered_since)


def sockets(client: discord.Client) -> Iterator[Any]:
    """The connections of a client that are there now."""
    if isinstance(client, discord.AutoShardedClient):
        yield from (shard._parent.ws for shard in client.shards.values())
    elif (socket := client.ws) is not None:
        yield socket


def finding(client: discord.Client, connected: Connected, ours: Shards) -> Finding:
    """How the connection of a client is, which is to have these shards."""
    way_out = "it connects again by itself; look at the network and at https://discordstatus.com"
    if away := connected.away(ours):
        if ours.count == 1:
            return Finding(NAME, "bad", "not connected", way_out)
        text = f"shards that are not connected: {Shards(tuple(away), ours.count)}"
        return Finding(NAME, "bad", text, way_out)
    connections = list(sockets(client))
    if not all(getattr(one, "open", True) for one in connections):
        return Finding(NAME, "bad", "the connection was lost", way_out)
    overdue = max(map(overdue_s, connections), default=0.0)
    if overdue > LATE_S:
        return Finding(NAME, "bad", f"no answer to a heartbeat for {overdue:.0f} s", way_out)
    shards = "" if ours.count == 1 else f" with the shards {ours}"
    return Finding(NAME, "good", f"connected{shards}")
