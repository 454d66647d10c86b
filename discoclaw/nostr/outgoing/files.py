"""Reads files of the memory that may be missing or damaged. A failure is logged and returned, never raised.

Mirroring goes on with the other files: one damaged file must not keep the rest from relays. Blocking.
"""

import json
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from discoclaw.memory.disk.port import Documents, Log

log = logging.getLogger(__name__)
T = TypeVar("T")


def read_file(folder: Documents, name: str) -> bytes | None:
    """The content of a file: b"" if it doesn't exist, None when the disk fails, which is logged."""
    try:
        return folder.read(name)
    except FileNotFoundError:
        return b""
    except OSError as error:
        log.warning("cannot read %s, so it is not mirrored: %s", folder.folder / name, error)
        return None


def parse_file(folder: Documents, name: str, parse: Callable[[object], T]) -> T | None:
    """The parsed `<name>.json`; None if it doesn't exist or can't be read, which is logged."""
    content = read_file(folder, f"{name}.json")
    if not content:
        return None
    try:
        return parse(json.loads(content))
    except (ValueError, RecursionError) as error:
        log.warning("cannot mirror %s: %s", folder.folder / f"{name}.json", error)
        return None


def json_object(content: bytes | None) -> dict[str, Any]:
    """The JSON object in a file's content; an empty one for anything else."""
    try:
        value = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_lines(lines: Log, parse: Callable[[object], T | None]) -> tuple[list[T], bool]:
    """The parsed lines of a log, and whether all of them could be read."""
    try:
        content = lines.read()
    except OSError as error:
        log.warning("cannot read %s, so it is not mirrored: %s", lines.path, error)
        return [], False
    found, all_read = [], True
    for line in filter(bytes.strip, content.split(b"\n")):
        try:
            one = parse(json.loads(line))
        except (ValueError, RecursionError):
            one = None
        if one is not None:
            found.append(one)
        all_read &= one is not None
    return found, all_read
