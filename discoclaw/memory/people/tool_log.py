"""The log of tools the model called, by person (see `tool_calls`).

Lines are queued at once and written later, in order, with one synced append for all that wait. No reply waits
for that, and a failing disk costs log lines at most. Independent of tools and of models.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from discoclaw.core.audit import Readable
from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, PersonalData, Withdrawn
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Withdrawal
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import dm_of, user_of
from discoclaw.core.text import clip, scrub
from discoclaw.memory.changes import Changes
from discoclaw.memory.people import tool_calls
from discoclaw.memory.people.tool_calls import LONGEST, LONGEST_NAME, Call, log_of, subject_of
from discoclaw.store.files import in_thread
from discoclaw.store.port import TOOLS, Disk
from discoclaw.work import GRACE_S, Worker

MOST_WAITING = 1_000
"""The most lines that wait for the disk; beyond that the oldest are lost."""
REST_S = 30.0
"""The pause after a failure before the disk is tried again."""
PURGE_EVERY_MS = 86_400_000

_WRITING = "writing"


@dataclass(frozen=True, slots=True)
class _Waiting:
    subject: str
    said_at: int
    call: Call


class ToolLog(PersonalData):
    """The logs of all subjects of a disk. Nothing is logged for messages of people who want no memory."""

    name = "tool calls in RAM"

    def __init__(
        self,
        disk: Disk,
        *,
        clock: Clock,
        consent: Consent = UNLIMITED,
        redactor: Redactor = PLAIN,
        changes: Changes | None = None,
    ) -> None:
        self._disk = disk
        self._changes = changes or Changes()
        self._clock = clock
        self._consent = consent
        self._redactor = redactor
        self._waiting: deque[_Waiting] = deque()
        self._alone = asyncio.Lock()
        self._worker = Worker("tool log", self._write, retry_s=REST_S, longest_s=REST_S)
        self._closed = False
        self._purged: int | None = None

    def readable(self) -> Iterator[Readable]:
        folder = self._disk.documents(TOOLS)
        for name in folder.names():
            if (subject := subject_of(name)) is not None:
                dm = dm_of(user_of(subject) or "")
                for one in tool_calls.read(log_of(self._disk, subject)):
                    session = dm if one.private else one.session
                    yield Readable(str(folder.folder / name), one.content, session, subject, at=one.at)

    def note(
        self,
        subject: str,
        *,
        tool: str,
        ok: bool,
        content: str,
        channel: str | None,
        session: str,
        private: bool,
        said_at: int,
    ) -> None:
        """Log a tool call, made now to answer what somebody said at `said_at` (ms). Never blocks.

        `content` is the tool's answer; it is cut to `LONGEST`, and secrets are taken out of it.
        """
        if self._closed:
            return
        call = Call(
            id=secrets.token_hex(8),
            at=self._clock(),
            tool=clip(self._redactor.clean(scrub(tool)), LONGEST_NAME) or "?",
            ok=ok,
            content=clip(self._redactor.clean(scrub(content)).strip(), LONGEST),
            channel=channel,
            session=session,
            private=private,
        )
        self._waiting.append(_Waiting(subject, said_at, call))
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
        self._worker.note(_WRITING)

    async def start(self) -> None:
        """Does nothing: the first line starts the writing."""

    async def settle(self) -> None:
        """Wait until everything logged so far is written, or the disk has refused it."""
        self._worker.hurry()
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Write what is waiting, within `grace_s`."""
        self._closed = True
        self._worker.hurry()
        await self._worker.close(grace_s)

    async def purge(self, now_ms: int) -> int:
        """Remove lines older than 30 days at a time (ms), once a day. Returns how many lines were removed.

        Raises MemoryFault when the disk fails.
        """
        if self._purged is not None and 0 <= now_ms - self._purged < PURGE_EVERY_MS:
            return 0
        gone: dict[str, int] = {}
        async with self._alone:
            try:
                await in_thread(self._purge, now_ms - tool_calls.KEPT_MS, gone)
            except OSError as error:
                raise MemoryFault(f"old lines about tools could not be removed: {error}") from error
            finally:
                self._tell(gone)
        self._purged = now_ms
        return sum(gone.values())

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """Keep everybody from writing a line meanwhile, and drop the subject's waiting lines."""
        async with self._alone:
            self._waiting = deque(one for one in self._waiting if one.subject != erasure.subject)
            yield

    def let_go(self, withdrawal: Withdrawal) -> Withdrawn:
        kept = [
            one
            for one in self._waiting
            if one.subject != withdrawal.subject or tool_calls.stays(one.call, withdrawal)
        ]
        gone, self._waiting = len(self._waiting) - len(kept), deque(kept)
        return Withdrawn(answers=gone)

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        if not withdrawal.subject:
            return NOTHING_WITHDRAWN
        async with self._alone:
            gone = await in_thread(self._withdraw, withdrawal)
        if gone:
            self._changes.written(withdrawal.subject)
        return self.let_go(withdrawal) + Withdrawn(answers=gone)  # a write that failed meanwhile waits again

    # ------------------------------------------------------------------ inside

    def _withdraw(self, withdrawal: Withdrawal) -> int:
        """Remove what a person took back. Returns how many lines. Raises OSError."""
        lines, folder = log_of(self._disk, withdrawal.subject), self._disk.documents(TOOLS)
        return (
            tool_calls.keep(folder, lines, lambda one: tool_calls.stays(one, withdrawal))
            if lines.size()
            else 0
        )

    async def _write(self, _: str) -> None:
        """Write what is waiting. Raises OSError and MemoryFault; unwritten lines keep waiting."""
        async with self._alone:
            batch, self._waiting = self._waiting, deque()
            written: dict[str, int] = {}
            try:
                await in_thread(self._append_all, batch, written)
            except (OSError, MemoryFault):
                late = (one for one in batch if one.subject not in written)
                self._waiting = deque([*late, *self._waiting], maxlen=MOST_WAITING)
                raise
            finally:
                self._tell(written)

    def _append_all(self, batch: Iterable[_Waiting], written: dict[str, int]) -> None:
        """Append all lines; `written` gets the counts by subject. Raises OSError, MemoryFault."""
        calls: dict[str, list[Call]] = {}
        for one in batch:
            if self._consent.may_keep(user_of(one.subject) or "", one.said_at):
                calls.setdefault(one.subject, []).append(one.call)
        for subject, some in calls.items():
            tool_calls.append(log_of(self._disk, subject), some)
            written[subject] = len(some)

    def _purge(self, until: int, gone: dict[str, int]) -> None:
        """Remove lines from before a time (ms); `gone` receives the counts by subject. Raises OSError."""
        folder, failed = self._disk.documents(TOOLS), None
        for name in folder.names():
            if (subject := subject_of(name)) is None:
                continue
            try:
                if number := tool_calls.keep(
                    folder, log_of(self._disk, subject), lambda one: one.at >= until
                ):
                    gone[subject] = number
            except OSError as error:  # one file's failure must not stop the others
                failed = error
        if failed is not None:
            raise failed

    def _tell(self, subjects: Iterable[str]) -> None:
        for subject in subjects:
            self._changes.written(subject)
