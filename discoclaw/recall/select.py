"""Selects what goes into a prompt: standing items first, then what the query finds, whole lines in a budget.

Standing items say how to answer this person (preferences, constraints). A few are always included; where
there are many, most wait for their topic (`Standing`). Every other item needs a reason. Items that a newer
one replaced come last, and say until when they held. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from discoclaw.core.decay import last_use
from discoclaw.core.item import Item, durable_line
from discoclaw.core.ports import IDLE, LINKED_WITH, NO_SIGNALS, POSSIBLE, Hit, Recall, Signals
from discoclaw.core.query import Query
from discoclaw.core.replaced import Pair, alike, ended, newest_first
from discoclaw.core.text import utf16_length
from discoclaw.core.titles import ShortIds
from discoclaw.core.values import dataclass
from discoclaw.core.visible import FRAME, VisibleItems, is_standing
from discoclaw.core.words import Gist
from discoclaw.recall.evidence import OUTDONE

MOST_STANDING = 200
"""Standing items that are considered beside those found and harmful; far more than a prompt has room for."""
SHARE = 0.2
"""The share of the budget that standing items may fill although nothing calls for them."""
FEW = 5
"""How many may be there whatever their length. With twice as many, each of them needs a reason."""
ALWAYS, EVERYTHING, NEWER = "standing", "asked for everything", "newer than one that fits"
"""Why an item is there that no word of the talk called for."""
STANDING_SHARE = 0.5
"""While others have evidence, standing items get this share of the budget first; later, what is left over."""
BRIEF = 8
"""In a message of at most so many terms, any of them calls for a standing item that has it."""
LONGEST_MARKS = len("(until 2026-01)  [i100]")
"""The most that a line of a prompt has besides that of `Recall.line`."""
MOST_COMPARED = 40
"""How many of the best are compared with newer ones, however much room there is."""
TIE = 0.9
"""The share of the older one's score from which a newer one that is alike comes first."""
MOST_NEWER = 3
"""How many of the newest with the same beginning are looked at for one that replaces an item."""
SAID, NO_ROOM, UNRELATED = "said already", "no room", "not related"
WAITS = "waits for its topic"
"""Why an item is not there: another line says the same, the budget, or nothing that calls for it.

A standing item `WAITS` where there are too many to have all of them in every prompt.
"""


class Chosen(NamedTuple):
    """One item that will be shown, and its line with its short id. `hit` is what found it.

    Without one, `always` says why it is there. `until` is when (ms) a newer item replaced it, if one did.
    `place` is where it stands among the chosen items in a prompt, from 1.
    """

    item: Item
    line: str
    hit: Hit | None
    always: str = ALWAYS
    until: int | None = None
    place: int = 0

    @property
    def why(self) -> str:
        """Why it is there; worked out when it is asked for, which is after the answer."""
        return self.hit.why if self.hit is not None else self.always

    @property
    def called_for(self) -> bool:
        """Whether the talk called for just this item, by its own words or their meaning."""
        return not (self.hit is None or self.possible or self.hit.why.startswith(LINKED_WITH))

    @property
    def possible(self) -> bool:
        """Whether it is only possibly related, as its line says."""
        return self.hit is not None and self.hit.possible


@dataclass(frozen=True, slots=True)
class Selection:
    """The `chosen` items, best first, and what is needed to say why the other `items` are not among them."""

    chosen: tuple[Chosen, ...]
    items: Sequence[Item]
    recall: Recall
    query: Query
    max_chars: int
    now_ms: int
    signals: Signals = NO_SIGNALS
    waiting: frozenset[str] = frozenset()
    """The ids of the standing items that wait for a message about their topic."""

    def short_ids(self) -> ShortIds:
        """The ids by which a model reads the chosen items, to go on counting from."""
        return ShortIds("i", (one.item.id for one in sorted(self.chosen, key=attrgetter("place"))))

    @property
    def crowded(self) -> bool:
        """Whether some of the standing items would have to leave for what another query finds."""
        standing = [utf16_length(one.line) + 1 for one in self.chosen if is_standing(one.item)]
        return sum(standing) > int(self.max_chars * STANDING_SHARE)

    def left_out(self) -> dict[str, str]:
        """Why each of the other items was not chosen, by id: `SAID`, `NO_ROOM`, `UNRELATED`, `WAITS`, `IDLE`.

        Worked out when it is asked for, from what the choice was made from.
        """
        ranked = self.recall.consider(self.query, self.items, now_ms=self.now_ms, signals=self.signals)
        found = {hit.item.id for hit in ranked if not hit.dropped}
        gists = {self.recall.line(one.item).gist for one in self.chosen}
        chosen = {one.item.id for one in self.chosen}

        def why(item: Item) -> str:
            if item.id in self.waiting:
                return WAITS
            if self.query.everything or is_standing(item) or item.id in found:
                return SAID if self.recall.line(item).gist in gists else NO_ROOM
            return IDLE if self.faded(item) else UNRELATED

        return {item.id: why(item) for item in self.items if item.id not in chosen}

    def faded(self, item: Item) -> bool:
        """Whether no message finds an item any more, because it was idle for too long."""
        return self.recall.faded(item, now_ms=self.now_ms, signals=self.signals)


