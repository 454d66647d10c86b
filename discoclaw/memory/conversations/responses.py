"""A cache of answers from a model: `cache/responses/<subject>.json`, one file for each subject.

A file is a JSON array of {key, response, created, last_access, model, sha256}, times in ms. An answer is
stored for the person who got it and never served to anybody else. Always safe to delete: an unreadable file
counts as empty. Expired entries are removed first, then those used longest ago.

An erasing removes the file while nobody writes; an answer to a question from before it is neither stored nor
served later. When somebody takes something back, all their answers are removed, and others' answers that have
its words. Everything here blocks, and may be called by several threads at once. Independent of models, and of
what a key is made of.
"""

import json
import logging
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from discoclaw.core.audit import Readable
from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, PersonalData, Removed, Withdrawn
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Withdrawal
from discoclaw.core.subject import user_of
from discoclaw.core.text import scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.kept import remove_named
from discoclaw.store.files import in_thread, render_json, safe_id, write_atomic
from discoclaw.store.plain import FileDocuments

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


def kept(entries: Iterable[Response], *, now_ms: int, ttl_ms: int, most: int) -> list[Response]:
    """The entries to keep: of the unexpired ones the `most` used last, in the order of their use."""
    young = [one for one in entries if _alive(one, now_ms, ttl_ms)]
    young.sort(key=lambda one: (one.last_access, one.created, one.key))
    return young[max(0, len(young) - most) :]


def _alive(entry: Response, now_ms: int, ttl_ms: int) -> bool:
    """Whether an entry is not too old; one from the future counts as expired: a clock was wrong."""
    return 0 <= now_ms - entry.created < ttl_ms


@dataclass(slots=True)
class _SubjectAnswers:
    """A subject in RAM: its entries by key, or None until they are read."""

    entries: dict[str, Response] | None = None


