"""Proposals that wait for a person's yes: they want to be asked, or extraction was unsure.

A proposal is an "observe" event with the whole item as it would be in ext["item"], and ext["proposal"]: {} to
propose it, {ask: question} to propose it with a question of a model's, {settled: how} to end it. So a version
that does not know proposals remembers nothing of them.
`view` folds them into `View.pending`, which nothing reads but the questions to the person: a pending item is
not among the items. Two proposals of the same claim are one, whichever replica made them.
Pure. Knows nothing about how a proposal is made or decided; that is `draft` and `verbs`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from discoclaw.core.decay import DAY_MS
from discoclaw.core.event import Event
from discoclaw.core.item import Item, Sensitivity, Source
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso

Settled: TypeAlias = Literal["kept", "dropped", "lapsed", "undone"]
"""The person's yes or no; it waited for too long; the change that proposed it was taken back."""
MOST_PENDING = 50
"""The most proposals of one person's branch. People stop reading longer lists, so the oldest lapse."""

Key: TypeAlias = tuple[str, str, str]
"""The claim of a proposal: the item's id, its normalised text, its status."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that was inferred and that the person has not agreed to yet.

    `item` is the item as it would be. If one with its id is remembered, it would change that; one that is
    deprecated would be forgotten. `event_id` is the event that proposed it, `at` (ms) when. `question` is
    what extraction asks because it was unsure; "" for somebody who wants to be asked about everything.
    """

    event_id: str
    item: Item
    at: int
    question: str = ""
    plain: str = field(init=False, repr=False, compare=False)
    """The normalised text; each event of a fold is compared with it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", normalise(self.item.text))

    @property
    def text(self) -> str:
        return self.item.text

    @property
    def kind(self) -> str:
        return self.item.kind

    @property
    def sensitivity(self) -> Sensitivity:
        return self.item.facets.sensitivity

    @property
    def source(self) -> Source:
        """The message it was inferred from."""
        return self.item.source

    @property
    def key(self) -> Key:
        return self.item.id, self.plain, self.item.status


def key_of(item: Item) -> Key:
    return item.id, normalise(item.text), item.status


def is_proposal(event: Event) -> bool:
    """Whether an event proposes something or settles that: what such an event says is not remembered."""
    return event.event_type == "observe" and isinstance(event.ext.get("proposal"), Mapping)


def settled_as(event: Event) -> str:
    """How an event settles a proposal; "" if it makes one."""
    return str(event.ext["proposal"].get("settled", ""))


def question_of(event: Event) -> str:
    """The question of extraction with a proposal; "" if it was sure."""
    return str(event.ext["proposal"].get("ask", ""))


def key_of_event(event: Event) -> Key:
    """The key of what an event proposes or settles; the event carries the whole item."""
    body = event.ext.get("item", {})
    return str(body.get("id", "")), normalise(str(body.get("text", ""))), str(body.get("status", "active"))


def noted(pending: Iterable[Pending], event: Event, item: Item, held: Item | None) -> tuple[Pending, ...]:
    """Proposals after an event about one: `item` is what it says, `held` what is remembered."""
    waiting, key = tuple(pending), key_of(item)
    if settled_as(event):
        return tuple(one for one in waiting if one.key != key)
    if any(one.key == key for one in waiting) or (held is not None and key_of(held) == key):
        return waiting
    return (*waiting, Pending(event.id, item, ms_of_iso(event.timestamp), question_of(event)))[-MOST_PENDING:]


def after_change(pending: Iterable[Pending], item: Item, *, stated: bool) -> tuple[Pending, ...]:
    """Proposals left once an item was added or changed: what it says now needs no yes any more.

    `stated`: the person said or forgot it, which settles whatever was proposed about it or with its words.
    """
    plain = normalise(item.text)

    def settled(one: Pending) -> bool:
        same = one.plain == plain
        return (same or one.item.id == item.id) if stated else (same and one.item.status == item.status)

    return tuple(one for one in pending if not settled(one))


def after_removal(pending: Iterable[Pending], item: Item, *, stated: bool) -> tuple[Pending, ...]:
    """Proposals left once an item was removed: by the person (`stated`), or by a limit or an expiry."""
    if stated:
        return after_change(pending, item, stated=True)
    return tuple(one for one in pending if one.item.id != item.id or one.item.active)


def lapsed(pending: Iterable[Pending], now_ms: int, days: float) -> list[Pending]:
    """Proposals that have waited for more than so many days; none if that is 0."""
    return [one for one in pending if 0 < days * DAY_MS < now_ms - one.at]
