"""Who last changed a live setting in Discord, and when: `changed.json`, beside the local file.

Kept apart from `config.json`, whose format people and other programs write. It names people, so an erasing
removes them from it; the settings they chose stay. A record counts only while the file still has the value it
is about: after an edit by hand it is unknown who changed it. If the file cannot be read or written, nothing
else is lost: each change is in the log too. A file that makes no sense counts as empty; one that is
unreadable, or of a newer version, is left as it is.
"""

import hashlib
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from discoclaw.core.audit import Readable
from discoclaw.core.errors import NewerSchema
from discoclaw.core.live import Scope
from discoclaw.core.live_fields import Value
from discoclaw.core.personal import Erasure, PersonalData, Removed
from discoclaw.core.subject import user_of
from discoclaw.core.times import valid_ms
from discoclaw.memory.disk.files import render_json
from discoclaw.memory.disk.port import Documents

log = logging.getLogger(__name__)

FILE = "changed.json"
VERSION = 1
_NOT_OURS = (OSError, NewerSchema)
"""Why the file stays as it is."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Who (user id) changed a setting, when (ms), and the digest of its value."""

    by: str
    at: int
    digest: str


class ChangedBy(PersonalData):
    """The records, by scope and field. Call `load` first."""

    name = "who changed a setting"

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._known: dict[str, Changed] = {}
        self._one = threading.Lock()  # a change read before an erasing must not be written behind it

    def load(self) -> None:
        """Read the file. Blocking."""
        try:
            self._known = _read(self._documents)
        except _NOT_OURS as error:
            log.warning("it isn't known who changed which setting: %s", error)

    def of(self, scope: Scope, name: str, value: Value) -> Changed | None:
        """Who gave a field its value, if that is known."""
        found = self._known.get(_key(scope, name))
        return found if found is not None and found.digest == _digest(value) else None

    def note(self, scope: Scope, name: str, value: Value | None, by: str, at: int) -> None:
        """Record a change; a setting that lost its value loses its record. Blocking."""
        try:
            with self._one:
                known = _read(self._documents)
                if value is None:
                    known.pop(_key(scope, name), None)
                else:
                    known[_key(scope, name)] = Changed(by, at, _digest(value))
                self._write(known)
        except _NOT_OURS as error:
            log.warning("%s could not be changed, so it won't show who made a change: %s", FILE, error)

    def readable(self) -> Iterator[Readable]:
        for key, one in _read(self._documents).items():
            yield Readable(f"{self._documents.folder / FILE} ({key})", author=one.by, at=one.at)

    def forget(self, erasure: Erasure) -> None:
        self._known = _without(self._known, user_of(erasure.subject))

    def erase(self, erasure: Erasure) -> Removed:
        user_id = user_of(erasure.subject)
        if user_id is None:
            return Removed()
        try:
            with self._one:
                if not _names(self._documents, user_id):
                    return Removed()
                known = _read(self._documents)
                left = _without(known, user_id)
                self._write(left)
        except _NOT_OURS as error:
            return Removed(left=(f"{self._documents.folder / FILE}: {error}",))
        return Removed(len(known) - len(left))

    def _write(self, known: Mapping[str, Changed]) -> None:
        changes = {key: {"by": one.by, "at": one.at, "digest": one.digest} for key, one in known.items()}
        self._documents.write(FILE, render_json({"version": VERSION, "changes": changes}))
        self._known = dict(known)


def _key(scope: Scope, name: str) -> str:
    return f"{scope} {name}"


def _digest(value: Value) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _without(known: Mapping[str, Changed], user_id: str | None) -> dict[str, Changed]:
    return {key: one for key, one in known.items() if one.by != user_id}


def _names(documents: Documents, user_id: str) -> bool:
    """Whether the file has this person's id anywhere, damaged or not. Raises OSError."""
    try:
        return user_id.encode() in documents.read(FILE)
    except FileNotFoundError:
        return False


def _read(documents: Documents) -> dict[str, Changed]:
    """What the file says; nothing if it makes no sense. Raises OSError and NewerSchema."""
    try:
        value = json.loads(documents.read(FILE))
        if (version := value["version"]) != VERSION:
            raise NewerSchema(f"version {version!r} is not known here")
        return {str(key): _parsed(one) for key, one in value["changes"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        log.warning("%s makes no sense, so it isn't known who changed what: %s", FILE, error)
        return {}


def _parsed(value: Mapping[str, Any]) -> Changed:
    by, at, digest = value["by"], value["at"], value["digest"]
    if not (isinstance(by, str) and by.isdigit() and isinstance(digest, str) and valid_ms(at)):
        raise ValueError("a change has no person or time")
    return Changed(by, at, digest)
