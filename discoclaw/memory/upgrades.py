"""The version of the whole data folder, and the steps by which an older one becomes this one. Blocking.

    memory/version.json  {"version": 1, "program": "0.1.0"}: the format, and which program brought it there

A folder without that file is from before there was one: version 0. Each step runs once, in order, at the
start of the first program that knows it; then the file says so. What a step changes is copied first, to
`data/old.before-version-<n>-<stamp>/`. A step that was cut off runs again, so it has to stand that.
A folder of a newer version is left alone. Databases have versions of their own besides (`store/sqlite`,
`store/postgres/schema`). Knows nothing about who uses the folder: callers have its lock.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from discoclaw import __version__
from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.store.files import (
    make_folder,
    new_folder,
    opener,
    read_plain,
    render_json,
    stamp_of,
    unused_name,
    write_atomic,
)

log = logging.getLogger(__name__)

FILE = "version.json"


class Step(NamedTuple):
    """A step from one version to the next.

    `changes` lists the files below `data/` that `work` changes or removes; both get that folder.
    """

    about: str
    changes: Callable[[Path], Iterable[Path]]
    work: Callable[[Path], None]


def _nothing(data: Path) -> Iterable[Path]:
    return ()


def _adopt(data: Path) -> None:
    """Change nothing: a folder from before this file is as version 1 wants it."""


STEPS: tuple[Step, ...] = (Step("the folder says which version it has", _nothing, _adopt),)
"""The steps from each version to the next, from 0 on."""
VERSION = len(STEPS)


def version_of(root: Path) -> int:
    """The version of the folder around `root` (`data/memory`); 0 if it says none. Raises MemoryFault."""
    path = root / FILE
    try:
        version = json.loads(read_plain(path))["version"]
        if type(version) is not int or version < 1:
            raise ValueError(f"version {version!r}")
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MemoryFault(
            f"{path} makes no sense ({error}), so nobody knows which program may write here; restore a "
            "backup, or remove this file if no newer program was ever used here"
        ) from None
    return version


def check(root: Path, *, newest: int = VERSION) -> int:
    """The version of a folder that this program may write. Raises NewerSchema, MemoryFault."""
    if (version := version_of(root)) > newest:
        raise NewerSchema(newer_text(f"{root.parent}", version, newest))
    return version


def newer_text(what: str, version: int, newest: int = VERSION) -> str:
    """One line about data of a newer version than this program knows."""
    return (
        f"{what} has data of version {version}, and DiscoClaw {__version__} knows only up to version "
        f"{newest}; upgrade the program, or restore a backup from before (`discoclaw restore`)"
    )


def upgrade(root: Path, now_ms: int, steps: Sequence[Step] = STEPS) -> None:
    """Bring a folder to this version; a new one has it at once.

    Raises NewerSchema, MemoryFault, and OSError; the step that failed is repeated at the next start.
    """
    data, version = root.parent, check(root, newest=len(steps))
    if not version and not any(not name.startswith(".") for name in os.listdir(root)):
        mark(root, len(steps))
        return
    for number, step in enumerate(steps[version:], start=version + 1):
        changed = [path for path in step.changes(data) if path.exists()]
        if changed:
            kept = _keep(data, changed, number, now_ms)
            log.info("what version %d of the data changes is kept in %s", number, kept)
        step.work(data)
        mark(root, number)
        log.info("the data has version %d now: %s", number, step.about)


def mark(root: Path, version: int) -> None:
    """Note the version of a folder. A full disk is only a warning, because steps can be repeated."""
    try:
        write_atomic(root / FILE, render_json({"version": version, "program": __version__}))
    except OSError as error:
        log.warning("%s could not be written: %s", root / FILE, error.strerror or error)


def _keep(data: Path, changed: Iterable[Path], number: int, now_ms: int) -> Path:
    """Copy files to a new folder, completely or not at all. Returns which. Raises OSError."""
    kept = unused_name(data / "old", f"before-version-{number}", stamp_of(now_ms))
    with new_folder(kept) as made:
        for path in changed:
            copy = made / path.relative_to(data)
            make_folder(copy.parent)
            with open(path, "rb") as old, open(copy, "xb", opener=opener) as new:
                shutil.copyfileobj(old, new)
                new.flush()
                os.fsync(new.fileno())
    return kept
