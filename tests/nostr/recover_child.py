"""Recovers in processes of its own, each killed with SIGKILL right before one of its acts on the disk.

Run as `python -m tests.nostr.recover_child <events>`: a file of signed events, one a line, already verified.
It reads lines of JSON [step, data folder]; each is done in a fresh fork. Said is whether it lived; before
that, at step 0, the kinds of all acts.
"""

import asyncio
import json
import sys
from pathlib import Path

from discoclaw.nostr.event import Event
from tests.memory.kills import die_at, in_forks
from tests.memory.kit import NOW, Clock
from tests.nostr.recovery_kit import BotMemory, StoredRelay


def recover(events: list[Event], step: int, data: str) -> list[str]:
    with BotMemory(Path(data), Clock(NOW + 3_600_000)) as bot:
        kinds = die_at(step, Path(data))
        asyncio.run(bot.recover(StoredRelay(*events)))
        return kinds


def main(path: str) -> None:
    values = [json.loads(line) for line in Path(path).read_text().splitlines()]
    events = [Event(**{**one, "tags": tuple(map(tuple, one["tags"]))}) for one in values]
    in_forks(lambda step, data: recover(events, step, data))


if __name__ == "__main__":
    main(sys.argv[1])
