"""For whom each of the bot's messages was, whatever the chat says later.

The log of a channel's messages is `answers/<channel id>.<period>.jsonl`:

    {"id": "<our message>", "to": "<user id>", "of": ["<a message that it answers>"]}
    {"id": "<our message>"}    it may not be used any more

Ids only, no words. The second line follows the first where the question was deleted; where the person was
erased or wants no memory, it is all there is: nobody is named, and the message stays unused. Of several lines
about a message the last one counts. A period is about a hundred days, by the message's id.

Lines are queued at once and written behind the turn; nothing is kept in RAM after that, and a log is read
only when a channel's history is. If the program is killed between a message and its line, what the chat says
is all that is known. Independent of Discord and of who reads.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.consent import Permission
from discoclaw.core.errors import faulting
from discoclaw.core.message import Said
from discoclaw.core.purge import Outcome, Phase, Purge
from discoclaw.core.subject import user_subject
from discoclaw.core.times import time_of_snowflake
from discoclaw.memory.kept import Behind, Lines
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import ANSWERS, Disk

MOST_WAITING: Final = 10_000
"""The most lines that wait for the disk; beyond that the oldest are lost."""
_PERIOD: Final = 55
"""A message's id without so many bits is its period: the time in ms is the part behind the lowest 22."""
_NAME: Final = re.compile(r"([0-9A-Za-z_-]+)\.(\d+)\.jsonl")


@dataclass(frozen=True, slots=True)
class Entry:
    """One of our messages, whom it is `to` and the messages it answers; neither if it may not be used."""

    id: str
    to: str = ""
    of: tuple[str, ...] = ()


def _shape(entry: Entry) -> object:
    return {"id": entry.id, "to": entry.to, "of": entry.of} if entry.to else {"id": entry.id}


def _parsed(value: object) -> Entry | None:
    match value:
        case {"id": str(one), "to": str(to), "of": [*of]}:
            return Entry(one, to, tuple(map(str, of)))
        case {"id": str(one)}:
            return Entry(one)
    return None


_LINES: Final = Lines(_parsed, _shape)


