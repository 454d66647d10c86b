"""A clock moved by hand and a memory on a real folder, for every test of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from discoclaw.memory.store import Memory
from tests.memory.kit import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What `data/memory` is to the bot."""
    return tmp_path / "memory"


@pytest.fixture
def memory(root: Path, clock: Clock) -> Iterator[Memory]:
    opened = Memory(root, clock=clock)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def restart(root: Path, clock: Clock) -> Callable[[], Memory]:
    """A memory that has just started on the same folder and knows only what is on disk."""
    return lambda: Memory(root, clock=clock)
