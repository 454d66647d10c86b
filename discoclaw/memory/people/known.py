"""Whom the bot knows, for its admin: how much it remembers about each person, and never what.

Blocking: for a thread. A ledger that has not changed is not read again, and only those of one page are read.
"""

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from discoclaw.core.errors import faulting
from discoclaw.core.health import Known, People
from discoclaw.core.profile import Profile
from discoclaw.core.purge import Derived, Purge
from discoclaw.core.subject import user_of
from discoclaw.memory.subjects.ledger import read
from discoclaw.store.port import PROFILES, Disk

MOST_SHOWN: Final = 25
"""The people of a page."""
MOST_KEPT: Final = 2_000
"""People whose counts are kept in RAM."""
MOST_BYTES: Final = 2_000_000
"""The largest ledger that is read for its counts: about 5,000 changes, a tenth of a second."""


class KnownPeople(Derived):
    """The people with a memory in a store. `opted_out` says who wants nothing remembered."""

    name = "counts of memories"

    def __init__(self, disk: Disk, opted_out: Callable[[str], bool]) -> None:
        self._disk = disk
        self._opted_out = opted_out
        self._kept: OrderedDict[str, tuple[int, Known]] = OrderedDict()
        """What was counted, with the bytes that the ledger had then, by subject."""
        self._forgotten = 0
        self._lock = threading.Lock()

    def page(self, number: int) -> People:
        """One page of them, from 1 on; the nearest if there is none of that number. Raises MemoryFault."""
        with faulting("the store can't be read"):
            sizes = [one for one in self._disk.ledgers.by_age() if user_of(one[0]) is not None]
            pages = max(1, math.ceil(len(sizes) / MOST_SHOWN))
            number = min(max(1, number), pages)
            last = len(sizes) - (number - 1) * MOST_SHOWN
            shown = reversed(sizes[max(0, last - MOST_SHOWN) : last])
            return People(len(sizes), [self._known(*one) for one in shown], number, pages)

    def names(self, user_ids: Iterable[str]) -> dict[str, str]:
        """The names of people, of those whose name is known."""
        return {one: name for one in user_ids if (name := self._called(one))}

    def purge_ram(self, purge: Purge) -> None:
        if not purge.erases:
            return  # what a ledger has is counted again when that has changed
        with self._lock:
            self._forgotten += 1
            self._kept.pop(purge.subject, None)

    def _known(self, subject: str, size: int) -> Known:
        user_id = user_of(subject) or ""
        known = self._counted(subject, size) if size <= MOST_BYTES else Known(user_id, "")
        return replace(known, name=self._called(user_id), opted_out=self._opted_out(user_id))

    def _counted(self, subject: str, size: int) -> Known:
        """The sums of a ledger of so many bytes."""
        before, known = self._kept.get(subject, (None, None))
        if known is not None and before == size:
            return known
        forgotten = self._forgotten
        loaded = read(self._disk.ledgers.log(subject))
        view, history = loaded.history.shown(), loaded.history
        active = len(view.active())
        known = Known(
            user_of(subject) or "",
            "",
            active,
            len(view.items) - active,
            len(history.branches.all),
            len(history.commits),
            view.updated_at if history.commits else None,
            bool(loaded.damage),
        )
        with self._lock:
            if forgotten == self._forgotten:  # else it may be of somebody who was erased since
                self._kept[subject] = size, known
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return known

    def _called(self, user_id: str) -> str:
        """The name in a person's profile; "" if there is none that can be read."""
        try:
            return Profile.from_json(json.loads(self._disk.documents(PROFILES).read(f"{user_id}.json"))).name
        except (OSError, ValueError, RecursionError):
            return ""
