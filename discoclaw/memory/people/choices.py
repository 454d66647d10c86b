"""People's choices about being remembered: who opted out, who wants to be asked before something is
remembered, and whose persona the model may switch. With erasings, they say who may be remembered at all.

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
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from discoclaw.core.consent import Consent, Cutoffs
from discoclaw.core.errors import MemoryFault, faulting
from discoclaw.core.message import Place
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.subject import user_subject
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Changes, Listener
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.store.files import in_thread, read_in_thread, render_json, safe_id
from discoclaw.store.plain import disk_at
from discoclaw.store.port import CHOICES, Disk, Documents

FILE: Final = "choices.json"
VERSION: Final = 1
ASKS: Final = "asks_first"
_JSON: Final = ".json"

T = TypeVar("T")
Chosen = dict[str, bool | int]
Chooses = Callable[[Chosen], Chosen]
Asks = Callable[[str, Place | None], bool]


def _never(_user_id: str, _place: Place | None) -> bool:
    return False


class Choices(Listener):
    """People's choices by Discord user id, in a store or a folder of files. Call `load` first.

    `asks` is whether people (user ids) are asked in a place before something is remembered, unless they chose
    otherwise.
    """

    def __init__(self, where: Path | Disk, changes: Changes | None = None, *, asks: Asks = _never) -> None:
        self._disk = disk_at(where)
        self._changes = changes or Changes()
        self._asks = asks
        self._people: dict[str, Chosen] = {}
        self._lock = asyncio.Lock()

    def load(self) -> None:
        """Read them all. Raises MemoryFault if they exist and cannot be understood."""
        self._people = read(self._disk) or {}

    async def renewed(self, names: Collection[str]) -> None:
        """Take over what people chose in other processes, before anybody asks for it again."""
        user_ids = [_user_of(name) for name in names if name.startswith(f"{CHOICES}/")]
        if not user_ids:
            return
        async with self._lock:
            found = await read_in_thread(read, self._disk, user_ids) or {}
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
            with faulting(f"{FILE} could not be written"):
                await in_thread(self._change, user_id, choose)
        self._changes.chosen(user_id)

    def _change(self, user_id: str, work: Chooses) -> None:
        # Taken over here, so that it also takes effect if the caller has given up waiting.
        self._take(change(self._disk, {user_id: work}))

    def _take(self, people: Mapping[str, Chosen]) -> None:
        self._people = {user: chosen for user, chosen in {**self._people, **people}.items() if chosen}


class KnownConsent(Consent, Derived, Listener):
    """Everybody's consent, from `choices` and from when (ms) their subjects were erased; every part asks it.

    It has to be joined to the memory, so that permissions in use end at once.
    """

    name = "permissions in use"

    def __init__(self, choices: Choices, tombs: Tombstones) -> None:
        super().__init__(choices.refused_until, lambda user_id: tombs.erased_at(user_subject(user_id)))
        self._tombs = tombs
        self._followed = len(tombs.marks)
        self._of_mark: WeakValueDictionary[str, Cutoffs] | None = None
        """Who is in use, as a tombstone names them; None until another process erases somebody."""

    def chosen(self, user_id: str) -> None:
        self.changed(user_id)

    async def renewed(self, names: Collection[str]) -> None:
        """End the permissions in use of those whom another process erased.

        A tombstone names nobody: who is meant is found among those in use, of whom there may be many.
        """
        if tombstones.FILE not in names:
            return
        new, self._followed = self._tombs.marks[self._followed :], len(self._tombs.marks)
        if new and self._of_mark is None:
            in_use = list(self._in_use.values())
            self._of_mark = WeakValueDictionary({self._mark(one): one for one in in_use})
        for mark in new:
            if self._of_mark is not None and (found := self._of_mark.get(mark)) is not None:
                self.changed(found.user_id)

    def _begun(self, user_id: str) -> Cutoffs:
        cutoffs = super()._begun(user_id)
        if self._of_mark is not None:
            self._of_mark[self._mark(cutoffs)] = cutoffs
        return cutoffs

    def _mark(self, cutoffs: Cutoffs) -> str:
        return self._tombs.mark(user_subject(cutoffs.user_id))

    def purge(self, purge: Purge, phase: Phase) -> None:
        if phase == "ram" and purge.erases and purge.user_id:
            self.changed(purge.user_id)


# ---------------------------------------------------------------------- where they lie; blocking


def read(disk: Disk, user_ids: Collection[str] | None = None) -> dict[str, Chosen] | None:
    """The choices of these people in a store, or of all, by user id; None if nobody there chose anything.

    Raises MemoryFault if they can't be read.
    """
    if not disk.shared:
        documents = disk.documents("")
        content = _content(documents, FILE)
        if content is None:
            return None
        people = _understood(documents, FILE, people_of, content)
        if user_ids is None:
            return people
        return {one: people[one] for one in user_ids if one in people}
    rows = disk.documents(CHOICES)
    if user_ids is None:
        try:
            texts: dict[str, bytes | None] = {
                name: content for name, content in rows.read_all().items() if name.endswith(_JSON)
            }
        except OSError as error:
            raise MemoryFault(_unreadable(rows.folder, error)) from error
    else:
        texts = {name: _content(rows, name) for name in (f"{one}{_JSON}" for one in user_ids)}
    found = {_user_of(name): _row(rows, name, content) for name, content in texts.items()}
    return {user: chosen for user, chosen in found.items() if chosen} or None


def change(disk: Disk, works: Mapping[str, Chooses]) -> dict[str, Chosen]:
    """Make people's choices anew, by user id, of those that are there now. Returns what they chose then.

    A work may be called more than once. Nobody else's change is lost. Raises MemoryFault and OSError.
    """
    documents, made = disk.documents(CHOICES if disk.shared else ""), dict[str, Chosen]()

    def in_one(before: bytes | None) -> bytes:
        people = _understood(documents, FILE, people_of, before) if before is not None else {}
        made.update({user: work(people.get(user, {})) for user, work in works.items()})
        return render_people({**people, **made})

    def in_row(user: str, name: str, before: bytes | None) -> bytes:
        made[user] = works[user](_row(documents, name, before))
        return render_json({"version": VERSION, "chosen": made[user]})

    if not disk.shared:
        documents.change(FILE, in_one)
    for user in works if disk.shared else ():
        name = f"{safe_id(user)}{_JSON}"
        documents.change(name, partial(in_row, user, name))
    return made


def exist(disk: Disk) -> bool:
    """Whether anybody ever chose anything. Raises OSError."""
    if disk.shared:
        return bool(disk.documents(CHOICES).names())
    return FILE in disk.documents("").names()


def bring(source: Disk, target: Disk) -> bool:
    """Add the choices of another store to the ones here. Returns whether there were any.

    If both have choices of a person, those here win; only an opt-out always counts. Raises MemoryFault if one
    of the two cannot be read, OSError if the target cannot be written.
    """
    if (theirs := read(source)) is None:
        return False

    def both(their: Chosen, ours: Chosen) -> Chosen:
        out: Chosen = {"opted_out": True} if their.get("opted_out") else {}
        return {**their, **ours, **out}

    change(target, {user: partial(both, chosen) for user, chosen in theirs.items()})
    return True


def add_missing(theirs: Mapping[str, Chosen], target: Disk, *, dry: bool = False) -> bool:
    """Add the choices of people who have none here. Returns whether there were any. `dry` writes nothing.

    Choices that exist here are newer than any copy elsewhere. Raises the same errors as `bring`.
    """
    ours = read(target) or {}
    new = {user: chosen for user, chosen in theirs.items() if user not in ours}

    def first(their: Chosen, here: Chosen) -> Chosen:
        return here or their

    if new and not dry:
        change(target, {user: partial(first, chosen) for user, chosen in new.items()})
    return bool(new)


def remove(disk: Disk) -> None:
    """Remove all choices from a store, once they are elsewhere. Raises OSError."""
    left = disk.documents("").remove([FILE])[1]
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


def _user_of(name: str) -> str:
    """The user id in the name of a row, with or without its folder."""
    return name.rpartition("/")[2].removesuffix(_JSON)


def _row(rows: Documents, name: str, content: bytes | None) -> Chosen:
    """One person's choices. Raises MemoryFault."""
    if content is None:
        return {}
    return _understood(rows, name, lambda text: _checked(_versioned(text)["chosen"]), content)


def _content(documents: Documents, name: str) -> bytes | None:
    """A text; None if there is none. Raises MemoryFault if it cannot be read."""
    try:
        return documents.find(name)
    except OSError as error:
        raise MemoryFault(_unreadable(documents.folder / name, error)) from error


def _understood(documents: Documents, name: str, parse: Callable[[bytes], T], content: bytes) -> T:
    """What a text says. Raises MemoryFault if it makes no sense."""
    try:
        return parse(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MemoryFault(_unreadable(documents.folder / name, error)) from error


def _unreadable(path: Path, error: Exception) -> str:
    return (
        f"{path} cannot be read ({error}); it says who opted out of memory, "
        "so correct it, or move it away if nobody has"
    )
