"""Reads an attached file: download, find out what it is, and make of it what a model can read.

What a file is, its bytes say; name and stated type are its sender's words. Every failure is a sentence for
the person who sent it. `content_of` takes long, so callers use a thread.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.errors import ChatError, ChatGone, FileTooLarge
from discoclaw.core.message import Content, Document, FileRef, Picture, TextFile, Unreadable
from discoclaw.core.ports import Files
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.session.desk import Own, Slots
from discoclaw.session.files.child import PATIENCE
from discoclaw.session.files.kinds import TEXT, kind_of, plain, shortened, why_not
from discoclaw.session.files.refused import Refusal, megabytes, refused
from discoclaw.store.files import in_thread, to_its_end

log = logging.getLogger(__name__)

MOST_HELD = 8
"""Files that are in RAM at the same time, while they come and while they wait to be decoded."""
AT_ONCE = 2
"""Files that are decoded at the same time: a large picture takes 100 to 550 MB of RAM meanwhile."""
HELD_OF_EACH = 2
"""Files of one person: one comes while the other is decoded."""
ENOUGH = "wasn't opened, because the files before it took too long. Please send it again in a minute."


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is read: its bytes, and the characters of a text.

    `seconds` of a processor are for all files of one person that wait for each other.
    """

    bytes: int = 10_000_000
    characters: int = 20_000
    seconds: float = 20


class Reader:
    """Reads files through `files`, within `limits`; `redactor` removes secrets from texts."""

    def __init__(self, files: Files, limits: Limits, redactor: Redactor = PLAIN) -> None:
        self._files = files
        self._limits = limits
        self._redactor = redactor
        self._held = Slots(MOST_HELD, HELD_OF_EACH)
        self._decoding = Slots(AT_ONCE)

    async def read(self, file: FileRef) -> Content | Unreadable:
        """The content of a file, or why it cannot be read. Raises nothing."""
        most = self._limits.bytes
        try:
            if file.size > most:
                raise FileTooLarge(f"{file.size} bytes")
            async with self._held.of(file.author_id) as own:
                return await self._content(file, most, own)
        except Refusal as refusal:
            why = str(refusal)
        except FileTooLarge:
            why = f"is larger than {megabytes(most)}, which is the most I read. Please send a smaller one."
        except ChatGone:
            why = "is no longer there. Please send it again."
        except ChatError as error:
            log.warning("a file could not be downloaded: %s", error)
            why = "couldn't be downloaded from Discord. Please send it again in a moment."
        except Exception:  # deliberately broad: whatever is wrong with a file, the reply goes on without it
            log.exception("a file of %d bytes could not be read", file.size)
            why = BROKEN
        return refused(file.name, why)

    async def _content(self, file: FileRef, most: int, own: Own) -> Content:
        """The content of a file. Raises Refusal and ChatError."""
        data = await self._files.download(file, most)
        async with self._decoding.of(file.author_id):
            if own.spent >= self._limits.seconds:
                raise Refusal(ENOUGH)
            stop = Stop()
            # Not `to_thread`, for whose threads Python waits when it ends.
            opening = asyncio.ensure_future(
                in_thread(content_of, file.name, data, self._limits.characters, self._redactor.clean, stop)
            )
            try:
                return await asyncio.shield(opening)
            except asyncio.CancelledError:
                stop.now()
                with contextlib.suppress(Exception):  # whatever became of it, nobody waits for it
                    await to_its_end(opening)  # the next one begins only when this process is gone
                raise
            finally:
                own.spent += stop.seconds


# ---------------------------------------------------------------------- what a file is

_NOTHING = b"\x00\t\r\n \xef\xbb\xbf\xff\xfe"
"""White space, zero bytes and byte order marks."""


def content_of(
    name: str, data: bytes, most_characters: int, clean: Callable[[str], str], stop: "Stop"
) -> Content:
    """The content of a file. `clean` removes secrets from text, `stop` ends it early. Raises Refusal."""
    kind = kind_of(data)
    if kind.opener == TEXT.opener:
        if (text := plain(name, data, most_characters, clean)) is not None:
            return replace(text, note=kind.note or text.note)
        if not data.strip(_NOTHING):
            raise Refusal("is empty. Please check it, and send it again.")
        if why_not(data) != why_not(b""):  # known by how it begins
            raise Refusal(why_not(data))
    found = opened(name, data, kind.opener, stop=stop)
    return shortened(found, most_characters, clean) if isinstance(found, TextFile) else found


# ----------------------------------------------------------------------
# Opens all files but plain text in a process of its own, which ends with the file.
#
# Decoders are where hostile files strike, and a thread cannot be stopped. The process has ten seconds, a
# bound of memory and an empty environment, so that no secret is in reach of a decoder. It also keeps the
# event loop free: Pillow holds up all threads for some 25 ms when it copies a large picture. Starting it
# takes 150 ms.

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
