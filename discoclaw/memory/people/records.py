"""Reads a record of a person or a channel: one JSON text, which people may have edited. Blocking."""

import json
import logging
from collections.abc import Callable
from typing import TypeVar

from discoclaw.memory.disk.files import stamp_of
from discoclaw.memory.disk.port import Documents, drop

log = logging.getLogger(__name__)
T = TypeVar("T")


def read(
    folder: Documents, name: str, parse: Callable[[object], T], *, what: str, now_ms: int
) -> tuple[T | None, bytes]:
    """Return the record under a name and its bytes; None if there is none. Raises OSError.

    A record that cannot be parsed is kept aside and treated as missing; `what` names its type for the log.
    """
    try:
        content = folder.read(name)
    except FileNotFoundError:
        return None, b""
    try:
        return parse(json.loads(content)), content
    except (ValueError, RecursionError) as error:
        aside = folder.keep_aside(name, "corrupt", stamp_of(now_ms))
        log.error("%s is no %s (%s); it is kept as %s", folder.folder / name, what, error, aside.name)
        drop(folder, name)
        return None, b""
