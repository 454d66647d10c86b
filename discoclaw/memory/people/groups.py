"""Channels' memory: `groups/<channel id>.json` (see `core/profile`), and ledgers `group-<channel id>`.

The file is the source of purpose and members, which change with what people say there. Themes and decisions
are items of the ledger, learned from talk, and the file only shows them. A thread belongs to its parent
channel. What the bot knows of a group is never shown elsewhere. RAM is updated first and the file later, so
no message waits for it. People who have their memory erased leave the members at once, and what rests on
their words leaves the ledger (see `erasing/groups`). Independent of Discord and of models.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from discoclaw.core.consent import Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, Overtaken, Refused
from discoclaw.core.event import Commit
from discoclaw.core.history import PEOPLE, contributors_by_item
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.item import Facets, Item, Kind
from discoclaw.core.message import Place
from discoclaw.core.ports import Clock
from discoclaw.core.profile import (
    LONGEST_PURPOSE,
    MOST_DECISIONS,
    MOST_MEMBERS,
    MOST_THEMES,
    Group,
    Part,
    items_of,
    key_of,
    notes_of,
    tidy_name,
)
from discoclaw.core.purge import Outcome, Phase, Purge, Purged, Readable, distinctive
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.subject import group_of, group_subject, user_of
from discoclaw.core.text import clip, collapse, scrub, visible
from discoclaw.core.view import View
from discoclaw.memory.erasing.groups import GroupIndex
from discoclaw.memory.kept import Kept, Records
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import Documents

log = logging.getLogger(__name__)

PAUSE_MS: Final = 60_000
"""The shortest time between two writes that only update who spoke last in a crowded channel."""
MOST_TRIES: Final = 3
MESSAGES: Final = "messages"
"""Key in the metadata of a group's commit: the ids of the messages that it was learned from."""
TAKEN_BACK: Final = "somebody took back what it rests on"

# ---------------------------------------------------------------------- what is learned from talk

KINDS: Final[Mapping[Part, Kind]] = {"theme": "fact", "decision": "constraint"}
"""The kind of item for each part."""
_MOST: Final[Mapping[Part, int]] = {"theme": MOST_THEMES, "decision": MOST_DECISIONS}
_LONGEST: Final[Mapping[Part, int]] = {"theme": 80, "decision": 300}
_MOST_AT_ONCE: Final[Mapping[Part, int]] = {"theme": 5, "decision": 10}

Texts = Sequence[tuple[Part, str]]


@dataclass(frozen=True, slots=True)
class Known:
    """The items of a group's memory that the place may see, oldest first.

    `people` are the user ids of everybody whose words the whole memory rests on, visible here or not.
    `erasings` counts the erasings since the start, up to that moment.
    """

    themes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    people: Collection[str] = ()
    erasings: int = 0


@dataclass(frozen=True, slots=True)
class Learned:
    """Additions to a group's memory, as texts that a model proposes, and the ids of the messages it read."""

    themes: Sequence[str] = ()
    decisions: Sequence[str] = ()
    messages: Sequence[str] = ()


def _tidied(learned: Learned, redactor: Redactor) -> Texts:
    """Proposed texts cleaned up for use as items, without empty ones and those over the limit."""
    found: list[tuple[Part, str]] = []
    parts: tuple[tuple[Part, Iterable[str]], ...] = (
        ("theme", learned.themes),
        ("decision", learned.decisions),
    )
    for part, texts in parts:
        plain = [collapse(redactor.clean(" ".join(scrub(text).splitlines()))) for text in texts]
        shown = [clip(text, _LONGEST[part]) for text in plain if visible(text).strip()]
        found += [(part, text) for text in shown[: _MOST_AT_ONCE[part]]]
    return found


def _propose(draft: Draft, texts: Texts, origin: Origin) -> None:
    """Draft themes and decisions; if there are too many of one, the oldest leave."""
    for part, text in texts:
        draft.upsert(KINDS[part], text, origin, facets=Facets(key=key_of(part, text), category="core"))
    for part, most in _MOST.items():
        items = items_of(draft.view, part, private=True)
        for item in items[: max(0, len(items) - most)]:
            draft.remove(item, origin)


