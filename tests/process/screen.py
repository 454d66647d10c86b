"""A terminal with a command of ours in it: what it shows, and keys to type.

    screen = await Screen.start(folder, "init", environment={…})
    await screen.shows("Token (it is not shown): ")
    screen.type("…")

A prompt has to be waited for with the blank behind it: for a secret, it is printed when the terminal has
stopped to echo. Knows nothing about the command.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import sys
import termios
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.servers.discord_bell import Bell

PATIENCE_S = 60.0  # the first answers take seconds of imports, and a loaded machine makes many of few
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """One command on a pseudo-terminal of its own."""

    def __init__(self, process: Process, master: int) -> None:
        self.process = process
        self._master = master
        self._raw = b""
        self._seen = 0
        self._bell = Bell()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        folder: Path,
        *words: str,
        environment: Mapping[str, str],
        before: Callable[[], None] = lambda: None,
    ) -> Screen:
        """Run `discoclaw <words>` in a folder. `before` is called in the new process, before it begins."""
        master, slave = pty.openpty()

        def prepare() -> None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            # As at a terminal, also where these tests were started by a shell in the background, with `&`.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            before()

        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "discoclaw", *words),
                cwd=folder,
                env=dict(environment),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                preexec_fn=prepare,
            )
        finally:
            os.close(slave)
        return cls(process, master)

    @property
    def text(self) -> str:
        """All that it has shown."""
        return _COLOURS.sub("", self._raw.decode("utf-8", "replace")).replace("\r\n", "\n")

    @property
    def echoes(self) -> bool:
        """Whether what is typed is shown."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    async def shows(self, words: str) -> str:
        """Wait until it shows this, behind what was waited for last. Returns what came until then."""

        def found() -> int | None:
            at = self.text.find(words, self._seen)
            return None if at < 0 else at + len(words)

        end = await self._bell.wait_until(
            found, lambda: f"no {words!r} on the screen:\n{self.text[self._seen :]}", PATIENCE_S
        )
        passed, self._seen = self.text[self._seen : end], end
        return passed

    def type(self, keys: str) -> None:
        """Type this, and Enter."""
        os.write(self._master, f"{keys}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C, and then Enter.

        Python notes a signal that comes just before it begins to read, and then reads on. Enter ends that.
        """
        os.write(self._master, b"\x03")
        self.type("")

    def end_input(self) -> None:
        """Press Ctrl-D."""
        os.write(self._master, b"\x04")

    async def ended(self) -> int:
        """Its exit code, once it has ended and all that it showed is there."""
        async with asyncio.timeout(PATIENCE_S):
            code = await self.process.wait()
            await asyncio.wait({self._reader})  # which leaves it alone when time is up
        return code

    async def close(self) -> None:
        """End the command, if it still runs, and put the terminal away."""
        if self.process.returncode is None:
            self.process.kill()
        try:
            await self.ended()
        finally:
            self._reader.cancel()
            await asyncio.wait({self._reader})
            os.close(self._master)

    async def _read(self) -> None:
        """Read until the terminal is closed by its last process."""
        loop = asyncio.get_running_loop()
        os.set_blocking(self._master, False)
        ready = asyncio.Event()
        loop.add_reader(self._master, ready.set)
        try:
            while True:
                await ready.wait()
                ready.clear()
                try:
                    data = os.read(self._master, 65_536)
                except BlockingIOError:
                    continue
                except OSError:  # EIO: nobody has it open any more
                    return
                if not data:
                    return
                self._raw += data
                await self._bell.ring()
        finally:
            loop.remove_reader(self._master)  # it stays open: tests look at the terminal that was left
