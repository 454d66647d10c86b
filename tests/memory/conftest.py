"""A clock moved by hand and a memory on a real folder, for every test of this folder."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from discoclaw.memory.stores import Disks, Store, disks
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import Clock
from tests.memory.leftovers import Shelves, shelves


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What `data/memory` is to the bot."""
    return tmp_path / "memory"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is marked `every_store` runs on each; the rest needs no more than the port promises."""
    if "store" in metafunc.fixturenames and metafunc.definition.get_closest_marker("every_store"):
        metafunc.parametrize("store", ["files", "sqlite"])


@pytest.fixture
def store() -> Store:
    """Which store."""
    return "files"


@pytest.fixture
def fresh(root: Path, store: Store) -> Iterator[Callable[[], Disks]]:
    """The stores as a new process finds them; closed after the test."""
    found: list[Disks] = []

    def find() -> Disks:
        found.append(disks(store, root))
        return found[-1]

    yield find
    for one in found:
        one.close()


@pytest.fixture
def memory(root: Path, clock: Clock, fresh: Callable[[], Disks]) -> Iterator[Memory]:
    opened = Memory(fresh(), clock=clock)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def restart(clock: Clock, fresh: Callable[[], Disks]) -> Iterator[Callable[[], Memory]]:
    """A memory that has just started on the same folder and knows only what is on disk."""
    started: list[Memory] = []

    def start() -> Memory:
        started.append(Memory(fresh(), clock=clock))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def template(templates: Callable[[Store], Path], store: Store) -> Path:
    """A full data folder, to be copied; a module's own `templates` fill it."""
    return templates(store)


@pytest.fixture
def full(template: Path, tmp_path: Path, store: Store) -> Iterator[Shelves]:
    """A memory over a copy of the full folder."""
    shutil.copytree(template, tmp_path / "data")
    opened = shelves(tmp_path / "data", store=store)
    opened.memory.open()
    yield opened
    opened.memory.close()
