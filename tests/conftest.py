"""Where tests put their files, and how often properties are tried.

Files go to a folder in memory where the system has one: else most of the time of this suite is waiting for a
disk to sync. A process that is killed loses nothing of what it wrote there. TEST_DIR names another folder;
`make test-disk` runs what is about disks on a real one.

Tests wait about a quarter of their time (for a bot to become quiet, for a process, for a pause), so there are
more workers than processors. What is made while tests are collected is never garbage: no garbage collection
happens then, and none looks at it later.

Properties are tried on the same few examples in every run, and with HYPOTHESIS_PROFILE=thorough at length, on
new ones each time.
"""

import contextlib
import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres

MEMORY = "/dev/shm"
WORKERS_PER_CPU = 1.5
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

AT_WILL = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.register_profile("suite", AT_WILL, max_examples=20, derandomize=True)
settings.register_profile("thorough", AT_WILL, max_examples=500, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """The workers of `-n auto`."""
    return round(WORKERS_PER_CPU * (os.cpu_count() or 1))


LONG = [
    "cli/test_imports",
    "cli/test_killed_exports",
    "evals/",
    "memory/test_archive_shared",
    "memory/test_backup_killed",
    "memory/test_decisions_together",
    "memory/test_erasing_together",
    "memory/test_killed",
    "memory/test_killed_writes",
    "memory/test_leases",
    "memory/test_live_together",
    "memory/test_out_of_touch",
    "memory/test_postgres_faults",
    "memory/test_processes",
    "memory/test_slow_processes",
    "memory/test_stopped_processes",
    "memory/test_purging_together",
    "nostr/test_convergence",
    "nostr/test_delivery_killed",
    "nostr/test_relay_others",
    "nostr/test_sharing",
    "process/",
    "recall/test_bench_data",
    "recall_cases/",
    "release/",
    "servers/test_postgres",
    "test_docs_pasted",
]
"""Files and folders whose tests are all `long`: kills, several processes, failing databases, releases."""
QUICK = [
    "process/test_host_settings",
    "process/test_random_histories",
    "process/test_run",
    "process/test_start",
]
"""Files of those folders that every change has to pass."""
HERE = Path(__file__).parent

STORES = ["files", "sqlite", "postgres"]
"""What `every_store` stands for."""

gc.disable()


def _is_long(path: Path) -> bool:
    """Whether everything in a file is `long`."""
    name = path.relative_to(HERE).with_suffix("").as_posix()
    return name in LONG or (f"{name.partition('/')[0]}/" in LONG and name not in QUICK)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file that has nothing to run: each worker collects on its own before its first test."""
    wanted = config.getoption("markexpr")
    if wanted not in ("long", "not long") or collection_path.suffix != ".py":
        return None
    if wanted == "not long":
        return True if _is_long(collection_path) else None
    return None if _is_long(collection_path) or "mark.long" in collection_path.read_text("utf-8") else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is long as a whole."""
    for item in items:
        if _is_long(item.path):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Begin to collect garbage, but never look at what was made so far."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)  # what a test makes is soon gone as a whole


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why tests were skipped, each reason once."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Postgres"]:
    """A PostgreSQL, one for each worker, that starts with the first test that asks for it.

    A test that stops or pauses it asks for `database` too, which sets it right afterwards.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with contextlib.ExitStack() as stack:
        yield _started(stack, template=shared / "postgres")


@pytest.fixture
def database(postgres: "Postgres") -> Iterator[str]:
    """The URL of a database that nobody has used."""
    url = postgres.new_database()
    yield url
    postgres.recover()
    postgres.drop_database(url)


@pytest.fixture
def other_postgres(postgres: "Postgres") -> Iterator[Callable[..., "Postgres"]]:
    """Starts servers for one test, with settings of their own: see `Postgres`."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: _started(stack, template=postgres.template, **options)


def _started(stack: contextlib.ExitStack, **options: Any) -> "Postgres":
    """A server that runs as long as the stack; the one place that skips where PostgreSQL can't run."""
    try:
        from tests.servers.postgres import Postgres, Unavailable
    except ImportError as error:
        pytest.skip(f"No PostgreSQL here: {error}")
    try:
        return stack.enter_context(Postgres(**options))
    except Unavailable as error:
        pytest.skip(f"No PostgreSQL here: {error}")


@pytest.fixture(scope="session")
def prepared(postgres: "Postgres") -> str:
    """The URL of a database with the tables of a store, to be copied."""
    from discoclaw.store.postgres.disk import PostgresDisk

    url = postgres.new_database()
    disk = PostgresDisk(url)
    disk.open()
    disk.close()
    return url


@pytest.fixture
def prepared_database(postgres: "Postgres", prepared: str) -> Iterator[str]:
    """The URL of an empty store, for a test that leaves the server as it is."""
    url = postgres.new_database(like=prepared)
    yield url
    postgres.drop_database(url)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is marked `every_store` runs on each, and `own_store` on each that is files of one process.

    Mark what looks at what a store itself does: the bytes it leaves, a kill, its faults, two writers at once.
    The rest needs no more than the port promises, which `memory/test_disk` tests for each, and runs on files.
    """
    for mark, stores in (("own_store", STORES[:2]), ("every_store", STORES)):
        if "store" in metafunc.fixturenames and metafunc.definition.get_closest_marker(mark):
            metafunc.parametrize("store", stores, indirect=True)
            return


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    """Which store, as DISCOCLAW_STORE names it."""
    name = getattr(request, "param", "files")
    return str(request.getfixturevalue("prepared_database")) if name == "postgres" else name
