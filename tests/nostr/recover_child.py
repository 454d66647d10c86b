"""Recovers in processes of its own, each killed with SIGKILL right before one of its acts on the disk.

Run as `python -m tests.nostr.recover_child <events>`: a file of signed events, one a line, already verified.
It reads lines of JSON [step, data folder]; each is done in a fresh fork. Said is whether it lived.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from discoclaw.nostr.event import Event
from tests.memory.child import say
from tests.memory.erase_child import ACTS, WRITES
from tests.memory.kit import NOW, Clock
from tests.nostr.recovery_kit import BotMemory, StoredRelay


def die_at(step: int, data: str) -> None:
    """Kill this process right before it touches the data folder for the `step`th time from now."""
    done = 0

    def look(event: str, args: tuple[Any, ...]) -> None:
        nonlocal done
        writes = event == "open" and isinstance(args[2], int) and bool(args[2] & WRITES)
        if (writes or event in ACTS) and data in str(args[0]):
            done += 1
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def recover(events: list[Event], step: int, data: str) -> None:
    with BotMemory(Path(data), Clock(NOW + 3_600_000)) as bot:
        die_at(step, data)
        asyncio.run(bot.recover(StoredRelay(*events)))


def main(path: str) -> None:
    values = [json.loads(line) for line in Path(path).read_text().splitlines()]
    events = [Event(**{**one, "tags": tuple(map(tuple, one["tags"]))}) for one in values]
    for line in sys.stdin:
        step, data = json.loads(line)
        pid = os.fork()
        if pid == 0:
            recover(events, step, data)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
        assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
        say(os.WIFEXITED(status))


if __name__ == "__main__":
    main(sys.argv[1])
