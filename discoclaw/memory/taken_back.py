"""Knows what people took back, by their histories and choices: what of a talk may still be used.

Independent of how it is removed.
"""

from collections.abc import Iterable

from discoclaw.core.consent import ALWAYS, Consent
from discoclaw.core.event import Commit
from discoclaw.core.message import Said
from discoclaw.core.subject import person_of, user_subject
from discoclaw.core.taken_back import Withdrawal
from discoclaw.memory.off import AnyMemory


def everything(subject: str) -> Withdrawal:
    """The withdrawal of all that somebody said, because they want no memory."""
    return Withdrawal(subject, ALWAYS, everything=True)


def brings_back(commit: Commit) -> bool:
    """Whether a commit undoes another one so that something is remembered again."""
    undoes = not {"reverts", "restores"}.isdisjoint(commit.metadata)
    return undoes and any(
        event.event_type == "add" or event.ext.get("item", {}).get("status") == "active"
        for event in commit.events
    )


class TakenBack:
    """Answers from the views of `memory`, and from who wants none (`consent`)."""

    def __init__(self, memory: AnyMemory, consent: Consent) -> None:
        self._memory = memory
        self._consent = consent

    async def of(self, user_ids: Iterable[str]) -> list[Withdrawal]:
        """Everything that these people took back, so that it can be left out when talk is read again.

        Raises MemoryFault.
        """
        found = []
        for user_id in sorted(set(user_ids)):
            subject = user_subject(user_id)
            for name in (await self._memory.branches(subject)).all:
                found += (await self._memory.view(subject, name)).withdrawals(subject)
        return found

    async def left(self, said: Iterable[Said], session_key: str, *, private: bool) -> list[Said]:
        """The messages of a conversation that may be used, without what somebody took back.

        Nothing by people who want no memory is used. Raises MemoryFault: if this is unknown, nothing may be
        used.
        """
        messages = list(said)
        people = {_person_in(one) for one in messages if not one.guest}
        taken = await self.of({*people, person_of(session_key) or ""} - {""})
        asked: dict[str, int] = {}
        """When (ms) each person last said something: an answer to them is about that."""
        kept = []
        for one in messages:
            person = _person_in(one)
            if not one.by_us:
                asked[person] = one.sent_at
            at = asked.get(person)
            covered = any(back.covers(one, in_private=private, asked_at=at) for back in taken)
            if not covered and not self._consent.opted_out(person):
                kept.append(one)
        return kept

    def has(self, said: Said, asked_at: int, *, private: bool) -> bool:
        """Whether an answer has what the person took back while it was made.

        `asked_at` (ms) is the time of their question.
        """
        subject = user_subject(said.to_id)
        branches = self._memory.branches_in_ram(subject)
        views = (self._memory.view_in_ram(subject, name) for name in (branches.all if branches else ()))
        taken = (one for view in views if view is not None for one in view.withdrawals(subject))
        return any(one.covers(said, in_private=private, asked_at=asked_at) for one in taken)


def _person_in(said: Said) -> str:
    """The user id of the person whose talk a message belongs to: its author, or the person it answers."""
    return said.to_id if said.by_us else said.author_id
