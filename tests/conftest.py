"""Where tests put their files, and how often properties are tried.

Files go to a folder in memory where the system has one: else most of the time of this suite is waiting for a
disk to sync. A process that is killed loses nothing of what it wrote there. TEST_DIR names another folder;
`make test-disk` runs what is about disks on a real one.

Tests wait about half of their time (for a bot to become quiet, for a process, for a pause), so there are more
workers than processors. What is made while tests are collected is never garbage: no garbage collection
happens then, and none looks at it later.

Properties are tried on the same few examples in every run, and with HYPOTHESIS_PROFILE=thorough at length, on
new ones each time.
"""

import gc
import os
import shutil
import tempfile

from hypothesis import settings

MEMORY = "/dev/shm"
WORKERS_PER_CPU = 2
ROOM = 1 << 30
"""Bytes that have to be free in memory. A run takes a quarter of that; a container may have less."""


def in_memory() -> bool:
    """Whether there is a folder in memory with enough room for all that tests write."""
    try:
        return os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    except OSError:
        return False


if folder := os.environ.get("TEST_DIR") or (MEMORY if in_memory() else None):
    os.environ["TMPDIR"] = folder  # for the processes that tests start, too
    tempfile.tempdir = None  # which has Python look at TMPDIR again

settings.register_profile("suite", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=500, derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_xdist_auto_num_workers() -> int:
    """The workers of `-n auto`."""
    return WORKERS_PER_CPU * (os.cpu_count() or 1)


gc.disable()


def pytest_collection_finish() -> None:
    """Begin to collect garbage, but never look at what was made so far."""
    gc.enable()
    gc.freeze()
