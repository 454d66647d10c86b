"""The calls of tools about one person, as lines of `tools/<subject>.jsonl`, kept for 30 days.

    {"id": 16 hex digits, "at": ms, "tool": name, "ok": bool, "content": the beginning of the answer,
     "channel": channel id or null, "session": session key, "private": bool}

The subject is the person the model answered. Each person has one file, with nobody else's calls in it.
`private` says that the answer may show something meant only for the person's direct messages. A line that
cannot be read is ignored. Everything that touches a disk blocks and raises OSError. Independent of who calls
tools, and of when the lines are written.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from discoclaw.core.purge import Withdrawal
from discoclaw.core.text import scrub
from discoclaw.core.times import valid_ms
from discoclaw.store.files import safe_id
from discoclaw.store.port import TOOLS, Disk, Documents, Log, drop, joined, line_of, rewrite, values_in

LONGEST = 300
"""The most characters (UTF-16 units) of an answer that are logged."""
KEPT_MS = 30 * 86_400_000
"""How long a call is kept."""
MOST_BYTES = 1_000_000
"""The most bytes of one person's file; a longer one keeps only its newer half."""
LONGEST_NAME = 64
"""The most characters of a tool's name."""

_TEXTS = {
    "id": re.compile(r"[0-9a-f]{16}"),
    "tool": re.compile(rf".{{1,{LONGEST_NAME}}}", re.DOTALL),
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


def append(lines: Log, calls: Iterable[Call]) -> None:
    """Append calls. If the log gets too long, its newer half stays. Raises MemoryFault too."""
    rewrite(lines, lambda before: _with(before, calls))


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


def stays(call: Call, withdrawal: Withdrawal) -> bool:
    """Whether a call may stay after its person took something back."""
    if call.at > withdrawal.at or (withdrawal.open_only and call.private):
        return True
    return not (withdrawal.everything or withdrawal.words.hold(call.content))


def keep(folder: Documents, lines: Log, wanted: Callable[[Call], bool]) -> int:
    """Remove all lines but the wanted ones, and the unreadable ones, from a log. Returns how many."""
    gone, empty = 0, False

    def without(before: bytes) -> bytes:
        nonlocal gone, empty
        kept = [one for one in _calls(before) if wanted(one)]
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