class Answers(Behind[Entry]):
    """The answers in a store; without one, those of this run. It is a `core.ports.Service`.

    `keeps`: a store may name people. Where nothing is remembered and nothing summed up, it names nobody.
    """

    name = "answers in RAM"

    def __init__(self, disk: Disk, *, keeps: bool = True) -> None:
        super().__init__("whom answers were for", "writing", MOST_WAITING)
        self._disk = disk
        self._keeps = keeps and disk.remembers

    def sent(self, channel_id: str, message_id: str, permission: Permission, of: tuple[str, ...]) -> None:
        """A message was sent in answer to these, whose person gave this permission. Never blocks."""
        entry = Entry(message_id, permission.user_id, of) if permission.holds else Entry(message_id)
        self._note(_name(channel_id, message_id), [entry], write=self._keeps)

    async def known(self, said: Iterable[Said], channel_id: str, gone: Collection[str] = ()) -> list[Said]:
        """The messages of a channel with what is known of ours, without those that may not be used.

        Nor may answers to messages that are `gone`, or of which the chat says so. Raises MemoryFault.
        """
        messages = list(said)
        ours = {one.id for one in messages if one.by_us}
        names = {_name(channel_id, one) for one in ours}
        before = self._of_waiting(names)  # what is written meanwhile may be in neither of the others
        with faulting("whom answers were for can't be read"):
            there = await read_in_thread(self._read, names) if names else []
        held = {one.id: one for one in (*before, *there, *self._of_waiting(names)) if one.id in ours}
        told = [
            one if (entry := held.get(one.id)) is None else replace(one, to_id=entry.to, of=entry.of)
            for one in messages
        ]
        lost = {asked for one in told if one.of_gone for asked in one.of}
        if lost:
            await self.drop_answers_to(dict.fromkeys(lost, channel_id))
        lost.update(gone)
        unusable = {one.id for one in held.values() if not one.to}
        return [one for one in told if one.id not in unusable and lost.isdisjoint(one.of)]

    async def drop_answers_to(self, deleted: Mapping[str, str]) -> Mapping[str, str]:
        """Use no answer to these messages any more, which were deleted (their channels, by their ids).

        Returns the channels of the answers, by their ids. Raises MemoryFault.
        """
        async with self._alone:
            with faulting("the answers to deleted messages can't be found"):
                found = await in_thread(self._answers_to, deleted) if deleted else {}
        for name in self._waiting:
            if some := _to(deleted, self._waiting[name]):
                found.setdefault(name, []).extend(some)
        for name, entries in found.items():
            self._note(name, [Entry(one.id) for one in entries], write=self._keeps)
        await self._worker.settle()
        return {one.id: name.partition(".")[0] for name, entries in found.items() for one in entries}

    # ------------------------------------------------------------------ personal data

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        """Name nobody who was erased, or wants no memory."""
        user_id = purge.user_id
        if not (purge.everything and user_id):
            return None
        for name, entries in self._waiting.items() if phase == "ram" else ():
            self._waiting[name] = [Entry(one.id) if one.to == user_id else one for one in entries]
        return self._alone_in_thread(erase, self._disk, user_id) if phase == "disk" else None

    # ------------------------------------------------------------------ inside

    def _of_waiting(self, names: Iterable[str]) -> list[Entry]:
        return [one for name in names for one in self._waiting.get(name, ())]

    def _read(self, names: Iterable[str]) -> list[Entry]:
        return [one for name in names for one in _LINES.of(self._disk.log(f"{ANSWERS}/{name}").read())]

    def _answers_to(self, deleted: Mapping[str, str]) -> dict[str, list[Entry]]:
        """The answers to deleted messages, which stand in their channels and the threads below them."""
        channels, oldest = {*deleted, *deleted.values()}, min(map(_period, deleted))
        found: dict[str, list[Entry]] = {}
        for name in self._disk.documents(ANSWERS).names():
            if (of := _NAME.fullmatch(name)) and of[1] in channels and int(of[2]) >= oldest:
                newest = {one.id: one for one in self._read([name])}
                if some := _to(deleted, newest.values()):
                    found[name] = some
        return found

    def _append(self, name: str, waiting: Collection[Entry]) -> bool:
        _LINES.append(self._disk.log(f"{ANSWERS}/{name}"), waiting)
        return True


def _to(deleted: Mapping[str, str], entries: Iterable[Entry]) -> list[Entry]:
    """The entries of answers to deleted messages."""
    return [one for one in entries if not deleted.keys().isdisjoint(one.of)]


def _period(message_id: str) -> int:
    return int(message_id) >> _PERIOD


def _name(channel_id: str, message_id: str) -> str:
    return f"{channel_id}.{_period(message_id)}.jsonl"


def erase(disk: Disk, user_id: str) -> None:
    """Name a person in no log of a store any more; what was said to them stays unused. Raises OSError."""
    named = f'"{user_id}"'.encode()
    for name in disk.documents(ANSWERS).names():
        log = disk.log(f"{ANSWERS}/{name}")
        if named in log.read():
            _LINES.change(log, lambda one: Entry(one.id) if one.to == user_id else one)


def take(source: Disk, target: Disk, erased_at: Callable[[str], int]) -> None:
    """Add what one store knows to another one, to which nobody else writes. Raises OSError and MemoryFault.

    `erased_at` returns when (ms) a subject was last erased.
    """
    for name in filter(_NAME.fullmatch, source.documents(ANSWERS).names()):
        there = _LINES.of(source.log(f"{ANSWERS}/{name}").read())
        young = (
            one if erased_at(user_subject(one.to)) < time_of_snowflake(int(one.id)) else Entry(one.id)
            for one in there
        )
        _LINES.add(target.log(f"{ANSWERS}/{name}"), young)
