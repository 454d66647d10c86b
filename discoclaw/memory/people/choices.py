"""What people have chosen about being remembered: who opted out, and whose persona may switch by itself.

One small text, `choices.json`, read at the start and then in RAM, since every message asks for it. It is
apart from the ledgers because it outlives them: whoever had everything erased may still want no memory.
A file that can not be read stops the start: nobody is remembered against their word because of a typing slip.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discoclaw.core.errors import MemoryFault
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Changes
from discoclaw.memory.disk.files import in_thread, render_json
from discoclaw.memory.disk.port import Documents, FileDocuments

FILE = "choices.json"
VERSION = 1

Chosen = dict[str, bool | int]


class Choices:
    """People's choices by Discord user id, in a file of their own or among documents. `load` comes first."""

    def __init__(self, where: Path | Documents, changes: Changes | None = None) -> None:
        self._documents = FileDocuments(where.parent) if isinstance(where, Path) else where
        self._path = where if isinstance(where, Path) else where.folder / FILE
        self._changes = changes or Changes()
        self._people: dict[str, Chosen] = {}
        self._lock = asyncio.Lock()

    def load(self) -> None:
        """Read the file. Raises MemoryFault when it is there and can not be understood."""
        self._people = read(self._documents, self._path.name) or {}

    def opted_out(self, user_id: str) -> bool:
        """Whether nothing may be learned of a person, nor recalled."""
        return bool(self._people.get(user_id, {}).get("opted_out", False))

    def refused_until(self, user_id: str) -> int:
        """Until when (ms) nothing is learned of what a person said: -1 for somebody who never opted out.

        Whoever has opted in again is not learned from for the time between.
        """
        return sys.maxsize if self.opted_out(user_id) else self._people.get(user_id, {}).get("since", -1)

    def auto_switch(self, user_id: str) -> bool:
        """Whether the model may switch a person's persona by itself."""
        return bool(self._people.get(user_id, {}).get("auto_switch", False))

    async def choose(self, user_id: str, **chosen: bool | int) -> None:
        """Record choices durably: `opted_out`, `auto_switch`, and `since` (ms), when one opted in again.

        Raises MemoryFault; nothing is chosen then.
        """
        chosen = _checked(chosen)
        async with self._lock:
            known = {**self._people.get(user_id, {}), **chosen}
            mine: Chosen = {name: value for name, value in known.items() if value}
            people = {**self._people, user_id: mine}
            if not mine:
                del people[user_id]
            try:
                await in_thread(self._write, people)
            except OSError as error:
                raise MemoryFault(f"{self._path.name} could not be written: {error}") from error
        self._changes.chosen(user_id)

    def _write(self, people: dict[str, Chosen]) -> None:
        self._documents.write(self._path.name, render_json({"version": VERSION, "people": people}))
        self._people = people  # here, so that it holds also when whoever chose has given up waiting


def bring(source: Documents, target: Documents) -> bool:
    """Add the choices that lie in another place to those here; whether there were any.

    Where both say something of a person, what is here counts, but for an opting out, which counts always.
    Blocking. Raises MemoryFault when one of the two can not be read, OSError when ours can not be written.
    """
    theirs, ours = read(source), read(target)
    if theirs is None:
        return False
    both = dict(ours or {})
    for user, chosen in theirs.items():
        mine = both.get(user, {})
        out = {"opted_out": True} if chosen.get("opted_out") else {}
        both[user] = {**chosen, **mine, **out}
    if both != ours:
        target.write(FILE, render_json({"version": VERSION, "people": both}))
    return True


def add_missing(theirs: Mapping[str, Chosen], target: Documents, *, dry: bool = False) -> bool:
    """Add the choices of people of whom none is here; whether there were any. With `dry` nothing is written.

    What is here is newer than any copy of it elsewhere. Blocking. Raises as `bring`.
    """
    ours = read(target) or {}
    new = {user: chosen for user, chosen in theirs.items() if user not in ours}
    if new and not dry:
        target.write(FILE, render_json({"version": VERSION, "people": {**ours, **new}}))
    return bool(new)


def checked(people: Mapping[str, Mapping[str, Any]]) -> dict[str, Chosen]:
    """Choices by user id. Raises ValueError, TypeError or AttributeError when they are none."""
    return {str(user): _checked(chosen) for user, chosen in people.items()}


def read(folder: Documents, name: str = FILE) -> dict[str, Chosen] | None:
    """The choices in a folder, by user id; None when there are none. Blocking. Raises MemoryFault."""
    try:
        return people_of(folder.read(name))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MemoryFault(
            f"{folder.folder / name} can not be read ({error}); it says who opted out of memory, "
            "so correct it, or move it away if nobody has"
        ) from error


def people_of(content: bytes) -> dict[str, Chosen]:
    """The choices in a text, by user id. Raises ValueError, KeyError and others when it is none of ours."""
    value = json.loads(content)
    if value["version"] != VERSION:
        raise ValueError(f"version {value['version']}")
    return checked(value["people"])


def _checked(chosen: Mapping[str, Any]) -> Chosen:
    for name, value in chosen.items():
        fits = valid_ms(value) if name == "since" else isinstance(value, bool)
        if name not in ("opted_out", "auto_switch", "since") or not fits:
            raise ValueError(f"unknown choice {name!r}: {value!r}")
    return dict(chosen)
