"""The live configuration: a view in RAM of the owner's signed events and the local file.

    config.json   the local file: {"version": 1, "global": {…}, "group:<id>": {…}, "user:<id>": {…}};
                  written by hand or by `discoclaw config set`, read again after a change. Where several
                  processes share the store, each hears of the others' changes
    signed.json   the newest accepted event of each address, with its time and id, so that an older one is
                  not accepted again after a restart

An invalid local file changes nothing, and is reported once. If the disk fails, a change takes effect but may
not survive a restart. Independent of signatures: callers of `take` have checked them.
"""

import asyncio
import json
import logging
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from discoclaw.core import actions, live
from discoclaw.core.errors import MemoryFault, NewerSchema, Refused, faulting
from discoclaw.core.live import Effective, LiveOverrides, Pseudonyms, Scope, Signed, SourcedOverrides
from discoclaw.core.message import Place
from discoclaw.core.policy import FIELDS, NO_OVERRIDES, AutoSave, Overrides, Personas, Policy
from discoclaw.core.ports import Clock
from discoclaw.core.privacy import DmPrivacy
from discoclaw.memory.changes import Listener
from discoclaw.store.files import (
    FILE_MODE,
    Stamp,
    in_thread,
    make_folder,
    read_in_thread,
    render_json,
    stamp_now,
    stamp_of,
)
from discoclaw.store.plain import FileDocuments, documents_at
from discoclaw.store.port import Documents

log = logging.getLogger(__name__)

FILE, LOCK = "config.json", ".config.lock"
VERSION = 1  # of config.json
SIGNED_VERSION = 1  # of signed.json
LOOK_WAIT_S = 0.5
"""A message waits this long for a local file that changed, and no longer."""
LOOK_EVERY_S = 1.0
"""How often a store is asked whether the file changed, if `stat` cannot tell."""
LOCK_WAIT_S = 5.0


