"""People's choices about being remembered: who opted out, who wants to be asked before something is
remembered, and whose persona the model may switch.

They are read at the start and then kept in RAM, since every message needs them. They are separate from the
ledgers because they outlive them: a person who erased everything may still want no memory. Choices that
cannot be read stop the start, so that a typo cannot make the bot remember people who opted out.

    choices.json            everybody's, in a store that one process uses, and in exports
    choices/<user id>.json  one person's, in a store that several processes share: {"version": 1, "chosen": …}

Each change is made to what is in the store then, so that nobody overwrites what another one chose.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Place
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Changes, Listener
from discoclaw.store.files import in_thread, read_in_thread, render_json, safe_id
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CHOICES, Disk, Documents

FILE = "choices.json"
VERSION = 1
ASKS = "asks_first"
_JSON = ".json"

Chosen = dict[str, bool | int]
Asks = Callable[[str, Place | None], bool]


def _never(_user_id: str, _place: Place | None) -> bool:
    return False


class Choices(Listener):
    """People's choices by Discord user id, in a store or a folder of files. Call `load` first.

    `asks` is whether people (user ids) are asked in a place before something is remembered, unless they chose
    otherwise.
    """

    def __init__(self, where: Path | Disk, changes: Changes | None = None, *, asks: Asks = _never) -> None:
        self._kept = kept(FilesDisk(where) if isinstance(where, Path) else where)
        self._changes = changes or Changes()
        self._asks = asks
        self._people: dict[str, Chosen] = {}
        self._lock = asyncio.Lock()

    def load(self) -> None:
        """Read them all. Raises MemoryFault if they exist and cannot be understood."""
        self._people = self._kept.read() or {}

    async def renewed(self, names: Collection[str]) -> None:
        """Take over what people chose in other processes, before anybody asks for it again."""
        user_ids = [_user_of(name) for name in names if name.startswith(f"{CHOICES}/")]
        if not user_ids:
            return
        async with self._lock:
            found = await read_in_thread(self._kept.read, user_ids) or {}
            new = [user_id for user_id in user_ids if found.get(user_id) != self._people.get(user_id)]
            self._take({user_id: found.get(user_id, {}) for user_id in new})
        for user_id in new:
            self._changes.chosen(user_id)

    def people(self) -> list[str]:
        """Everybody who chose anything, by user id."""
        return [*self._people]

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

        def choose(known: Chosen) -> Chosen:
            # A "no" to being asked is kept too: it may differ from the bot's default.
            return {name: value for name, value in {**known, **chosen}.items() if value or name == ASKS}

        async with self._lock:
            try:
                await in_thread(self._change, user_id, choose)
            except OSError as error:
                raise MemoryFault(f"{FILE} could not be written: {error}") from error
        self._changes.chosen(user_id)

    def _change(self, user_id: str, work: "Chooses") -> None:
        # Taken over here, so that it also takes effect if the caller has given up waiting.
        self._take(self._kept.change({user_id: work}))

    def _take(self, people: Mapping[str, Chosen]) -> None:
        self._people = {user: chosen for user, chosen in {**self._people, **people}.items() if chosen}


# ---------------------------------------------------------------------- where they lie

Chooses = Callable[[Chosen], Chosen]


class Kept(Protocol):
    """The choices of a store. Everything blocks, and raises MemoryFault for what cannot be understood."""

    def read(self, user_ids: Collection[str] | None = None) -> dict[str, Chosen] | None:
        """The choices of these people, or of all, by user id; None if nobody ever chose anything."""
        ...

    def change(self, works: Mapping[str, Chooses]) -> dict[str, Chosen]:
        """Make people's choices anew, by user id, of those that are there now. Returns what they chose then.

        What is made may be asked for more than once. Nobody else's change is lost. Raises OSError too.
        """
        ...


def kept(disk: Disk) -> Kept:
    """The place where the choices of a store lie."""
    return _Rows(disk.documents(CHOICES)) if disk.shared else _OneText(disk.documents(""))


class _OneText:
    """Everybody's choices in one text, which one process uses."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def read(self, user_ids: Collection[str] | None = None) -> dict[str, Chosen] | None:
        content = _content(self._documents, FILE)
        if content is None:
            return None
        people = self._people(content)
        return people if user_ids is None else {one: people[one] for one in user_ids if one in people}

    def change(self, works: Mapping[str, Chooses]) -> dict[str, Chosen]:
        made: dict[str, Chosen] = {}

        def changed(before: bytes | None) -> bytes:
            people = self._people(before) if before is not None else {}
            made.update({user: work(people.get(user, {})) for user, work in works.items()})
            return render_people({**people, **made})

        self._documents.change(FILE, changed)
        return made

    def _people(self, content: bytes) -> dict[str, Chosen]:
        with _understanding(self._documents.folder / FILE):
            return people_of(content)


