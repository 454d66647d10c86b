"""The format of exports: file names, versions, limits, strict JSON, and the values that loading returns.

Independent of how an export is made, and of what an import changes.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast, get_args

from discoclaw.core.errors import Refused
from discoclaw.core.event import Record
from discoclaw.core.item import Item, Sensitivity

FORMAT = "discoclaw-memory"
OBJECTS_FORMAT = "discoclaw-objects"
VERSION = 1

EVENTS, COMMITS = "events", "commits"
BRANCHES, HEAD, SUMMARY, REFS = "branches.json", "HEAD", "MEMORY.md", "refs.json"

MOST_RECORDS = 200_000
MOST_ITEMS = 100_000
MOST_STEPS = 50_000_000
"""Most steps that reading a history may take; it is read anew at every start."""
MOST_LIVE = 2_000
"""The most memories of a branch after an import, unless more are usual here."""
DEEPEST = 40
"""Deepest nesting of what a record carries along; far below what Python's JSON can take."""


@dataclass(frozen=True, slots=True)
class Items:
    """Memories without a history. `rejected` has a sentence for each entry that cannot be imported.

    `redacted` counts the entries from which a secret was removed. A time of 0 means that none was given.
    `skips_known`: entries that are known already, by id, key or text, are skipped without a question.
    `notes` are sentences about what is missing in the file. `unmarked` are the ids of items of which the file
    says neither how private they are nor that they were said in the open. `accessed` has when (ms) items were
    last used, by id, as far as the file says.
    """

    items: tuple[Item, ...]
    rejected: tuple[str, ...] = ()
    redacted: int = 0
    skips_known: bool = False
    notes: tuple[str, ...] = ()
    unmarked: frozenset[str] = frozenset()
    accessed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Records:
    """A history: verified records in order. `notes` are sentences about what was skipped.

    `unmarked` are the ids of events, of other programs, that don't say how private they are.
    """

    records: tuple[Record, ...]
    notes: tuple[str, ...] = ()
    unmarked: frozenset[str] = frozenset()


Content: TypeAlias = Items | Records


@dataclass(frozen=True, slots=True)
class Imported:
    """The content of a file or folder. `what` describes it in a few words.

    `subjects` maps Discord user ids to memories; the id is None if the file doesn't say who they are about.
    `summaries` are rolling summaries of the TypeScript bot, by their file names without ".json", which are
    escaped session keys.
    """

    what: str
    subjects: Mapping[str | None, Content]
    summaries: Mapping[str, str] = field(default_factory=dict)

    def content(self, user_id: str | None = None) -> Content:
        """The content about a person, by Discord user id, or the only content there is.

        A file that doesn't say who it is about counts as about the person who imports it. Raises Refused if
        it is about somebody else, or about several people and none was named.
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
            raise Refused(f"{self.what} has memories of several people; name one of them: {people}")
        raise Refused(f"{self.what} holds memories of {people}, and none of {user_id}")


_LEVELS = {"public": "normal", "ephemeral": "private"}  # nanobot's words; "public" is all that nobody marked


def sensitivity_of(level: str) -> Sensitivity:
    """The level of privacy that a file names. Raises Refused for an unknown one."""
    ours = _LEVELS.get(level, level)
    if ours not in get_args(Sensitivity):
        raise Refused(f'"sensitivity" is one of {", ".join(get_args(Sensitivity))}, not {level[:60]!r}')
    return cast(Sensitivity, ours)


def parse_json(name: str, content: bytes) -> Any:
    """Return the value of an unambiguous JSON text: no duplicate keys, no NaN, no endless nesting.

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
        raise Refused(f"{name} holds {text}, which is not JSON; write a number or null")

    try:
        text = content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=unique, parse_float=number, parse_constant=constant)
    except RecursionError as error:
        raise Refused(f"{name} is nested too deep to be a memory; export it again") from error
    except ValueError as error:
        raise Refused(f"{name} is not JSON ({error}); correct it or export it again") from error
