"""Lives of the bot that begin in milliseconds: forks of one process that has imported the whole program.

Importing it takes seconds, more than most of these tests. A fork is a process of its own like any other, and
runs the same `discoclaw run`; test_run has processes that begin from nothing.

Run as `python -m tests.process.forks <a socket's descriptor>`, it reads lines of JSON [folder, environment],
each with the descriptors of a stdout and a stderr. It answers [process id] for a life that has begun, and
[process id, exit code] for one that has ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import selectors
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 20


class Life:
    """A forked process, with as much of `asyncio.subprocess.Process` as is used here."""

    def __init__(self, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader) -> None:
        self.stdout, self.stderr = stdout, stderr
        self.pid = 0
        self.returncode: int | None = None
        self.begun, self._ended = asyncio.Event(), asyncio.Event()

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def begin(self, pid: int) -> None:
        self.pid = pid
        self.begun.set()

    def end(self, code: int) -> None:
        self.returncode = code
        self._ended.set()


class Forks:
    """The process that forks, and the lives that came of it."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._lives: dict[int, Life] = {}
        self._waiting: deque[Life] = deque()

    async def start(self, folder: Path, environment: Mapping[str, str]) -> Life:
        """Begin `discoclaw run` in a folder."""
        if self._process is None:
            await self._open()
        (out, stdout), (err, stderr) = await _pipe(), await _pipe()
        life = Life(stdout, stderr)
        self._waiting.append(life)
        order = json.dumps([str(folder), dict(environment)]).encode() + b"\n"
        socket.send_fds(self._ours, [order], [out, err])
        os.close(out)
        os.close(err)
        await life.begun.wait()
        return life

    async def close(self) -> None:
        """End the process that forks. Its forks have ended."""
        if self._process is not None:
            self._listener.cancel()
            self._ours.close()
            await self._process.wait()

    async def _open(self) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.process.forks", str(theirs.fileno())),
                stdin=DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parent.parent.parent,
            )
        reader = socket.socket(fileno=os.dup(self._ours.fileno()))
        self._listener = asyncio.create_task(self._listen(reader), name="forks")

    async def _listen(self, reader: socket.socket) -> None:
        incoming, writer = await asyncio.open_connection(sock=reader)
        try:
            while line := await incoming.readline():
                pid, *code = json.loads(line)
                if code:
                    self._lives[pid].end(code[0])
                else:
                    self._lives[pid] = self._waiting.popleft()
                    self._lives[pid].begin(pid)
        finally:
            writer.close()


async def _pipe() -> tuple[int, asyncio.StreamReader]:
    """The end to write to, and what comes out of the other one."""
    read, write = os.pipe()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", buffering=0)
    )
    return write, reader


# ---------------------------------------------------------------------- the process that forks


def serve(control: socket.socket) -> None:
    import discoclaw.app
    import discoclaw.cli.main  # noqa: F401

    gc.freeze()  # else every fork has its own copy of what was imported
    died, tell = socket.socketpair()
    tell.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(tell.fileno())
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(died, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is died:
                died.recv(1000)
                _bury(control)
                continue
            line, descriptors, *_ = socket.recv_fds(control, MOST_BYTES, 2)
            if not line:
                return
            while not line.endswith(b"\n"):
                line += control.recv(MOST_BYTES)
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (selector, control, died, tell):
                    one.close()
                live(*json.loads(line), *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            _say(control, pid)


def live(folder: str, environment: dict[str, str], out: int, err: int) -> None:
    """Be `discoclaw run`."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, max(out, err) + 1)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)  # they were no pipes
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["discoclaw", "run"]
    from discoclaw.cli.main import main

    main()
    sys.exit(0)


def _bury(control: socket.socket) -> None:
    """Say who has died."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(control, pid, os.waitstatus_to_exitcode(status))


def _say(control: socket.socket, *words: Any) -> None:
    control.sendall(json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
