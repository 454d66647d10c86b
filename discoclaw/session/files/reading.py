"""Reads an attached file: download, find out what it is, and make of it what a model can read.

What a file is, its bytes say; name and stated type are its sender's words. Every failure is a sentence for
the person who sent it. `content_of` takes long, so callers use a thread.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from discoclaw.core.errors import ChatError, ChatGone, FileTooLarge
from discoclaw.core.message import Content, FileRef, TextFile, Unreadable
from discoclaw.core.ports import Files
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.session.files.kinds import TEXT, kind_of, why_not
from discoclaw.session.files.process import BROKEN, Stop, opened
from discoclaw.session.files.refused import Refusal, megabytes, refused
from discoclaw.session.files.texts import plain, shortened
from discoclaw.session.slots import Slots, Turn
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
            async with self._held.of(file.author_id) as turn:
                return await self._content(file, most, turn)
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

    async def _content(self, file: FileRef, most: int, turn: Turn) -> Content:
        """The content of a file. Raises Refusal and ChatError."""
        data = await self._files.download(file, most)
        async with self._decoding.of(file.author_id):
            if turn.spent >= self._limits.seconds:
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
                turn.spent += stop.seconds


# ---------------------------------------------------------------------- what a file is

_NOTHING = b"\x00\t\r\n \xef\xbb\xbf\xff\xfe"
"""White space, zero bytes and byte order marks."""


def content_of(
    name: str, data: bytes, most_characters: int, clean: Callable[[str], str], stop: Stop
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
