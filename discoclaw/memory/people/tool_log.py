"""The calls of tools about one person, as lines of `tools/<subject>.jsonl`, kept for 30 days.

    {"id": 16 hex digits, "at": ms, "tool": name, "ok": bool, "content": the beginning of the answer,
     "channel": channel id or null, "session": session key, "private": bool}

The subject is the person the model answered. Each person has one file, with nobody else's calls in it.
`private` says that the answer may show something meant only for the person's direct messages. No reply waits
for a line, and a failing disk costs lines at most. Independent of tools and of models.
"""

import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import faulting
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Outcome, Phase, Purge, Purged, Readable
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import dm_of, user_of
from discoclaw.core.text import clip, scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Changes
from discoclaw.memory.kept import Behind, Lines
from discoclaw.store.files import in_thread, safe_id
from discoclaw.store.port import TOOLS, Disk, Log, drop

LONGEST: Final = 300
"""The most characters (UTF-16 units) of an answer that are logged."""
LONGEST_NAME: Final = 64
"""The most characters of a tool's name."""
KEPT_MS: Final = 30 * 86_400_000
"""How long a call is kept."""
MOST_BYTES: Final = 1_000_000
"""The most bytes of one person's file; a longer one keeps only its newer half."""
MOST_WAITING: Final = 1_000
"""The most lines that wait for the disk; beyond that the oldest are lost."""
REST_S: Final = 30.0
"""The pause after a failure before the disk is tried again."""
PURGE_EVERY_MS: Final = 86_400_000

_TEXTS: Final = {
    "id": re.compile(r"[0-9a-f]{16}"),
    "tool": re.compile(rf".{{1,{LONGEST_NAME}}}", re.DOTALL),
    "content": re.compile(rf".{{0,{LONGEST}}}", re.DOTALL),
    "channel": re.compile(r"[0-9A-Za-z_-]{1,40}"),
    "session": re.compile(r"[A-Za-z0-9:_-]{1,200}"),
}
_NAME: Final = re.compile(r"([A-Za-z0-9_-]{1,64})\.jsonl")


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
    return Call(**given) if all(_fits(name, one) for name, one in given.items()) else None


def _fits(name: str, value: Any) -> bool:
    """Whether a value read from disk is valid for this field of a call."""
    if name in ("ok", "private"):
        return isinstance(value, bool)
    if name == "at":
        return valid_ms(value)
    if name == "channel" and value is None:
        return True
    return isinstance(value, str) and scrub(value) == value and _TEXTS[name].fullmatch(value) is not None


def _newer_half(calls: list[Call]) -> list[Call]:
    room = MOST_BYTES // 2
    for index in range(len(calls) - 1, -1, -1):
        if (room := room - len(CALLS.line(calls[index]))) < 0:
            return calls[index + 1 :]
    return calls


CALLS: Final = Lines(call_of, asdict, lambda call: call.id, MOST_BYTES, _newer_half)


def subject_of(name: str) -> str | None:
    """The subject of a log file in the folder; None for any other file."""
    found = _NAME.fullmatch(name)
    return found[1] if found is not None else None


def log_of(disk: Disk, subject: str) -> Log:
    """The log of one subject, whether it exists or not."""
    return disk.log(f"{TOOLS}/{safe_id(subject)}.jsonl")


@dataclass(frozen=True, slots=True)
class _Waiting:
    said_at: int
    call: Call


class ToolLog(Behind[_Waiting]):
    """The logs of all subjects of a disk.

    Nothing is logged for messages of people who want no memory, nor in a store that remembers nobody.
    """

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
        super().__init__("tool log", "writing", MOST_WAITING, retry_s=REST_S, longest_s=REST_S)
        self._disk = disk
        self._changes = changes or Changes()
        self._clock = clock
        self._consent = consent
        self._redactor = redactor
        self._purged: int | None = None

    def audit(self) -> Iterator[Readable]:
        folder = self._disk.documents(TOOLS)
        for name in folder.names():
            if (subject := subject_of(name)) is not None:
                dm = dm_of(user_of(subject) or "")
                for one in CALLS.read(log_of(self._disk, subject)):
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
        if not self._disk.remembers:
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
        self._note(subject, [_Waiting(said_at, call)])

    async def start(self) -> None:
        """Does nothing: a line belongs to the turn that it is about."""

    async def expire(self, now_ms: int) -> int:
        """Remove lines older than 30 days at a time (ms), once a day. Returns how many lines were removed.

        Raises MemoryFault when the disk fails.
        """
        if self._purged is not None and 0 <= now_ms - self._purged < PURGE_EVERY_MS:
            return 0
        gone: dict[str, int] = {}
        async with self._alone:
            try:
                with faulting("old lines about tools could not be removed"):
                    await in_thread(self._expire, now_ms - KEPT_MS, gone)
            finally:
                for subject in gone:
                    self._changes.written(subject)
        self._purged = now_ms
        return sum(gone.values())

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if phase == "ram":
            gone = self._keep_waiting(lambda of, one: of != purge.subject or _stays(one.call, purge))
            return None if purge.erases else Purged(answers=gone)
        return self._purge_disk(purge) if phase == "disk" and purge.subject else None

    async def _purge_disk(self, purge: Purge) -> Purged | None:
        if purge.erases:  # the file goes with the store's others; nothing more is written to it
            async with self._alone:
                return None
        gone = await self._alone_in_thread(self._keep, purge.subject, lambda one: _stays(one, purge))
        if gone:
            self._changes.written(purge.subject)
        return Purged(answers=gone)

    # ------------------------------------------------------------------ inside

    def _append(self, name: str, waiting: Collection[_Waiting]) -> bool:
        user_id = user_of(name) or ""
        calls = [one.call for one in waiting if self._consent.may_keep(user_id, one.said_at)]
        if calls:
            CALLS.append(log_of(self._disk, name), calls)
        return bool(calls)

    def _appended(self, name: str) -> None:
        self._changes.written(name)

    def _keep(self, subject: str, wanted: Callable[[Call], bool]) -> int:
        """Remove all lines of a subject but the wanted ones, and the log with the last of them.

        Returns how many. Raises OSError.
        """
        lines = log_of(self._disk, subject)
        if not lines.size():
            return 0
        gone = CALLS.change(lines, lambda one: one if wanted(one) else None)
        if gone and not lines.size():
            drop(self._disk.documents(TOOLS), lines.path.name)
        return gone

    def _expire(self, until: int, gone: dict[str, int]) -> None:
        """Remove lines from before a time (ms); `gone` receives the counts by subject. Raises OSError."""
        failed = None
        for subject in filter(None, map(subject_of, self._disk.documents(TOOLS).names())):
            try:
                if number := self._keep(subject, lambda one: one.at >= until):
                    gone[subject] = number
            except OSError as error:  # one file's failure must not stop the others
                failed = error
        if failed is not None:
            raise failed


def _stays(call: Call, purge: Purge) -> bool:
    """Whether a call may stay after its person took something back."""
    if call.at > purge.at or (purge.open_only and call.private):
        return True
    return not (purge.everything or purge.words.hold(call.content))