def select(
    recall: Recall,
    query: Query,
    items: Sequence[Item],
    *,
    max_chars: int,
    now_ms: int,
    signals: Signals = NO_SIGNALS,
) -> Selection:
    """The items to show, best first, as whole lines of together at most `max_chars` UTF-16 units.

    `items` are active and may be shown here. A line that does not fit is passed over, not cut.
    """
    known = VisibleItems.of(items)
    many = not query.everything and _are_many(recall, known, max_chars)
    found: dict[str, Hit] = {}
    if many:
        # All that are about a topic are wanted, where one fact would outdo the others. Any word of a brief
        # message calls for them: a film from a country that nobody knows is a film.
        brief = len(query.terms) <= BRIEF
        for hit in recall.consider(query, known, now_ms=now_ms, signals=signals):
            called = hit.item.id in known.standing_ids and (brief or hit.dropped == OUTDONE)
            if called or not hit.dropped:
                found[hit.item.id] = hit
    elif not query.everything:
        found = {hit.item.id: hit for hit in recall.rank(query, known, now_ms=now_ms, signals=signals)}
    always: Sequence[Item] = _standing(
        recall, known, found, signals.accessed, max_chars * SHARE if many else None
    )
    waiting = known.standing_ids.difference([item.id for item in always]) if many else frozenset[str]()
    ranked = known.newest if query.everything else [hit.item for hit in found.values()]
    relevant: Sequence[Item] = [item for item in ranked if item.id not in known.standing_ids]
    always, relevant, until, brought = _newest(recall, known, always, relevant, found, max_chars)

    chosen, said, room, shortest = list[Chosen](), set[Gist](), max_chars, known.shortest + FRAME

    def fill(items: Sequence[Item], budget: int) -> None:
        """Add every item, in order, whose line fits into `budget` and says something not yet said."""
        nonlocal room
        if until:  # if there isn't room for all, older ones come last
            needed = 0
            for item in items:
                needed += recall.line(item).cost + LONGEST_MARKS
                if needed > budget:
                    items = sorted(items, key=lambda item: item.id in until)
                    break
        for item in items:
            if shortest > budget:
                return
            if len(item.text) + len(item.kind) + FRAME > budget:
                continue  # before anything is built for it
            line, ended_at, hit = recall.line(item), until.get(item.id), found.get(item.id)
            if line.gist in said:
                continue
            text, cost = line.text, line.cost
            if ended_at is not None:
                text = durable_line(item, until_ms=ended_at)
                cost = utf16_length(text) + 1
            if hit is not None and hit.possible and not is_standing(item):
                text = f"{text} ({POSSIBLE})"
                cost += len(POSSIBLE) + 3
            cost += len(f" [i{len(chosen) + 1}]")  # all of them take as much, whichever is whose
            if cost > budget:
                continue
            said.add(line.gist)
            budget -= cost
            room -= cost
            why = EVERYTHING if query.everything else NEWER if item.id in brought else ALWAYS
            chosen.append(Chosen(item, text, hit, why, ended_at))

    fill(always, int(max_chars * STANDING_SHARE) if relevant else max_chars)
    fill(relevant, room)
    fill(always, room)

    # Places and short ids don't depend on how well an item was found. So with the same items a prompt has the
    # same lines, whatever is asked. What stands comes first, as it stays when others come and go; then what
    # was found, and last what is only possibly related. In each of these, what was replaced comes last; else
    # the order is that of remembering.
    def steady(one: Chosen) -> tuple[bool, bool, bool, int, str]:
        item, standing = one.item, one.item.id in known.standing_ids
        last = one.possible and not standing
        return (not standing, last, one.until is not None, item.created_at, item.id)

    places = {one.item.id: place for place, one in enumerate(sorted(chosen, key=steady), 1)}
    placed = [
        one._replace(line=f"{one.line} [i{places[one.item.id]}]", place=places[one.item.id]) for one in chosen
    ]
    return Selection(tuple(placed), known, recall, query, max_chars, now_ms, signals, waiting)


# ---------------------------------------------------------------------- standing items


