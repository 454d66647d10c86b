"""The scorers of the designs, exactly as they say: baselines of `bench.recall`.

`overlap` and `best` are DNAM's rule of what to inject; `key_weighted_overlap` is PtrClaw's rule without an
index. The bot does not use them. Pure.
"""

import re
from collections.abc import Sequence

from discoclaw.core.item import Item, by_newest, durable_line
from discoclaw.core.text import utf16_length

MOST = 12
MAX_CHARS = 2000
SHORTEST = 3
PROJECT_TERMS = frozenset({"repo", "build", "deploy"})
PROJECT_BONUS = 2
RECENT_MS = 7 * 86_400_000
"""What counts as recent: changed within seven days. DNAM names the bonus and not the time."""
RECENT_BONUS = 1
_RUN = re.compile(r"[^\W_]+")
_STOP = frozenset(
    """about after again all also and any are because been before being but can could did does doing
    down each few for from further had has have having her here hers him his how into its just like more
    most not now off once only other our ours out over own same she should some such than that the their
    them then there these they this those through too under until very was were what when where which
    while who whom why will with would you your yours""".split()  # noqa: SIM905 - words are read as words
)


def tokens(text: str) -> frozenset[str]:
    """DNAM's tokens: lower-case runs of letters and digits, without those under three and stop words."""
    runs = _RUN.findall(text.lower())
    return frozenset(run for run in runs if len(run) >= SHORTEST and run not in _STOP)


def item_tokens(item: Item) -> frozenset[str]:
    """The tokens of an item: those of its text, its tags and its kind."""
    return tokens(f"{item.text} {' '.join(item.tags)} {item.kind}")


def overlap(query: str, item: Item, *, now_ms: int, recency: bool = True) -> int:
    """DNAM's score: shared tokens, +2 for a project when the query has a project term, +1 when recent.

    The bonuses count without a shared token too. `recency` leaves the last one out; `now_ms` is the present
    in ms since 1970.
    """
    return _score(tokens(query), item, now_ms if recency else None)


def ranked(query: str, items: Sequence[Item], *, now_ms: int, recency: bool = True) -> list[Item]:
    """The active items with a score above 0, best first; ties are newer first, then by id."""
    wanted = tokens(query)
    present = now_ms if recency else None
    scored = [(_score(wanted, item, present), item) for item in items if item.active]
    scored.sort(key=lambda pair: (-pair[0], *by_newest(pair[1])))
    return [item for score, item in scored if score > 0]


def best(query: str, items: Sequence[Item], *, now_ms: int, max_chars: int = MAX_CHARS) -> list[Item]:
    """What DNAM injects: the first twelve whose whole lines stay within `max_chars` UTF-16 units.

    The first line that does not fit ends it. Lines are those of a prompt, a line break between them.
    """
    chosen: list[Item] = []
    used = -1
    for item in ranked(query, items, now_ms=now_ms)[:MOST]:
        used += utf16_length(durable_line(item)) + 1
        if used > max_chars:
            break
        chosen.append(item)
    return chosen


def key_weighted_overlap(query: str, key: str, content: str) -> float:
    """How well an entry fits: for each token of the query 2 if its key has it, else 1 if its content has it.

    The sum is divided by the number of the query's tokens, so it lies in 0…2; without a token it is 0. Tokens
    are runs of letters and digits, lower-case, whole: "test" is not in "testing".
    """
    wanted = _RUN.findall(query.lower())
    if not wanted:
        return 0.0
    in_key, in_content = set(_RUN.findall(key.lower())), set(_RUN.findall(content.lower()))
    return sum(2 if run in in_key else 1 if run in in_content else 0 for run in wanted) / len(wanted)


def _score(wanted: frozenset[str], item: Item, now_ms: int | None) -> int:
    score = len(wanted & item_tokens(item))
    if item.kind == "project" and not PROJECT_TERMS.isdisjoint(wanted):
        score += PROJECT_BONUS
    if now_ms is not None and now_ms - item.updated_at <= RECENT_MS:
        score += RECENT_BONUS
    return score