class LiveConfig(Listener):
    """The configuration for each place and person. Call `load` first.

    `where` are the documents of the store, or a folder; `settings` are the overrides in the settings. `names`
    resolves pseudonyms in events; it may be set later. In a store that is `shared`, changes are told.
    """

    def __init__(
        self,
        where: Path | Documents,
        *,
        clock: Clock,
        settings: Overrides = NO_OVERRIDES,
        names: Pseudonyms | None = None,
        shared: bool = False,
    ) -> None:
        self._documents = documents_at(where)
        self._clock = clock
        self._shared = shared
        self._local: Mapping[Scope, Overrides] = {}
        """The overrides of `config.json`, as of its last valid version."""
        self._stamped = isinstance(self._documents, FileDocuments)
        self._stamp: Stamp = None
        self._reported = ""
        self._sure = False
        """Whether it is certain that we learn of a change: not in SQLite, nor after a disk failed."""
        self._newest: dict[str, Signed] = {}
        """The newest event of each address."""
        self._writing = asyncio.Lock()
        self._taken = self._written = 0
        self._foreign = False  # a newer version's file of events, which is not ours to write
        self._damaged = False
        self._settings = settings
        self._names = names
        self._overrides = LiveOverrides({}, {}, settings, names)
        self._reading: asyncio.Task[None] | None = None
        self._hangs = False  # the disk does, so nobody waits for it any more
        self._looked_s = float("-inf")

    def load(self) -> None:
        """Read both files. Invalid content is reported and ignored. Blocking."""
        self._load_signed()
        self._load_local()
        self._renew()

    async def close(self) -> None:
        """Wait for what is being read."""
        if self._reading is not None:
            await asyncio.wait([self._reading])

    @property
    def names(self) -> Pseudonyms | None:
        """Resolves the pseudonyms of people and channels."""
        return self._names

    @names.setter
    def names(self, names: Pseudonyms | None) -> None:
        self._names = names
        self._renew()

    # ------------------------------------------------------------------ what holds

    def policy(self, place: Place | None = None, user_id: str = "") -> Policy:
        """The configuration for a message, from RAM. A thread has that of its channel.

        Without a person it is what applies to anybody in the place; without a place, what applies in DMs.
        """
        return self._overrides.policy(place.group_id if place is not None else None, user_id)

    def explain(self, *scopes: Scope) -> dict[str, Effective]:
        """The value of each field where these scopes apply together, and where it comes from.

        Two scopes are a person in a channel; the global one always applies.
        """
        return live.explain(self._overrides.layers(scopes))

    def overrides(self) -> list[SourcedOverrides]:
        """All overrides, except those in the settings."""
        return self._overrides.all()

    def local(self, scope: Scope) -> Overrides:
        """The overrides of a scope in the local file, by its Discord id."""
        return self._local.get(scope, NO_OVERRIDES)

    async def write(self, scope: Scope, wished: Mapping[str, Any], lock: Path) -> None:
        """Change the local file, and take it over at once; see `change_file`. Raises the same errors."""
        await in_thread(change_file, self._documents, scope, wished, None if self._shared else lock)
        if await read_in_thread(self._load_local):
            self._renew()

    def signed(self, scope: Scope) -> Signed | None:
        """The newest event about a scope, by name or pseudonym."""
        return self._overrides.newest(scope)

    # ------------------------------------------------------------------ the local file

    async def renewed(self, names: Collection[str]) -> None:
        """Take over what another process changed."""
        if FILE in names and await read_in_thread(self._load_local):
            log.info("%s was taken over", FILE)
        if SIGNED in names:
            await read_in_thread(self._load_signed)
        if not {FILE, SIGNED}.isdisjoint(names):
            self._renew()

    async def look(self) -> None:
        """Read the local file if it changed. Costs a `stat`, and at most half a second if the disk hangs."""
        if self._reading is None:
            now = asyncio.get_running_loop().time()
            current = not self._stamped or stamp_now(self._documents.folder / FILE) == self._stamp
            if current and (self._sure or now - self._looked_s < LOOK_EVERY_S):
                return
            self._looked_s = now

            async def read() -> None:
                try:
                    if await read_in_thread(self._load_local):
                        self._renew()
                        log.info("%s was taken over", FILE)
                finally:
                    self._reading, self._hangs = None, False

            self._reading = asyncio.create_task(read(), name="local configuration")
        if not self._hangs:
            _, late = await asyncio.wait([self._reading], timeout=LOOK_WAIT_S)
            self._hangs = bool(late)

    def _load_local(self) -> bool:
        """Read the file; return whether its overrides changed. An invalid one changes nothing. Blocking."""
        stamp = stamp_now(self._documents.folder / FILE) if self._stamped else None
        before, told = self._local, self._stamped or self._shared
        self._sure = told
        try:
            self._local = read_file(self._documents)
            self._reported = ""
        except MemoryFault as fault:
            self._sure = told and not isinstance(fault.__cause__, OSError)
            if str(fault) != self._reported:
                log.error("%s; until it is corrected, what it said before holds", fault)
                self._reported = str(fault)
        self._stamp = stamp
        return self._local != before

    # ------------------------------------------------------------------ what the owner signed

    def fresh(self, address: str, at: int, event_id: str) -> bool:
        """Whether an event (with its time in s) is newer than the known one with its address."""
        if at > self._clock() // 1000 + AHEAD_S:
            log.warning("%s: an event of the future (%d s) is refused; is a clock wrong?", address, at)
            return False
        known = self._newest.get(address)
        if known is None and len(self._newest) >= MOST_ADDRESSES:
            log.warning("%s: more than %d addresses are not kept", address, MOST_ADDRESSES)
            return False
        return known is None or known.older_than(Signed(at, event_id))

    def take(self, address: str, at: int, event_id: str, overrides: Overrides | None = None) -> bool:
        """Apply an event of the owner if it is the newest of its address; return whether it was.

        One without overrides is only recorded, so that it is not applied twice. `save` makes it durable.
        """
        if not self.fresh(address, at, event_id):
            return False
        self._newest[address] = Signed(at, event_id, overrides)
        self._taken += 1
        if overrides is not None:
            self._renew()
        return True

    async def save(self) -> bool:
        """Write the applied events to disk, durably. If that fails, log a warning and return False."""
        async with self._writing:
            taken, path = self._taken, self._documents.folder / SIGNED
            if taken == self._written:
                return True
            if self._foreign:
                log.warning("%s is not ours to write, so a restart forgets what changed", path)
                return False
            try:
                await in_thread(self._write_signed, dict(self._newest))
            except (OSError, MemoryFault) as error:
                log.warning("%s could not be written, so a restart forgets it: %s", path, error)
                return False
            self._written = taken
            return True

    def _load_signed(self) -> None:
        """Take over what the file has. A damaged one counts as empty, and is kept aside later. Blocking."""
        path = self._documents.folder / SIGNED
        try:
            if (content := self._documents.find(SIGNED)) is not None:
                self._newest = _newest(self._newest, _signed(json.loads(content)))
        except OSError as error:
            self._foreign = True
            log.error("%s cannot be read, so it is left alone: %s", path, error)
        except NewerSchema as newer:
            self._foreign = True
            log.error("%s is left alone: %s", path, newer)
        except _NONSENSE as error:
            self._damaged = True
            log.error("%s makes no sense (%s), so it is not known what the owner signed", path, error)

    def _write_signed(self, known: Mapping[str, Signed]) -> None:
        """Add what is known to the file: another process may know more. Raises OSError and NewerSchema."""
        if self._damaged:
            aside = self._documents.keep_aside(SIGNED, "corrupt", stamp_of(self._clock()))
            log.warning("%s is kept as %s", SIGNED, aside)
            self._damaged = False

        def add(content: bytes | None) -> bytes:
            try:
                theirs = _signed(json.loads(content)) if content is not None else {}
            except _NONSENSE:
                theirs = {}
            events = {
                address: {"created_at": one.at, "id": one.id}
                | ({"wishes": dict(one.overrides)} if one.overrides is not None else {})
                for address, one in _newest(theirs, known).items()
            }
            return render_json({"version": SIGNED_VERSION, "events": events})

        self._documents.change(SIGNED, add)

    def _renew(self) -> None:
        found: dict[Scope, Signed] = {}
        for address, one in self._newest.items():
            if one.overrides is not None:  # several addresses may name a scope, in their own letters
                scope = live.scope_of_address(address)
                found[scope] = live.newest(filter(None, (found.get(scope), one))) or one
        self._overrides = LiveOverrides(found, self._local, self._settings, self._names)


