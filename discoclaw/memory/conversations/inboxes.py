"""The inboxes of the conversations that were active last: in RAM, and on disk as the cursor `inbox`.

Beside it, `inbox_recent` has those that changed since it was written, so a write costs the same however many
there are. They are written after a message was handled, never before: soon if it is to be answered, every few
messages if people only talked. What was not written before a crash is read again from the chat. On disk are
ids of messages, channels and servers, and for direct messages the person's id, unless they opted out.

In a store that several processes share there are two cursors for each of Discord's shards:

    inbox:<generation>:<shard>         the conversations of a shard
    inbox:<generation>:<shard>_recent  those that changed since, as they are now
    inbox-shards                       how many shards there are, and their generation

A generation begins when there are more or fewer shards than before: then each process moves the conversations
of its shards into their new texts, by the servers that they belong to. Whoever does that has the leases of
these shards, so nobody else writes their texts.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from discoclaw.core.consent import Consent
from discoclaw.core.inbox import Inbox, Open
from discoclaw.core.message import Place
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.shards import EVERY, Shards, shard_of
from discoclaw.core.subject import dm_of, person_of
from discoclaw.core.times import snowflake_at
from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import Cursors, InTwo, parsed
from discoclaw.store.files import in_thread, render_json, session_name
from discoclaw.store.port import Documents
from discoclaw.work import GRACE_S, RETRY_S, Worker

NAME: Final = "inbox"
SHARDS: Final = "inbox-shards"
_TEXT: Final = re.compile(r"inbox(?:[:-](\d+)[:-]\d+)?(_recent)?\.json", re.ASCII)
MOST: Final = 1_000
"""The most conversations, of each shard: those that were active last, and those that wait for something."""
MOST_RECENT: Final = 20
"""How many conversations change before all of them are written again."""
MOST_UNWRITTEN: Final = 20
"""How many messages that need no answer may wait to be written."""
BEHIND_S: Final = 0.02
"""How long (s) an open question waits to be written, so that the model is asked first.

