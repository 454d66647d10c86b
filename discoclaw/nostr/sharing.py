"""Mirroring a store that several processes share: one of them does it, and the next one goes on.

The outbox lies on the disk of whoever mirrors, so a process that begins to mirror does not use an old one, in
which others may have been erased meanwhile. It learns from the relays what is published, before it publishes
or deletes anything. What was signed and not delivered by a process that ended is signed again. An erasure's
step is therefore finished only when enough relays have its deletion requests. What other processes change is
mirrored like what we change.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from discoclaw.core.errors import MemoryFault, NostrError, RelayUnreachable
from discoclaw.core.subject import group_subject, user_subject
from discoclaw.memory.changes import SESSION, Listener
from discoclaw.nostr.adapter import NostrAdapter
from discoclaw.nostr.incoming.recovery import adopt, gathered
from discoclaw.nostr.outgoing.mirror import STEP, Mirror
from discoclaw.nostr.outgoing.views import CHOSEN, CONVERSATION
from discoclaw.store.files import in_thread
from discoclaw.store.port import CHOICES, CURSORS, GROUPS, INTENTS, LEDGERS, PROFILES, ROLLING, TOOLS
from discoclaw.work import LONGEST_S, RETRY_S

log = logging.getLogger(__name__)

SENT_S: Final = 10.0
"""How long an erasure waits for relays before others are mirrored."""
_ID = re.compile(r"([A-Za-z0-9_-]{1,64})\.jsonl?")
_SUBJECT: Final[Mapping[str, Callable[[str], str]]] = {
    LEDGERS: str,
    TOOLS: str,
    INTENTS: str,
    PROFILES: user_subject,
    GROUPS: group_subject,
}
"""Makes the subject from the name of a file, for each folder."""


class SharingAdapter(NostrAdapter):
    """A `NostrAdapter` in one of several processes; it can be opened again after it was closed."""

    async def open(self) -> None:
        await in_thread(_remove, self.config.outbox)
        self.mirror.open(sent=self._sent)
        await super().open()

    async def _catch_up(self) -> None:
        pause_s = RETRY_S
        while True:
            try:
                await self._learn()
                break
            except (RelayUnreachable, MemoryFault, NostrError) as error:
                log.warning("nothing is mirrored for %.0f s, until it is known what is: %s", pause_s, error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_S)
        await super()._catch_up()

    async def _learn(self) -> None:
        """Tell the outbox what relays have. Raises RelayUnreachable, MemoryFault and NostrError."""
        erased, disk = self._memory.pending_erasures(STEP), self._memory.disk
        found = await gathered(self.relays, self.codec, self.names, disk, None, also=erased)
        await in_thread(adopt, found, self.names, self.outbox)

    async def _sent(self) -> None:
        """Raises MemoryFault while too few relays have what is in the outbox."""
        if not (await self.drain(SENT_S)).safe:
            raise MemoryFault("the relays do not have all deletion requests yet")


class OthersChanges(Listener):
    """Has what other processes change mirrored."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    async def renewed(self, names: Collection[str]) -> None:
        for name in names:
            if (unit := unit_of(name)) is not None:
                self._mirror.touch(unit, urgent=name.startswith((f"{INTENTS}/", CHOICES)))


def unit_of(name: str) -> str | None:
    """The unit that shows a text, by its path in the store; None if none does."""
    folder, _, file = name.rpartition("/")
    if name.startswith(CHOICES):
        return CHOSEN
    if folder in {ROLLING, CURSORS}:
        talk = CONVERSATION.fullmatch(file)
        return f"{SESSION}discord:{talk[1]}:{talk[2]}" if talk is not None else None
    if (found := _ID.fullmatch(file)) is None or folder not in _SUBJECT:
        return None
    return _SUBJECT[folder](found[1])


def _remove(outbox: Path) -> None:
    """Remove what another time as the one that mirrors left. Blocking. Raises MemoryFault."""
    try:
        for end in ("", "-wal", "-shm"):
            outbox.with_name(outbox.name + end).unlink(missing_ok=True)
    except OSError as error:
        raise MemoryFault(f"an old outbox cannot be removed: {error}") from error
