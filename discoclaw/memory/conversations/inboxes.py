"""The inboxes of all conversations: in RAM, and on disk as the one cursor `inbox`.

It is written after a message was handled, never before: at once if the message is to be answered, every few
messages if people only talked. What was not written before a crash is read again from the chat. On disk are
ids of messages and channels, and for direct messages the person's id, unless they opted out.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from discoclaw.core.consent import Consent
from discoclaw.core.inbox import Inbox, Open
from discoclaw.core.message import Place
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.subject import dm_of, person_of, user_of
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.work import GRACE_S, Worker

NAME: Final = "inbox"
MOST: Final = 1_000
"""The most conversations on disk: those with the newest messages."""
MOST_UNWRITTEN: Final = 20
"""How many messages that need no answer may wait to be written."""


class Inboxes(PersonalData):
    """Which messages were handled, by conversation. It is a `core.service.Service`.

    `catches_up`: what is missed is read later, so a gap is remembered until that is done. `names_people`:
    direct messages may be written down, which name their person.
    """

    name = "inboxes"

    def __init__(
        self, cursors: Cursors, consent: Consent, *, catches_up: bool, names_people: bool = True
    ) -> None:
        self._cursors = cursors
        self._names_people = names_people
        self._consent = consent
        self._catches_up = catches_up
        self._inboxes: dict[str, Inbox] = {}
        self._working: set[int] = set()
        self._since = 0
        self._unwritten = 0
        self._lines: dict[str, tuple[int, str]] = {}
        self._worker = Worker("inboxes", self._write)

    # ------------------------------------------------------------------ the lifecycle

    async def start(self) -> None:
        """Read what was written; whatever was said since then is a gap."""
        for session_key, value in (await self._cursors.get(NAME)).items():
            if (inbox := Inbox.of_json(value)) is not None:
                self._inboxes[session_key] = inbox
                if not self._catches_up:
                    inbox.open.clear()  # nobody would ever answer these
        self._cursors.forget(NAME)
        self.fall_behind()

    async def settle(self) -> None:
        """Write what is waiting."""
        self._write_rest()
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Write what is waiting, within `grace_s`."""
        self._write_rest()
        await self._worker.close(grace_s)

    def _write_rest(self) -> None:
        if self._unwritten:
            self._worker.note(NAME)

    # ------------------------------------------------------------------ gaps

    def fall_behind(self) -> None:
        """Note a gap: the connection was lost, and what is said meanwhile has to be read later."""
        if self._catches_up and self._inboxes:
            self._since = max(inbox.newest for inbox in self._inboxes.values())
            for inbox in self._inboxes.values():
                inbox.behind = True

    def is_behind(self, session_key: str) -> bool:
        """Whether a conversation has a gap."""
        inbox = self._inboxes.get(session_key)
        return inbox is not None and inbox.behind

    def behind(self) -> Mapping[str, Inbox]:
        """The conversations with a gap, by session key."""
        return {key: inbox for key, inbox in self._inboxes.items() if inbox.behind}

    def interrupted(self, session_key: str) -> Mapping[int, Open]:
        """The unanswered messages of a conversation that nobody is working on, oldest first."""
        inbox = self._inboxes.get(session_key)
        waiting = {} if inbox is None else inbox.open
        return {one: waiting[one] for one in sorted(waiting) if one not in self._working}

    def all_interrupted(self) -> Mapping[str, Inbox]:
        """The conversations with unanswered messages that nobody is working on."""
        return {key: inbox for key, inbox in self._inboxes.items() if self.interrupted(key)}

    def sessions_of(self, channel_id: str) -> set[str]:
        """The conversations (keys) that a channel id may stand for: the one heard there, if that is known."""
        known = {key for key, inbox in self._inboxes.items() if inbox.channel_id == channel_id}
        return known or {f"discord:channel:{channel_id}", f"discord:thread:{channel_id}"}

    def reach(self, session_key: str, channel_id: str) -> Inbox:
        """The inbox of a conversation. A new one begins at the newest message before the gap."""
        inbox = self._inboxes.get(session_key)
        if inbox is None:
            inbox = self._inboxes[session_key] = Inbox(channel_id, self._since, behind=self._since > 0)
        return inbox

    @property
    def since(self) -> int:
        """The newest message of any conversation before the gap; 0 when there is none."""
        return self._since

    def all_reached(self) -> None:
        """Note that all conversations with a gap are known now: new ones begin with their first message."""
        self._since = 0

    def knows(self, session_key: str) -> bool:
        """Whether anything was handled in a conversation."""
        return session_key in self._inboxes

    def caught_up(self, session_key: str) -> None:
        """Note that a conversation's gap was read."""
        if (inbox := self._inboxes.get(session_key)) is not None:
            inbox.caught_up()
            self._worker.note(NAME)

    # ------------------------------------------------------------------ messages

    def take(self, place: Place, session_key: str, message_id: str) -> bool:
        """Begin to handle a message. Returns False if it was handled before, whatever has happened since."""
        number = int(message_id)
        known = session_key in self._inboxes
        inbox = self.reach(session_key, place.channel_id)
        if not known and not inbox.behind:
            inbox.floor = number
            inbox.hearing.add(number)
            return True
        return inbox.take(number)

    def pass_over(self, place: Place, session_key: str, message_ids: Iterable[int]) -> None:
        """Ignore messages that are not for the bot, now and later. Nothing that waits there is answered."""
        for number in message_ids:
            known = session_key in self._inboxes
            inbox = self.reach(session_key, place.channel_id)
            if not known and not inbox.behind:
                inbox.floor = number - 1
            self._unwritten += 1
            if inbox.pass_over(number) or self._unwritten >= MOST_UNWRITTEN:
                self._worker.note(NAME)
        self.end(session_key, map(str, self.interrupted(session_key)), True)

    def passed(self, session_key: str, message_id: int) -> bool:
        """Whether a message was ignored as not for the bot."""
        inbox = self._inboxes.get(session_key)
        return inbox is not None and inbox.passed(message_id)

    def delay(self, session_key: str, message_id: str) -> None:
        """Write down that a message is still being handled, since that takes a while and we may be killed."""
        inbox = self._inboxes.get(session_key)
        if inbox is not None and int(message_id) in inbox.hearing:
            inbox.changes += 1
            self._worker.note(NAME)

    def waits(self, session_key: str, message_id: int) -> bool:
        """Whether a message is still to be handled, or is being handled."""
        inbox = self._inboxes.get(session_key)
        return inbox is not None and (
            message_id in inbox.hearing or (inbox.behind and not inbox.has(message_id))
        )

    def heard(self, session_key: str, message_id: str) -> None:
        """Note that a message was handled. If it is to be answered, `begin` was called before."""
        if (inbox := self._inboxes.get(session_key)) is not None:
            inbox.heard(int(message_id))
        self._unwritten += 1
        if self._unwritten >= MOST_UNWRITTEN:
            self._worker.note(NAME)

    def give_back(self, session_key: str, message_ids: Iterable[str]) -> None:
        """Note that messages were not handled after all."""
        if (inbox := self._inboxes.get(session_key)) is not None:
            for message_id in message_ids:
                inbox.give_back(int(message_id))

    def begin(self, session_key: str, message_id: str, *, command: bool = False) -> None:
        """Note that somebody begins to answer a message."""
        if (inbox := self._inboxes.get(session_key)) is not None:
            inbox.open.setdefault(int(message_id), Open(command))
            inbox.changes += 1
            self._working.add(int(message_id))
            self._worker.note(NAME)

    def show(self, session_key: str, message_id: str, shown_id: str) -> None:
        """Note that a message of its answer was sent."""
        inbox = self._inboxes.get(session_key)
        waits = None if inbox is None else inbox.open.get(int(message_id))
        if inbox is not None and waits is not None:
            waits.shown.append(shown_id)
            inbox.changes += 1
            self._worker.note(NAME)

    def end(self, session_key: str, message_ids: Iterable[str], done: bool) -> None:
        """Note that nobody works on these messages any more. Unless `done`, they are answered later."""
        inbox = self._inboxes.get(session_key)
        for number in map(int, message_ids):
            self._working.discard(number)
            if inbox is not None and done:
                inbox.open.pop(number, None)
                inbox.changes += 1
                self._worker.note(NAME)

    async def written(self, within_s: float) -> None:
        """Wait until the unanswered messages are on disk, but at most `within_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._worker.settle(NAME)

    # ------------------------------------------------------------------ personal data and the disk

    def forget(self, erasure: Erasure) -> None:
        """Drop the direct messages of a person."""
        if (user_id := user_of(erasure.subject)) is not None:
            self._inboxes.pop(dm_of(user_id), None)
            self._lines.pop(dm_of(user_id), None)
            self._worker.note(NAME)

    async def _write(self, _: str) -> None:
        unwritten = self._unwritten
        if not await self._cursors.put_rendered(NAME, self._rendered):
            raise OSError("the inbox could not be written")
        self._unwritten -= unwritten

    def _rendered(self) -> bytes:
        kept = [pair for pair in self._inboxes.items() if self._may_keep(pair[0])]
        if len(kept) > MOST:
            kept = sorted(kept, key=lambda pair: pair[1].newest, reverse=True)[:MOST]
        lines = ",\n".join(self._line(key, inbox) for key, inbox in kept)
        return f"{{\n{lines}\n}}\n".encode()

    def _line(self, session_key: str, inbox: Inbox) -> str:
        """A conversation as it is on disk. Rendered only after a change, because this is called often."""
        changes, line = self._lines.get(session_key, (-1, ""))
        if changes != inbox.changes:
            line = f"{json.dumps(session_key)}: {json.dumps(inbox.as_json())}"
            self._lines[session_key] = inbox.changes, line
        return line

    def _may_keep(self, session_key: str) -> bool:
        """Whether a conversation may be on disk: a direct message names its person."""
        user_id = person_of(session_key)
        return user_id is None or (self._names_people and not self._consent.opted_out(user_id))
