"""Which messages of a conversation were handled, and which of them still wait for their answer.

A message is handled once it was passed on to whoever stores talk; it is open from when it is to be answered
until it was answered, or its author was told why not. What is open when the process ends was interrupted.
Message ids are snowflakes, as numbers, so they sort by time.
Knows nothing about where this is stored or how a message is answered.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

KEPT: Final = 20
"""How many handled messages are remembered one by one. They are read again after a gap, for edits."""
MOST_UNHEARD: Final = 20
"""How many stretches of unheard talk are told apart; beyond that the two oldest become one."""
MOST_BEHIND: Final = 1_000
"""How many are told apart while the messages of a gap are still to be read."""
SEPARATE: Final = 3
"""Up to so many missed questions of a conversation are answered one by one."""
LATE_MS: Final = 3_600_000
"""Questions older than this get a word of apology instead of an answer nobody expects any more."""


@dataclass(slots=True)
class Open:
    """A message that is to be answered.

    `shown`: the messages that its answer has shown so far, by their ids. `command`: it is a text command,
    which must not be carried out twice.
    """

    command: bool = False
    shown: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Inbox:
    """One conversation. Every message up to `floor` is handled, and those in `handled`, which is sorted.

    `behind`: messages of a gap are still to be read, so `floor` stays below them. `hearing`: messages that
    are being handled; on disk they are not handled yet, so that a crash loses none. `unheard`: stretches of
    talk, first and last message, that was not for our ears, and is not to be read later either.
    `guild_id`: the server, by which a conversation finds its shard; None for a DM.
    """

    channel_id: str
    floor: int
    handled: list[int] = field(default_factory=list)
    open: dict[int, Open] = field(default_factory=dict)
    behind: bool = False
    hearing: set[int] = field(default_factory=set)
    unheard: list[tuple[int, int]] = field(default_factory=list)
    guild_id: str | None = None

    @property
    def newest(self) -> int:
        """The newest message that was handled, or was not for our ears."""
        return max(self._newest_heard, self.unheard[-1][1] if self.unheard else 0)

    @property
    def _newest_heard(self) -> int:
        return self.handled[-1] if self.handled else self.floor

    def has(self, message_id: int) -> bool:
        """Whether a message was handled."""
        at = bisect_left(self.handled, message_id)
        return (
            message_id <= self.floor or self.handled[at : at + 1] == [message_id] or self.passed(message_id)
        )

    def passed(self, message_id: int) -> bool:
        """Whether a message was not for our ears."""
        return any(first <= message_id <= last for first, last in self.unheard)

    def pass_over(self, message_id: int) -> bool:
        """A message is not for our ears. Returns whether it is the first after what was heard."""
        if self.has(message_id):
            return False
        goes_on = bool(self.unheard) and self._newest_heard <= self.unheard[-1][1]
        if goes_on:
            first, last = self.unheard.pop()
            self.unheard.append((min(first, message_id), max(last, message_id)))
        else:
            self.unheard.append((message_id, message_id))
        if len(self.unheard) > MOST_UNHEARD:
            (first, _), (_, last), *others = self.unheard
            self.unheard = [(first, last), *others]
        return not goes_on

    def take(self, message_id: int) -> bool:
        """Begin to handle a message. Returns False if that was done before."""
        if self.has(message_id):
            return False
        self.hearing.add(message_id)
        insort(self.handled, message_id)
        self._trim()
        return True

    def give_back(self, message_id: int) -> None:
        """A message was not handled after all."""
        self.hearing.discard(message_id)
        if message_id in self.handled:
            self.handled.remove(message_id)

    def heard(self, message_id: int) -> None:
        """A message was handled, and is open if it is to be answered."""
        self.hearing.discard(message_id)
        self._trim()

    def caught_up(self) -> None:
        """The gap was read."""
        self.behind = False
        self._trim()

    def _trim(self) -> None:
        surplus = len(self.handled) - (MOST_BEHIND if self.behind else KEPT)
        if self.hearing:
            surplus = min(surplus, bisect_left(self.handled, min(self.hearing)))
        if surplus > 0:
            self.floor = self.handled[surplus - 1]
            del self.handled[:surplus]

    def as_json(self) -> dict[str, Any]:
        """The inbox as it is stored."""
        unheard = {"unheard": [[str(one) for one in pair] for pair in self.unheard]} if self.unheard else {}
        guild = {"guild": self.guild_id} if self.guild_id is not None else {}
        return {
            **unheard,
            **guild,
            "channel": self.channel_id,
            "floor": str(min([self.floor, *(one - 1 for one in self.hearing)])),
            "handled": [str(one) for one in self.handled if one not in self.hearing],
            "open": [
                {"id": str(one), "command": waits.command, "shown": waits.shown}
                for one, waits in self.open.items()
            ],
        }

    @classmethod
    def of_json(cls, value: object) -> Self | None:
        """The inbox that was stored. None if it is damaged: it may be lost, and then nothing is caught up."""
        if not isinstance(value, Mapping):
            return None
        channel, floor = value.get("channel"), _number(value.get("floor"))
        if floor is None or not isinstance(channel, str) or _number(channel) is None:
            return None
        handled = sorted({one for one in map(_number, _list(value.get("handled"))) if one and one > floor})
        guild = value.get("guild")
        inbox = cls(channel, floor, handled, guild_id=guild if _number(guild) is not None else None)
        for pair in _list(value.get("unheard")):
            first, last = (*map(_number, _list(pair)), None, None)[:2]
            if first and last and first <= last:
                inbox.unheard.append((first, last))
        for one in _list(value.get("open")):
            if isinstance(one, Mapping) and (number := _number(one.get("id"))):
                shown = [text for text in _list(one.get("shown")) if _number(text)]
                inbox.open[number] = Open(one.get("command") is True, shown)
        return inbox


def _number(value: object) -> int | None:
    good = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20
    return int(str(value)) if good else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Question:
    """A message that was to be answered while the bot was away. `sent_at` is in ms since 1970."""

    id: str
    author_id: str
    sent_at: int


@dataclass(frozen=True, slots=True)
class Due:
    """Questions that get one answer, oldest first; `late`: an apology instead."""

    ids: tuple[str, ...]
    late: bool


def due(questions: Sequence[Question], now_ms: int) -> list[Due]:
    """The answers due to a conversation's missed questions, in the order of their newest ones.

    Few are answered one by one. Of many, each person's get one answer: an answer rests on one person's
    memory. Old ones get a word of apology, one for each person.
    """
    late = [one for one in questions if one.sent_at < now_ms - LATE_MS]
    fresh = [one for one in questions if one.sent_at >= now_ms - LATE_MS]
    together = _by_author(fresh) if len(fresh) > SEPARATE else [(one.id,) for one in fresh]
    found = [Due(ids, True) for ids in _by_author(late)] + [Due(ids, False) for ids in together]
    return sorted(found, key=lambda one: int(one.ids[-1]))


def _by_author(questions: Iterable[Question]) -> list[tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for one in questions:
        found.setdefault(one.author_id, []).append(one.id)
    return [tuple(sorted(ids, key=int)) for ids in found.values()]
