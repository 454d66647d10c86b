"""Which standing items go into a prompt, where all of them would be too many. Pure.

A few are always there. Of many, those stay that every answer must heed (`Line.bound`), those that the message
calls for, and within a small share those that say how to answer whatever the topic (`Line.general`) or that
the person stated. The others wait for a message about their topic.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter

from discoclaw.core.decay import last_use
from discoclaw.core.item import Item
from discoclaw.core.ports import Hit, Recall
from discoclaw.core.values import dataclass
from discoclaw.core.visible import Line, VisibleItems

MOST_STANDING = 200
"""Standing items that are considered beside those found and harmful; far more than a prompt has room for."""
SHARE = 0.2
"""The share of the budget that standing items may fill although nothing calls for them."""
FEW = 5
"""How many may be there whatever their length. With twice as many, each of them needs a reason."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing items in the order in which they get room: `bound`, `called` for, `usual`.

    Where there are `many`, all others wait until a message is about their topic.
    """

    bound: Sequence[Item]
    called: Sequence[Item]
    usual: Sequence[Item]
    many: bool

    def all(self) -> list[Item]:
        """The items that may be in the prompt."""
        return [*self.bound, *self.called, *self.usual]

    def waiting(self, known: VisibleItems) -> frozenset[str]:
        """The ids of those of all items that wait for their topic."""
        here = {item.id for item in self.all()}
        return known.standing_ids - here if self.many else frozenset()


NONE_STANDING = Standing((), (), (), many=False)


def too_many(recall: Recall, known: VisibleItems, max_chars: int) -> bool:
    """Whether the standing items are so many that some wait for their topic."""
    if len(known.standing) <= FEW:
        return False
    room = max_chars * SHARE
    for item in known.standing:
        room -= recall.line(item).cost
        if room < 0:
            return True
    return False


def considered(known: VisibleItems) -> Sequence[Item]:
    """The standing items that may get room without being found: all, or of very many the weightiest."""
    if len(known.standing) <= MOST_STANDING:
        return known.standing
    # An allergy may have been known for longer than all of these.
    return list(dict.fromkeys([*known.standing[:MOST_STANDING], *known.harmful]))


def arrange(
    recall: Recall,
    known: VisibleItems,
    found: Mapping[str, Hit],
    accessed: Mapping[str, int],
    room: float | None,
) -> Standing:
    """The standing items; `found` are hits by id, best first.

    `room` is what those may fill that nothing calls for, in UTF-16 units; None where there are few.
    """
    standing = considered(known)
    lines = {item.id: recall.line(item) for item in standing}
    bound = [item for item in standing if lines[item.id].bound]
    bound.sort(key=lambda item: item.id not in found)  # if room is short, it goes to what is called for
    placed = {item.id for item in bound}
    waiting = known.standing_ids - placed
    called = [hit.item for one, hit in found.items() if one in waiting]
    placed.update(item.id for item in called)
    rest = [item for item in standing if item.id not in placed]
    usual = list(rest) if room is None else _fitting(_by_use(rest, lines, accessed), lines, room)
    placed.update(item.id for item in usual)
    # The more there are, the fewer stand without a reason. So a sixth doesn't drive out the other five.
    usual += [item for item in rest if item.id not in placed][: max(0, 2 * FEW - len(standing))]
    return Standing(bound, called, usual, many=room is not None)


def _by_use(items: Sequence[Item], lines: Mapping[str, Line], accessed: Mapping[str, int]) -> Sequence[Item]:
    """The items that are of use to any answer, then those that the person stated."""
    keyed = [
        (not general, not stated, item.kind != "constraint", -last_use(item, accessed), item.id, item)
        for item in items
        if (general := lines[item.id].general) | (stated := item.facets.author == "stated")
    ]
    return [item for *_, item in sorted(keyed, key=itemgetter(slice(5)))]


def _fitting(items: Sequence[Item], lines: Mapping[str, Line], room: float) -> list[Item]:
    """The items whose lines fit into `room`, and a few in any case."""
    fitting: list[Item] = []
    for item in items:
        if lines[item.id].cost <= room or len(fitting) < FEW:
            fitting.append(item)
            room -= lines[item.id].cost
    return fitting
