"""People's choices about being remembered: who opted out, who wants to be asked before something is
remembered, and whose persona the model may switch.

They are in one small text, `choices.json`, which is read at the start and then kept in RAM, since every
message needs it. It is separate from the ledgers because it outlives them: a person who erased everything may
still want no memory. An unreadable file stops the start, so that a typo cannot make the bot remember people
who opted out.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Place
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Changes
from discoclaw.memory.disk.files import in_thread, render_json
from discoclaw.memory.disk.port import Documents, FileDocuments

FILE = "choices.json"
VERSION = 1
ASKS = "asks_first"

Chosen = dict[str, bool | int]
Asks = Callable[[str, Place | None], bool]


def _never(_user_id: str, _place: Place | None) -> bool:
    return False


class Choices:
    """People's choices by Discord user id, in their own file or among documents. Call `load` first.

    `asks` is whether people (user ids) are asked in a place before something is remembered, unless they chose
    otherwise.
    """

    def __init__(
        self, where: Path | Documents, changes: Changes | None = None, *, asks: Asks = _never
    ) -> None:
        self._documents = FileDocuments(where.parent) if isinstance(where, Path) else where
        self._path = where if isinstance(where, Path) else where.folder / FILE
        self._changes = changes or Changes()
        self._asks = asks
        self._people: dict[str, Chosen] = {}
        self._lock = asyncio.Lock()

    def load(self) -> None:
        """Read the file. Raises MemoryFault if it exists and cannot be understood."""
        self._people = read(self._documents, self._path.name) or {}

    def opted_out(self, user_id: str) -> bool:
        """Whether the bot may neither learn nor recall anything about a person."""
        return bool(self._people.get(user_id, {}).get("opted_out", False))

    def refused_until(self, user_id: str) -> int:
        """The time (ms) up to which the bot does not learn from what a person said; -1 without an opt-out.

        When people opt in again, the bot does not learn from what they said while they were opted out.
        """
        return sys.maxsize if self.opted_out(user_id) else self._people.get(user_id, {}).get("since", -1)

    def auto_switch(self, user_id: str) -> bool:
        """Whether the model may switch a person's persona without asking."""
        return bool(self._people.get(user_id, {}).get("auto_switch", False))

    def asks_first(self, user_id: str, place: Place | None = None) -> bool:
        """Whether a person wants to be asked, in a place or generally, before anything inferred is kept."""
        chosen = self._people.get(user_id, {}).get(ASKS)
        return self._asks(user_id, place) if chosen is None else bool(chosen)

    def never_asks(self, user_id: str) -> bool:
        """Whether a person chose not to be asked, whatever the default is."""
        return self._people.get(user_id, {}).get(ASKS) is False

    async def choose(self, user_id: str, **chosen: bool | int) -> None:
        """Store choices durably: `opted_out`, `auto_switch`, `asks_first`, `since` (ms; opted in again then).

        Raises MemoryFault; no choice is then changed.
        """
        chosen = _checked(chosen)
        async with self._lock:
            known = {**self._people.get(user_id, {}), **chosen}
            # A "no" to being asked is kept too: it may differ from the bot's default.
            mine: Chosen = {name: value for name, value in known.items() if value or name == ASKS}
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
        self._people = people  # set here, so that it also takes effect if the caller has given up waiting


def bring(source: Documents, target: Documents) -> bool:
    """Add the choices of another store to the ones here. Returns whether there were any.

    If both have choices of a person, those here win; only an opt-out always counts. Blocking. Raises
    MemoryFault if one of the two cannot be read, OSError if the target cannot be written.
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
    """Add the choices of people who have none here. Returns whether there were any. `dry` writes nothing.

    Choices that exist here are newer than any copy elsewhere. Blocking. Raises the same errors as `bring`.
    """
    ours = read(target) or {}
    new = {user: chosen for user, chosen in theirs.items() if user not in ours}
    if new and not dry:
        target.write(FILE, render_json({"version": VERSION, "people": {**ours, **new}}))
    return bool(new)


def checked(people: Mapping[str, Mapping[str, Any]]) -> dict[str, Chosen]:
    """Return choices by user id. Raises ValueError, TypeError or AttributeError if they are invalid."""
    return {str(user): _checked(chosen) for user, chosen in people.items()}


def read(folder: Documents, name: str = FILE) -> dict[str, Chosen] | None:
    """The choices in a folder by user id; None if there is no file. Blocking. Raises MemoryFault."""
    try:
        return people_of(folder.read(name))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MemoryFault(
            f"{folder.folder / name} cannot be read ({error}); it says who opted out of memory, "
            "so correct it, or move it away if nobody has"
        ) from error


def people_of(content: bytes) -> dict[str, Chosen]:
    """The choices in a text, by user id. Raises ValueError, KeyError and others if the text is invalid."""
    value = json.loads(content)
    if value["version"] != VERSION:
        raise ValueError(f"version {value['version']}")
    return checked(value["people"])


def _checked(chosen: Mapping[str, Any]) -> Chosen:
    for name, value in chosen.items():
        fits = valid_ms(value) if name == "since" else isinstance(value, bool)
        if name not in ("opted_out", "auto_switch", ASKS, "since") or not fits:
            raise ValueError(f"unknown choice {name!r}: {value!r}")
    return dict(chosen)
