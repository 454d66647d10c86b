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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass

from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.core.live import Scope
from discoclaw.core.policy import Value
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged, Readable
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Listener
from discoclaw.store.files import in_thread, read_in_thread, render_json
from discoclaw.store.port import Change, Documents

log = logging.getLogger(__name__)

FILE = "changed.json"
VERSION = 1
_NOT_OURS = (OSError, MemoryFault)
"""Why the file stays as it is."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The person (user id) who changed a setting, when (ms), and the digest of its value."""

    by: str
    at: int
    digest: str


class ChangedBy(Derived, Listener):
    """The records, by scope and field. Call `load` first."""

    name = "who changed a setting"

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._known: dict[str, Changed] = {}
        self._one = threading.Lock()  # a change read before an erasing must not be written behind it

    def load(self) -> None:
        """Read the file. Blocking."""
        try:
            self._known = _understood(self._documents.find(FILE))
        except _NOT_OURS as error:
            log.warning("it isn't known who changed which setting: %s", error)

    def of(self, scope: Scope, name: str, value: Value) -> Changed | None:
        """The last change of a field, if it gave the field this value."""
        found = self._known.get(f"{scope} {name}")
        return found if found is not None and found.digest == _digest(value) else None

    async def renewed(self, names: Collection[str]) -> None:
        """Take over what another process recorded."""
        if FILE in names:
            await read_in_thread(self.load)

    def note(self, scope: Scope, name: str, value: Value | None, by: str, at: int) -> None:
        """Record a change; a setting that lost its value loses its record, and so it does if `by` is "".

        Blocking.
        """

        def noted(content: bytes | None) -> bytes:
            known = _understood(content)
            known.pop(f"{scope} {name}", None)
            if value is not None and by:
                known[f"{scope} {name}"] = Changed(by, at, _digest(value))
            return _rendered(known)

        try:
            with self._one:
                self._change(noted)
        except _NOT_OURS as error:
            log.warning("%s could not be changed, so it won't show who made a change: %s", FILE, error)

    def audit(self) -> Iterator[Readable]:
        for key, one in _understood(self._documents.find(FILE)).items():
            yield Readable(f"{self._documents.folder / FILE} ({key})", author=one.by, at=one.at)

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if not (purge.erases and purge.user_id):
            return None
        if phase == "ram":
            self._known = _without(self._known, purge.user_id)
        return in_thread(self._erase, purge.user_id) if phase == "disk" else None

    def _erase(self, user_id: str) -> Purged:
        removed = 0

        def without(content: bytes | None) -> bytes | None:
            nonlocal removed
            if user_id.encode() not in (content or b""):
                return None
            known = _understood(content)
            left = _without(known, user_id)
            removed = len(known) - len(left)
            return _rendered(left)

        try:
            with self._one:
                self._change(without)
        except _NOT_OURS as error:
            return Purged(left=(f"{self._documents.folder / FILE}: {error}",))
        return Purged(removed)

    def _change(self, work: Change) -> None:
        self._known = _understood(self._documents.change(FILE, work))


def _digest(value: Value) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _without(known: Mapping[str, Changed], user_id: str) -> dict[str, Changed]:
    return {key: one for key, one in known.items() if one.by != user_id}


def _understood(content: bytes | None) -> dict[str, Changed]:
    """The changes in a file's content; none if it makes no sense. Raises NewerSchema."""
    if content is None:
        return {}
    try:
        value = json.loads(content)
        if (version := value["version"]) != VERSION:
            raise NewerSchema(f"version {version!r} is not known here")
        known = {key: Changed(one["by"], one["at"], one["digest"]) for key, one in value["changes"].items()}
        if not all(one.by.isdigit() and valid_ms(one.at) and one.digest.isalnum() for one in known.values()):
            raise ValueError("a change has no person or time")
        return known
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        log.warning("%s makes no sense, so it isn't known who changed what: %s", FILE, error)
        return {}


def _rendered(known: Mapping[str, Changed]) -> bytes:
    return render_json({"version": VERSION, "changes": {key: asdict(one) for key, one in known.items()}})
