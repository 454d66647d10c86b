"""People's profiles: `profiles/<user id>.json` (see `core/profile`), created when somebody new speaks.

The file is the source of names and first_seen. Notes and preferences are a view of the person's ledger,
renewed after each change of it. RAM is updated first and the file later, so a message never waits for the
disk; nothing is read before somebody speaks or is asked about. Nothing new is written about people who opted
out, and nothing comes back about people who were erased: messages from before the erasing create no profile.
A file that cannot be parsed is kept aside and treated as missing. Independent of Discord and of prompts.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from discoclaw.core.consent import Consent
from discoclaw.core.errors import Overtaken
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.ports import Clock
from discoclaw.core.profile import Profile, tidy_name
from discoclaw.core.purge import Outcome, Phase, Purge, Readable
from discoclaw.core.subject import dm_of, user_of, user_subject
from discoclaw.core.view import View
from discoclaw.memory.kept import Kept, Records
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import Documents

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A name somebody spoke under. `sure`: they had a different one in that place before, so it is new."""

    name: str
    at_s: int
    sure: bool


@dataclass(slots=True)
class _Seen:
    """What was seen of one person since the start, or since they were silent for long."""

    names: dict[str, str] = field(default_factory=dict)
    """Their names by place: a person may have a different name on each server."""
    sightings: list[_Sighting] = field(default_factory=list)
    """Those that are not in the file yet."""


class Profiles(Records[Profile]):
    """The profiles of all who consent. They show what is in `memory`; its listeners are notified.

    If they are not `on`, none is noted or shown, and what they show of a memory can still be taken back.
    """

    name = "profiles in RAM"

    def __init__(
        self,
        where: Path | Documents,
        memory: Memory,
        *,
        clock: Clock,
        consent: Consent,
        idle_ms: int = HOUR_MS,
        on: bool = True,
    ) -> None:
        kept = Kept(where, "profile", Profile.from_json, Profile.to_json, clock=clock, idle_ms=idle_ms)
        super().__init__(kept, "profile")
        self._memory = memory
        self._clock = clock
        self._consent = consent
        self._on = on
        self._seen: IdleMap[_Seen] = IdleMap(lambda user_id: _Seen(), idle_ms=idle_ms)

    def audit(self) -> Iterator[Readable]:
        for user_id, place, profile in self._kept.stored():
            owner, dm = user_subject(user_id), dm_of(user_id)
            # In seconds, so it may be the last moment of one: after an erasing, people are soon seen again.
            yield Readable(place, owner=owner, at=profile.first_seen * 1000 + 999)
            for text in (*profile.notes, *profile.preferences.values()):
                yield Readable(place, text, dm, owner)

    def seen(self, user_id: str, name: str, at: int, *, where: str = "") -> None:
        """Record that somebody spoke at a time (ms) under a name; `where` is the server. Never blocks."""
        now = self._clock()
        self._seen.evict_idle(now, busy=lambda seen: bool(seen.sightings))
        seen = self._seen.use(user_id, now)
        if seen.names.get(where) == name:
            return  # the usual case: nothing new
        if not (self._on and self._consent.may_keep(user_id, at)):
            return
        seen.sightings.append(_Sighting(tidy_name(name), at // 1000, where in seen.names))
        seen.names[where] = name
        self._note(user_id)

    def at_hand(self, user_id: str) -> bool:
        """Whether everything known about somebody is in RAM."""
        return not self._on or self._kept.at_hand(user_id)

    def in_ram(self, user_id: str) -> Profile | None:
        """The profile if it is in RAM and there is one, else None."""
        return self._since_erasing(user_id, self._kept.in_ram(user_id)) if self._on else None

    async def get(self, user_id: str) -> Profile | None:
        """Return the profile, or None if there is none. Raises MemoryFault if it cannot be read."""
        return self._since_erasing(user_id, await self._kept.get(user_id)) if self._on else None

    # ------------------------------------------------------------------ changes and erasings

    def recorded(self, subject: str) -> None:
        if (user_id := user_of(subject)) is not None:
            self._note(user_id)

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        user_id = purge.user_id
        if not user_id:
            return None
        if purge.erases and phase != "disk":
            self._seen.drop(user_id)  # when it is done, once more: a file written since was removed too
            self._kept.drop(user_id)
        elif purge.erases:
            return self._kept.settled([user_id])
        elif phase == "disk" and self._memory.disk.remembers:
            return self._bring(user_id)  # now: a run that was killed may have left it as it was
        return None

    # ------------------------------------------------------------------ inside

    async def _bring(self, user_id: str) -> None:
        subject, seen, noted = user_subject(user_id), self._seen.use(user_id, self._clock()), 0
        erased_at = self._memory.erased_at(subject)
        known = self._since_erasing(user_id, await self._kept.get(user_id))
        if known is None and not seen.sightings:
            return  # they have not spoken yet
        # Not while nobody else may write: an erasing waits for that, and holds the lock of the memory.
        view = await self._shown(subject, self._memory.last_view(subject))

        def work(known: Profile | None) -> Profile | None:
            nonlocal noted
            if self._memory.erased_at(subject) != erased_at or self._seen.peek(user_id) is not seen:
                return None  # a change meanwhile has queued it again
            after = self._with_seen(user_id, self._since_erasing(user_id, known), seen, view)
            noted = len(seen.sightings)
            return after if after != known else None

        try:
            written = await self._kept.change(user_id, work)
        except Overtaken:
            self._note(user_id)  # once more, with what another process wrote
            return
        del seen.sightings[:noted]
        if written:
            self._memory.changes.written(subject)

    def _with_seen(
        self, user_id: str, profile: Profile | None, seen: _Seen, view: View | None
    ) -> Profile | None:
        """The current content for the file, or None if there is to be none."""
        if self._consent.opted_out(user_id):  # after they spoke
            seen.sightings, seen.names = [], {}
        for one in seen.sightings:
            if profile is None:
                profile = Profile(((one.name, one.at_s),), one.at_s)
            elif one.sure or not profile.was_called(one.name):
                profile = profile.with_name(one.name, one.at_s)
        return profile.with_view(view) if profile is not None and view is not None else profile

    def _since_erasing(self, user_id: str, profile: Profile | None) -> Profile | None:
        """A profile, unless it is from before the person was erased: somebody has put it back."""
        if profile is None or (profile.first_seen + 1) * 1000 > self._consent.erased_at(user_id):
            return profile
        log.warning("the profile of %s is from before the memory was erased, and counts as none", user_id)
        return None
