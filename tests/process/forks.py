"""Lives of the bot that begin in milliseconds: forks of one process that has imported the whole program.

Importing it takes seconds, more than most of these tests, so one process forks for all houses of a test run.
It has talked with a model before: at the first answer the SDK builds its schemas, which takes as long as all
else that a life does. A fork is a process of its own like any other, and runs the same `discoclaw run`;
test_run has processes that begin from nothing. In a fork discord.py is told what is so on this Discord: all
servers come at once, so that it need not wait two seconds for more of them, and who connects again need not
wait five seconds for it.

Run as `python -m tests.process.forks <a socket's descriptor>`, it is sent the descriptor of a socket for each
house. From these it reads lines of JSON [folder, environment], each with the descriptors of a stdout and a
stderr. There it answers [process id] for a life that has begun, and [process id, exit code] for one that has
ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from functools import partialmethod
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

MOST_BYTES = 1 << 20
SOON_S = 0.1  # guild_ready_timeout: how long discord.py waits for more servers before on_ready


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


class Source:
    """The process that forks. It begins when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._main: socket.socket | None = None

    def connect(self) -> socket.socket:
        """A line of one's own to that process."""
        ours, theirs = socket.socketpair()
        with theirs:
            if self._main is None:
                self._main = self._begin()
            socket.send_fds(self._main, [b"."], [theirs.fileno()])
        return ours

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.process.forks", str(theirs.fileno())],
                stdin=DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parent.parent.parent,
            )
        return ours

    def close(self) -> None:
        """End it. Its forks have ended."""
        if self._main is not None and self._process is not None:
            self._main.close()
            self._process.wait()


class Forks:
    """The lives that came of a process that forks, for one house."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._control: socket.socket | None = None
        self._lives: dict[int, Life] = {}
        self._waiting: deque[Life] = deque()

    async def start(self, folder: Path, environment: Mapping[str, str]) -> Life:
        """Begin `discoclaw run` in a folder."""
        if self._control is None:
            self._control = self._source.connect()
            reader = socket.socket(fileno=os.dup(self._control.fileno()))
            self._listener = asyncio.create_task(self._listen(reader), name="forks")
        (out, stdout), (err, stderr) = await _pipe(), await _pipe()
        life = Life(stdout, stderr)
        self._waiting.append(life)
        order = json.dumps([str(folder), dict(environment)]).encode() + b"\n"
        socket.send_fds(self._control, [order], [out, err])
        os.close(out)
        os.close(err)
        await life.begun.wait()
        return life

    async def close(self) -> None:
        """All lives have ended."""
        if self._control is not None:
            self._listener.cancel()
            self._control.close()

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


def serve(main: socket.socket) -> None:
    import discord

    import discoclaw.app
    import discoclaw.cli.main  # noqa: F401

    asyncio.run(_first_answers())
    discord.Client.__init__ = partialmethod(discord.Client.__init__, guild_ready_timeout=SOON_S)  # type: ignore
    discord.Client.before_identify_hook = _identify_at_once  # type: ignore[method-assign]
    gc.freeze()  # else every fork has its own copy of what was imported
    died, tell = socket.socketpair()
    tell.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(tell.fileno())
    selector = selectors.DefaultSelector()
    selector.register(main, selectors.EVENT_READ)
    selector.register(died, selectors.EVENT_READ)
    lives: dict[int, socket.socket] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is died:
                died.recv(1000)
                _bury(lives)
            elif key.fileobj is main:
                asked, descriptors, *_ = socket.recv_fds(main, 1, 1)
                if not asked:  # the test run has ended, or was killed, which leaves lives behind
                    for pid in lives:
                        os.kill(pid, signal.SIGKILL)
                    return
                selector.register(socket.socket(fileno=descriptors[0]), selectors.EVENT_READ)
            else:
                control = key.fileobj
                assert isinstance(control, socket.socket)
                line, descriptors, *_ = socket.recv_fds(control, MOST_BYTES, 2)
                if not line:
                    selector.unregister(control)
                    control.close()
                    continue
                while not line.endswith(b"\n"):
                    line += control.recv(MOST_BYTES)
                if (pid := os.fork()) == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    held = [entry.fileobj for entry in selector.get_map().values()]
                    for one in (selector, tell, *held):
                        one.close()
                    live(*json.loads(line), *descriptors)
                lives[pid] = control
                for descriptor in descriptors:
                    os.close(descriptor)
                _say(control, pid)


async def _first_answers() -> None:
    """What a chat model and a small one say, and nobody wants to know."""
    from pydantic import BaseModel

    from discoclaw.core.model import ModelRequest, SystemBlock, UserTurn
    from discoclaw.models.anthropic import AnthropicProvider
    from tests.servers.messages_api import MessagesServer, json_answer, text

    class Nothing(BaseModel):
        pass

    async with MessagesServer() as server:
        server.script(text("Hel", "lo"), json_answer({}))
        provider = AnthropicProvider(base_url=server.base_url)
        model = provider.model("haiku")
        request = ModelRequest((SystemBlock("Be brief."),), (UserTurn("Hello"),))
        async for _ in model.stream(request):
            pass
        await model.structured(purpose="extraction", system="", prompt="Hello", shape=Nothing)
        await provider.close()


async def _identify_at_once(_client: Any, _shard_id: int | None, *, initial: bool = False) -> None:
    pass


def live(folder: str, environment: dict[str, str], out: int, err: int) -> None:
    """Be `discoclaw run`."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, max(out, err) + 1)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)  # they weren't pipes
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if (ahead := environment.get("TEST_CLOCK_AHEAD_S")) is not None:
        _set_clock(float(ahead))
    sys.argv = ["discoclaw", "run"]
    from discoclaw.cli.main import main

    main()
    sys.exit(0)


def _set_clock(ahead_s: float) -> None:
    """Let this process believe that it is later than it is."""
    now = time.time_ns
    time.time_ns = lambda: now() + int(ahead_s * 1e9)
    time.time = lambda: time.time_ns() / 1e9


def _bury(lives: dict[int, socket.socket]) -> None:
    """Say who has died."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(lives.pop(pid), pid, os.waitstatus_to_exitcode(status))


def _say(control: socket.socket, *words: Any) -> None:
    control.sendall(json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
