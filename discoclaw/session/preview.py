"""Previews what a model would read if somebody wrote now. Nothing is sent to it, and nothing is kept.

The message takes the same steps as one that was sent (`prepare`), in a copy of its conversation's window.
Independent of Discord.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from discoclaw.core.item import Item, by_newest
from discoclaw.core.message import Inbound
from discoclaw.core.ports import IDLE
from discoclaw.core.privacy import may_show
from discoclaw.core.query import NO_COSINES
from discoclaw.core.visible import is_standing
from discoclaw.recall.document import parse
from discoclaw.recall.select import NO_ROOM, SAID, UNRELATED, WAITS, Chosen, select
from discoclaw.session.arrival import Arrival, Arrivals
from discoclaw.session.prepare import Preparation, Prepared
from discoclaw.session.refill import Refill

FITS, PRIVATE, CONFIDENTIAL = "fits", "private", "confidential"
FORGOTTEN, OPTED_OUT = "forgotten", "opted out"
REASONS = (FITS, PRIVATE, CONFIDENTIAL, NO_ROOM, SAID, WAITS, UNRELATED, IDLE, OPTED_OUT, FORGOTTEN)
"""Why an item is not in the prompt, in the order in which they are shown.

`FITS` has the items that come once a message calls for them, if it is not known what the message says.
"""


@dataclass(frozen=True)
class Preview:
    """A message that nobody sent, and the prompt for it. Without a text, only what is always there counts."""

    arrival: Arrival
    ready: Prepared

    @property
    def asked(self) -> bool:
        """Whether it is known what the message says."""
        return bool(self.arrival.message.text)

    @property
    def used(self) -> tuple[Chosen, ...]:
        """The items that would be in the prompt, best first; without a text, those that always are."""
        used = self.ready.used
        return used if self.asked else tuple(one for one in used if one.item.id in self._always)

    @cached_property
    def _always(self) -> frozenset[str]:
        """The ids of the items that are there whatever the message says.

        The talk before it may have called for others, by its words or its meaning.
        """
        made = self.ready.selection
        whatever = select(
            made.recall,
            parse(""),
            made.items,
            max_chars=made.max_chars,
            now_ms=made.now_ms,
            signals=replace(made.signals, cosines=NO_COSINES),
        )
        return frozenset(one.item.id for one in whatever.chosen if is_standing(one.item))

    @property
    def crowded(self) -> bool:
        """Whether a message could still replace some of what is always there."""
        return not self.asked and self.ready.selection.crowded

    def left_out(self, items: Iterable[Item]) -> Mapping[str, list[Item]]:
        """The other items of the person by reason, those of each reason newest first."""
        used = {one.item.id for one in self.used}
        reasons = self.ready.selection.left_out()
        reasons |= {one.item.id: NO_ROOM for one in self.ready.selection.chosen[self.ready.prompt.durable :]}
        found: dict[str, list[Item]] = {reason: [] for reason in REASONS}
        for item in sorted(items, key=by_newest):
            if item.id not in used:
                found[self._why_not(item, reasons)].append(item)
        return {reason: those for reason, those in found.items() if those}

    def _why_not(self, item: Item, reasons: Mapping[str, str]) -> str:
        if not item.active:
            return FORGOTTEN
        if not self.arrival.permission.holds:
            return OPTED_OUT
        if not may_show(item, in_dm=self.arrival.in_dm):
            return CONFIDENTIAL if item.facets.sensitivity == CONFIDENTIAL else PRIVATE
        if not self.asked and not is_standing(item):
            return IDLE if self.ready.selection.faded(item) else FITS
        why = reasons.get(item.id, WAITS if is_standing(item) else UNRELATED)
        return FITS if why == WAITS and not self.asked else why


class Previews:
    """Makes previews with the parts that answer messages."""

    def __init__(self, arrivals: Arrivals, refill: Refill, preparation: Preparation) -> None:
        self._arrivals = arrivals
        self._refill = refill
        self._preparation = preparation

    async def of(self, message: Inbound) -> Preview:
        """The preview of a message."""
        arrival = await self._arrivals.of(message)
        arrival.fit()
        await self._refill.fill(arrival)
        arrival = replace(arrival, window=arrival.window.copy())
        arrival.enter(arrival.said())
        return Preview(arrival, await self._preparation.of(arrival, files=False))