# ---------------------------------------------------------------------- the groups


@dataclass(slots=True)
class _Channel:
    """One group in RAM, beside its file: what was seen there since the start."""

    members: dict[str, str] = field(default_factory=dict)
    """Names by id; the last speaker comes last."""
    topic: str | None = None
    unsaved: bool = False
    written: int = 0
    """When (ms) the file was last written."""
    told: tuple[tuple[object, ...], str] | None = None
    """The notes for prompts, and the view they were made from."""
    people: tuple[str, Mapping[str, frozenset[str]]] | None = None
    """The people whose words each item rests on, as of the commit that is named."""

    def trim(self) -> bool:
        """Drop the members who have been silent longest. Returns whether there were too many."""
        crowded = len(self.members) > MOST_MEMBERS
        while len(self.members) > MOST_MEMBERS:
            del self.members[next(iter(self.members))]
        return crowded


class _Moved(Exception):
    """Somebody else wrote in the meantime."""


class Groups(Records[Group]):
    """The memory of all groups. Their files show what is recorded in `memory`; its listeners are notified.

    If they are not `on`, nothing is noted, shown or learned, and what was learned before can still be taken
    back.
    """

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
        on: bool = True,
    ) -> None:
        kept = Kept(where, "group", Group.from_json, Group.to_json, clock=clock, idle_ms=idle_ms)
        super().__init__(kept, "group")
        self._memory = memory
        self._clock = clock
        self._consent = consent
        self._on = on
        self._index = GroupIndex(memory.disk)
        self._redactor = redactor
        self._channels: IdleMap[_Channel] = IdleMap(lambda group_id: _Channel(), idle_ms=idle_ms)
        self._erasings = 0
        self._being_erased: set[str] = set()
        """The subjects that are being erased. No file of a group is written meanwhile."""
        self._postponed: set[str] = set()
        """The groups whose files are to be written after that."""
        self._leaving: set[str] = set()
        """The people (user ids) who are being erased and may still be named in files."""
        self._taken_back: list[Purge] = []
        """Purges that are not removed yet."""

    def audit(self) -> Iterator[Readable]:
        for group_id, place, group in self._kept.stored():
            channel = f"discord:channel:{group_id}"
            yield from (Readable(place, text, channel) for text in group.themes)
            yield from (Readable(place, text, channel, at=at * 1000) for text, at in group.decisions)

    # ------------------------------------------------------------------ members

    def seen(self, place: Place, at: int, *, user_id: str | None = None, name: str = "") -> None:
        """Record that somebody spoke in a place at a time (ms); without a `user_id` no person is recorded.

        Never blocks. A DM is not a group.
        """
        if place.group_id is None or not self._on:
            return
        now = self._clock()
        self._channels.evict_idle(now, busy=lambda one: one.unsaved)
        entry = self._channels.use(place.group_id, now)
        if user_id is not None:
            known = entry.members.pop(user_id, None)
            if known is None and not self._consent.may_keep(user_id, at):
                return
            entry.members[user_id] = name
            crowded = known is None and entry.trim() and now - entry.written < PAUSE_MS
            entry.unsaved |= known != name and not crowded
        if entry.topic != place.topic:
            if at <= self._memory.erased_at(group_subject(place.group_id)):
                return
            entry.topic, entry.unsaved = place.topic, True
        if entry.unsaved:
            self._note(place.group_id)

    async def get(self, group_id: str) -> Group:
        """Return a group's record. Raises MemoryFault if it cannot be read."""
        entry = self._channels.use(group_id, self._clock())
        return self._as_seen(entry, await self._kept.get(group_id), None)

    # ------------------------------------------------------------------ notes for prompts

    def notes_in_ram(self, place: Place) -> str | None:
        """The group notes for a prompt in a place, or None if they are not in RAM; "" in a DM or aside."""
        if place.group_id is None or place.kind == "aside" or not self._on:
            return ""
        try:
            view = self._memory.view_in_ram(group_subject(place.group_id))
        except MemoryFault:
            return ""
        return self._notes(place, view) if view is not None else None

    async def notes(self, place: Place) -> str:
        """The group notes for a prompt in a place. Raises MemoryFault if they cannot be read."""
        if place.group_id is None or place.kind == "aside" or not self._on:
            return ""
        return self._notes(place, await self._memory.view(group_subject(place.group_id)))

    def _notes(self, place: Place, view: View) -> str:
        """The notes of a view, cached for as long as the view is the same."""
        if (left := self._left(view)) is not view:
            return notes_of(left, private=place.hidden)
        entry, of = self._channels.peek(str(place.group_id)), (view.head, view.updated_at, place.hidden)
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
        if place.group_id is None or place.closed or not self._on:
            return None
        erasings = self._erasings
        view = await self._memory.view(group_subject(place.group_id))
        left = self._left(view)
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
        for _ in range(MOST_TRIES if (texts := _tidied(learned, self._redactor)) else 0):
            view = await self._memory.view(group_subject(group_id))
            named = {*people, *known.people, *await self._people_of(group_id, view)}

            def wish(draft: Draft, head: str | None = view.head) -> None:
                if draft.view.head != head:
                    raise _Moved
                erased = any(self._consent.erased_at(user_id) != at for user_id, at in people.items())
                if erased or self._erasings != known.erasings:
                    raise Refused("somebody was erased meanwhile, and it may rest on their words")
                _propose(draft, texts, origin)

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
        entry, erasings = self._channels.use(group_id, self._clock()), self._erasings
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

    # ------------------------------------------------------------------ what somebody took back

    def _left(self, view: View) -> View:
        """A group's view without what is about to be removed from it."""
        gone = {key for key, item in view.items.items() if any(_goes(item, one) for one in self._taken_back)}
        if not gone:
            return view
        return replace(view, items={key: item for key, item in view.items.items() if key not in gone})

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if phase == "ram":
            self._hide(purge)
        elif phase == "disk" and purge.erases:
            # No file is written until it is done, and the one that is being written is waited for.
            self._being_erased.add(purge.subject)
            return self._kept.settled()
        elif phase == "disk":
            return self._purge_disk(purge)
        elif purge.erases:  # the files are read again, and may be written
            self._being_erased.discard(purge.subject)
            self._leaving.discard(purge.user_id)
            self._kept.outdated()
            for entry in self._in_ram():
                entry.told = entry.people = None
            postponed, self._postponed = self._postponed, set()
            for group_id in postponed:
                self._note(group_id)
        else:
            self._taken_back = [one for one in self._taken_back if one.subject != purge.subject]
        return None

    def _hide(self, purge: Purge) -> None:
        """Show nothing that has the words until the disk phase has found out whose they are."""
        if not purge.everything and purge not in self._taken_back:
            self._taken_back.append(purge)
        if not purge.erases:
            return
        self._erasings += 1
        if (group_id := group_of(purge.subject)) is not None:
            self._channels.drop(group_id)
            self._kept.drop(group_id)
        elif (user_id := user_of(purge.subject)) is not None:
            self._leaving.add(user_id)
            for entry in self._in_ram():
                entry.members.pop(user_id, None)

    async def _purge_disk(self, purge: Purge) -> Purged:
        """Remove the items, and write the files now: a run that was killed may have left one as it was."""
        disk = self._memory.disk
        # Who said a message is named with it; those of a guest, who is nobody, are looked for everywhere.
        about = [f'"{one}"'.encode() for one in (purge.user_id, *purge.messages) if one]

        def naming() -> list[str]:
            if purge.user_id:
                groups: Iterable[str] = self._index.recorded(purge.user_id)
            else:
                everybody = (subject for subject, _ in self._memory.ledgers.by_age())
                groups = (one for one in everybody if group_of(one) is not None)
            logs = ((subject, disk.ledgers.log(subject).read()) for subject in sorted(groups))
            return [subject for subject, content in logs if any(one in content for one in about)]

        subjects = await read_in_thread(naming)
        notes = sum([await self._remove(subject, purge) for subject in subjects])
        for subject in subjects:
            await self._bring(group_of(subject) or "")
        return Purged(notes=notes)

    async def _remove(self, subject: str, purge: Purge) -> int:
        """Remove items of one group. Returns how many. Raises MemoryFault."""
        view = await self._memory.view(subject)
        if view.head is None or not view.items:
            return 0
        theirs, said = _theirs((await self._memory.history(subject)).chain(view.head), purge)

        def goes(key: str, item: Item) -> bool:
            if key in said:
                return _goes(item, purge)
            # Everybody who talked is named; only a note that mostly says the same is likely to be theirs.
            own = distinctive(item.text)
            mostly = purge.everything or len(own & purge.words.terms) * 2 >= len(own)
            return key in theirs and _goes(item, purge) and mostly

        def wish(draft: Draft) -> int:
            gone = [item for key, item in draft.items.items() if goes(key, item)]
            for item in gone:
                draft.remove(item, Origin("stated"))  # so that older words don't bring it back
            return len(gone)

        return await self._memory.change(subject, TAKEN_BACK, wish, by="withdrawal")

    def _in_ram(self) -> Iterator[_Channel]:
        return (entry for key in self._channels if (entry := self._channels.peek(key)) is not None)

    async def _bring(self, group_id: str) -> None:
        subject, entry = group_subject(group_id), self._channels.use(group_id, self._clock())
        erasings = self._erasings
        # Not while nobody else may write: an erasing waits for that, and holds the group's lock.
        view = await self._shown(subject, self._memory.view(subject))
        group = await self._kept.get(group_id)
        if indexed := _ids(self._as_seen(entry, group, view)) - _ids(group):
            await in_thread(self._index.note, subject, indexed)

        def work(known: Group | None) -> Group | None:
            if self._being_erased:
                self._postponed.add(group_id)
                return None
            if erasings != self._erasings or self._channels.peek(group_id) is not entry:
                self._note(group_id)
                return None
            if entry.topic is None and known is None and (view is None or not view.items):
                return None  # nobody has spoken there yet
            after = self._as_seen(entry, known, view)
            if not _ids(after) <= _ids(known) | indexed:
                self._note(group_id)  # who was seen just now is to be in the index first
                return None
            entry.unsaved = False
            return after if after != known else None

        try:
            written = await self._kept.change(group_id, work)
        except Overtaken:
            entry.unsaved = True
            self._note(group_id)  # once more, with what another process wrote
            return
        except MemoryFault:
            entry.unsaved = True
            raise
        if written:
            entry.written = self._clock()
            self._memory.changes.written(subject)

    def _as_seen(self, entry: _Channel, known: Group | None, view: View | None) -> Group:
        """The current content for the file. Who was seen there is from then on known with its members."""
        group = known or Group()
        silent = (one for one in group.members if one[0] not in {*entry.members, *self._leaving})
        entry.members = {**dict(silent), **entry.members}
        entry.trim()
        purpose = group.purpose
        if entry.topic is not None:
            purpose = self._redactor.clean(scrub(entry.topic).strip())[:LONGEST_PURPOSE] or None
        members = tuple((user_id, tidy_name(name)) for user_id, name in entry.members.items())
        if sorted(members) == sorted(group.members):
            members = group.members  # a new last speaker alone isn't a reason to write
        group = replace(group, purpose=purpose, members=members)
        return group.with_view(view) if view is not None else group


def _ids(group: Group | None) -> set[str]:
    """The user ids of a group's members."""
    return {user_id for user_id, _ in group.members} if group is not None else set()


def _theirs(chain: Iterable[Commit], purge: Purge) -> tuple[set[str], set[str]]:
    """The ids of the items that may rest on a person's words, and of those that rest on these messages."""
    commits, said = list(chain), set[str]()
    found = {key for key, people in contributors_by_item(commits).items() if purge.user_id in people}
    for commit in commits:
        messages = commit.metadata.get(MESSAGES)
        if isinstance(messages, list) and not purge.messages.keys().isdisjoint(map(str, messages)):
            said |= {str(event.ext.get("item", {}).get("id")) for event in commit.events}
    return found, said


def _goes(item: Item, purge: Purge) -> bool:
    if purge.open_only and item.facets.sensitivity != "normal":
        return False
    return purge.everything or purge.words.hold(item.text)
