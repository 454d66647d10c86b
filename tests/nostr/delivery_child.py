"""Programs that the tests of delivery kill, in a process of their own.

Run as `python -m tests.nostr.delivery_child <program> <argument>...`.
"""

import asyncio
import itertools
import sys
from pathlib import Path

from discoclaw.nostr.delivery import Delivery
from discoclaw.nostr.outbox import OutboxEntry
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.schemas import APP
from tests.memory import child
from tests.nostr.outbox_kit import KEYS, START_S, UNIT, address, now_ms, opened, signed

NAMES = ("one", "two", "three")


def publish_for_ever(path: str) -> None:
    """Publish version after version of three records; say each number, and what was signed, once it is kept.

    As the mirror does it: what the outbox has is not signed again, and the cursor says how far it is.
    """
    with opened(Path(path)) as outbox:
        for number in itertools.count(outbox.cursor(UNIT)):
            made = []
            for name in NAMES:
                held = outbox.latest(APP, address(name))
                if held is None or held.digest != str(number):
                    ts = START_S if held is None else held.ts + 1
                    made.append(OutboxEntry(signed(name, ts), str(number)))
            outbox.put(UNIT, made, cursor=number)
            child.say([number, [put.event.id for put in made]])


def deliver(path: str, url: str, count: str) -> None:
    """Put so many events into the outbox, and deliver them until somebody kills us."""

    async def work() -> None:
        with opened(Path(path)) as outbox:
            outbox.put(UNIT, [OutboxEntry(signed(str(number)), "") for number in range(int(count))])
            relay = Relay(url, KEYS, timing=Timing(timeout_s=60))
            relay.start()
            Delivery(outbox, [relay], min_acks=1, clock=now_ms).start()
            await asyncio.Event().wait()

    asyncio.run(work())


child.PROGRAMS |= {program.__name__: program for program in (publish_for_ever, deliver)}

if __name__ == "__main__":
    child.PROGRAMS[sys.argv[1]](*sys.argv[2:])
