"""The log of calls of models: `usage/<month>.jsonl`, appended to, a line for each record (`core/usage`).

A month is UTC's, of the time when a line is written. Processes that share a store read what the others wrote
before they write, and read on if one of them was faster. A line that can't be read is skipped, so a log that
was cut in half costs what is missing. Everything blocks and raises OSError or MemoryFault. Knows nothing
about budgets.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from discoclaw.core.budgets import BACK_MS
from discoclaw.core.usage import Record, record_of
from discoclaw.memory.kept import Lines
from discoclaw.store.port import NO_LOG, USAGE, Disk, Head, Log

KEPT_MONTHS: Final = 13
"""How long lines are kept: a year and the present month."""
LINES: Final[Lines[Record]] = Lines(record_of, lambda record: record.to_json())


def month_of(time_ms: int) -> str:
    """The month (UTC) that a time (ms) is in: `2026-11`."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m}"


class Fresh(NamedTuple):
    """What others wrote since the log was read; everything in it, if it is read `anew`.

    Some of the records may be ours: a write that failed for us, because a connection broke, can have arrived.
    """

    records: list[Record]
    anew: bool = False


class UsageLog:
    """The log of one store."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._folder = disk.documents(USAGE)
        self._month = ""
        self._head: Head = NO_LOG
        self._torn = False

    def load(self, now_ms: int, since_ms: int | None) -> list[Record]:
        """The records since a time (ms), which is in this month or the one before; none if it is None.

        What is written next comes after these. A clock that was set back opens no month again.
        """
        newest = min(max(self._months(), default=""), month_of(now_ms + BACK_MS))
        self._month = max(month_of(now_ms), newest)
        content, self._head = self._log(self._month).load()
        self._torn = _is_torn(content)
        self._purge(now_ms)
        return self._needed(content, since_ms)

    @property
    def shared(self) -> bool:
        """Whether other processes may write to it."""
        return self._disk.shared

    def begin(self, now_ms: int, since_ms: int | None, records: Collection[Record] = ()) -> Fresh | None:
        """Begin to write: read what other processes wrote since, each line once; `append` goes on there.

        If the log is not the one that was known, everything since `since_ms` is read again. If it is, and
        nobody has written, `records` are appended at once, and None is returned. Raises Overtaken if somebody
        writes at the same time.
        """
        known = self._month, self._head, self._torn
        try:
            fresh = self._begun(now_ms, since_ms)
            if not records or fresh.records or fresh.anew:
                return fresh
            self.append(records)
            return None
        except BaseException:
            self._month, self._head, self._torn = known  # nobody has what was read
            raise

    def _begun(self, now_ms: int, since_ms: int | None) -> Fresh:
        before, anew = list[Record](), False
        if (month := month_of(now_ms)) != self._month:
            anew = month < self._month
            if self._disk.shared and self._month:
                before = LINES.of(self._log(self._month).load(self._head)[0])
            self._month, self._head, self._torn = month, NO_LOG, False
            self._purge(now_ms)
        log = self._log(month)
        if not (anew or self._disk.shared) and log.head() == self._head:  # a file would be read as a whole
            return Fresh(before)
        content, head = log.load(self._head)
        anew = anew or not head.reaches(self._head)
        self._torn = _is_torn(content) if content else self._torn and bool(head.size)
        self._head = head
        if anew:
            return Fresh(self._needed(content, since_ms), anew=True)
        return Fresh([*before, *LINES.of(content)])

    def _needed(self, content: bytes, since_ms: int | None) -> list[Record]:
        """The records since a time, in the present month's lines and in the month before it."""
        if since_ms is None:
            return []
        found = LINES.of(content)
        if (before := month_of(since_ms)) < self._month:
            found = [*LINES.of(self._log(before).read()), *found]
        return [one for one in found if one.at >= since_ms]

    def append(self, records: Iterable[Record]) -> None:
        """Append records durably. Raises Overtaken if somebody has written since it was read."""
        if content := LINES.render(records):
            content = (b"\n" if self._torn else b"") + content
            self._head = self._log(self._month).append(content, after=self._head)
            self._torn = False

    def since(self, begin_ms: int, user_id: str | None = None) -> Iterator[Record]:
        """Yield the records from a time (ms) on, all or those for one person, as they were written."""
        for content in self._contents(begin_ms):
            if user_id is not None:  # decoding others' lines would take nearly all of the time
                quoted = f'"{user_id}"'.encode()
                content = b"\n".join(one for one in content.splitlines() if quoted in one)
            for record in LINES.of(content):
                if record.at >= begin_ms and user_id in (None, record.payer.user):
                    yield record

    def read(self, begin_ms: int) -> tuple[list[Record], int]:
        """The records from a time (ms) on, and how many lines of these months can't be read."""
        records, damaged = list[Record](), 0
        for content in self._contents(begin_ms):
            found = LINES.of(content)
            damaged += LINES.damaged(content, found)
            records += (one for one in found if one.at >= begin_ms)
        return records, damaged

    def change(self, what: Callable[[Record], Record]) -> int:
        """Change lines in all months, as `Lines.change`. Returns how many were different afterwards."""
        return sum(LINES.change(self._log(month), what) for month in self._months())

    @property
    def path(self) -> str:
        """The path of the log, for messages."""
        return str(self._folder.folder)

    def _contents(self, begin_ms: int) -> Iterator[bytes]:
        first = month_of(begin_ms)
        return (self._log(month).read() for month in sorted(self._months()) if month >= first)

    def _purge(self, now_ms: int) -> None:
        """Remove months older than what is kept; what the disk refuses stays until the next month."""
        year, month = map(int, month_of(now_ms).split("-"))
        oldest = year * 12 + month - KEPT_MONTHS
        old = [one for one in self._months() if int(one[:4]) * 12 + int(one[5:]) < oldest]
        self._folder.remove([f"{one}.jsonl" for one in old])

    def _months(self) -> list[str]:
        names = (one.removesuffix(".jsonl") for one in self._folder.names() if one.endswith(".jsonl"))
        return [one for one in names if len(one) == 7 and one.replace("-", "").isdigit()]

    def _log(self, month: str) -> Log:
        return self._disk.log(f"{USAGE}/{month}.jsonl")


def key_of(record: Record) -> tuple[type[Record], str]:
    """The key that only one line of the log has."""
    return type(record), record.id


def _is_torn(content: bytes) -> bool:
    return bool(content) and not content.endswith(b"\n")
