"""Opens all files but plain text in a process of its own, which ends with the file.

Decoders are where hostile files strike, and a thread cannot be stopped. The process has ten seconds, a bound
of memory and an empty environment, so that no secret is in reach of a decoder. It also keeps the event loop
free: Pillow holds up all threads for some 25 ms when it copies a large picture. Starting it takes 150 ms.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import Final

from discoclaw.core.message import Content, Document, Picture, TextFile
from discoclaw.session.files.child import PATIENCE
from discoclaw.session.files.refused import Refusal

SECONDS: Final = 10
"""Seconds of a processor. On a busy machine that may take longer."""
TOO_LONG = "takes too long to open. Please save it anew, or send what matters of it as a smaller file."
BROKEN = "can't be opened: it seems to be damaged. Please save it anew, and send it again."
# Not by `-m`: an isolated interpreter finds only what is installed in it, and `python -m discoclaw` may run
# from anywhere.
_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from discoclaw.session.files.child import main; main({kind!r}, {s})"
)
# Linux sends SIGXCPU at the soft limit and SIGKILL at the hard one, which is the same here.
_STOPPED: Final = (-getattr(signal, "SIGXCPU", 24), -getattr(signal, "SIGKILL", 9))


class Stop:
    """Ends the process that opens a file, from another thread than the one that waits for it.

    `seconds`: what the process has taken of a processor, once it has ended.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._now = False

    def now(self) -> None:
        """End the process, and the one that may be about to begin."""
        with self._lock:
            self._now = True
            if self._child is not None:
                self._child.kill()

    def holds(self, child: subprocess.Popen[bytes]) -> None:
        """This is the process."""
        with self._lock:
            self._child = child
            if self._now:
                child.kill()


def opened(
    name: str, data: bytes, kind: str, *, within_s: int = SECONDS, stop: Stop | None = None
) -> Content:
    """The content of a file; `kind` as for `child.main`. Texts are whole, and still have their secrets.

    Raises Refusal. It blocks: use a thread.
    """
    stop = stop or Stop()
    began = time.monotonic()
    program = _PROGRAM.format(path=sys.path, kind=kind, s=within_s)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=None if os.name == "nt" else {},  # Windows starts nothing without some of it
    ) as child:
        stop.holds(child)
        try:
            said, _ = child.communicate(data, timeout=PATIENCE * within_s)
        except subprocess.TimeoutExpired:
            raise Refusal(TOO_LONG) from None
        finally:
            child.kill()  # it has ended, unless there was an error
            stop.seconds = min(within_s, time.monotonic() - began)  # at most; if it ended well, it says less
    if child.returncode:  # the decoder crashed, or it reached a limit
        raise Refusal(TOO_LONG if child.returncode in _STOPPED else BROKEN)
    line, _, content = said.partition(b"\n")
    answer = json.loads(line)
    stop.seconds = answer["seconds"]
    if "why" in answer:
        raise Refusal(answer["why"])
    if "pages" in answer:
        return Document(name, content or data, answer["pages"])
    if "parts" not in answer:
        return TextFile(name, content.decode("utf-8", "surrogatepass"), note=answer["note"])
    parts, begin = list[Picture](), 0
    for type_, width, height, size in answer["parts"]:
        parts.append(Picture(name, type_, content[begin : begin + size], width, height))
        begin += size
    return replace(parts[0], rest=tuple(parts[1:]), note=answer["note"])
