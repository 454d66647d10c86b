"""Makes outside text safe inside a line of ours: on one line, nothing invisible, no imitated structure.

Messages, names, personas and items may contain anything. `quoted` text cannot end its quotes, and a `word`
has no brackets, blanks or quotes at all, so nobody can forge a line or a field.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache

from discoclaw.core.event import Commit
from discoclaw.core.item import Item
from discoclaw.core.text import clip, collapse, scrub
from discoclaw.core.times import date_of, iso_ms, ms_of_iso

LONGEST = 1000
"""Longest text shown, in UTF-16 units. It is the longest an item can have."""
PRIVATE = "(private)"
ACTS = {"merged": "merge", "picked": "cherry-pick", "reverts": "undo", "restores": "restore"}
"""Acts of a commit on another one, as its metadata has them, and our word for each."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words for the parts of a history: by git's words in a terminal, by people's words in a chat."""

    commit: str = "commit"
    branch: str = "branch"
    head: str = "HEAD"
    iso_days: bool = True
    acts: Mapping[str, str] = field(default_factory=dict)
    """Other words for what `ACTS` says."""

    def act(self, name: str) -> str:
        """The word for an act of a commit on another one."""
        return self.acts.get(name, name)


GIT = Vocabulary()
PEOPLE = Vocabulary("change", "persona", "now", False, {"cherry-pick": "copy"})

# Joiners belong to words and emoji. All other format characters hide text or reverse it, and are removed.
_KEPT = "\u200c\u200d"
_HIDDEN = {"Cf", "Co", "Cs"}
_BREAKS = {"Cc", "Zl", "Zp"}
_PLAIN_QUOTES = str.maketrans("“”", '""')
_NO_WORD = re.compile(r"[^\w.:/@#+-]+")


@lru_cache(maxsize=4096)
def line(text: str, most: int = LONGEST) -> str:
    """Any text as one line of at most `most` UTF-16 units, without control or invisible characters."""
    kept = (char if char in _KEPT else _tamed(char) for char in scrub(text))
    return clip(collapse("".join(kept)), most)


def _tamed(char: str) -> str:
    category = unicodedata.category(char)
    if category in _BREAKS:
        return " "
    return "" if category in _HIDDEN else char


def quoted(text: str, most: int = LONGEST) -> str:
    """Any text between “ and ”, which do not occur inside."""
    return "“" + line(text, most).translate(_PLAIN_QUOTES) + "”"


def word(text: object, most: int = 64) -> str:
    """A name or an id as one word: other characters become "_". "-" if nothing is left, or it isn't text."""
    tidy = _NO_WORD.sub("_", line(text, most)) if isinstance(text, str) else ""
    return tidy or "-"


def short(item_id: str) -> str:
    """An item's id in the form that people see and type, without "durable-"."""
    return word(item_id.removeprefix("durable-"))


def _utc(time_ms: int) -> str:
    iso = iso_ms(time_ms)
    return f"{iso[:10]} {iso[11:16]}Z"


@dataclass(frozen=True, slots=True)
class Times:
    """How times and days are written; both functions take ms since 1970."""

    time: Callable[[int], str]
    day: Callable[[int], str]


UTC_TIMES = Times(_utc, date_of)
"""`2026-02-09 14:03Z` and `2026-02-09`: wherever the reader's zone is not known."""


def when(time: int | str, times: Times = UTC_TIMES) -> str:
    """A time (ms since 1970 or ISO 8601) as text."""
    return times.time(ms_of_iso(time) if isinstance(time, str) else time)


def day(time_ms: int) -> str:
    """A day as people write it: `9 Feb 2026`."""
    then = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"{then.day} {_MONTHS[then.month - 1]} {then.year}"


def month_day(day: date) -> str:
    """A day of this year: `9 Feb`."""
    return f"{day.day} {_MONTHS[day.month - 1]}"


def count(number: int, thing: str) -> str:
    """A number with a noun in singular or plural: `1 item`, `2 items`, `2 branches`, `2 replies`."""
    if number == 1:
        return f"1 {thing}"
    # Enough for the nouns used here: memory, branch, reply, relay, item.
    if thing.endswith("y") and not thing.endswith(("ay", "ey")):
        return f"{number} {thing[:-1]}ies"
    return f"{number} {thing}{'es' if thing.endswith('ch') else 's'}"


def memories(items: Collection[Item]) -> str:
    """How many memories items are, the forgotten ones apart: `2 memories and 1 forgotten`."""
    active = sum(item.active for item in items)
    gone = len(items) - active
    return count(active, "memory") + (f" and {gone} forgotten" if gone else "")


def acts(commit: Commit) -> list[tuple[str, str]]:
    """Acts of a commit on other commits: (verb, id), for example ("merge", "c5230d5b…")."""
    found = [(act, commit.metadata.get(name)) for name, act in ACTS.items()]
    return [(act, other) for act, other in found if isinstance(other, str)]
