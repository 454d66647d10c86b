"""Records of unfinished erasings: `erasing/<subject>.json` = {subject, at, sessions, todo, stuck}.

When only outside steps are left, a record has {subject, todo}. Blocking.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import Erasure
from discoclaw.core.times import valid_ms
from discoclaw.memory import cursors
from discoclaw.memory.erasing.cursor_files import texts_of
from discoclaw.memory.erasing.files import JSON, called, json_names
from discoclaw.store.files import render_json, safe_id
from discoclaw.store.port import INTENTS, Disk

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Intent:
    """An erasing to be done: everything about `subject` until `at` (ms), and these conversations' summaries.

    `todo` are the outside steps. `at` is None when only those are left. `stuck` are the groups that a process
    tried to remove the person from, and could not.
    """

    subject: str
    at: int | None
    sessions: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()

    def erasure(self, at: int) -> Erasure:
        """The erasing, in the form that the registered parts take."""
        return Erasure(self.subject, at, frozenset(self.sessions), frozenset(self.todo))

    def to_json(self) -> dict[str, object]:
        outside: dict[str, object] = {"subject": self.subject, "todo": list(self.todo)}
        if self.at is None:
            return outside
        stuck: dict[str, object] = {"stuck": list(self.stuck)} if self.stuck else {}
        return {**outside, "at": self.at, "sessions": list(self.sessions), **stuck}


def subject_in(name: str) -> str | None:
    """The subject whose intent has this path in the store; None if it is something else's."""
    folder, _, file = name.partition("/")
    return file.removesuffix(JSON) if folder == INTENTS and file.endswith(JSON) else None


class Intents:
    """The intents of a store. `pending` are those on disk, by subject."""

    def __init__(self, disk: Disk) -> None:
        self.pending: dict[str, Intent] = {}
        self._disk = disk
        self._folder = disk.documents(INTENTS)

    def load(self, now_ms: int) -> list[Intent]:
        """Read the intents; an unreadable one is dated now. Raises OSError."""
        found = list(self._on_disk(now_ms))
        self.pending |= {intent.subject: intent for intent in found}
        return found

    def now(self, subject: str) -> Intent | None:
        """The intent of a subject; read again where other processes write too. Raises OSError."""
        if not self._disk.shared:
            return self.pending.get(subject)
        try:
            content = self._folder.read(f"{safe_id(subject)}{JSON}")
        except FileNotFoundError:
            return None
        return _intent(subject, cursors.parsed(content), None)

    def read_again(self, subject: str) -> Intent | None:
        """The intent of a subject, as `now`, which may have changed since. Raises MemoryFault."""
        try:
            return self.now(subject)
        except OSError as error:
            raise MemoryFault(f"the erasing of {subject} cannot be read: {error}") from error

    def take(self, subject: str, intent: Intent | None) -> None:
        """Take over what another process did about a subject's intent; None: it is gone."""
        if intent is None:
            self.pending.pop(subject, None)
        else:
            self.pending[subject] = intent

    def widen(self, intent: Intent, sessions: Collection[str], todo: Collection[str]) -> Intent:
        """Add conversations and steps to the intent of another process, if it is still being carried out.

        Returns the intent with them. Raises OSError.
        """

        def wider(content: bytes | None) -> bytes | None:
            there = _intent(intent.subject, cursors.parsed(content or b""), None)
            wide = _with(there, sessions, todo)
            return render_json(wide.to_json()) if there.at is not None and wide != there else None

        self._folder.change(f"{safe_id(intent.subject)}{JSON}", wider)
        return _with(intent, sessions, todo)

    def keep(self, intent: Intent) -> None:
        """Write the intent, or remove it if nothing is left to do. Raises OSError; then nothing changes."""
        name = f"{safe_id(intent.subject)}{JSON}"
        if intent.at is not None or intent.todo:
            self._folder.write(name, render_json(intent.to_json()))
            self.pending[intent.subject] = intent
            return
        _, left = self._folder.remove(called(self._folder, {name}))
        if left:
            raise OSError("; ".join(left))
        self.pending.pop(intent.subject, None)
        try:
            self._disk.wipe()
        except OSError as error:
            log.warning("the bytes of the note that somebody was erased are left: %s", error)

    def _on_disk(self, now_ms: int) -> Iterator[Intent]:
        """The intents on disk; the file name identifies the subject of an unreadable one."""
        for name in json_names(self._folder):
            subject = safe_id(name.removesuffix(JSON))
            yield _intent(subject, cursors.read(self._folder, name), now_ms)


def _intent(subject: str, value: Mapping[str, object], now_ms: int | None) -> Intent:
    """The intent in a file; an unreadable one is dated `now_ms`."""
    at = value.get("at", None if value else now_ms)
    at = at if at is None or valid_ms(at) else now_ms
    sessions, todo, stuck = (tuple(texts_of(value, key)) for key in ("sessions", "todo", "stuck"))
    return Intent(subject, at, sessions, todo, stuck)


def _with(intent: Intent, sessions: Collection[str], todo: Collection[str]) -> Intent:
    more = sorted({*intent.sessions, *sessions}), sorted({*intent.todo, *todo})
    return replace(intent, sessions=tuple(more[0]), todo=tuple(more[1]))
