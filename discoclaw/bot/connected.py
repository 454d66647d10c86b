"""Whether Discord's gateway is connected: for each of our shards, its session and its last heartbeat.

A shard is connected once its session began or was resumed, until that is lost, while its socket is open and
Discord acknowledges heartbeats. discord.py itself notices only after a minute that a connection is dead.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import discord

from discoclaw.core.health import Finding
from discoclaw.core.shards import Shards

LATE_S: Final = 15.0
"""A heartbeat that is not acknowledged after this long counts as lost; Discord takes well under a second."""
EARLY: Final = 0.1
"""The part of an interval by which an acknowledgement may seem to come before its heartbeat: discord.py notes
the time of a heartbeat in a thread, which on a busy machine wakes up only after Discord has answered."""
NAME: Final = "Discord"


class Connected:
    """Knows which shards have a session. It is a `sessions.Hearer`."""

    def __init__(self) -> None:
        self._ready: dict[int, float] = {}

    def began(self, shards: Shards) -> None:
        """A session began; it is ready once its servers are known."""

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
