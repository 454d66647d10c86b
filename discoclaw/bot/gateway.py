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
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

import discord
from discord.backoff import ExponentialBackoff
from discord.gateway import DiscordWebSocket
from discord.shard import EventItem, EventType, Shard

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
