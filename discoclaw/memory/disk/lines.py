"""Reads and writes logs of JSON lines beside the ledgers. Blocking.

Independent of what the lines mean.
"""

import json
from collections.abc import Iterator

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


def append(log: Log, lines: bytes, *, before: bytes) -> None:
    """Append whole lines to a log that contains `before`; an unfinished last line stays on a line of its own.

    Raises OSError, and MemoryFault if somebody else has written meanwhile.
    """
    torn = before and not before.endswith(b"\n")
    log.append(b"\n" + lines if torn else lines, expected_size=len(before))
