"""People's profiles: `profiles/<user id>.json` (see `core/profile`), created when somebody new speaks.

The file is the source of names and first_seen. Notes and preferences are a view of the person's ledger,
renewed after each change of it. RAM is updated first and the file later, so a message never waits for the
disk; nothing is read before somebody speaks or is asked about. Nothing new is written about people who opted
out, and nothing comes back about people who were erased: messages from before the erasing create no profile.
A file that cannot be parsed is kept aside and treated as missing. Independent of Discord and of prompts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakValueDictionary

from discoclaw.core.audit import Readable
from discoclaw.core.consent import Consent
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, Withdrawn
from discoclaw.core.ports import Clock
from discoclaw.core.profile import Profile, tidy_name
from discoclaw.core.purge import Withdrawal
from discoclaw.core.subject import dm_of, user_of, user_subject
from discoclaw.core.view import View
from discoclaw.memory.cursors import read
from discoclaw.memory.erasing.files import JSON, json_names
from discoclaw.memory.people.records import Records
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import render_json, safe_id
from discoclaw.store.port import Documents

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A name somebody spoke under. `sure`: they had a different one in that place before, so it is new."""

    name: str
    at_s: int
    sure: bool


@dataclass(slots=True)
class _Entry:
    """One person in RAM. `value` is the file's content as far as it was read; None if there is no file."""

    value: Profile | None = None
    content: bytes = b""
    read: bool = False
    names: dict[str, str] = field(default_factory=dict)
    """Their names by place: a person may have a different name on each server."""
    sightings: list[_Sighting] = field(default_factory=list)


class Profiles(Records):
    """The profiles of all who consent. They show what is in `memory`; its listeners are notified."""

    name = "profiles in RAM"

    def __init__(
        self,
        where: Path | Documents,
        memory: Memory,
        *,
        clock: Clock,
        consent: Consent,
        idle_ms: int = HOUR_MS,
    ) -> None:
        super().__init__("profile", where, memory, clock=clock)
        self._consent = consent
        self._entries: IdleMap[_Entry] = IdleMap(lambda user_id: _Entry(), idle_ms=idle_ms)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def readable(self) -> Iterator[Readable]:
        for name in json_names(self.documents):
            user_id = name.removesuffix(JSON)
            place, owner, dm = str(self.documents.folder / name), user_subject(user_id), dm_of(user_id)
            profile = Profile.from_json(read(self.documents, name))
            yield Readable(place, owner=owner, at=profile.first_seen * 1000)
            for text in (*profile.notes, *profile.preferences.values()):
                yield Readable(place, text, dm, owner)

    def seen(self, user_id: str, name: str, at: int, *, where: str = "") -> None:
        """Record that somebody spoke at a time (ms) under a name; `where` is the server. Never blocks."""
        now = self._clock()
        self._entries.evict_idle(now, busy=_unsaved)
        entry = self._entries.use(user_id, now)
        if entry.names.get(where) == name:
            return  # the usual case: nothing new
        if not self._consent.may_keep(user_id, at):
            return
        entry.sightings.append(_Sighting(tidy_name(name), at // 1000, where in entry.names))
        entry.names[where] = name
        self._note(user_id)

    def at_hand(self, user_id: str) -> bool:
        """Whether everything known about somebody is in RAM."""
        entry = self._entries.peek(user_id)
        return entry is not None and entry.read and self.documents.in_touch

    def in_ram(self, user_id: str) -> Profile | None:
        """The profile if it is in RAM and there is one, else None."""
        entry = self._entries.peek(user_id)
        return entry.value if entry is not None and self.at_hand(user_id) else None

    async def get(self, user_id: str) -> Profile | None:
        """Return the profile, or None if there is none. Raises MemoryFault if it cannot be read."""
        entry = self._entries.use(user_id, self._clock())
        if not self.at_hand(user_id):
            async with self._alone(user_id):
                entry.read = entry.read and self.documents.in_touch
                await self._read(user_id, entry)
        return entry.value

    # ------------------------------------------------------------------ changes and erasings

    def recorded(self, subject: str) -> None:
        if (user_id := user_of(subject)) is not None:
            self._note(user_id)

    def forget(self, erasure: Erasure) -> None:
        if (user_id := user_of(erasure.subject)) is not None:
            self._entries.drop(user_id)

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """Keep everybody from writing the person's profile meanwhile."""
        if (user_id := user_of(erasure.subject)) is None:
            yield
            return
        async with self._alone(user_id):
            yield

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        """Write the file now: a run that was killed may have left it as it was."""
        if withdrawal.user_id:
            await self._bring(withdrawal.user_id)
        return NOTHING_WITHDRAWN

    def _renew(self, about: str) -> None:
        if (entry := self._entries.peek(about)) is not None:
            entry.read = False

    def _alone(self, user_id: str) -> asyncio.Lock:
        """A person's own lock: a file that hangs must not keep the profiles of others from being read."""
        return self._locks.setdefault(user_id, asyncio.Lock())

    # ------------------------------------------------------------------ inside

    async def _bring(self, user_id: str) -> None:
        """Bring one file up to date. Raises MemoryFault and OSError."""
        subject, entry = user_subject(user_id), self._entries.use(user_id, self._clock())
        erased_at = self._memory.erased_at(subject)
        if not entry.read:
            async with self._alone(user_id):
                await self._read(user_id, entry)
        if entry.value is None and not entry.sightings:
            return  # they have not spoken yet
        # Not while holding the profile's lock: an erasing waits for that, and holds the lock of the memory.
        view = await self._shown(subject, self._memory.last_view(subject))
        async with self._alone(user_id):
            if self._memory.erased_at(subject) != erased_at or self._entries.peek(user_id) is not entry:
                return  # a change meanwhile has queued it again
            after = self._seen_since(user_id, entry, view)
            content = render_json(after.to_json()) if after is not None else b""
            if after is None or content == entry.content:
                entry.value, entry.sightings = after, []
                return
            noted = len(entry.sightings)
            if not await self._replaced(_file(user_id), entry.content, content):
                entry.read = False
                self._note(user_id)  # once more, with what another process wrote
                return
            entry.value, entry.content = after, content
            del entry.sightings[:noted]
        self._memory.changes.written(subject)

    def _seen_since(self, user_id: str, entry: _Entry, view: View | None) -> Profile | None:
        """The current content for the file, or None if there is to be none."""
        profile = entry.value
        if self._consent.opted_out(user_id):  # after they spoke
            entry.sightings, entry.names = [], {}
        for one in entry.sightings:
            if profile is None:
                profile = Profile(((one.name, one.at_s),), one.at_s)
            elif one.sure or not profile.was_called(one.name):
                profile = profile.with_name(one.name, one.at_s)
        return profile.with_view(view) if profile is not None and view is not None else profile

    async def _read(self, user_id: str, entry: _Entry) -> None:
        """Read a file, once. The caller holds the person's lock."""
        if entry.read:
            return
        name = _file(user_id)
        entry.value, entry.content = await self._read_file(name, Profile.from_json)
        entry.read = True
        erased_at = self._consent.erased_at(user_id)
        if entry.value is not None and (entry.value.first_seen + 1) * 1000 <= erased_at:
            log.warning("%s is from before the memory was erased, and counts as none", name)
            entry.value = None


def _unsaved(entry: _Entry) -> bool:
    return bool(entry.sightings)


def _file(user_id: str) -> str:
    return f"{safe_id(user_id)}.json"
