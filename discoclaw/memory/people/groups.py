"""Channels' memory: `groups/<channel id>.json` (see `core/profile`), and ledgers `group-<channel id>`.

The file is the source of purpose and members, which change with what people say there. Themes and decisions
are items of the ledger, learned from talk, and the file only shows them. A thread belongs to its parent
channel. What the bot knows of a group is never shown elsewhere. RAM is updated first and the file later, so
no message waits for it. People who have their memory erased leave the members at once, and what rests on
their words leaves the ledger (see `erasing/groups`). Independent of Discord and of models.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from discoclaw.core.attribution import PEOPLE, contributors_by_item
from discoclaw.core.audit import Readable
from discoclaw.core.consent import Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Commit
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.item import Item
from discoclaw.core.message import Place
from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, PersonalData, Withdrawn
from discoclaw.core.ports import Clock
from discoclaw.core.profile import LONGEST_PURPOSE, MOST_MEMBERS, Group, items_of, notes_of, tidy_name
from discoclaw.core.purge import Withdrawal, distinctive
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import group_of, group_subject, user_of
from discoclaw.core.text import scrub
from discoclaw.core.view import View
from discoclaw.memory.cursors import read
from discoclaw.memory.erasing.files import JSON, json_names
from discoclaw.memory.erasing.group_index import GroupIndex
from discoclaw.memory.people.group_notes import Known, Learned, propose, tidied
from discoclaw.memory.people.records import Records
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import in_thread, read_in_thread, render_json, safe_id
from discoclaw.store.port import Documents, Ledgers

# ----------------------------------------------------------------------
# Withdraws what channels remember: a theme or a decision that rests on what a person took back is removed.

MESSAGES: Final = "messages"
"""Key in the metadata of a group's commit: the ids of the messages that it was learned from."""
TAKEN_BACK: Final = "somebody took back what it rests on"


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

        return await self._memory.change(subject, TAKEN_BACK, wish, by="withdrawal")


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


log = logging.getLogger(__name__)

PAUSE_MS = 60_000
"""The shortest time between two writes that only update who spoke last in a crowded channel."""
MOST_TRIES = 3
WHY = "learned from talk"


@dataclass(slots=True)
class Entry:
    """One group in RAM. Until it is `read`, it has only what was seen since the start."""

    group: Group = field(default=Group())
    members: dict[str, str] = field(default_factory=dict)
    """Names by id; the last speaker comes last."""
    topic: str | None = None
    content: bytes = b""
    read: bool = False
    unsaved: bool = False
    written: int = 0
    """When (ms) the file was last written."""
    told: tuple[tuple[object, ...], str] | None = None
    """The notes for prompts, and the view they were made from."""
    people: tuple[str, Mapping[str, frozenset[str]]] | None = None
    """The people whose words each item rests on, as of the commit that is named."""


def trimmed(members: dict[str, str]) -> bool:
    """Drop the members who have been silent longest. Returns whether there were too many."""
    crowded = len(members) > MOST_MEMBERS
    while len(members) > MOST_MEMBERS:
        del members[next(iter(members))]
    return crowded


class _Moved(Exception):
    """Somebody else wrote in the meantime."""