# ---------------------------------------------------------------------- the local file


def read_file(documents: Documents) -> dict[Scope, Overrides]:
    """Return the overrides of the local file; none if there is no file. Blocking.

    Raises MemoryFault, naming what is wrong in it, and NewerSchema.
    """
    with faulting(f"{documents.folder / FILE} cannot be read"):
        content = documents.find(FILE)
    return _understood(documents, content)


def _understood(documents: Documents, content: bytes | None) -> dict[Scope, Overrides]:
    """The overrides in a file's content; none if there is no file. Raises MemoryFault and NewerSchema."""
    if content is None:
        return {}
    path = documents.folder / FILE
    try:
        return _parsed(json.loads(content))
    except NewerSchema as newer:
        raise NewerSchema(f"{path}: {newer}") from None
    except (Refused, ValueError, RecursionError) as error:
        raise MemoryFault(f"{path} makes no sense: {error}") from None


def change_file(
    documents: Documents, scope: Scope, wished: Mapping[str, Any], lock: Path | None
) -> Overrides:
    """Change the overrides of one scope in the local file, durably; None removes one. Return all overrides.

    `lock` is a lock file against simultaneous changes; a store that processes share needs none. Blocking.
    Raises Refused for an invalid value, and MemoryFault if the existing file is invalid or the disk fails.
    """
    now = NO_OVERRIDES

    def change(content: bytes | None) -> bytes | None:
        nonlocal now
        there = _understood(documents, content)
        now = live.fitting(scope, changed(there.get(scope, NO_OVERRIDES), wished))
        after = {**there, scope: now}
        if after == there:
            return None
        told = {str(one): dict(its) for one, its in after.items() if its != NO_OVERRIDES}
        return render_json({"version": VERSION, **told})

    try:
        with _alone(lock):
            documents.change(FILE, change)
    except Timeout:
        raise MemoryFault(f"{documents.folder / FILE} is being changed by another program") from None
    except OSError as error:
        raise MemoryFault(f"{documents.folder / FILE} could not be written: {error}") from error
    return now


@contextmanager
def _alone(lock: Path | None) -> Iterator[None]:
    """Keep other programs from changing the file, by a lock file if there is one. Raises Timeout, OSError."""
    if lock is None:
        yield
        return
    make_folder(lock.parent)
    with FileLock(lock, timeout=LOCK_WAIT_S, mode=FILE_MODE):
        yield


