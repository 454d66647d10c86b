"""Messages that were deleted or edited in the chat: what was learned from them alone is taken back.

They leave windows, backlogs and the archive at once (`listen`). The rest is done by a worker, for all that
came meanwhile in one pass: the ledgers that name one of them are found, what rests on them alone is taken
back with one commit for each subject and branch (below), and everything made from their words is
purged, also where nothing was learned. The bot's answers to deleted messages go whatever they say. After
that an edited message is learned from as if it were new.

No ledger says that a message is gone, so the cursor `unsaid` does until the pass is done (`deleted`); if the
program is killed, the next start does it. It also has what was done last (`done`): after a gap the chat names
deleted and edited messages again. Processes that share the store share the cursor, and each removes its own.
Independent of Discord.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from discoclaw.core.consent import Consent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Commit
from discoclaw.core.item import Item, Source
from discoclaw.core.message import Place, Said, sessions_with
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Phase, Purge, Words, distinctive, place_of, terms_of
from discoclaw.core.subject import user_subject
from discoclaw.memory.changes import Listener
from discoclaw.memory.conversations.answers import Answers
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.purge import START_S, Purger
from discoclaw.memory.subjects.ledger import naming
from discoclaw.memory.subjects.store import Memory
from discoclaw.session.hearing import Listener as Ears
from discoclaw.store.files import in_thread
from discoclaw.work import Background, Worker

log = logging.getLogger(__name__)

CURSOR: Final = "unsaid"
MOST_DONE: Final = 2_000
MOST_WAITING: Final = 10_000
"""The most messages that wait for a pass; beyond that the oldest are given up, with a line in the log."""
DELETED, EDITED = "deletion", "edit"
WHY: Final = {DELETED: "a message was deleted", EDITED: "a message was edited"}

MOST_WORDED: Final = 20
"""The most messages of one person whose words are searched for. A larger batch goes by the ids alone."""
_PASS = "pass"


@dataclass(frozen=True, slots=True)
class Edited:
    """A message as it is now. `allowed` finds out whether its author may talk to the bot."""

    said: Said
    place: Place
    session_key: str
    allowed: Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Unsaid:
    """One message that was deleted at a time (ms), or got another text (`now`), and what is known about it.

    `before` is the text that it had; None if that is not known. `sessions` are the conversations (keys) that
    it may belong to. `author_id` is "" if nobody knows it; for an answer of the bot it is the person
    answered. `again`: the edited message as it is now.
    """

    message_id: str
    channel_id: str
    at: int
    before: str | None = None
    now: str | None = None
    sessions: frozenset[str] = frozenset()
    author_id: str = ""
    again: Edited | None = None

    @property
    def deleted(self) -> bool:
        """Whether it was deleted."""
        return self.now is None

    def lost(self) -> frozenset[str] | None:
        """The distinctive words that it no longer has; None if nobody knows them."""
        return None if self.before is None else distinctive(self.before) - terms_of(self.now or "")

    def still_says(self, text: str) -> bool:
        """Whether it says what an item says that was learned from it, by their words."""
        if self.now is None:
            return False
        own, now = distinctive(text), terms_of(self.now)
        if self.before is None:
            return bool(own) and own <= now
        gone = distinctive(self.before) - now
        from_it = own & terms_of(self.before)
        return not gone or (bool(from_it) and from_it.isdisjoint(gone))

    def takes_from(self, item: Item) -> bool:
        """Whether an item loses this message as a source.

        If the old text is not known, it may have been learned from the new one.
        """
        old = self.deleted or self.before is not None or item.updated_at <= self.at
        return old and not self.still_says(item.text)


def unsay(draft: Draft, messages: Mapping[str, Unsaid], origin: Origin) -> int:
    """Take back what rests on these messages alone, by message id. Returns how much that is."""
    view, count = draft.view, 0
    for item in view.active():
        sources = view.sources.get(item.id, ())
        gone = ((one, messages.get(place_of(one)[0])) for one in sources)
        lost = [one for one, message in gone if message is not None and message.takes_from(item)]
        if not lost or item.facets.author == "stated":
            continue
        if len(lost) < len(sources):
            _drop_sources(draft, item, lost, origin)
            continue
        count += 1
        # An item that was learned from a message that is still there must not name it as taken back: the
        # message stays. Afterwards it has no sources, so that it stays if its person undoes this.
        changed = [one for one in lost if not messages[place_of(one)[0]].deleted]
        _drop_sources(draft, item, changed, origin)
        because = replace(origin, source=_source(lost[-1]), asked=True)
        draft.emit("modify", item, {"status": "deprecated"}, because, noted={"unsaid": True})
        _drop_sources(draft, item, [one for one in lost if one not in changed], origin)
    for waits in view.pending:
        one = messages.get(waits.source.message_id)
        if one is not None and not one.still_says(waits.text):
            draft.note_proposal(waits.item, replace(origin, source=waits.source), "undone")
    for conflict in view.conflicts:
        one = messages.get(place_of(conflict.source)[0]) if conflict.source.startswith("discord:") else None
        if one is not None and not one.still_says(conflict.text):
            draft.note_conflict(conflict, origin, on=False)
    for waiting in list(draft.reminders.values()):
        channel, _, message = waiting.asked.partition("/")
        one = messages.get(message) if waiting.said else None
        if one is not None and one.deleted:  # who corrects a word is answered no second time
            because = replace(origin, source=Source("discord", channel, message), asked=True)
            draft.remind(waiting, because, "unsaid", gone=True)
            count += 1
    return count


def _drop_sources(draft: Draft, item: Item, sources: list[str], origin: Origin) -> None:
    for source in sources:
        draft.emit("observe", item, {}, replace(origin, source=_source(source)), noted={"unsays": True})


def _source(text: str) -> Source:
    message, channel = place_of(text)
    return Source("discord", channel, message)


class DeletedMessages(Background, Derived, Listener):
    """Follows deletions and edits in the chat.

    `sessions_of` returns the conversations (keys) that a channel id may stand for.
    """

    name = "deleted and edited messages"

    def __init__(
        self,
        memory: Memory,
        purger: Purger,
        answers: Answers,
        listener: Ears,
        cursors: Cursors,
        consent: Consent,
        *,
        sessions_of: Callable[[str], Collection[str]],
        clock: Clock,
    ) -> None:
        self._memory = memory
        self._purger = purger
        self._answers = answers
        self._listener = listener
        self._cursors = cursors
        self._consent = consent
        self._clock = clock
        self._sessions_of = sessions_of
        self._waiting: dict[str, Unsaid] = {}
        self._done: dict[str, int] = {}
        """When (ms) the last edit that was followed was made, by message id; 0 for a deletion."""
        self._worker = Worker("deleted messages", self._run)

    # ------------------------------------------------------------------ the lifecycle

    async def start(self) -> None:
        """Finish what a killed run left. What takes long is finished while people talk."""
        cursor = await self._cursors.get(CURSOR)
        self._done = {key: at for key, at in _pairs(cursor.get("done")) if isinstance(at, int)}
        for message_id, value in _pairs(cursor.get("deleted")):
            if isinstance(value, str):
                self._waiting[message_id] = self._deleted(message_id, value, self._sessions_of(value))
        if self._waiting:
            self._worker.note(_PASS)
            try:
                async with asyncio.timeout(START_S):
                    await self._worker.settle()
            except TimeoutError:
                log.warning("deleted messages are still being purged; the talk begins all the same")

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Drop what an erased person wrote. That a message is gone stays known, by its id."""
        for key, gone in list(self._waiting.items()) if phase == "ram" and purge.erases else ():
            if gone.author_id == purge.user_id != "":
                del self._waiting[key]
                if gone.deleted:
                    self._waiting[key] = replace(gone, before=None, author_id="")

    # ------------------------------------------------------------------ from the chat

    def deleted(
        self,
        message_ids: Collection[str],
        channel_id: str,
        session_key: str | None,
        known: Iterable[Said] = (),
    ) -> None:
        """Messages of a channel were deleted; `known` are those that the chat's adapter still has.

        It does not always know the conversation. Never blocks.
        """
        sessions = frozenset(self._sessions_of(channel_id) if session_key is None else [session_key])
        said = {one.id: one for one in known}
        # Nothing rests on messages of people who want no memory.
        unheard = {
            one.id
            for one in said.values()
            if not (one.by_us or self._consent.may_keep(one.author_id, one.sent_at))
        }
        new = [one for one in message_ids if self._done.get(one) != 0 and one not in unheard]
        said |= self._listener.forget(message_ids, session_key)
        for message_id in new:
            one, before = said.get(message_id), self._waiting.get(message_id)
            text = before.before if before is not None else one.text if one and not one.by_us else None
            author_id = (one.to_id if one.by_us else one.author_id) if one else ""
            gone = self._deleted(message_id, channel_id, sessions)
            self._note(replace(gone, before=text, author_id=author_id))

    def edited(self, now: Edited, before: str | None) -> None:
        """A message got another text; `before` is the old one, if the chat's adapter knows. Never blocks."""
        said, session_key = now.said, now.session_key
        heard = (one for one in self._listener.windows.recent(session_key) if one.id == said.id)
        if before is None and (known := next(heard, None)) is not None and known.edited_at < said.edited_at:
            before = known.text
        self._listener.amend(said, session_key)
        followed = self._done.get(said.id)
        if before == said.text or followed == 0 or (before is None and followed == said.edited_at):
            return
        if (waiting := self._waiting.get(said.id)) is not None:
            if waiting.deleted:
                return
            before = waiting.before
        sessions = frozenset(sessions_with(said.id, session_key))
        channel_id, author_id = now.place.channel_id, said.author_id
        self._note(Unsaid(said.id, channel_id, said.edited_at, before, said.text, sessions, author_id, now))

    def committed(self, subject: str, commit: Commit) -> None:
        """Take back what was being learned from a message while it was deleted, too. Never blocks."""
        by = str(commit.metadata.get("by"))
        if not (by in ("extraction", "summary", "menu", "remind") or by.startswith("memory_")):
            return
        for message_id, channel_id in {place_of(event.source) for event in commit.events}:
            waiting = self._waiting.get(message_id)
            if waiting is not None and waiting.deleted:
                self._note(replace(waiting))  # another one, for which a pass under way doesn't count
            elif self._done.get(message_id) == 0:
                self._note(self._deleted(message_id, channel_id, self._sessions_of(channel_id)))

    def _deleted(self, message_id: str, channel_id: str, sessions: Collection[str]) -> Unsaid:
        """A message that was deleted now, in one of these conversations or in a thread below it."""
        keys = frozenset(key for one in sessions for key in sessions_with(message_id, one))
        return Unsaid(message_id, channel_id, self._clock(), sessions=keys)

    def _note(self, gone: Unsaid) -> None:
        self._waiting[gone.message_id] = gone
        if len(self._waiting) > MOST_WAITING:
            lost = next(iter(self._waiting))
            del self._waiting[lost]
            log.error("too many deleted messages: what was learned from %s stays", lost)
        self._worker.note(_PASS, first=True)

    # ------------------------------------------------------------------ a pass

    async def _run(self, _: str) -> None:
        """Follow everything that is waiting. Raises MemoryFault and OSError if something is left."""
        batch = dict(self._waiting)
        if not batch:
            return
        # Write down which messages were deleted, before anything is done about it.
        deleted = {key: one.channel_id for key, one in batch.items() if one.deleted}

        def noted(known: Mapping[str, object]) -> Mapping[str, object]:
            return {**known, "deleted": {**dict(_pairs(known.get("deleted"))), **deleted}}

        if deleted and not await self._cursors.update(CURSOR, noted):
            self._cursors.drop(CURSOR)
            raise MemoryFault("that messages were deleted could not be noted")
        subjects = await in_thread(naming, self._memory.ledgers, frozenset(map(str.encode, batch)))
        failures: list[Exception] = []
        taken = set[str]()
        # What is being learned is in no ledger yet; its subject is in RAM, and is locked until it is.
        authors = {user_subject(one.author_id) for one in batch.values() if one.author_id}
        in_use = {one for one in authors if self._memory.branches_in_ram(one) is not None}
        for subject in sorted({*subjects, *in_use}):
            try:
                if await self._unsay(subject, batch):
                    taken.add(subject)
            except (MemoryFault, OSError) as error:
                failures.append(error)
        for author_id in dict.fromkeys(one.author_id for one in batch.values()):
            try:
                purge = await self._purge([one for one in batch.values() if one.author_id == author_id])
                if purge.messages or purge.changed:
                    await self._purger.unsaid(purge)
            except (MemoryFault, OSError) as error:
                failures.append(error)
        if failures:
            raise failures[0]
        for gone in batch.values():
            await self._hear_again(gone, soon=user_subject(gone.author_id) in taken)
        await self._finish(batch)

    async def _unsay(self, subject: str, batch: Mapping[str, Unsaid]) -> int:
        """Take back what a subject's branches have from these messages alone. Returns how many items.

        Raises MemoryFault.
        """
        count = 0
        for by in (DELETED, EDITED):
            some = {key: one for key, one in batch.items() if one.deleted == (by == DELETED)}
            origin = Origin("inferred", Source(), said_at=self._clock(), evidence=WHY[by])
            for name in (await self._memory.branches(subject)).all if some else ():
                work = partial(unsay, messages=some, origin=origin)
                try:
                    count += await self._memory.change(
                        subject, WHY[by], work, branch=name, begin=False, by=by
                    )
                except Refused as refusal:
                    log.info("%s: nothing is taken back: %s", subject, refusal)
        return count

    async def _purge(self, gone: Sequence[Unsaid]) -> Purge:
        """The purge of everything that was made from one author's messages. Raises MemoryFault.

        That includes the answers to those that were deleted, whatever these say. Words count only if it is
        known for every message which it no longer says, and nothing else there, or remembered, has them.
        """
        sessions = frozenset[str]().union(*(one.sessions for one in gone))
        deleted = {one.message_id: one.channel_id for one in gone if one.deleted}
        lost = [(one, one.lost()) for one in gone]
        changed = {
            one.message_id: one.channel_id for one, words in lost if not one.deleted and words != frozenset()
        }
        known = [words for _, words in lost if words is not None]
        own = frozenset[str]().union(*known) if len(known) == len(lost) <= MOST_WORDED else frozenset[str]()
        subject = user_subject(gone[0].author_id) if gone[0].author_id else ""
        if subject and own:
            others = [
                one.text for key in sessions for one in self._listener.windows.recent(key) if not one.by_us
            ]
            for name in (await self._memory.branches(subject)).all:
                others += [item.text for item in (await self._memory.view(subject, name)).active()]
            own -= frozenset[str]().union(*map(terms_of, others))
        return Purge(
            subject,
            self._clock(),
            {**deleted, **await self._answers.drop_answers_to(deleted)},
            Words(own) if subject else Words(),
            alone=True,
            changed=changed,
            sessions=sessions,
        )

    async def _hear_again(self, gone: Unsaid, *, soon: bool) -> None:
        """Let an edited message be learned from, if what it says now may be kept."""
        now = gone.again
        if now is None or self._waiting.get(now.said.id) is not gone:
            return  # it was edited once more, or deleted
        if self._consent.may_keep(now.said.author_id, now.said.sent_at) and await now.allowed():
            self._listener.loops.hear_again(now.said, now.place, now.session_key, soon=soon)

    # ------------------------------------------------------------------ the cursor

    async def _finish(self, batch: Mapping[str, Unsaid]) -> None:
        """Note that these messages were followed."""
        for key, gone in batch.items():
            if self._waiting.get(key) is gone:
                del self._waiting[key]
            self._done.pop(key, None)  # so that the newest come last
            self._done[key] = 0 if gone.deleted else gone.at
        while len(self._done) > MOST_DONE:
            del self._done[next(iter(self._done))]
        done = dict(self._done)

        def finished(known: Mapping[str, object]) -> Mapping[str, object]:
            left = {key: channel for key, channel in _pairs(known.get("deleted")) if key not in batch}
            others = {key: at for key, at in _pairs(known.get("done")) if key not in done}
            newest = dict([*others.items(), *done.items()][-MOST_DONE:])
            return {"done": newest, "deleted": left} if left else {"done": newest}

        await self._cursors.update(CURSOR, finished)
        if self._waiting:
            self._worker.note(_PASS)


def _pairs(value: object) -> list[tuple[str, object]]:
    return [(str(key), one) for key, one in value.items()] if isinstance(value, Mapping) else []
