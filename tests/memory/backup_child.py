"""Backs up and restores in processes of their own, to be killed in the middle, and on a disk that is full.

Run as `python -m tests.memory.backup_child`: it reads lines of JSON
[step, what, store, folder], as that of `erase_child` does. A folder has `data/` and `new.tar.gz`.
"""

from pathlib import Path

from discoclaw.core.errors import DiscoClawError
from discoclaw.memory.stores import Store
from tests.memory.backups import backed_up, restored
from tests.memory.child import full_at, say
from tests.memory.kills import die_at, in_forks


def work(what: str, store: Store, folder: Path) -> None:
    if what == "backup":
        backed_up(folder / "data", store, folder / "made.tar.gz")
    else:
        restored(folder / "new.tar.gz", folder / "data", store)


def forge() -> None:
    def run(step: int, what: str, store: Store, folder: str) -> list[str]:
        kinds = die_at(step, Path(folder))
        work(what, store, Path(folder))
        return kinds

    in_forks(run)


def full(what: str, store: Store, folder: str, room: str) -> None:
    """Do it where no file can grow beyond `room` bytes; say the fault."""
    try:
        with full_at(int(room)):
            work(what, store, Path(folder))
        say("")
    except (DiscoClawError, OSError) as fault:
        say(str(fault))


if __name__ == "__main__":
    forge()
