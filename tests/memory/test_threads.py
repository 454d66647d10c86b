"""The threads for disks: what hangs takes no place from the others, and nobody waits for it at the end."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from discoclaw.store.threads import Threads, running

PATIENCE_S = 20.0


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Calls that wait for this hang until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_what_hangs_counts_no_longer_and_whatever_waits_is_run(over: threading.Event) -> None:
    threads = Threads(2, hangs_s=0.05)
    for _ in range(9):
        threads.submit(over.wait)
    assert threads.submit(lambda: "an answer").result(PATIENCE_S) == "an answer"


def test_what_does_not_hang_runs_as_many_at_once_as_allowed() -> None:
    threads = Threads(2, hangs_s=60.0)
    both = threading.Barrier(2)
    counted: list[int] = []

    def call() -> None:
        counted.append(len(threads.running()))
        both.wait(PATIENCE_S)

    for done in [threads.submit(call) for _ in range(10)]:
        done.result(PATIENCE_S)
    assert max(counted) == 2


def test_calls_of_one_thread_run_one_after_the_other_however_long_they_take(over: threading.Event) -> None:
    threads = Threads(1, hangs_s=None)
    order: list[str] = []
    first = threads.submit(lambda: (over.wait(0.2), order.append("slow")))
    second = threads.submit(order.append, "quick")
    for done in (first, second):
        done.result(PATIENCE_S)
    assert order == ["slow", "quick"]


def test_a_call_that_nobody_wants_any_more_is_not_begun(over: threading.Event) -> None:
    threads = Threads(1, hangs_s=None)
    called: list[str] = []
    held = threads.submit(over.wait)
    unwanted = threads.submit(called.append, "unwanted")
    assert unwanted.cancel()
    over.set()
    held.result(PATIENCE_S)
    threads.submit(called.append, "wanted").result(PATIENCE_S)
    assert called == ["wanted"]


def test_an_error_is_raised_where_the_result_is_awaited() -> None:
    with pytest.raises(OSError, match="no disk"):
        Threads().submit(_fail, "no disk").result(PATIENCE_S)


def test_what_runs_is_named_with_what_it_is_about(over: threading.Event) -> None:
    begun = threading.Event()

    def look(subject: str) -> None:
        begun.set()
        over.wait()

    threads = Threads()
    threads.submit(look, "user-1")
    assert begun.wait(PATIENCE_S)
    assert any("look user-1 for 0 s" in call for call in running())


def test_python_does_not_wait_for_it_at_the_end() -> None:
    program = (
        "import threading; from discoclaw.store.threads import DISK\n"
        "begun = threading.Event()\n"
        "DISK.submit(lambda: (begun.set(), threading.Event().wait()))\n"
        "begun.wait()"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=PATIENCE_S, check=False).returncode == 0


def _fail(why: str) -> None:
    raise OSError(why)
