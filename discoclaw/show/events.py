"""One event of a history as text, and whether that may be shown where it is read."""

from collections.abc import Mapping, Sequence

from discoclaw.core.event import Commit, Event, author_of
from discoclaw.core.history import History
from discoclaw.core.item import KINDS, Item, Sensitivity, triple_text
from discoclaw.core.pending import is_proposal, settled_as
from discoclaw.core.reminder import Did, after, did_in
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import Fold
from discoclaw.show.purge import TAKEN_BACK, TakenFrom, taken_from
from discoclaw.show.words import PRIVATE, quoted, short, word

SIGNS = {"add": "+", "modify": "~", "forget": "-", "observe": "?"}
STATUS = {"deprecated": "forgotten"}
"""People's words for the status of an item, or a change of it, where they differ from ours."""


REMINDED: Mapping[Did, str] = {
    "set": "set a reminder",
    "changed": "changed a reminder",
    "delivered": "reminded you",
    "held": "could not remind you",
    "deleted": "deleted a reminder",
    "undone": "took back a reminder",
    "unsaid": "deleted a reminder",
}
"""What became of a reminder."""


class Secrets:
    """Which item an event is about, and whether its words may be shown here.

    `own`: the person, or an admin, reads it. They see what waits for the person's yes, and in private what
    was taken back on `branch`. A model sees neither.
    """

    def __init__(
        self, history: History, *, in_private: bool, own: bool = True, branch: str | None = None
    ) -> None:
        self._in_private = in_private
        self._own = own
        self._taken = TakenFrom() if in_private and own else taken_from(history, branch)
        self._bare = _targets_of_bare(history)
        last: dict[tuple[str, str], Sensitivity] = {}
        self._last_said: dict[str, Event] = {}
        for commit in history.commits.values():
            for event in commit.events:
                if "link" not in event.ext:
                    self._last_said[self.target(event)] = event
                if event.verb != "observe":
                    last[self.target(event), commit.branch] = event.sensitivity
        self.hidden = frozenset(item for (item, _), secret in last.items() if secret != "normal")
        """Items that are private on at least one branch, or were when they were removed."""

    def target(self, event: Event) -> str:
        """The id of the item that an event is about."""
        item_id = event.ext.get("item", {}).get("id")
        if isinstance(item_id, str):
            return item_id
        return self._bare.get(event.id) or self._bare.get(event.parent_id or "", "-")

    def mentioned(self, commit: Commit) -> Sequence[Event]:
        """The events of a commit that are mentioned."""
        return [event for event in commit.events if self._own or not is_proposal(event)]

    def text_of_item(self, item_id: str) -> str:
        """The latest text of an item; "" if that may not be shown."""
        event = self._last_said.get(item_id)
        return "" if event is None or self.instead(event) else text_of(event)

    def open(self, event: Event) -> bool:
        """Whether an event's text may be shown."""
        if self._in_private:
            return True
        return event.sensitivity == "normal" and self.target(event) not in self.hidden

    def instead(self, event: Event) -> str:
        """The text in place of an event's words: "(private)", "(taken back)", or "" if they may be."""
        if not self.open(event):
            return PRIVATE
        noted = event.ext.get("conflict")
        text = str(noted.get("text", "")) if isinstance(noted, Mapping) else text_of(event)
        return TAKEN_BACK if self._taken.of_event(event, self.target(event), text) else ""

    def instead_of_evidence(self, event: Event) -> str:
        """The text in place of the words that an event rests on; "" if they may be shown."""
        held = self._taken.holds(event.evidence, ms_of_iso(event.timestamp))
        return self.instead(event) or (TAKEN_BACK if held else "")

    def item(self, item: Item) -> Item:
        """An item, without its words if they were taken back."""
        return self._taken.item(item)

    def words(self, event: Event) -> str:
        """An event's text, or what is shown instead."""
        return self.instead(event) or _words(event)


def verb(event: Event) -> str:
    """The word for what an event did: learned, remembered, corrected, forgot, …"""
    body = event.ext.get("item", {})
    if is_proposal(event):
        return "asked about"
    if "conflict" in event.ext:
        return "settled" if "settled" in event.ext["conflict"] else "asked about"
    if "link" in event.ext:
        return "linked"
    if (did := did_in(event)) is not None:
        return REMINDED[did] if did != "undone" or after(event) is None else "restored a reminder"
    if event.verb == "modify":
        other = "corrected" if "text" in body or not event.ext else "changed"
        return {"deprecated": "forgot", "active": "restored"}.get(body.get("status"), other)
    stated = author_of(event) == "stated"
    return {"add": "remembered" if stated else "learned", "observe": "confirmed"}.get(event.verb, "removed")


def event_line(event: Event, secrets: Secrets) -> str:
    sign = SIGNS[event.verb]
    start = f"{sign} {event.event_type:<7} {short(secrets.target(event))}{marks(event)}"
    return f"{start} {secrets.words(event)} ({word(event.source)})"


def marks(event: Event) -> str:
    """` [preference, forgotten, private]`: an event's kind and what else is not as usual."""
    body = event.ext.get("item", {})
    kind = body.get("kind", event.predicate)
    found = [kind] if kind in KINDS else []
    if event.verb == "modify" and "status" in body:
        found.append(STATUS.get(body["status"], body["status"]))
    if event.sensitivity != "normal":
        found.append(event.sensitivity)
    return f" [{', '.join(found)}]" if found else ""


def text_of(event: Event) -> str:
    """The text of an item by an event; a bare triple speaks for itself."""
    text = event.ext.get("item", {}).get("text")
    if isinstance(text, str):
        return text
    if event.ext and not event.ext.get("triple"):
        return event.object
    return triple_text(event.subject, event.predicate, event.object)


def linked(link: Mapping[str, object], other: str = "") -> str:
    """The change to the link of an event's item with another one, named by `other` or by its id."""
    other = other or short(str(link.get("to", "")))
    return f"{'linked' if link.get('on') else 'no longer linked'} with {other}"


def _words(event: Event) -> str:
    link, noted = event.ext.get("link"), event.ext.get("conflict")
    if link is not None:
        return linked(link)
    if noted is not None:
        text = noted.get("text")
        other = quoted(text) if isinstance(text, str) and text else "it no longer holds"
        return f"settled, {word(noted['settled'])}: {other}" if "settled" in noted else f"against it: {other}"
    if is_proposal(event):
        how = settled_as(event)
        return f"{f'{word(how)}, no longer waiting' if how else 'waits for a yes'}: {quoted(text_of(event))}"
    return quoted(text_of(event))


def _targets_of_bare(history: History) -> Mapping[str, str]:
    """The item ids of events that don't name their item (bare triples), by event id."""
    fold = Fold()
    if not all(event.ext for commit in history.commits.values() for event in commit.events):
        for commit in history.commits.values():
            for event in commit.events:
                fold.apply(event)
    return fold.triples


def hidden(history: History) -> frozenset[str]:
    """The items that are shown in private only, in their past too: for `view` and `changes`."""
    return Secrets(history, in_private=False).hidden
