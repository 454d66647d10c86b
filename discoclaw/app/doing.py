"""What the bot is doing at the moment, for its admin: what waits where, and what is under way."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discoclaw.app.catching_up import CatchingUp
from discoclaw.app.mirror import Mirror
from discoclaw.core.overview import Queue, UnderWay
from discoclaw.jobs import Work, at_work

if TYPE_CHECKING:
    from discoclaw.nostr.outgoing.delivery import RelayStatus


class Doing:
    """Asks the parts that have queues."""

    def __init__(self, mirror: Mirror, missed: CatchingUp) -> None:
        self._mirror = mirror.nostr
        self._absence = missed.absence

    async def queues(self) -> list[Queue]:
        """Everything that waits: answers, all background work, and events for relays. Raises MemoryFault."""
        relays = await self._mirror.status() if self._mirror is not None else ()
        return [*map(_work, at_work()), *map(_relay, relays)]

    def under_way(self) -> Sequence[UnderWay]:
        """What has an end: a recovery from relays, and catching up. Never blocks."""
        found = []
        if self._mirror is not None and (now := self._mirror.recovering) is not None:
            text = f"{now.stage}, {now.per_s:.0f} a second"
            found.append(UnderWay("Recovery from the relays", text, now.done, now.total))
        if (reading := self._absence.under_way()) is not None:
            found.append(reading)
        return found


def _relay(one: "RelayStatus") -> Queue:
    queue, connection = one.queue, one.connection
    refused = sum(count for _, count in queue.parked)
    trouble = f"{refused} refused for good" if refused else ""
    if connection.connected_since_ms is None:
        trouble = f"not connected{f'; {trouble}' if trouble else ''}"
    oldest = queue.since if queue.depth else None
    about = f"events for {connection.name}"
    return Queue("outbox", about, queue.depth, None, oldest, "warning" if trouble else "good", trouble)


def _work(one: Work) -> Queue:
    finding = one.finding()
    state, trouble = (finding.state, finding.text) if finding is not None else ("good", "")
    counts = [f"{one.done:,} done"] if one.done else []
    counts += [f"{one.failed:,} failed"] if one.failed else []
    return Queue(one.name, ", ".join(counts), one.waiting, one.running, None, state, trouble)
