"""The events that the owner signed, of each address the newest: in RAM and in `signed.json`.

Of two events with one address the later one counts; with equal times, the one with the lowest id (NIP-01).
An event dated in the future is refused, because it would block all later ones. Independent of signatures.
"""

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from discoclaw.core import live
from discoclaw.core.errors import MemoryFault, NewerSchema, Refused
from discoclaw.core.live import Scope, Signed
from discoclaw.core.ports import Clock
from discoclaw.memory.disk.files import in_thread, render_json, stamp_of
from discoclaw.memory.disk.port import Documents

log = logging.getLogger(__name__)

SIGNED = "signed.json"
VERSION = 1
AHEAD_S = 900
"""How far (s) an event's time may be ahead of our clock."""
MOST_ADDRESSES = 10_000
_NONSENSE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused)
_EVENT_ID = re.compile(r"[0-9a-f]{64}")


class Marks:
    """The newest event of each address, in RAM and in `signed.json`."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._path = documents.folder / SIGNED
        self._clock = clock
        self._known: dict[str, Signed] = {}
        self._writing = asyncio.Lock()
        self._changes = self._written = 0
        self._foreign = False  # a newer version's file, which is not ours to write
        self._damaged = False

    def load(self) -> None:
        """Take over what the file has. A damaged one counts as empty, and is kept aside later. Blocking."""
        try:
            self._known = _newest(self._known, _signed(json.loads(self._documents.read(SIGNED))))
        except FileNotFoundError:
            return
        except OSError as error:
            self._foreign = True
            log.error("%s cannot be read, so it is left alone: %s", self._path, error)
        except NewerSchema as newer:
            self._foreign = True
            log.error("%s is left alone: %s", self._path, newer)
        except _NONSENSE as error:
            self._damaged = True
            log.error("%s makes no sense (%s), so it is not known what the owner signed", self._path, error)

    def overrides(self) -> dict[Scope, Signed]:
        """The configurations, by scope."""
        found: dict[Scope, Signed] = {}
        for address, one in self._known.items():
            if one.overrides is not None:
                scope = live.scope_of_address(
                    address
                )  # which several addresses may name, in their own letters
                found[scope] = live.newest(filter(None, (found.get(scope), one))) or one
        return found

    def fresh(self, address: str, at: int, event_id: str) -> bool:
        if at > self._clock() // 1000 + AHEAD_S:
            log.warning("%s: an event of the future (%d s) is refused; is a clock wrong?", address, at)
            return False
        known = self._known.get(address)
        if known is None and len(self._known) >= MOST_ADDRESSES:
            log.warning("%s: more than %d addresses are not kept", address, MOST_ADDRESSES)
            return False
        return known is None or known.older_than(Signed(at, event_id))

    def take(self, address: str, event: Signed) -> bool:
        if not self.fresh(address, event.at, event.id):
            return False
        self._known[address] = event
        self._changes += 1
        return True

    async def save(self) -> bool:
        async with self._writing:
            changes = self._changes
            if changes == self._written:
                return True
            if self._foreign:
                log.warning("%s is not ours to write, so a restart forgets what changed", self._path)
                return False
            try:
                await in_thread(self._write, dict(self._known))
            except (OSError, MemoryFault) as error:
                log.warning("%s could not be written, so a restart forgets it: %s", self._path, error)
                return False
            self._written = changes
            return True

    def _write(self, known: Mapping[str, Signed]) -> None:
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
            newest = _newest(theirs, known)
            events = {address: _signed_json(one) for address, one in newest.items()}
            return render_json({"version": VERSION, "events": events})

        self._documents.change(SIGNED, add)


def _newest(some: Mapping[str, Signed], others: Mapping[str, Signed]) -> dict[str, Signed]:
    """Of each address the newer event."""
    found = dict(some)
    for address, one in others.items():
        if address not in found or found[address].older_than(one):
            found[address] = one
    return found


def _signed_json(event: Signed) -> dict[str, Any]:
    overrides = {"wishes": dict(event.overrides)} if event.overrides is not None else {}
    return {"created_at": event.at, "id": event.id, **overrides}


def _signed(value: Any) -> dict[str, Signed]:
    """The events in the file's JSON. Raises ValueError and others, and NewerSchema."""
    if value["version"] != VERSION:
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
