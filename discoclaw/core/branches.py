"""The branches of one subject's memory, which people know as personas, and which of them is current (HEAD).

Branches are a fold over the refs and commits of a history. Changes to them are refs, which this module makes
and somebody else records. Pure. Knows nothing about what branches contain.
"""

import difflib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import regex

from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Record, Ref
from discoclaw.core.text import collapse, scrub, visible
from discoclaw.core.times import iso_ms, ms_of_iso, valid_ms

MAIN = "main"
"""The branch that every memory starts with. It cannot be deleted."""
MOST_BRANCHES = 50
LONGEST_PERSONA = 500
"""Longest description of a branch, in characters."""
_NAME = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]{0,31}")


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch, which people know as a persona.

    `head` is its newest commit, `persona` its description. `created_at` (ms) is for `main` the time of its
    first commit, 0 before that. `base` is the commit it was created at, None for `main` and for a branch that
    was created empty. `metadata` is that of the ref that created it.
    """

    name: str
    head: str | None = None
    persona: str = ""
    created_at: int = 0
    base: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Whether the description was given in private, so that it is only shown there."""
        return self.metadata.get("private") is True


@dataclass(frozen=True, slots=True)
class Branches:
    """All branches, and which of them is the current one (HEAD).

    `moves` are the times (ms) at which HEAD moved, with the branch it moved to, oldest first. For a move that
    a message asked for it is the message's time, since moves are compared with times of messages. `last_ms`
    is the time of the newest record, `turned_ms` that of the newest ref that changed what HEAD shows.
    """

    all: Mapping[str, Branch] = field(default_factory=lambda: {MAIN: Branch(MAIN)})
    current: str = MAIN
    moves: tuple[tuple[int, str], ...] = ()
    last_ms: int = 0
    turned_ms: int = 0

    def after(self, record: Record) -> "Branches":
        """The branches after one more record, which has to be the next one in order."""
        now = ms_of_iso(record.timestamp)
        last = max(self.last_ms, now)
        name = record.branch
        if isinstance(record, Commit):
            # A commit may come for a branch whose creation another replica has not sent yet.
            before = self.all.get(name) or Branch(name, record.parent_id, "", now, record.parent_id)
            after = replace(before, head=record.id, created_at=before.created_at or now)
            return replace(self, all={**self.all, name: after}, last_ms=last)
        if record.action == "create":
            if name in self.all:  # another replica created it too; the first one stays as it is
                return replace(self, last_ms=last)
            made = Branch(name, record.head, record.persona, now, record.head, record.metadata)
            return replace(self, all={**self.all, name: made}, last_ms=last)
        if record.action == "switch" and name in self.all:
            moves = (*self.moves, (_asked_at(record, now), name))
            return replace(self, current=name, moves=moves, last_ms=last, turned_ms=max(self.turned_ms, now))
        if record.action == "delete" and name != MAIN:
            rest = {key: branch for key, branch in self.all.items() if key != name}
            if self.current == name:  # another replica deleted the branch that was current here
                moves = (*self.moves, (now, MAIN))
                return replace(self, all=rest, current=MAIN, moves=moves, last_ms=last, turned_ms=last)
            return replace(self, all=rest, last_ms=last)
        return replace(self, last_ms=last, turned_ms=max(self.turned_ms, now))

    def head_at(self, ms: int) -> str:
        """The name of the branch that was HEAD at a time (ms)."""
        name = MAIN
        for moved, to in self.moves:
            if moved > ms:
                break
            name = to
        return name

    def named(self, name: str) -> Branch:
        """The branch of this name, in any case, or the current one for "head".

        Raises Refused if there is none, with the most similar name.
        """
        wanted = folded_name(name)
        if wanted == "head":
            return self.all[self.current]
        for known in (name.strip(), wanted):
            if known in self.all:
                return self.all[known]
        near = difflib.get_close_matches(wanted, self.all, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise Refused(f"there is no branch {name[:60]!r}; {hint}there are: {', '.join(self.all)}")

    # ------------------------------------------------------------------ refs for changes

    def create(self, name: str, persona: str, *, now_ms: int, start: str | None, **metadata: Any) -> Ref:
        """The ref that creates a branch at a commit (None: empty), with a description.

        Raises Refused if the name cannot be used or is taken, or if a limit is reached.
        """
        tidy, persona = branch_name(name), collapse(scrub(persona))
        if tidy in self.all:
            raise Refused(f"the branch {tidy!r} already exists; choose another name")
        if len(self.all) >= MOST_BRANCHES:
            raise Refused(f"there can be at most {MOST_BRANCHES} branches; delete one first")
        if len(persona) > LONGEST_PERSONA:
            raise Refused(
                f"a persona's description can have at most {LONGEST_PERSONA} characters; please shorten it"
            )
        when = iso_ms(self.next_ms(now_ms))
        return Ref(
            action="create", branch=tidy, head=start, persona=persona, timestamp=when, metadata=metadata
        )

    def switch(self, name: str, *, now_ms: int, **metadata: Any) -> Ref | None:
        """The ref that moves HEAD to a branch; None if it is there. Raises Refused for an unknown branch."""
        to = self.named(name).name
        if to == self.current:
            return None
        return Ref(action="switch", branch=to, timestamp=iso_ms(self.next_ms(now_ms)), metadata=metadata)

    def delete(self, name: str, *, now_ms: int, **metadata: Any) -> Ref:
        """The ref that deletes a branch; its commits stay. Raises Refused for main and the current branch."""
        gone = self.named(name)
        if gone.name == MAIN:
            raise Refused(f"{MAIN!r} can't be deleted")
        if gone.name == self.current:
            raise Refused(f"{gone.name!r} is the current branch; switch to another one first")
        when = iso_ms(self.next_ms(now_ms))
        return Ref(action="delete", branch=gone.name, head=gone.head, timestamp=when, metadata=metadata)

    def next_ms(self, now_ms: int) -> int:
        """The time (ms) for the next record. Times rise strictly in a ledger, even if the clock does not."""
        return max(now_ms, self.last_ms + 1)


def _asked_at(ref: Ref, now: int) -> int:
    """When (ms) a switch was asked for: the time of the message, if there was one, but never after `now`."""
    said_at = ref.metadata.get("said_at")
    return min(said_at, now) if valid_ms(said_at) else now  # clocks differ, and a record may be forged


def branch_name(name: str) -> str:
    """The name for a new branch, case-folded. Raises Refused if it cannot be one."""
    tidy = folded_name(name)
    if tidy == "head" or not _NAME.fullmatch(tidy) or visible(tidy) != tidy:
        raise Refused(
            f"{name[:60]!r} can't be the name of a branch; use up to 32 letters, digits, '-' and '_', "
            "for example coding"
        )
    if re.fullmatch(r"[0-9a-f]{4,16}", tidy) or tidy.isdigit():  # commands take both in the same place
        raise Refused(f"{name[:60]!r} looks like a commit's id; choose another name")
    return tidy


def folded_name(name: str) -> str:
    """A name in the form in which names are compared, however a keyboard composes its letters."""
    # NFKC twice: folding the case can leave letters decomposed again.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()