The chat still has it after a crash, and it is on disk as soon as anything of its answer is shown.
"""
_DMS: Final = -1
"""Stands for the direct messages of people without an inbox, beside the numbers of shards."""
_SHARED_RETRY_S: Final = 1.0
"""How soon a failed write is tried again in a database, which is rarely away for long. A disk stays full."""


class Inboxes(Derived, Listener):
    """Which messages were handled, by conversation. It is a `core.ports.Service`.

    `catches_up`: what is missed is read later, so a gap is remembered until that is done. `names_people`:
    direct messages may be written down, which name their person. `shared`: nothing is read or written until
    `serve` says which shards are ours.
    """

    name = "inboxes"

    def __init__(
        self,
        cursors: Cursors,
        consent: Consent,
        *,
        catches_up: bool,
        names_people: bool = True,
        shared: bool = False,
    ) -> None:
        self._cursors = cursors
        self._names_people = names_people
        self._consent = consent
        self._catches_up = catches_up
        self._inboxes: dict[str, Inbox] = {}
        self._working: set[int] = set()
        self._shards = EVERY
        self._shared = shared
        self._names: dict[int, str] = {} if shared else {0: NAME}
        self._since: dict[int, int] = {}
        self._erased: dict[str, int] = {}
        """The newest message that was handled in each conversation that was erased and had no gap."""
        self._unwritten: dict[str, int] = {}
        self._lines: dict[str, str] = {}
        """Conversations as they are on disk, by session key, until they change."""
        self._texts: dict[str, InTwo] = {}
        """The texts of conversations, by the name of the first of the two cursors in which they lie."""
        self._begin(filled=False)
        self._worker = Worker("inboxes", self._write, retry_s=_SHARED_RETRY_S if shared else RETRY_S)

    # ------------------------------------------------------------------ the lifecycle

    async def start(self) -> None:
        """Read what was written; whatever was said since then is a gap."""
        if not self._shared:
            for name in (NAME, recent(NAME)):
                self._load(found := await self._cursors.get(name))
                self._cursors.drop(name)
            self._begin(filled=bool(found))
            self.fall_behind(self._shards)

    async def serve(self, shards: Shards) -> None:
        """Serve these shards, whose leases we have, and read what was written for them. Raises OSError."""
        self._shards = shards
        if self._shared:
            self._inboxes.clear()
            self._lines.clear()
            self._names, found = await in_thread(moved_in, self._cursors.documents, shards)
            self._load(found)
            self._begin(filled=True)
            self.fall_behind(self._shards)
        else:  # one process has all shards, and one cursor for them
            self._names = dict.fromkeys(shards.ids, NAME)
            self._since.clear()
            self.fall_behind(shards)

    def leave(self) -> None:
        """Write nothing more: the shards are another process's, which has read what was written for them."""
        self._names = {}

    def _load(self, conversations: Mapping[str, object]) -> None:
        for session_key, value in conversations.items():
            if (inbox := Inbox.of_json(value)) is not None:
                self._inboxes[session_key] = inbox
                if not self._catches_up:
                    inbox.open.clear()  # nobody would ever answer these
        self._inboxes = dict(sorted(self._inboxes.items(), key=lambda pair: pair[1].newest))

    def _begin(self, *, filled: bool) -> None:
        """Have all conversations written next. `filled`: there are some in the second cursors."""
        names = set(self._names.values())
        self._texts = {name: InTwo(name, recent(name), MOST_RECENT, filled=filled) for name in names}
        for texts in self._texts.values():
            texts.anew()

    async def settle(self) -> None:
        """Write what is waiting."""
        self._write_rest()
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Write what is waiting, within `grace_s`."""
        self._write_rest()
        await self._worker.close(grace_s)

    def _write_rest(self) -> None:
        for name, unwritten in self._unwritten.items():
            if unwritten:
                self._worker.note(name)

    def _note(self, session_key: str, after_s: float = 0.0) -> None:
        """Have a conversation written, now or in `after_s`.

        It doesn't wait out the pause after a failure: a crash within it would lose what was not written.
        """
        if (name := self._changed(session_key)) is not None:
            self._worker.note(name, after_s, first=True)

    def _changed(self, session_key: str) -> str | None:
        """Note that a conversation changed. Returns the cursor that it is in, if that is ours."""
        self._lines.pop(session_key, None)
        if (name := self._name_of(self._inboxes.get(session_key))) is not None:
            self._texts[name].changed(session_key)
            self._unwritten[name] = self._unwritten.get(name, 0) + 1
        return name

    def _count(self, session_key: str) -> None:
        """Note that something was handled that needs no answer: it may wait until more is to be written."""
        if (name := self._changed(session_key)) is not None and self._unwritten[name] >= MOST_UNWRITTEN:
            self._worker.note(name)

    def _name_of(self, inbox: Inbox | None) -> str | None:
        return self._names.get(self._shard(inbox.guild_id if inbox is not None else None))

    def _shard(self, guild_id: str | None) -> int:
        return shard_of(guild_id, self._shards.count)

    # ------------------------------------------------------------------ gaps

    def fall_behind(self, shards: Shards = EVERY) -> None:
        """Note a gap: a connection was lost, and what is said meanwhile has to be read later."""
        self._erased.clear()
        if not (self._catches_up and self._inboxes):
            return
        # Where nothing was heard of a shard, the gap begins where we last heard anything at all.
        newest = dict.fromkeys(shards.ids, 0)
        for inbox in self._inboxes.values():
            if shards.have(inbox.guild_id):
                shard = self._shard(inbox.guild_id)
                newest[shard] = max(newest[shard], inbox.newest)
                inbox.behind = True
        last = max(inbox.newest for inbox in self._inboxes.values())
        self._since.update({shard: number or last for shard, number in newest.items()})
        if shards.have(None):
            self._since.setdefault(_DMS, self._since[self._shard(None)])

    def is_behind(self, session_key: str) -> bool:
        """Whether a conversation has a gap."""
        inbox = self._inboxes.get(session_key)
        return inbox is not None and inbox.behind

    def has_gap(self, session_key: str, place: Place) -> bool:
        """Whether a conversation has a gap, which may be one in which nothing was heard yet."""
        if session_key in self._inboxes or session_key in self._erased:
            return self.is_behind(session_key)
        return self.since(place.guild_id) > 0

    def behind(self, shards: Shards = EVERY) -> Mapping[str, Inbox]:
        """The conversations of these shards with a gap, by session key."""
        inboxes = self._inboxes.items()
        return {key: inbox for key, inbox in inboxes if inbox.behind and shards.have(inbox.guild_id)}

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
        keys = {f"discord:channel:{channel_id}", f"discord:thread:{channel_id}"}
        known = {key for key in keys if key in self._inboxes}
        return known or {key for key, one in self._inboxes.items() if one.channel_id == channel_id} or keys

    def reach(self, session_key: str, place: Place) -> Inbox:
        """The inbox of a conversation. A new one begins at the newest message before the gap."""
        inbox = self._inboxes.pop(session_key, None)
        if inbox is None:
            floor, behind = self._erased.pop(session_key, 0), False
            if not floor and (since := self.since(place.guild_id)):  # what was erased is not read again
                floor, behind = max(since, self._erased_up_to(session_key)), True
            inbox = Inbox(place.channel_id, floor, behind=behind, guild_id=place.guild_id)
            self._make_room()
        elif inbox.guild_id is None and place.guild_id is not None:  # it was written by an older version
            inbox.guild_id = place.guild_id
        self._inboxes[session_key] = inbox  # the last one: that of the conversation that was active last
        return inbox

    def _erased_up_to(self, session_key: str) -> int:
        """The highest id that a message can have from before a person, whose DM it is, was erased; or 0."""
        user_id = person_of(session_key)
        return snowflake_at(self._consent.erased_at(user_id)) if user_id is not None else 0

    def _make_room(self) -> None:
        """Drop what was not active for longest. What waits for something stays, and moves to the end."""
        for _ in range(2):  # so that after many waited at once, they become fewer again
            if len(self._inboxes) < MOST * max(1, len(set(self._names.values()))):
                return
            key = next(iter(self._inboxes))
            inbox = self._inboxes.pop(key)
            if inbox.open or inbox.hearing or inbox.behind:
                self._inboxes[key] = inbox
            else:
                self._lines.pop(key, None)

    def since(self, guild_id: str | None) -> int:
        """The newest message of a server's shard before the gap; 0 when there is none."""
        return self._since.get(_DMS if guild_id is None else self._shard(guild_id), 0)

    def all_reached(self, shards: Shards) -> None:
        """Note that all conversations with a gap are known now: new ones begin with their first message.

        Not direct messages, which Discord doesn't list: with somebody's first one, we learn of all before it.
        """
        for shard in shards.ids:
            self._since.pop(shard, None)

    def knows(self, session_key: str) -> bool:
        """Whether anything was handled in a conversation."""
        return session_key in self._inboxes

    def caught_up(self, session_key: str) -> None:
        """Note that a conversation's gap was read."""
        if (inbox := self._inboxes.get(session_key)) is not None:
            inbox.caught_up()
            self._note(session_key)

    # ------------------------------------------------------------------ messages

    def take(self, place: Place, session_key: str, message_id: str) -> bool:
        """Begin to handle a message. Returns False if it was handled before, whatever has happened since."""
        number = int(message_id)
        known = session_key in self._inboxes
        inbox = self.reach(session_key, place)
        if inbox.floor == self._erased_up_to(session_key):
            # Nobody handled what arrives only now, though the erasing may be dated later: clocks differ.
            inbox.floor = min(inbox.floor, number - 1)
        if not known and not inbox.behind:
            inbox.floor = max(inbox.floor, number - 1)
            if place.kind == "dm":  # Discord lists none, so it would be found only when they write again
                self._note(session_key)
        return inbox.take(number)

    def pass_over(self, place: Place, session_key: str, message_ids: Iterable[int]) -> None:
        """Ignore messages that are not for the bot, now and later. Nothing that waits there is answered."""
        for number in message_ids:
            known = session_key in self._inboxes
            inbox = self.reach(session_key, place)
            if not known and not inbox.behind:
                inbox.floor = number - 1
            if inbox.pass_over(number):
                self._note(session_key)
            self._count(session_key)
        self.end(session_key, map(str, self.interrupted(session_key)), True)

    def passed(self, session_key: str, message_id: int) -> bool:
        """Whether a message was ignored as not for the bot."""
        inbox = self._inboxes.get(session_key)
        return inbox is not None and inbox.passed(message_id)

    def delay(self, session_key: str, message_id: str) -> None:
        """Write down that a message is still being handled, since that takes a while and we may be killed."""
        inbox = self._inboxes.get(session_key)
        if inbox is not None and int(message_id) in inbox.hearing:
            self._note(session_key)

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
            self._count(session_key)

    def give_back(self, session_key: str, message_ids: Iterable[str]) -> None:
        """Note that messages were not handled after all."""
        if (inbox := self._inboxes.get(session_key)) is not None:
            for message_id in message_ids:
                inbox.give_back(int(message_id))

    def begin(self, session_key: str, message_id: str, *, command: bool = False) -> None:
        """Note that somebody begins to answer a message."""
        if (inbox := self._inboxes.get(session_key)) is not None:
            inbox.open.setdefault(int(message_id), Open(command))
            self._working.add(int(message_id))
            self._note(session_key, 0.0 if command else BEHIND_S)

    def hold(self, session_key: str, message_ids: Iterable[str]) -> bool:
        """Take over messages whose answer waits for the chat. Returns False if they have it by now."""
        inbox, numbers = self._inboxes.get(session_key), set(map(int, message_ids))
        if inbox is not None and self._catches_up and not numbers & inbox.open.keys():
            return False
        self._working |= numbers
        return True

    def show(self, session_key: str, message_id: str, shown_id: str) -> None:
        """Note that a message of its answer was sent."""
        inbox = self._inboxes.get(session_key)
        waits = None if inbox is None else inbox.open.get(int(message_id))
        if inbox is not None and waits is not None and shown_id not in waits.shown:
            waits.shown.append(shown_id)
            self._note(session_key)

    def end(self, session_key: str, message_ids: Iterable[str], done: bool) -> None:
        """Note that nobody works on these messages any more. Unless `done`, they are answered later."""
        inbox = self._inboxes.get(session_key)
        for number in map(int, message_ids):
            self._working.discard(number)
            if inbox is not None and done:
                inbox.open.pop(number, None)
                self._note(session_key)

    async def on_disk(self, within_s: float) -> None:
        """Wait until the unanswered messages are on disk, but at most `within_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                self._write_rest()
                await self._worker.settle(*set(self._names.values()))

    # ------------------------------------------------------------------ personal data and the disk

    def back_in_touch(self) -> None:
        """Write at once what could not be written."""
        self._worker.hurry()

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Drop the direct messages of a person who is erased; of one who opted out, none stay on disk."""
        if phase != "ram":
            return
        if purge.erases and purge.user_id:
            dm = dm_of(purge.user_id)
            if (inbox := self._inboxes.pop(dm, None)) is not None and not inbox.behind:
                self._erased[dm] = inbox.newest
            self._lines.pop(dm, None)
        if purge.everything and purge.user_id and (name := self._names.get(self._shard(None))) is not None:
            self._texts[name].anew()
            self._worker.note(name, first=True)

    async def _write(self, name: str) -> None:
        if name not in self._names.values():
            return  # we left these shards
        unwritten = self._unwritten.get(name, 0)
        for cursor, keys in self._texts[name].writes(self._inboxes):
            if not await self._cursors.put_rendered(cursor, partial(self._rendered, name, keys)):
                raise OSError("the inbox could not be written")
        self._unwritten[name] = self._unwritten.get(name, 0) - unwritten

    def _rendered(self, name: str, session_keys: Iterable[str]) -> bytes:
        """A cursor's text: those of the conversations that belong in it and may be on disk."""
        known = ((key, self._inboxes[key]) for key in session_keys if key in self._inboxes)
        ours = [key for key, one in known if self._name_of(one) == name and self._may_keep(key)]
        return "\n".join(("{", ",\n".join(map(self._line, ours)), "}\n")).encode()

    def _line(self, session_key: str) -> str:
        """A conversation as it is on disk. Rendered only after a change, because this is called often."""
        if (line := self._lines.get(session_key)) is None:
            line = f"{json.dumps(session_key)}: {json.dumps(self._inboxes[session_key].as_json())}"
            self._lines[session_key] = line
        return line

    def _may_keep(self, session_key: str) -> bool:
        """Whether a conversation may be on disk: a direct message names its person."""
        user_id = person_of(session_key)
        return user_id is None or (self._names_people and not self._consent.opted_out(user_id))


