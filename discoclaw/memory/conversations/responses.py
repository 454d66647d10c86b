"""A cache of answers from a model: `cache/responses/<subject>.json`, one file for each subject.

A file is a JSON array of {key, response, created, last_access, model, sha256}, times in ms. An answer is
stored for the person who got it and never served to anybody else. Always safe to delete: an unreadable file
counts as empty. Expired entries are removed first, then those used longest ago.

An erasing removes the file while nobody writes; an answer to a question from before it is neither stored nor
served later. When somebody takes something back, all their answers are removed, and others' answers that have
its words. Independent of models, and of what a key is made of.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.idle import HOUR_MS
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged, Readable
from discoclaw.core.subject import user_of
from discoclaw.core.text import scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.kept import JSON, Kept, json_names, remove_named
from discoclaw.store.files import in_thread, render_json, safe_id
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import drop

log = logging.getLogger(__name__)

LONGEST = 32_000
"""Longer answers (characters) are not stored, since each new answer rewrites the person's file."""


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. `key` and `sha256` identify the question; `created` is when (ms) it was asked."""

    key: str
    sha256: str
    model: str
    response: str
    created: int
    last_access: int

    def to_json(self) -> dict[str, object]:
        return {
            "key": self.key,
            "response": self.response,
            "created": self.created,
            "last_access": self.last_access,
            "model": self.model,
            "sha256": self.sha256,
        }


Entries = dict[str, Response]
"""The answers for one subject, by key."""


def kept(entries: Iterable[Response], *, now_ms: int, ttl_ms: int, most: int) -> list[Response]:
    """The entries to keep: of the unexpired ones the `most` used last, in the order of their use."""
    young = [one for one in entries if _alive(one, now_ms, ttl_ms)]
    young.sort(key=lambda one: (one.last_access, one.created, one.key))
    return young[max(0, len(young) - most) :]


def _alive(entry: Response, now_ms: int, ttl_ms: int) -> bool:
    """Whether an entry is not too old; one from the future counts as expired: a clock was wrong."""
    return 0 <= now_ms - entry.created < ttl_ms


def _parsed(value: Any) -> Entries:
    """The entries of a file. Raises ValueError if it is none."""
    try:
        entries = [Response(*(one[field.name] for field in fields(Response))) for one in value]
    except (TypeError, KeyError) as error:
        raise ValueError(f"an answer is incomplete: {error!r}") from None
    for one in entries:
        texts, times = (one.key, one.sha256, one.model, one.response), (one.created, one.last_access)
        if not all(isinstance(text, str) for text in texts) or not all(map(valid_ms, times)):
            raise ValueError("an answer has no text or time")
    return {one.key: replace(one, response=scrub(one.response)) for one in entries}


def _shape(entries: Entries) -> object:
    return [one.to_json() for one in entries.values()]


class Responses(Derived):
    """The answers for all subjects. A subject's are read at its first use, and leave RAM when idle.

    Answers to questions from before an erasing, or asked while the person wanted no memory, are neither
    stored nor served.
    """

    name = "answers"
    local = True

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        ttl_ms: int = HOUR_MS,
        most: int = 100,
        idle_ms: int = HOUR_MS,
        consent: Consent = UNLIMITED,
    ) -> None:
        self.folder = folder
        self._documents = FileDocuments(folder)
        self._kept = Kept(
            folder, "file of answers", _parsed, _shape, clock=clock, idle_ms=idle_ms, may_be_lost=True
        )
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._most = most
        self._consent = consent
        self._swept: int | None = None
        self._taken_back: list[Purge] = []
        """Purges so recent that an answer from before could still arrive."""

    def audit(self) -> Iterator[Readable]:
        for owner, place, entries in self._kept.stored():
            for one in entries.values():
                yield Readable(place, one.response, owner=owner, at=one.created)

    async def get(self, subject: str, key: str, sha256: str) -> str | None:
        """Return the answer stored under a key, if it is for exactly this question; otherwise None.

        Raises MemoryFault if the subject is not a valid file name.
        """
        now_ms, entries = self._clock(), await self._kept.get(subject) or {}
        entry = entries.get(key)
        if entry is None or entry.sha256 != sha256 or not self._valid(subject, entry, now_ms):
            return None
        entries[key] = replace(entry, last_access=now_ms)  # the next answer writes that down
        return entry.response

    async def put(self, subject: str, entry: Response) -> None:
        """Store an answer. A failing disk is only a warning. Raises MemoryFault like `get`."""
        safe_id(subject)
        if len(entry.response) > LONGEST:
            return
        entry, now_ms = replace(entry, response=scrub(entry.response)), self._clock()
        if self._swept is None or not 0 <= now_ms - self._swept < self._ttl_ms:
            self._swept = now_ms
            async with self._kept.alone():
                await in_thread(self._sweep, now_ms)

        def work(known: Entries | None) -> Entries | None:
            valid = [one for one in (known or {}).values() if self._valid(subject, one, now_ms)]
            others = [one for one in valid if one.key != entry.key]
            stay = kept([*others, entry], now_ms=now_ms, ttl_ms=self._ttl_ms, most=self._most)
            return {one.key: one for one in stay} if self._valid(subject, entry, now_ms) else None

        try:
            await self._kept.change(subject, work, in_ram=True)
        except MemoryFault as error:
            log.warning("an answer could not be written: %s", error)

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if phase == "ram":  # from now on, no answer from before that rests on it is served or stored
            if purge.erases:
                self._kept.drop(purge.subject)
            if not purge.everything:  # the consent knows that
                since = self._clock() - self._ttl_ms
                lately = [one for one in self._taken_back if one.at > since and one != purge]
                self._taken_back = [*lately, purge]
        return self._purge_disk(purge) if phase == "disk" else None

    async def _purge_disk(self, purge: Purge) -> Purged:
        """Of an erased person everything is removed, with leftovers of killed writers and editors."""
        async with self._kept.alone([purge.subject] if purge.erases else None):
            if purge.erases:
                return await in_thread(remove_named, self._documents, {f"{purge.subject}{JSON}"})
            return Purged(answers=await in_thread(self._remove, purge))

    def _remove(self, purge: Purge) -> int:
        """Remove answers from disk. Returns how many. Raises OSError."""
        own, gone = f"{purge.subject}{JSON}", 0
        for name in json_names(self._documents):
            entries = (self._kept.load(name).value or {}).values()
            stay = [one for one in entries if name != own and not purge.words.hold(one.response)]
            gone += len(entries) - len(stay)
            if not stay and (entries or name == own):
                drop(self._documents, name)
            elif len(stay) < len(entries):
                self._documents.write(name, render_json([one.to_json() for one in stay]))
        return gone

    def _valid(self, subject: str, entry: Response, now_ms: int) -> bool:
        """Whether an answer may be served: it is not too old, nor what it rests on erased or taken back."""
        later = [one for one in self._taken_back if entry.created <= one.at]
        return (
            self._consent.may_keep(user_of(subject) or "", entry.created)
            and _alive(entry, now_ms, self._ttl_ms)
            and not any(one.subject == subject or one.words.hold(entry.response) for one in later)
        )

    def _sweep(self, now_ms: int) -> None:
        """Remove files that were not written for so long that everything in them has expired.

        Without this, the files of people who never come back would stay for ever.
        """
        with suppress(OSError):  # the next sweep tries again
            for path in self.folder.iterdir():
                if now_ms - path.stat().st_mtime_ns // 1_000_000 > self._ttl_ms:
                    path.unlink()
