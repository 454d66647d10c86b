"""Removes a test's PostgreSQL: its processes, its shared memory, its disk and its folder.

`Postgres.close` calls `remove`. A process that runs this file does the same when the process that started it
is gone, however it died: it waits at a pipe whose other end only that process holds. A parent-death signal
would need Linux and a `preexec_fn`, which Python warns about in a process with threads; and it would neither
reach a server that is stopped by SIGSTOP nor delete the folder.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil

DATA = "data"
"""The data folder, in a server's own folder. PostgreSQL's processes all work in it."""


def processes(data: Path) -> list[psutil.Process]:
    """The server's processes that are alive, the postmaster first.

    They are found by the folder they work in: a number in a file may belong to another process by now.
    """
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if one.cwd() == str(data):
                found.append(one)
    return sorted(found, key=lambda one: one.pid != _postmaster(data))


def kill(data: Path) -> None:
    """End all processes at once and without warning, stopped ones too."""
    while alive := processes(data):
        for one in alive:
            with contextlib.suppress(psutil.Error):
                one.kill()
        time.sleep(0.002)


def remove(folder: Path) -> None:
    """Leave nothing of the server behind."""
    kill(folder / DATA)
    _free_shared_memory(folder / DATA)
    if os.path.ismount(folder / DATA):
        subprocess.run(["umount", "-l", folder / DATA], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def lock_file(data: Path) -> list[str]:
    """The lines of `postmaster.pid`; empty when there is none."""
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return []


def _postmaster(data: Path) -> int:
    lines = lock_file(data)
    return int(lines[0]) if lines else 0


def _free_shared_memory(data: Path) -> None:
    """A killed postmaster leaves a segment of System V shared memory; a system has 4,096 of them."""
    lines = lock_file(data)
    if len(lines) > 6 and (ids := lines[6].split()):
        ctypes.CDLL(None).shmctl(int(ids[1]), 0, None)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    remove(Path(sys.argv[1]))
