"""What an export looks like from outside: names, versions, limits, strict JSON, and what a load gives.

Knows nothing about how an export is made or what an import does to a memory.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from discoclaw.core.errors import Refused
from discoclaw.core.event import Record
from discoclaw.core.item import Item

FORMAT = "discoclaw-memory"
OBJECTS_FORMAT = "discoclaw-objects"
VERSION = 1

EVENTS, COMMITS = "events", "commits"
BRANCHES, HEAD, SUMMARY, REFS = "branches.json", "HEAD", "MEMORY.md", "refs.json"

MIB = 1024 * 1024
MOST_BYTES = 64 * MIB
"""Largest file that is read."""
MOST_UNPACKED = 256 * MIB
"""Most bytes that all files of a folder or zip may have together."""
MOST_RECORDS = 200_000
MOST_FILES = MOST_RECORDS + 1_000
MOST_ITEMS = 100_000
MOST_STEPS = 50_000_000
"""Most steps that reading a history may take; it is read anew at every start."""
MOST_LIVE = 2_000
"""So many memories a branch may have at once after an import, if more than that are not usual here."""
DEEPEST = 40
"""Deepest nesting of what a record carries along; far below what Python's JSON can take."""


@dataclass(frozen=True, slots=True)
class Items:
    """Memories without a history. `rejected` says which entries cannot be taken, and why.

    `redacted` counts the entries out of which a secret was taken. A time of 0 stands for one not given.
    `skips_known`: what is held already by id, by key or in these words is passed over without a question.
    """

    items: tuple[Item, ...]
    rejected: tuple[str, ...] = ()
    redacted: int = 0
    skips_known: bool = False


@dataclass(frozen=True, slots=True)
class Records:
    """A history: verified records in order. `notes` are sentences about what was left out in reading."""

    records: tuple[Record, ...]
    notes: tuple[str, ...] = ()


Content: TypeAlias = Items | Records


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file or folder holds. `what` describes it in a few words.

    `subjects` maps Discord user ids to what is remembered of them; the id is None where the file does not
    say of whom it speaks. `summaries` are rolling summaries of the TypeScript bot, by the names (without
    ".json") of their files, which are safe forms of session keys.
    """

    what: str
    subjects: Mapping[str | None, Content]
    summaries: Mapping[str, str] = field(default_factory=dict)

    def content(self, user_id: str | None = None) -> Content:
        """What is there for a person, by Discord user id, or the only thing there is.

        A file that does not say of whom it speaks is for whoever brings it. Raises Refused when the file
        speaks of somebody else, or of several people and none was named.
        """
        if user_id is not None and user_id in self.subjects:
            return self.subjects[user_id]
        if None in self.subjects:
            return self.subjects[None]
        if user_id is None and len(self.subjects) == 1:
            return next(iter(self.subjects.values()))
        people = ", ".join(sorted(str(user) for user in self.subjects)[:10])
        if not people:
            raise Refused(f"{self.what} holds memories of nobody")
        if user_id is None:
            raise Refused(f"{self.what} holds memories of several people, say of whom: {people}")
        raise Refused(f"{self.what} holds memories of {people}, and none of {user_id}")


def parse_json(name: str, content: bytes) -> Any:
    """The value of a JSON text that says one thing: no key twice, no NaN, not nested without end.

    Raises Refused, naming the file.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise Refused(f"{name} has the key {twice[:60]!r} twice in one object; remove one of them")
        return value

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise Refused(f"{name} holds the number {text[:40]}, which is too large")
        return value

    def constant(text: str) -> Any:
        raise Refused(f"{name} holds {text}, which is no JSON; write a number or null")

    try:
        text = content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=unique, parse_float=number, parse_constant=constant)
    except RecursionError as error:
        raise Refused(f"{name} is nested too deep to be a memory; export it anew") from error
    except ValueError as error:
        raise Refused(f"{name} is not JSON ({error}); correct it or export it anew") from error
