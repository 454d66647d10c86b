"""The log of tools the model called, by person: `tools/<subject>.jsonl`, one line a call, kept for 30 days.

    {"id": 16 hex digits, "at": ms, "tool": name, "ok": bool, "content": the beginning of the answer,
     "channel": channel id or null, "session": session key, "private": bool}

The subject is the person the model answered. Each person has one file, with nobody else's calls in it.
`private` says that the answer may show something meant only for the person's direct messages.
Lines are queued at once and written later, in order, with one synced append for all that wait. No reply waits
for that, and a failing disk costs log lines at most. A line that cannot be read is ignored.
Independent of tools and of models.
"""

import asyncio
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

from discoclaw.core.audit import Readable
from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, PersonalData, Withdrawn
from discoclaw.core.ports import Clock
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import dm_of, user_of
from discoclaw.core.taken_back import Withdrawal
from discoclaw.core.text import clip, scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Changes
from discoclaw.memory.disk.files import in_thread, safe_id
from discoclaw.memory.disk.lines import joined, line_of, rewrite, values_in
from discoclaw.memory.disk.port import TOOLS, Disk, Documents, Log, drop
from discoclaw.work import GRACE_S, Worker

LONGEST = 300
"""The most characters (UTF-16 units) of an answer that are logged."""
KEPT_MS = 30 * 86_400_000
MOST_BYTES = 1_000_000
"""The most bytes of one person's file; a longer one keeps only its newer half."""
MOST_WAITING = 1_000
"""The most lines that wait for the disk; beyond that the oldest are lost."""
REST_S = 30.0
"""The pause after a failure before the disk is tried again."""
PURGE_EVERY_MS = 86_400_000

_WRITING = "writing"
_LONGEST_NAME = 64
_TEXTS = {
    "id": re.compile(r"[0-9a-f]{16}"),
    "tool": re.compile(rf".{{1,{_LONGEST_NAME}}}", re.DOTALL),
    "content": re.compile(rf".{{0,{LONGEST}}}", re.DOTALL),
    "channel": re.compile(r"[0-9A-Za-z_-]{1,40}"),
    "session": re.compile(r"[A-Za-z0-9:_-]{1,200}"),
}
_NAME = re.compile(r"([A-Za-z0-9_-]{1,64})\.jsonl")


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `at` is when (ms) it was answered, `ok` whether the tool succeeded."""

    id: str
    at: int
    tool: str
    ok: bool
    content: str
    channel: str | None
    session: str
    private: bool


def call_of(value: object) -> Call | None:
    """The call in a decoded line, or None if it is invalid. Unknown fields are ignored."""
    if not isinstance(value, Mapping):
        return None
    given: dict[str, Any] = {field.name: value.get(field.name) for field in fields(Call)}
    if not all(_fits(name, one) for name, one in given.items()):
        return None
    return Call(**given)


def _fits(name: str, value: Any) -> bool:
    """Whether a value read from disk is valid for this field of a call."""
    if name in ("ok", "private"):
        return isinstance(value, bool)
    if name == "at":
        return valid_ms(value)
    if name == "channel" and value is None:
        return True
    if not isinstance(value, str) or scrub(value) != value:
        return False
    return _TEXTS[name].fullmatch(value) is not None


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
                for one in read(log_of(self._disk, subject)):
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
            tool=clip(self._redactor.clean(scrub(tool)), _LONGEST_NAME) or "?",
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
                await in_thread(self._purge, now_ms - KEPT_MS, gone)
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
            one for one in self._waiting if one.subject != withdrawal.subject or _stays(one.call, withdrawal)
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
        return _keep(folder, lines, lambda one: _stays(one, withdrawal)) if lines.size() else 0

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
            rewrite(log_of(self._disk, subject), partial(_with, calls=some))
            written[subject] = len(some)

    def _purge(self, until: int, gone: dict[str, int]) -> None:
        """Remove lines from before a time (ms); `gone` receives the counts by subject. Raises OSError."""
        folder, failed = self._disk.documents(TOOLS), None
        for name in folder.names():
            if (subject := subject_of(name)) is None:
                continue
            try:
                if number := _keep(folder, log_of(self._disk, subject), lambda one: one.at >= until):
                    gone[subject] = number
            except OSError as error:  # one file's failure must not stop the others
                failed = error
        if failed is not None:
            raise failed

    def _tell(self, subjects: Iterable[str]) -> None:
        for subject in subjects:
            self._changes.written(subject)


# ---------------------------------------------------------------------- the lines; blocking, raises OSError


def subject_of(name: str) -> str | None:
    """The subject of a log file in the folder; None for any other file."""
    found = _NAME.fullmatch(name)
    return found[1] if found is not None else None


def log_of(disk: Disk, subject: str) -> Log:
    """The log of one subject, whether it exists or not."""
    return disk.log(f"{TOOLS}/{safe_id(subject)}.jsonl")


def read(lines: Log) -> list[Call]:
    """Return the calls in the order of the file, without duplicates."""
    return list({one.id: one for one in _calls(lines.read())}.values())


def add(lines: Log, calls: Iterable[Call]) -> int:
    """Add the calls that are missing. Returns how many. Raises MemoryFault too."""
    wanted, new = list(calls), list[Call]()

    def more(before: bytes) -> bytes:
        known = {one.id for one in _calls(before)}
        new[:] = [one for one in wanted if one.id not in known]
        return _with(before, new)

    rewrite(lines, more)
    return len(new)


def _with(before: bytes, calls: Iterable[Call]) -> bytes:
    """A log with more calls; if it gets too long, its newer half."""
    after = joined(before, b"".join(map(_line, calls)))
    return after if len(after) <= MOST_BYTES else _newer_half(_calls(after))


def _stays(call: Call, withdrawal: Withdrawal) -> bool:
    """Whether a call may stay after its person took something back."""
    if call.at > withdrawal.at or (withdrawal.open_only and call.private):
        return True
    return not (withdrawal.everything or withdrawal.words.hold(call.content))


def _keep(folder: Documents, lines: Log, stays: Callable[[Call], bool]) -> int:
    """Remove the lines that do not stay, and unreadable ones, from a log. Returns how many."""
    gone, empty = 0, False

    def without(before: bytes) -> bytes:
        nonlocal gone, empty
        kept = [one for one in _calls(before) if stays(one)]
        gone, empty = len(before.splitlines()) - len(kept), not kept
        return b"".join(map(_line, kept)) if gone else before

    rewrite(lines, without)
    if empty:
        drop(folder, lines.path.name)
    return gone


def _newer_half(calls: list[Call]) -> bytes:
    room, kept = MOST_BYTES // 2, deque[bytes]()
    for one in reversed(calls):
        line = _line(one)
        if (room := room - len(line)) < 0:
            break
        kept.appendleft(line)
    return b"".join(kept)


def _calls(content: bytes) -> list[Call]:
    return [call for call in map(call_of, values_in(content)) if call is not None]


def _line(call: Call) -> bytes:
    return line_of(asdict(call))
