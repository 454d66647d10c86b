"""Processes that are killed right before one of their acts on a data folder, and which of these acts to try.

An act is what an audit hook sees of a change to a file below the folder, or a statement to a database. Its
kind is what is done in which folder, or the statement without its values. The first and the last act of each
kind are tried (`chosen`): that found what every third act had missed. HYPOTHESIS_PROFILE=thorough tries all.
"""

import gc
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from discoclaw.memory.subjects.store import Memory
from discoclaw.store.sqlite import SqliteDisk
from tests.memory.child import say
from tests.memory.kit import REPOSITORY

ACTS = frozenset({"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate"})
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
EVERY_ACT = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"

_VALUE = re.compile(r"x?'(?:[^']|'')*'|\d+")


def die_at(step: int, data: Path, memory: Memory | None = None) -> list[str]:
    """Kill this process right before it touches the folder for the `step`th time from now; 0 is never.

    Returns a list that the kind of each act is added to.
    """
    kinds: list[str] = []

    def count(kind: str) -> None:
        kinds.append(kind)
        if len(kinds) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def look(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[2], int) and bool(args[2] & WRITES)
        if (writes or event in ACTS) and str(data) in str(args[0]):
            count(f"{event} {Path(args[0]).parent.relative_to(data.parent)}")

    sys.addaudithook(look)
    if memory is not None and isinstance(disk := memory.disk, SqliteDisk):
        with disk.reading() as db:
            assert db is not None
            db.set_trace_callback(lambda statement: count(_VALUE.sub("?", statement)))
    return kinds


def chosen(kinds: Sequence[str], *, last: bool = True) -> list[int]:
    """The steps to be killed at, in order, and one behind the last. Without `last` the first of each."""
    if EVERY_ACT:
        return [*range(1, len(kinds) + 2)]
    steps = [*enumerate(kinds, start=1)]
    first = {kind: step for step, kind in reversed(steps)}
    behind = {kind: step for step, kind in steps} if last else {}
    return sorted({*first.values(), *behind.values(), len(kinds) + 1})


def in_forks(run: Callable[..., list[str]]) -> None:
    """Call `run` with each line of JSON from the input, in a fresh fork that may be killed.

    The first value of a line is the step right before which it is killed. Said is whether it lived; before
    that, at step 0, what `run` returns.
    """
    gc.freeze()  # else every fork has its own copy of what was imported
    for line in sys.stdin:
        step, *given = json.loads(line)
        pid = os.fork()
        if pid == 0:
            result = run(step, *given)
            if step == 0:
                say(result)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
        assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
        say(os.WIFEXITED(status))


class Forge:
    """What a module does `in_forks`, for a test that says when each is killed."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> "Forge":
        self._child = subprocess.Popen(
            [sys.executable, "-m", self._module],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.communicate()

    def kinds(self, *given: object) -> list[str]:
        """Do it once; returns the kind of each act."""
        kinds = self._said(0, *given)
        assert self._heard() is True
        return list(kinds)

    def steps(self, *given: object) -> list[int]:
        """The steps at which it is worth killing, found by doing it once."""
        return chosen(self.kinds(*given))

    def lived(self, step: int, *given: object) -> bool:
        """Do it, and be killed right before the `step`th act on the folder. Whether there were fewer."""
        return bool(self._said(step, *given))

    def _said(self, *order: object) -> Any:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(order, default=str) + "\n")
        self._child.stdin.flush()
        return self._heard()

    def _heard(self) -> Any:
        assert self._child.stdout is not None
        return json.loads(self._child.stdout.readline())
