"""Files that are called after a person: the text itself, copies kept aside, and what killed writers left.

Blocking. Knows nothing about what is in them.
"""

import re
from collections.abc import Callable, Collection

from discoclaw.core.personal import Erasure, PersonalData, Removed
from discoclaw.memory.disk.port import Documents

JSON = ".json"


class NamedFiles(PersonalData):
    """The texts of one folder that are called after a person. `names` says how, for an erasing."""

    def __init__(self, name: str, folder: Documents, names: Callable[[Erasure], Collection[str]]) -> None:
        self.name = name
        self._folder = folder
        self._names = names

    def erase(self, erasure: Erasure) -> Removed:
        return remove_named(self._folder, self._names(erasure))


def remove_named(folder: Documents, names: Collection[str]) -> Removed:
    """Remove what has one of these names, or is called after one."""
    try:
        count, left = folder.remove(called(folder, names))
    except OSError as error:
        return Removed(left=(f"{folder.folder}: {error}",))
    return Removed(count, tuple(left))


def called(folder: Documents, names: Collection[str]) -> list[str]:
    """What has one of these names, and all that is called after them: copies kept aside, half-written files,
    what editors leave. Raises OSError.

    After a name stands nothing, or something that is no part of another id: "1.json.v1-2026",
    ".1.json.x.tmp", "1.json~", "#1.json#".
    """
    if not names:
        return []
    either = "|".join(map(re.escape, sorted(names)))
    fits = re.compile(rf"[.#~]{{0,2}}({either})([^A-Za-z0-9].*)?", re.DOTALL)
    return [name for name in folder.names() if fits.fullmatch(name)]


def json_names(folder: Documents) -> list[str]:
    """The names of the JSON texts in a folder, without copies and leftovers. Raises OSError."""
    return [name for name in folder.names() if name.endswith(JSON)]


def half_written(folder: Documents) -> list[str]:
    """What writers that were killed left in a folder. Raises OSError."""
    return [name for name in folder.names() if name.startswith(".") and name.endswith(".tmp")]
