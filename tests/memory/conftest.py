"""A clock moved by hand and a memory on a real folder, for every test of this folder."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from discoclaw.memory.stores import POSTGRES, Disks, Store, disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.archive import Archive
from tests.memory.archives import InFile, archive_at, emptied
from tests.memory.kit import Clock
from tests.memory.leftovers import Shelves, fill, shelves, templates_of
from tests.memory.processes import InRam, OnPostgres, Process, Shared, sharing

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What `data/memory` is to the bot."""
    return tmp_path / "memory"


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


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Store], Path]:
    """A data folder of a store with Ann's and Bob's words in every place. A module may have its own."""
    return templates_of(fill, tmp_path_factory)


@pytest.fixture(scope="session")
def filled() -> dict[Callable[[Store], Path], Store]:
    """The databases that `templates` filled once."""
    return {}


@pytest.fixture
def template(
    templates: Callable[[Store], Path],
    store: Store,
    filled: dict[Callable[[Store], Path], Store],
    request: pytest.FixtureRequest,
) -> Path:
    """A full data folder, to be copied. A database is full by then."""
    if not store.startswith(POSTGRES):
        return templates(store)
    postgres: Postgres = request.getfixturevalue("postgres")
    if templates not in filled:
        filled[templates] = postgres.new_database(like=request.getfixturevalue("prepared"))
    folder = templates(filled[templates])
    name, source = (urlsplit(one).path.lstrip("/") for one in (store, filled[templates]))
    postgres.drop_database(store)
    postgres.execute(f"CREATE DATABASE {name} OWNER discoclaw TEMPLATE {source} STRATEGY file_copy")
    return folder


@pytest.fixture
def full(template: Path, tmp_path: Path, store: Store) -> Iterator[Shelves]:
    """A memory over a copy of the full folder."""
    shutil.copytree(template, tmp_path / "data")
    opened = shelves(tmp_path / "data", store=store)
    opened.memory.open()
    yield opened
    opened.memory.close()


@pytest.fixture(scope="session")
def database_of_archives(postgres: "Postgres", prepared: str) -> str:
    """The URL of a database for one archive after another."""
    return postgres.new_database(like=prepared)


@pytest.fixture(params=["sqlite", "postgres"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    """An archive that has nothing in it, of each kind."""
    in_file = request.param == "sqlite"
    where = tmp_path / "archive.sqlite" if in_file else request.getfixturevalue("database_of_archives")
    made = emptied(archive_at(where))
    yield made
    made.close()


@pytest.fixture
def in_file(tmp_path: Path) -> Iterator[InFile]:
    """An archive that has nothing in it, in a file."""
    made = InFile(tmp_path / "archive.sqlite")
    yield made
    made.close()


@pytest.fixture(params=["in RAM", "on PostgreSQL"])
def shared(request: pytest.FixtureRequest) -> Shared:
    """A store that several processes share."""
    if request.param == "in RAM":
        return InRam()
    return OnPostgres(request.getfixturevalue("prepared_database"))


@pytest.fixture
async def two(tmp_path: Path, shared: Shared, clock: Clock) -> AsyncIterator[list[Process]]:
    """Two processes on it."""
    async with sharing(tmp_path, shared, clock, 2) as processes:
        yield processes


@pytest.fixture
async def three(tmp_path: Path, shared: Shared, clock: Clock) -> AsyncIterator[list[Process]]:
    """Three processes on it."""
    async with sharing(tmp_path, shared, clock, 3) as processes:
        yield processes
