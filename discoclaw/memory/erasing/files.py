"""Finds and removes files named after a person: the text, backup copies, leftovers of writers.

Blocking. Independent of what is in them.
"""

import re
from collections.abc import Callable, Collection

from discoclaw.core.personal import Erasure, PersonalData, Removed
from discoclaw.store.port import Documents

JSON = ".json"


class NamedFiles(PersonalData):
    """The texts of one folder that are named after a person. `names` derives the names for an erasing."""

    def __init__(self, name: str, folder: Documents, names: Callable[[Erasure], Collection[str]]) -> None:
        self.name = name
        self._folder = folder
        self._names = names

    def erase(self, erasure: Erasure) -> Removed:
        return remove_named(self._folder, self._names(erasure))


def remove_named(folder: Documents, names: Collection[str]) -> Removed:
    """Remove what has one of these names, or a name derived from one."""
    try:
        count, left = folder.remove(called(folder, names))
    except OSError as error:
        return Removed(left=(f"{folder.folder}: {error}",))
    return Removed(count, tuple(left))


def called(folder: Documents, names: Collection[str]) -> list[str]:
    """Everything with one of these names or a name derived from one: copies kept aside, half-written files,
    leftovers of editors. Raises OSError.

    After a name there is nothing, or a character that cannot belong to another id: "1.json.v1-2026",
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