def _are_many(recall: Recall, known: VisibleItems, max_chars: int) -> bool:
    """Whether the standing items are so many that some wait for their topic."""
    if len(known.standing) <= FEW:
        return False
    room = max_chars * SHARE
    for item in known.standing:
        room -= recall.line(item).cost
        if room < 0:
            return True
    return False


def _standing(
    recall: Recall,
    known: VisibleItems,
    found: Mapping[str, Hit],
    accessed: Mapping[str, int],
    room: float | None,
) -> list[Item]:
    """The standing items in the order in which they get room: the bound ones, those called for, the usual.

    `found` are hits by id, best first. `room` is what those may fill that nothing calls for, in UTF-16 units;
    None where there are few.
    """
    standing = known.standing
    if len(standing) > MOST_STANDING:  # an allergy may have been known for longer than all of these
        standing = list(dict.fromkeys([*standing[:MOST_STANDING], *known.harmful]))
    lines = {item.id: recall.line(item) for item in standing}
    bound = [item for item in standing if lines[item.id].bound]
    bound.sort(key=lambda item: item.id not in found)  # if room is short, it goes to what is called for
    placed = {item.id for item in bound}
    waiting = known.standing_ids - placed
    called = [hit.item for one, hit in found.items() if one in waiting]
    placed.update(item.id for item in called)
    rest = [item for item in standing if item.id not in placed]
    usual = list(rest)
    if room is not None:
        # First what is of use to any answer, then what the person stated.
        keyed = [
            (not general, not stated, item.kind != "constraint", -last_use(item, accessed), item.id, item)
            for item in rest
            if (general := lines[item.id].general) | (stated := item.facets.author == "stated")
        ]
        usual = []
        for *_, item in sorted(keyed, key=itemgetter(slice(5))):
            if lines[item.id].cost <= room or len(usual) < FEW:
                usual.append(item)
                room -= lines[item.id].cost
    placed.update(item.id for item in usual)
    # The more there are, the fewer stand without a reason. So a sixth doesn't drive out the other five.
    usual += [item for item in rest if item.id not in placed][: max(0, 2 * FEW - len(standing))]
    return [*bound, *called, *usual]


# ---------------------------------------------------------------------- facts that a newer one replaced


def _newest(
    recall: Recall,
    known: VisibleItems,
    always: Sequence[Item],
    relevant: Sequence[Item],
    found: Mapping[str, Hit],
    max_chars: int,
) -> tuple[Sequence[Item], Sequence[Item], Mapping[str, int], frozenset[str]]:
    """Standing items and those found, of what is alike the newest first.

    Also when (ms) those that ended did, by id, and the ids of items that are there because they replaced one.
    Only the best are compared, as many as there is room for.
    """

    def gist(item: Item) -> Gist:
        return recall.line(item).gist

    best = [*_within(always, max_chars), *_within(relevant, max_chars)]
    here = {item.id for item in best}
    newer = {
        one.id: one
        for item in best
        if recall.line(item).may_end
        for one in known.like(item)[:MOST_NEWER]
        if one.updated_at > item.updated_at and one.id not in here
    }
    pairs = alike((*best, *newer.values()), gist)
    over = [pair for pair in pairs if ended(pair, gist)]
    until = {pair.older.id: pair.newer.updated_at for pair in over}  # the next newer one is the last
    brought: dict[str, Item] = {}
    for pair in over:
        if pair.older.id in here and pair.newer.id in newer and pair.newer.id not in until:
            brought.setdefault(pair.older.id, pair.newer)
    if brought:  # in front of each item what it brought along, and each item once
        placed: set[str] = set()
        lists = list[list[Item]]()
        for items in (always, relevant):
            lists.append([])
            for item in items:
                for one in (brought.get(item.id), item):
                    if one is not None and one.id not in placed:
                        placed.add(one.id)
                        lists[-1].append(one)
        always, relevant = lists

    def tied(pair: Pair) -> bool:
        """Whether a message calls for both of a pair alike, and not for the older one by its name."""
        newer, older = found.get(pair.newer.id), found.get(pair.older.id)
        return newer is not None and older is not None and newer.score >= TIE * older.score

    in_order = [pair for pair in pairs if pair.older.id in until or tied(pair)]
    new = frozenset(one.id for one in brought.values())
    return newest_first(always, over), newest_first(relevant, in_order), until, new


def _within(items: Sequence[Item], max_chars: int) -> Iterator[Item]:
    """The first items of which a prompt could have all."""
    for item in items[:MOST_COMPARED]:
        max_chars -= len(item.text) + len(item.kind) + FRAME
        if max_chars < 0:
            return
        yield item
