"""How the program as a whole is: its background work, and calls that hang in a thread."""

from collections.abc import Iterator
from typing import Final

from discoclaw.app.feature import Feature
from discoclaw.core.health import Finding
from discoclaw.jobs import at_work
from discoclaw.memory.disk.threads import running

DISK_S: Final = 10.0
"""After this long a call in a thread counts as hanging for good. Answers wait two seconds for it."""


class Monitoring(Feature):
    """Looks at what belongs to no feature in particular."""

    def __init__(self) -> None:
        self.health = (_background, _threads)


def _background() -> Iterator[Finding]:
    work = at_work()
    found = [finding for one in work if (finding := one.finding()) is not None]
    if not any(one.hangs for one in work):
        yield Finding("background work", "good", f"{len(work)} workers, and none hangs")
    yield from found


def _threads() -> Iterator[Finding]:
    if calls := running(DISK_S):
        text = f"{len(calls)} calls have been hanging for longer than {DISK_S:.0f} s"
        yield Finding("the disk", "bad", text, "look at the disk and its mounts; the log names the calls")
    else:
        yield Finding("the disk", "good", "no call hangs")