# ---------------------------------------------------------------------- the texts of shards; blocking


def recent(name: str) -> str:
    """The cursor beside another one, with what changed since that was written. It counts."""
    return f"{name}_recent"


def moved_in(documents: Documents, shards: Shards) -> tuple[dict[int, str], dict[str, Any]]:
    """The names of the cursors of these shards, and all conversations in them. Raises OSError.

    What lies where older generations, or one process alone, have left it is there afterwards.
    """
    generation = _generation(documents, shards.count)
    names = {shard: f"{NAME}:{generation}:{shard}" for shard in shards.ids}
    texts = {text: int(of[1] or 0) for text in documents.names() if (of := _TEXT.fullmatch(text))}
    older = [text for of, text in sorted((of, text) for text, of in texts.items()) if of != generation]
    found: dict[str, Any] = {}
    missing: dict[int, dict[str, Any]] = {}
    for shard, name in names.items():
        here = [text for text in map(session_name, (name, recent(name))) if text in texts]
        for text in here:
            found.update(parsed(documents.read(text)))
        if not here:
            missing[shard] = {}
    for text in older:
        with suppress(FileNotFoundError):  # another process took the last of it, so nothing in it was ours
            for key, value in parsed(documents.read(text)).items():
                if (shard := _shard(value, shards)) in missing:
                    missing[shard][key] = value
    for shard, conversations in missing.items():
        documents.write(session_name(names[shard]), render_json(conversations))
        found.update(conversations)
    for text in older:
        _leave(documents, text, shards)
    return names, found


