"""Reads and writes logs of JSON lines beside the ledgers. Blocking.

Independent of what the lines mean.
"""

import json
from collections.abc import Callable, Iterator

from discoclaw.memory.disk.port import Log


def line_of(value: object) -> bytes:
    """A value as one line, without spaces, with its newline."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def values_in(content: bytes) -> Iterator[object]:
    """Yield the values of the lines, in order. Blank lines and invalid JSON are skipped."""
    for line in content.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue


def joined(before: bytes, lines: bytes) -> bytes:
    """A log with more lines; an unfinished last line stays on a line of its own."""
    torn = before and not before.endswith(b"\n")
    return before + (b"\n" if torn and lines else b"") + lines


def rewrite(log: Log, change: Callable[[bytes], bytes]) -> None:
    """Let `change` make a log's new content of the old one, while nobody else writes to it, durably.

    What only adds lines is appended. Raises OSError and MemoryFault.
    """
    held, before, head = log.hold()
    try:
        after = change(before)
        if after != before:
            if after.startswith(before):
                held.append(after[len(before) :], after=head)
            else:
                held.replace(after)
    finally:
        held.release()