class Responses(PersonalData):
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
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._most = most
        self._consent = consent
        self._swept: int | None = None
        self._taken_back: list[Withdrawal] = []
        """Withdrawals so recent that an answer from before could still arrive."""
        self._disk = threading.Lock()  # for all work on files; taken before the other lock
        self._ram = threading.Lock()  # never held during disk access
        self._shelves: IdleMap[_SubjectAnswers] = IdleMap(
            lambda subject: _SubjectAnswers(),
            idle_ms=idle_ms,
            created=lambda subject: log.debug("%s: answers into memory", subject),
            evicted=lambda subject, shelf: log.debug("%s: answers out of memory", subject),
        )

    def readable(self) -> Iterator[Readable]:
        for path in sorted(self.folder.glob("*.json")):
            for one in _read(path):
                yield Readable(str(path), one.response, owner=path.stem, at=one.created)

    def get(self, subject: str, key: str, sha256: str) -> str | None:
        """Return the answer stored under a key, if it is for exactly this question; otherwise None.

        Raises MemoryFault if the subject is not a valid file name.
        """
        path, now_ms = self._path(subject), self._clock()
        with self._ram:
            known = self._shelf(subject, now_ms).entries is not None
        if not known:
            with self._disk:
                self._load(subject, path, now_ms)
        with self._ram:
            entries = self._shelf(subject, now_ms).entries or {}
            entry = entries.get(key)
            if entry is None or entry.sha256 != sha256 or not self._valid(subject, entry, now_ms):
                return None
            entries[key] = replace(entry, last_access=now_ms)
            return entry.response

    def put(self, subject: str, entry: Response) -> None:
        """Store an answer. A failing disk is only a warning. Raises MemoryFault like `get`."""
        path, now_ms = self._path(subject), self._clock()
        if len(entry.response) > LONGEST:
            return
        entry = replace(entry, response=scrub(entry.response))
        with self._disk:
            self._load(subject, path, now_ms)
            if not self._valid(subject, entry, now_ms):
                return
            with self._ram:
                shelf = self._shelf(subject, now_ms)
                valid = [one for one in (shelf.entries or {}).values() if self._valid(subject, one, now_ms)]
                others = [one for one in valid if one.key != entry.key]
                stay = kept([*others, entry], now_ms=now_ms, ttl_ms=self._ttl_ms, most=self._most)
                shelf.entries = {one.key: one for one in stay}
            try:
                write_atomic(path, render_json([one.to_json() for one in stay]))
            except OSError as error:
                log.warning("%s could not be written: %s", path, error)
            self._sweep(now_ms)

    def erase(self, erasure: Erasure) -> Removed:
        """Remove everything about a subject, with leftovers of killed writers and editors."""
        path = self._path(erasure.subject)
        with self._disk:
            with self._ram:
                self._shelves.drop(erasure.subject)
            return remove_named(FileDocuments(self.folder), {path.name})

    def let_go(self, withdrawal: Withdrawal) -> Withdrawn:
        """Neither serve nor store an answer from before that rests on what was taken back."""
        since = self._clock() - self._ttl_ms
        if not withdrawal.everything:  # the consent knows that
            lately = [one for one in self._taken_back if one.at > since and one != withdrawal]
            self._taken_back = [*lately, withdrawal]
        with self._ram:
            self._shelves.drop(withdrawal.subject)
        return NOTHING_WITHDRAWN

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        return Withdrawn(answers=await in_thread(self._withdraw, withdrawal))

    def _withdraw(self, withdrawal: Withdrawal) -> int:
        """Remove answers from disk. Returns how many. Raises OSError."""
        own, gone = self._path(withdrawal.subject) if withdrawal.subject else None, 0
        with self._disk:
            for path in sorted(self.folder.glob("*.json")):
                entries = _read(path)
                stay = [one for one in entries if path != own and not withdrawal.words.hold(one.response)]
                gone += len(entries) - len(stay)
                if len(stay) < len(entries) or path == own:
                    with self._ram:
                        self._shelves.drop(path.stem)
                    if stay:
                        write_atomic(path, render_json([one.to_json() for one in stay]))
                    else:
                        path.unlink(missing_ok=True)
        return gone

    def in_ram(self) -> int:
        """How many subjects are in RAM."""
        with self._ram:
            return len(self._shelves)

    def _path(self, subject: str) -> Path:
        return self.folder / f"{safe_id(subject)}.json"

    def _valid(self, subject: str, entry: Response, now_ms: int) -> bool:
        allowed = self._consent.may_keep(user_of(subject) or "", entry.created)
        return allowed and _alive(entry, now_ms, self._ttl_ms) and not self._was_taken_back(subject, entry)

    def _was_taken_back(self, subject: str, entry: Response) -> bool:
        """Whether somebody took back what an answer rests on or says after it was asked for."""
        later = [one for one in self._taken_back if entry.created <= one.at]
        return any(one.subject == subject or one.words.hold(entry.response) for one in later)

    def _shelf(self, subject: str, now_ms: int) -> _SubjectAnswers:
        """The subject's entry in RAM. The caller holds `_ram`."""
        self._shelves.evict_idle(now_ms)
        return self._shelves.use(subject, now_ms)

    def _load(self, subject: str, path: Path, now_ms: int) -> None:
        """Read a subject's file, unless that was done before. The caller holds `_disk`."""
        with self._ram:
            if self._shelf(subject, now_ms).entries is not None:
                return
        entries = _read(path)
        with self._ram:
            self._shelf(subject, now_ms).entries = {one.key: one for one in entries}

    def _sweep(self, now_ms: int) -> None:
        """Remove files that were not written for so long that everything in them has expired.

        The caller holds `_disk`. Without this, the files of people who never come back would stay for ever.
        """
        if self._swept is not None and 0 <= now_ms - self._swept < self._ttl_ms:
            return
        self._swept = now_ms
        with suppress(OSError):  # the next sweep tries again
            for path in self.folder.iterdir():
                if now_ms - path.stat().st_mtime_ns // 1_000_000 > self._ttl_ms:
                    path.unlink()


def _read(path: Path) -> list[Response]:
    """The entries of a file; empty, with a warning, if it is not in this bot's format."""
    try:
        return [_entry(value) for value in json.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        log.warning("%s is no file of answers, and counts as empty: %s", path, error)
        return []


def _entry(value: dict[str, object]) -> Response:
    """One entry from JSON. Raises ValueError, TypeError or KeyError if it is invalid."""
    key, sha256, model, response = (_text(value[name]) for name in ("key", "sha256", "model", "response"))
    created, last_access = (_ms(value[name]) for name in ("created", "last_access"))
    return Response(key, sha256, model, response, created, last_access)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return scrub(value)


def _ms(value: object) -> int:
    if not valid_ms(value):
        raise ValueError(f"{value!r} is no time")
    return value
