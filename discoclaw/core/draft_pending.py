"""Proposals in a draft: what was inferred waits for the yes of a person who wants to be asked.

Links, categories and a higher sensitivity aren't claims about the person, and remember nothing new; they are
made at once. Pure. Who wants to be asked is known to the caller; what the answer does is in `approval`.
"""

from dataclasses import replace
from typing import Literal, TypeAlias

from discoclaw.core.draft_events import EventDraft, Origin
from discoclaw.core.item import Facets, Item, Sensitivity, item_id
from discoclaw.core.pending import MOST_PENDING, Settled, is_proposal
from discoclaw.core.privacy import stricter
from discoclaw.core.text import normalise

Proposed: TypeAlias = Literal["proposed", "ignored"]


class ProposalDraft(EventDraft):
    """A draft that can record what is to wait for an answer."""

    def propose(self, item: Item, origin: Origin) -> Proposed:
        """Let an item, as it would be, wait for the person's yes. One that says the same waits already.

        It is ignored after the person's "no" to the same words, unless these were said later; and when one
        draft proposes more than may be pending, which no person would read.
        """
        plain, refused_at = normalise(item.text), self._fold.forgotten.get(item_id(item.kind, item.text), -1)
        if any((one.plain, one.item.status) == (plain, item.status) for one in self._fold.pending):
            return "proposed"
        if item.active and origin.said_at <= refused_at:
            return "ignored"
        if sum(map(is_proposal, self.events)) >= MOST_PENDING:
            return "ignored"
        self.note_proposal(item, origin)
        return "proposed"

    def propose_change(
        self,
        current: Item,
        text: str,
        tags: tuple[str, ...],
        level: Sensitivity,
        marked: Sensitivity,
        origin: Origin,
        requested: Facets,
    ) -> tuple[Item, Literal["proposed", "ignored", "unchanged", "updated"]]:
        """Propose another text for an item. The arguments are as for `Draft.upsert`."""
        if current.active and normalise(current.text) == normalise(text):
            secret = stricter(current.facets.sensitivity, marked)
            if secret == current.facets.sensitivity:
                return current, "unchanged"
            changed = replace(current, facets=replace(current.facets, sensitivity=secret))
            self.emit("modify", changed, {}, origin)
            return self.items[current.id], "updated"
        facets = replace(
            current.facets,
            author="inferred",
            sensitivity=stricter(current.facets.sensitivity, level),
            key=requested.key or current.facets.key,
            triple=requested.triple,
        )
        wanted = replace(
            current,
            text=text,
            tags=tags or current.tags,
            status="active",
            source=origin.source,
            updated_at=self.now_ms,
            facets=facets,
        )
        return current, self.propose(wanted, origin)

    def note_proposal(
        self, item: Item, origin: Origin, settled: Settled | None = None, *, parent: str | None = None
    ) -> None:
        """Record that an item waits for the person's yes, or how that was settled. It is not changed."""
        how: dict[str, str] = {"settled": settled} if settled is not None else {}
        if settled is None and origin.question:
            how["ask"] = origin.question
        if settled is not None:  # an answer has an author of its own
            item = replace(item, facets=replace(item.facets, author=origin.author))
        self.emit("observe", item, item.to_json(), origin, noted={"proposal": how}, parent=parent)
