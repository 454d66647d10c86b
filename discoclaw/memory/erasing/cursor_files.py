"""Removes people from cursors: where they talked, whose words a summary has, what a mirror shows of them.

The cursor `people-<session>` says whose words are in a summary, and under which names; for a summary by an
earlier version, the sessions in the person's own cursor do. The cursors `summary-<session>` are not removed
but advanced to the time of the erasing: they hold only ids of messages, and old talk must count as seen. The
person's DM needs none: the cursor's name identifies the person, and the tombstone covers everything that was
said there. Nobody writes a cursor meanwhile. Blocking.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from discoclaw.core.personal import Erasure, PersonalData, Removed
from discoclaw.core.subject import dm_of, user_of
from discoclaw.core.times import snowflake_at
from discoclaw.memory.cursors import read_surely
from discoclaw.memory.erasing.files import JSON, json_names, remove_named
from discoclaw.store.files import render_json, session_name
from discoclaw.store.port import Documents

T = TypeVar("T")

OUTSIDE = ("transparency",)
"""Cursors about content outside, by user id. An entry is removed with that content, in a later step."""


_OF_ONE = re.compile(
    r"(access|asked|facts|groups-of|hatching|hygiene(?!-due-)|people|questions|summary|tidied|withdrawn)-"
)


def people_of(cursor: Mapping[str, object]) -> set[str]:
    """The user ids of the people whose words are in a summary, from its cursor `people-<session>`."""
    return set(texts_of(cursor, "people"))


def names_of(cursor: Mapping[str, object]) -> dict[str, str]:
    """The names that people have in a summary, by user id, from its cursor `people-<session>`."""
    found, people = cursor.get("names"), people_of(cursor)
    pairs = found.items() if isinstance(found, Mapping) else ()
    return {one: name for one, name in pairs if one in people and isinstance(name, str) and name}


def texts_of(value: Mapping[str, object], key: str) -> list[str]:
    """The strings of a list that was read from disk; anything else in it is ignored."""
    found = value.get(key)
    return [one for one in found if isinstance(one, str) and one] if isinstance(found, list) else []


class CursorFiles(PersonalData):
    """The cursors of one store. If its texts are all `sound`, those about one person name no other."""

    name = "cursors"

    def __init__(self, folder: Documents, *, sound: bool = False) -> None:
        self._folder = folder
        self._sound = sound

    def sessions_on_disk(self, subject: str) -> Iterable[str]:
        user = user_of(subject)
        if user is None:
            return ()
        learned = read_surely(self._folder, session_name(f"facts-{user}"))
        found = {dm_of(user), *(key for key, seen in learned.items() if isinstance(seen, str))}
        for name in json_names(self._folder):
            value = read_surely(self._folder, name) if name.startswith("people-") else {}
            session = value.get("session")
            if isinstance(session, str) and user in people_of(value):
                found.add(session)
        return found - {""}

    def outside(self, subject: str) -> Collection[str]:
        user = user_of(subject)
        return {step for step in OUTSIDE if user in read_surely(self._folder, session_name(step))}

    def erase(self, erasure: Erasure) -> Removed:
        user = user_of(erasure.subject)
        names = {erasure.subject} if user is None else {erasure.subject, user}
        own = {session_name(f"summary-{dm_of(name)}") for name in names}
        gone = own | {session_name(f"people-{key}") for key in erasure.sessions}
        seen = {session_name(f"summary-{key}") for key in erasure.sessions} - own
        kept = {session_name(step) for step in erasure.outside}
        ours = tuple(f"-{name}{JSON}" for name in names)
        try:
            gone |= {name for name in json_names(self._folder) if name.endswith(ours)}
        except OSError as error:
            return Removed(left=(f"{self._folder.folder}: {error}",))
        removed, stays = remove_named(self._folder, gone), list[str]()
        try:
            for name in json_names(self._folder):
                if name in seen:
                    stays += self._rewrite(name, _advanced, erasure.at)
                elif name not in kept and not (self._sound and _OF_ONE.match(name)):
                    stays += self._rewrite(name, _without, names)
        except OSError as error:
            stays = [f"{self._folder.folder}: {error}"]
        return removed + Removed(left=tuple(stays))

    def _rewrite(
        self, name: str, change: Callable[[str, Mapping[str, object], T], Mapping[str, object]], by: T
    ) -> list[str]:
        """Change one cursor. An unreadable one is removed: it may be lost, and it may name anybody."""
        try:
            before = read_surely(self._folder, name)
            after = change(name, before, by)
            if not after:
                return self._folder.remove([name])[1]
            if after != before:
                self._folder.write(name, render_json(after))
        except OSError as error:
            return [f"{self._folder.folder / name}: {error.strerror or error}"]
        return []


def _advanced(file: str, value: Mapping[str, object], at: int) -> Mapping[str, object]:
    known = value.get("upTo")
    up_to = int(known) if isinstance(known, str) and known.isascii() and known.isdigit() else 0
    return {"upTo": str(max(up_to, snowflake_at(at)))}


def _without(file: str, value: Mapping[str, object], names: Collection[str]) -> Mapping[str, object]:
    """A cursor without a subject, if it has people or conversations in it; the loops' have other keys."""
    if file.startswith(("facts-", "summary-", "people-")):
        return value
    theirs = frozenset({*names, *map(dm_of, names)})
    return {key: _rest(one, theirs) for key, one in value.items() if key not in theirs}


def _rest(value: object, theirs: Collection[str]) -> object:
    """The rest of a part of a cursor: of the subjects in a list, or of a map by subject."""
    if isinstance(value, dict):
        return {key: _rest(one, theirs) for key, one in value.items() if key not in theirs}
    if isinstance(value, list):
        return [_rest(one, theirs) for one in value if not (isinstance(one, str) and one in theirs)]
    return value
