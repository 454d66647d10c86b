"""Withdraws what channels remember: a theme or a decision that rests on what a person took back is removed.

It rests on their words if its commits name the person, or one of the messages taken back, and has the words.
The commit that removes it names nobody and says nothing. Independent of how a group learns.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from discoclaw.core.attribution import contributors_by_item
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit
from discoclaw.core.item import Item
from discoclaw.core.personal import NOTHING_WITHDRAWN, PersonalData, Withdrawn
from discoclaw.core.subject import group_of
from discoclaw.core.taken_back import Withdrawal, distinctive
from discoclaw.core.view import View
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.memory.disk.port import Ledgers
from discoclaw.memory.erasing.group_index import GroupIndex
from discoclaw.memory.subjects.store import Memory

MESSAGES: Final = "messages"
"""Key in the metadata of a group's commit: the ids of the messages that it was learned from."""
WHY: Final = "somebody took back what it rests on"


class GroupWithdrawal(PersonalData):
    """Removes what groups remember from `memory`."""

    name = "what channels remember"

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._taken_back: list[Withdrawal] = []
        """Withdrawals that are not removed yet."""

    def left(self, view: View) -> View:
        """A group's view without what is about to be removed from it."""
        gone = {key for key, item in view.items.items() if any(_goes(item, one) for one in self._taken_back)}
        if not gone:
            return view
        return replace(view, items={key: item for key, item in view.items.items() if key not in gone})

    def let_go(self, withdrawal: Withdrawal) -> Withdrawn:
        """Show nothing that has the words until `withdraw` has found out whose they are."""
        if not withdrawal.everything and withdrawal not in self._taken_back:
            self._taken_back.append(withdrawal)
        return NOTHING_WITHDRAWN

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        notes = 0
        for subject in await self.naming(withdrawal):
            notes += await self._remove(subject, withdrawal)
        return Withdrawn(notes=notes)

    def withdrawn(self, subject: str) -> None:
        self._taken_back = [one for one in self._taken_back if one.subject != subject]

    async def naming(self, withdrawal: Withdrawal) -> list[str]:
        """The groups whose ledgers name the person or their messages. Raises OSError.

        Who said a message is named with it; those of a guest, who is nobody, are looked for everywhere.
        """
        return await read_in_thread(lambda: list(self._naming(withdrawal)))

    def _naming(self, withdrawal: Withdrawal) -> Iterator[str]:
        disk, named = self._memory.disk, withdrawal.user_id
        groups = GroupIndex(disk).recorded(named) if named else _groups(self._memory.ledgers)
        about = [f'"{one}"'.encode() for one in (named, *withdrawal.messages) if one]
        for subject in sorted(groups):
            content = disk.ledgers.log(subject).read()
            if any(one in content for one in about):
                yield subject

    async def _remove(self, subject: str, withdrawal: Withdrawal) -> int:
        """Remove items of one group. Returns how many. Raises MemoryFault."""
        view = await self._memory.view(subject)
        if view.head is None or not view.items:
            return 0
        theirs, said = _theirs((await self._memory.history(subject)).chain(view.head), withdrawal)

        def goes(key: str, item: Item) -> bool:
            if key in said:
                return _goes(item, withdrawal)
            # Everybody who talked is named; only a note that mostly says the same is likely to be theirs.
            return key in theirs and _goes(item, withdrawal) and _mostly(item, withdrawal)

        def wish(draft: Draft) -> int:
            gone = [item for key, item in draft.items.items() if goes(key, item)]
            for item in gone:
                draft.remove(item, Origin("stated"))  # so that older words don't bring it back
            return len(gone)

        return await self._memory.change(subject, WHY, wish, by="withdrawal")


def _groups(ledgers: Ledgers) -> Iterable[str]:
    return (subject for subject, _ in ledgers.by_age() if group_of(subject) is not None)


def _mostly(item: Item, withdrawal: Withdrawal) -> bool:
    own = distinctive(item.text)
    return withdrawal.everything or len(own & withdrawal.words.terms) * 2 >= len(own)


def _theirs(chain: Iterable[Commit], withdrawal: Withdrawal) -> tuple[set[str], set[str]]:
    """The ids of the items that may rest on a person's words, and of those that rest on these messages."""
    commits, said = list(chain), set[str]()
    found = {key for key, people in contributors_by_item(commits).items() if withdrawal.user_id in people}
    for commit in commits:
        messages = commit.metadata.get(MESSAGES)
        if isinstance(messages, list) and not withdrawal.messages.keys().isdisjoint(map(str, messages)):
            said |= {str(event.ext.get("item", {}).get("id")) for event in commit.events}
    return found, said


def _goes(item: Item, withdrawal: Withdrawal) -> bool:
    if withdrawal.open_only and item.facets.sensitivity != "normal":
        return False
    return withdrawal.everything or withdrawal.words.hold(item.text)