def channels_in(documents: Documents) -> dict[str, str]:
    """The channels of all conversations (keys) in which anything was handled. Raises OSError."""
    texts = [documents.read(name) for name in documents.names() if _TEXT.fullmatch(name)]
    inboxes = [(key, value) for text in texts for key, value in parsed(text).items()]
    return {key: str(one["channel"]) for key, one in inboxes if isinstance(one, Mapping) and "channel" in one}


def _generation(documents: Documents, count: int) -> int:
    """The generation of so many shards; a new one if there were others before."""

    def agreed(content: bytes | None) -> bytes | None:
        value = parsed(content)
        if value.get("count") == count:
            return None
        return render_json({"count": count, "generation": _number(value) + 1})

    return _number(parsed(documents.change(session_name(SHARDS), agreed)))


def _number(value: Mapping[str, object]) -> int:
    number = value.get("generation")
    return number if isinstance(number, int) else 0


def _leave(documents: Documents, text: str, shards: Shards) -> None:
    """Remove the conversations of these shards from a text, and the text with the last of them."""

    def others(content: bytes | None) -> bytes | None:
        if content is None:
            return None
        before = parsed(content)
        left = {key: value for key, value in before.items() if _shard(value, shards) not in shards.ids}
        return render_json(left) if left != before else None

    content = documents.change(text, others)
    if content is not None and not parsed(content):
        documents.remove([text])


def _shard(value: object, shards: Shards) -> int:
    guild = value.get("guild") if isinstance(value, Mapping) else None
    known = isinstance(guild, str) and guild.isascii() and guild.isdigit()
    return shard_of(guild if known else None, shards.count)
