"""The process's memory: one heap for all threads, and what the garbage collector passes over."""

import ctypes
import gc
import inspect
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from discoclaw.app import app
from discoclaw.app.app import freeze_heap, share_heap

THREADS = f"""
import ctypes, sys, threading
from contextlib import suppress
_M_ARENA_MAX = {app._M_ARENA_MAX}
{inspect.getsource(share_heap)}
share_heap()
both = threading.Barrier(2)
def work():
    both.wait()
    bytes(100_000)
    both.wait()
threads = [threading.Thread(target=work) for _ in range(2)]
for one in threads:
    one.start()
for one in threads:
    one.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_info"), reason="this is about glibc"
)
def test_all_threads_share_one_heap(tmp_path: Path) -> None:
    report = tmp_path / "heaps.xml"
    subprocess.run([sys.executable, "-c", THREADS, str(report)], check=True)
    assert report.read_text().count("<heap ") == 1


class Ring:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


def test_only_what_comes_later_is_collected() -> None:
    lasting = Ring()
    before = weakref.ref(lasting)
    try:
        freeze_heap()
        assert gc.get_freeze_count() > 0
        del lasting
        after = weakref.ref(Ring())
        gc.collect()
        assert before() is not None
        assert after() is None
    finally:
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # as what was made while tests are collected was: see conftest
    assert before() is None