class Groups(Records):
    """The memory of all groups. Their files show what is recorded in `memory`; its listeners are notified."""

    name = "groups in RAM"

    def __init__(
        self,
        where: Path | Documents,
        memory: Memory,
        *,
        clock: Clock,
        consent: Consent,
        idle_ms: int = HOUR_MS,
        redactor: Redactor = PLAIN,
        withdrawal: GroupWithdrawal | None = None,
    ) -> None:
        self._withdrawal = withdrawal or GroupWithdrawal(memory)
        super().__init__("group", where, memory, clock=clock)
        self._consent = consent
        self._index = GroupIndex(memory.disk)
        self._redactor = redactor
        self._entries: IdleMap[Entry] = IdleMap(lambda group_id: Entry(), idle_ms=idle_ms)
        self._writing = asyncio.Lock()
        self._erasings = 0

    def readable(self) -> Iterator[Readable]:
        for name in json_names(self.documents):
            group = Group.from_json(read(self.documents, name))
            place, channel = str(self.documents.folder / name), f"discord:channel:{name.removesuffix(JSON)}"
            yield from (Readable(place, text, channel) for text in group.themes)
            yield from (Readable(place, text, channel, at=at * 1000) for text, at in group.decisions)

    # ------------------------------------------------------------------ members

    def seen(self, place: Place, at: int, *, user_id: str | None = None, name: str = "") -> None:
        """Record that somebody spoke in a place at a time (ms); without a `user_id` no person is recorded.

        Never blocks. A DM is not a group.
        """
        if place.group_id is None:
            return
        now = self._clock()
        self._entries.evict_idle(now, busy=lambda one: one.unsaved)
        entry = self._entries.use(place.group_id, now)
        if user_id is not None:
            known = entry.members.pop(user_id, None)
            if known is None and not self._consent.may_keep(user_id, at):
                return
            entry.members[user_id] = name
            crowded = known is None and trimmed(entry.members) and now - entry.written < PAUSE_MS
            entry.unsaved |= known != name and not crowded
        if entry.topic != place.topic:
            if at <= self._memory.erased_at(group_subject(place.group_id)):
                return
            entry.topic, entry.unsaved = place.topic, True
        if entry.unsaved:
            self._note(place.group_id)

    async def get(self, group_id: str) -> Group:
        """Return a group's record. Raises MemoryFault if it cannot be read."""
        entry = self._entries.use(group_id, self._clock())
        if not (entry.read and self.documents.in_touch):
            async with self._writing:
                entry.read = entry.read and self.documents.in_touch
                await self._read(group_id, entry)
        return self._as_seen(entry, None)

    # ------------------------------------------------------------------ notes for prompts

    def notes_in_ram(self, place: Place) -> str | None:
        """The group notes for a prompt in a place, or None if they are not in RAM; "" in a DM or aside."""
        if place.group_id is None or place.kind == "aside":
            return ""
        try:
            view = self._memory.view_in_ram(group_subject(place.group_id))
        except MemoryFault:
            return ""
        return self._notes(place, view) if view is not None else None

    async def notes(self, place: Place) -> str:
        """The group notes for a prompt in a place. Raises MemoryFault if they cannot be read."""
        if place.group_id is None or place.kind == "aside":
            return ""
        return self._notes(place, await self._memory.view(group_subject(place.group_id)))

    def _notes(self, place: Place, view: View) -> str:
        """The notes of a view, cached for as long as the view is the same."""
        if (left := self._withdrawal.left(view)) is not view:
            return notes_of(left, private=place.hidden)
        entry, of = self._entries.peek(str(place.group_id)), (view.head, view.updated_at, place.hidden)
        if entry is not None and entry.told is not None and entry.told[0] == of:
            return entry.told[1]
        text = notes_of(view, private=place.hidden)
        if entry is not None:
            entry.told = (of, text)
        return text

    # ------------------------------------------------------------------ learning

    async def known(self, place: Place) -> Known | None:
        """The memory of a place's group so far; None if the bot must not learn there.

        That applies to a DM, and to a thread that only some may read: what is said there is not for everybody
        in the channel. Raises MemoryFault.
        """
        if place.group_id is None or place.closed:
            return None
        erasings = self._erasings
        view = await self._memory.view(group_subject(place.group_id))
        left = self._withdrawal.left(view)
        return Known(
            tuple(item.text for item in items_of(left, "theme", private=place.hidden)),
            tuple(item.text for item in items_of(left, "decision", private=place.hidden)),
            await self._people_of(place.group_id, view),
            erasings,
        )

    async def learn(
        self, place: Place, learned: Learned, known: Known, people: Mapping[str, int], origin: Origin
    ) -> None:
        """Add what was learned, as one commit that names everybody whose words it may rest on.

        Those are the `people`, by user id with the time (ms) of their last erasing as the run began, and
        everybody named by what was `known` then, because a model may repeat what it is shown. If one of them
        was erased since, nothing is learned. `origin` is the newest of the messages it rests on. Raises
        MemoryFault.
        """
        group_id = str(place.group_id)
        for _ in range(MOST_TRIES if (texts := tidied(learned, self._redactor)) else 0):
            view = await self._memory.view(group_subject(group_id))
            named = {*people, *known.people, *await self._people_of(group_id, view)}

            def wish(draft: Draft, head: str | None = view.head) -> None:
                if draft.view.head != head:
                    raise _Moved
                erased = any(self._consent.erased_at(user_id) != at for user_id, at in people.items())
                if erased or self._erasings != known.erasings:
                    raise Refused("somebody was erased meanwhile, and it may rest on their words")
                propose(draft, texts, origin)

            try:
                about: dict[str, Any] = {PEOPLE: sorted(named), MESSAGES: sorted(learned.messages)}
                await self._memory.change(
                    group_subject(group_id), "learned from talk", wish, by="summary", **about
                )
                return
            except _Moved:
                continue
            except Refused as refusal:
                log.info("%s: nothing is learned: %s", group_subject(group_id), refusal)
                return

    async def _people_of(self, group_id: str, view: View) -> Collection[str]:
        """The user ids of the people whose words the memory rests on. Raises MemoryFault."""
        if view.head is None or not view.items:
            return frozenset()
        entry, erasings = self._entries.use(group_id, self._clock()), self._erasings
        if entry.people is None or entry.people[0] != view.head:
            chain = (await self._memory.history(group_subject(group_id))).chain(view.head)
            if erasings != self._erasings or not chain:
                raise MemoryFault(f"the memory of {group_subject(group_id)} has changed meanwhile")
            entry.people = (view.head, contributors_by_item(chain))
        return frozenset().union(*(entry.people[1].get(key, ()) for key in view.items))

    # ------------------------------------------------------------------ the files

    def recorded(self, subject: str) -> None:
        if (group_id := group_of(subject)) is not None:
            self._note(group_id)

    def forget(self, erasure: Erasure) -> None:
        self._erasings += 1
        self._forget_in_ram(erasure)

    def _forget_in_ram(self, erasure: Erasure) -> None:
        if (group_id := group_of(erasure.subject)) is not None:
            self._entries.drop(group_id)
        elif (user_id := user_of(erasure.subject)) is not None:
            for key in self._entries:
                if (entry := self._entries.peek(key)) is not None:
                    entry.members.pop(user_id, None)

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """Keep everybody from writing a group's file meanwhile; afterwards the files are read again."""
        async with self._writing:
            self._forget_in_ram(erasure)  # a file that was being read may have brought the person back
            try:
                yield
            finally:
                for key in self._entries:
                    if (entry := self._entries.peek(key)) is not None:
                        entry.read, entry.group, entry.told, entry.people = False, Group(), None, None

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        """Write the files now: a run that was killed may have left one as it was."""
        for subject in await self._withdrawal.naming(withdrawal):
            await self._bring(group_of(subject) or "")
        return NOTHING_WITHDRAWN

    def _renew(self, about: str) -> None:
        if (entry := self._entries.peek(about)) is not None:
            entry.read = False

    async def _bring(self, group_id: str) -> None:
        """Bring one file up to date. Raises MemoryFault and OSError."""
        subject, entry = group_subject(group_id), self._entries.use(group_id, self._clock())
        erasings = self._erasings
        # Not while holding the writer's role: an erasing waits for that, and holds the group's lock.
        view = await self._shown(subject, self._memory.view(subject))
        async with self._writing:
            if erasings != self._erasings or self._entries.peek(group_id) is not entry:
                self._worker.note(group_id)
                return
            await self._read(group_id, entry)
            if entry.topic is None and not entry.content and (view is None or not view.items):
                return  # nobody has spoken there yet
            after = self._as_seen(entry, view)
            content = render_json(after.to_json())
            entry.unsaved = False
            if content == entry.content:
                return
            new = {user_id for user_id, _ in after.members} - {user_id for user_id, _ in entry.group.members}
            try:
                await in_thread(self._index.note, subject, new)
                written = await self._replaced(_file(group_id), entry.content, content)
            except OSError:
                entry.unsaved = True
                raise
            if not written:
                entry.unsaved, entry.read = True, False
                self._note(group_id)  # once more, with what another process wrote
                return
            entry.group, entry.content, entry.written = after, content, self._clock()
        self._memory.changes.written(subject)

    def _as_seen(self, entry: Entry, view: View | None) -> Group:
        """The current content for the file."""
        trimmed(entry.members)
        group, purpose = entry.group, entry.group.purpose
        if entry.topic is not None:
            purpose = self._redactor.clean(scrub(entry.topic).strip())[:LONGEST_PURPOSE] or None
        members = tuple((user_id, tidy_name(name)) for user_id, name in entry.members.items())
        if sorted(members) == sorted(group.members):
            members = group.members  # a new last speaker alone is no reason to write
        group = replace(group, purpose=purpose, members=members)
        return group.with_view(view) if view is not None else group

    async def _read(self, group_id: str, entry: Entry) -> None:
        """Read a file, once. The caller must be the only writer."""
        if entry.read:
            return
        group, entry.content = await self._read_file(_file(group_id), Group.from_json)
        entry.group = group or Group()
        before = {user_id: name for user_id, name in entry.group.members if user_id not in entry.members}
        entry.members = {**before, **entry.members}
        entry.read = True


def _file(group_id: str) -> str:
    return f"{safe_id(group_id)}.json"