def changed(overrides: Overrides, wished: Mapping[str, Any]) -> Overrides:
    """Overrides with some of them set or (None) removed. Raises Refused."""
    return live.overrides_from({**overrides, **wished})


def _parsed(value: Any) -> dict[Scope, Overrides]:
    """The overrides in the local file's JSON. Raises Refused, also for unknown names."""
    if not isinstance(value, dict):
        raise Refused("it is not a JSON object")
    if (version := value.get("version", VERSION)) != VERSION:
        raise NewerSchema(f"version {version!r} is not known here")
    found: dict[Scope, Overrides] = {}
    for name, given in value.items():
        if name == "version":
            continue
        scope = live.parse_scope(name)
        found[scope] = live.fitting(scope, live.overrides_from(given))
        if strange := [field for field in given if field not in FIELDS]:
            raise Refused(f"{scope} has {strange[0]!r}; there are {', '.join(FIELDS)}")
    return found


# ---------------------------------------------------------------------- signed events

SIGNED = "signed.json"
AHEAD_S = 900
"""How far (s) an event's time may be ahead of our clock."""
MOST_ADDRESSES = 10_000
_NONSENSE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused)
_EVENT_ID = re.compile(r"[0-9a-f]{64}")


def _newest(some: Mapping[str, Signed], others: Mapping[str, Signed]) -> dict[str, Signed]:
    """The newer event of each address."""
    found = dict(some)
    for address, one in others.items():
        if address not in found or found[address].older_than(one):
            found[address] = one
    return found


def _signed(value: Any) -> dict[str, Signed]:
    """The events in the file's JSON. Raises ValueError and others, and NewerSchema."""
    if value["version"] != SIGNED_VERSION:
        raise NewerSchema(f"version {value['version']!r} is not known here")
    found: dict[str, Signed] = {}
    for address, one in value["events"].items():
        at, event_id = one["created_at"], one["id"]
        if type(at) is not int or at < 0 or not _EVENT_ID.fullmatch(event_id):
            raise ValueError(f"{address} has no time or id")
        overrides = live.overrides_from(one["wishes"]) if "wishes" in one else None
        if overrides is not None:
            live.scope_of_address(address)
        found[address] = Signed(at, event_id, overrides)
    return found


# ----------------------------------------------------------------------
# The rules of each place: live configuration, and where it says nothing, the settings' lists of places.


@dataclass(frozen=True, slots=True)
class PlaceRules:
    """The rules of places. The settings' lists are `fixed`, the personas, `auto_save`, what is archived, and
    `acts`, what may be done when somebody asks for it.
    """

    live: LiveConfig
    fixed: Personas = field(default_factory=Personas)
    auto_save: AutoSave = field(default_factory=AutoSave)
    acts: actions.Allowed = field(default_factory=actions.Allowed)

    def of(self, place: Place) -> str | None:
        """The persona that everybody has in a place, or None."""
        return self.live.policy(place).persona or self.fixed.of(place)

    @property
    def names(self) -> Collection[str]:
        """All personas that some place prescribes."""
        set_live = {str(one.overrides.get("persona", "")) for one in self.live.overrides()}
        return {*self.fixed.names, *filter(None, set_live)}

    def covers(self, place: Place) -> bool:
        """Whether messages from a place are archived."""
        archive = self.live.policy(place).archive
        return self.auto_save.covers(place) if archive is None else archive

    def actions(self, place: Place) -> tuple[actions.Kind, ...]:
        """What may be done in a place when somebody asks: of what the settings allow, what is on there."""
        on = actions.allowed(self.live.policy(place).actions or "all").of(place)
        return tuple(kind for kind in self.acts.of(place) if kind in on)

    def receipts(self, place: Place, user_id: str) -> bool:
        """Whether a person is shown in a place what was learned there."""
        return self.live.policy(place, user_id).receipts

    def asks_first(self, user_id: str, place: Place | None = None) -> bool:
        """Whether somebody who chose nothing is asked before anything inferred is remembered."""
        return self.live.policy(place, user_id).approve

    def dm_privacy(self) -> DmPrivacy:
        """How much of a DM may be used elsewhere."""
        return self.live.policy().dm_privacy