class _Rows:
    """Each person's choices in a text of its own, so that processes never overwrite each other's."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def read(self, user_ids: Collection[str] | None = None) -> dict[str, Chosen] | None:
        names = [f"{one}{_JSON}" for one in user_ids or ()]
        some = {name: _content(self._documents, name) for name in names}
        texts = self._all() if user_ids is None else some
        found = {_user_of(name): self._chosen(name, content) for name, content in texts.items()}
        return {user: chosen for user, chosen in found.items() if chosen} or None

    def change(self, works: Mapping[str, Chooses]) -> dict[str, Chosen]:
        made: dict[str, Chosen] = {}
        for user, work in works.items():

            def changed(before: bytes | None, user: str = user, work: Chooses = work) -> bytes:
                made[user] = work(self._chosen(f"{user}{_JSON}", before))
                return render_json({"version": VERSION, "chosen": made[user]})

            self._documents.change(f"{safe_id(user)}{_JSON}", changed)
        return made

    def _all(self) -> Mapping[str, bytes | None]:
        try:
            texts = self._documents.read_all()
            return {name: content for name, content in texts.items() if name.endswith(_JSON)}
        except OSError as error:
            raise MemoryFault(_unreadable(self._documents.folder, error)) from error

    def _chosen(self, name: str, content: bytes | None) -> Chosen:
        if content is None:
            return {}
        with _understanding(self._documents.folder / name):
            return _checked(_versioned(content)["chosen"])


def _user_of(name: str) -> str:
    """The user id in the name of a row, with or without its folder."""
    return name.rpartition("/")[2].removesuffix(_JSON)


def _content(documents: Documents, name: str) -> bytes | None:
    """A text; None if there is none. Raises MemoryFault if it cannot be read."""
    try:
        return documents.read(name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MemoryFault(_unreadable(documents.folder / name, error)) from error


@contextmanager
def _understanding(path: Path) -> Iterator[None]:
    """Raise MemoryFault for a text that makes no sense."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MemoryFault(_unreadable(path, error)) from error


def _unreadable(path: Path, error: Exception) -> str:
    return (
        f"{path} cannot be read ({error}); it says who opted out of memory, "
        "so correct it, or move it away if nobody has"
    )


# ---------------------------------------------------------------------- between stores


def read(disk: Disk) -> dict[str, Chosen] | None:
    """The choices in a store by user id; None if there are none. Blocking. Raises MemoryFault."""
    return kept(disk).read()


def exist(disk: Disk) -> bool:
    """Whether anybody ever chose anything. Blocking. Raises OSError."""
    if disk.shared:
        return bool(disk.documents(CHOICES).names())
    return FILE in disk.documents("").names()


def bring(source: Disk, target: Disk) -> bool:
    """Add the choices of another store to the ones here. Returns whether there were any.

    If both have choices of a person, those here win; only an opt-out always counts. Blocking. Raises
    MemoryFault if one of the two cannot be read, OSError if the target cannot be written.
    """
    theirs = read(source)
    if theirs is None:
        return False
    kept(target).change({user: partial(_both, chosen) for user, chosen in theirs.items()})
    return True


def _both(theirs: Chosen, ours: Chosen) -> Chosen:
    out: Chosen = {"opted_out": True} if theirs.get("opted_out") else {}
    return {**theirs, **ours, **out}


def add_missing(theirs: Mapping[str, Chosen], target: Disk, *, dry: bool = False) -> bool:
    """Add the choices of people who have none here. Returns whether there were any. `dry` writes nothing.

    Choices that exist here are newer than any copy elsewhere. Blocking. Raises the same errors as `bring`.
    """
    ours = read(target) or {}
    new = {user: chosen for user, chosen in theirs.items() if user not in ours}
    if new and not dry:
        kept(target).change({user: partial(_first, chosen) for user, chosen in new.items()})
    return bool(new)


def _first(theirs: Chosen, ours: Chosen) -> Chosen:
    return ours or theirs


def export(source: Disk, target: Disk) -> None:
    """Copy the choices of a store into a folder of files, if there are any. Raises OSError, MemoryFault."""
    if (people := read(source)) is not None:
        target.documents("").write(FILE, render_people(people))


def remove(disk: Disk) -> None:
    """Remove all choices from a store, once they are elsewhere. Raises OSError."""
    _, left = disk.documents("").remove([FILE])
    if disk.shared:
        rows = disk.documents(CHOICES)
        left += rows.remove(rows.names())[1]
    if left:
        raise OSError("; ".join(left))


# ---------------------------------------------------------------------- texts


def checked(people: Mapping[str, Mapping[str, Any]]) -> dict[str, Chosen]:
    """Return choices by user id. Raises ValueError, TypeError or AttributeError if they are invalid."""
    return {str(user): _checked(chosen) for user, chosen in people.items()}


def people_of(content: bytes) -> dict[str, Chosen]:
    """The choices in a text, by user id. Raises ValueError, KeyError and others if the text is invalid."""
    return checked(_versioned(content)["people"])


def render_people(people: Mapping[str, Chosen]) -> bytes:
    """Everybody's choices as one text, in the order of their ids: equal choices are equal bytes."""
    chosen = {user: chosen for user, chosen in sorted(people.items()) if chosen}
    return render_json({"version": VERSION, "people": chosen})


def _versioned(content: bytes) -> Any:
    value = json.loads(content)
    if value["version"] != VERSION:
        raise ValueError(f"version {value['version']}")
    return value


def _checked(chosen: Mapping[str, Any]) -> Chosen:
    for name, value in chosen.items():
        fits = valid_ms(value) if name == "since" else isinstance(value, bool)
        if name not in ("opted_out", "auto_switch", ASKS, "since") or not fits:
            raise ValueError(f"unknown choice {name!r}: {value!r}")
    return dict(chosen)
