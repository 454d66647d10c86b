"""Withdraws summaries: one that covers what a person took back is no longer used, and is written again.

That is so if the message lies between the first and the last one that it covers (the cursor
`summary-<session>`), or if it has the words. The cursor then says that the summary has to be written `again`,
and keeps what remains of it as `base`: the lines and sentences without these words, in case the messages
cannot be read any more. Nothing remains if these words are unknown, as after a restart: any line may have
them. The clear that is recorded hides copies elsewhere. The name of somebody who wants no memory is also
removed from the cursor `people-<session>`. Independent of how a summary is made.
"""

from collections.abc import Collection, Iterator, Mapping

from discoclaw.core.audit import Readable
from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import NOTHING_WITHDRAWN, PersonalData, Withdrawn
from discoclaw.core.purge import Withdrawal, Words
from discoclaw.core.rolling_text import read as read_text
from discoclaw.core.rolling_text import sentences
from discoclaw.core.subject import person_of
from discoclaw.core.times import time_of_snowflake, valid_ms
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors, read
from discoclaw.memory.erasing.cursor_files import names_of
from discoclaw.memory.erasing.files import JSON, json_names


class SummaryWithdrawal(PersonalData):
    """Takes summaries out of use in `rolling`; what they took in is in `cursors`."""

    name = "summaries in use"

    def __init__(self, rolling: RollingMemory, cursors: Cursors) -> None:
        self._rolling = rolling
        self._cursors = cursors

    def let_go(self, withdrawal: Withdrawal) -> Withdrawn:
        """Use no summary that may rest on it until `withdraw` has read its cursor."""
        channels = {*withdrawal.messages.values(), *withdrawal.changed.values()}

        def concerns(key: str, summary: str) -> bool:
            here = key.rpartition(":")[2] in channels or person_of(key) == withdrawal.user_id
            return bool(summary) and (here or withdrawal.everything or withdrawal.words.hold(summary))

        self._rolling.pause(withdrawal.subject, concerns)
        return NOTHING_WITHDRAWN

    def readable(self) -> Iterator[Readable]:
        """The summaries, and what remains of those that have to be written again.

        A summary is dated by the newest message that it covers.
        """
        documents = self._rolling.documents
        for name in json_names(documents):
            key = name.removesuffix(JSON)
            cursor = read(self._cursors.documents, f"summary-{name}")
            newest = time_of_snowflake(message_in(cursor))
            value = read(documents, name)
            at = newest or value.get("updatedAt")
            at = at if valid_ms(at) else 0
            yield Readable(f"{documents.folder / name}", str(value.get("summary", "")), key, at=at)
        folder = self._cursors.documents
        for name in json_names(folder):
            if name.startswith("summary-"):
                base, key = read(folder, name).get("base"), name.removeprefix("summary-").removesuffix(JSON)
                if isinstance(base, str) and base:
                    yield Readable(f"{folder.folder / name}", base, key)

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        gone = set[str]()
        for key in sorted(sessions):
            is_open = person_of(key) is None or not withdrawal.open_only
            if withdrawal.everything:
                await self._unname(key, withdrawal.user_id)
            if is_open and await self._rests_on(key, withdrawal, sessions):
                await self._withdraw(key, withdrawal)
                gone.add(key)
            elif is_open:
                await self._strike(key, withdrawal, sessions)
        return Withdrawn(summaries=frozenset(gone))

    def withdrawn(self, subject: str) -> None:
        self._rolling.resume(subject)

    async def _rests_on(self, key: str, withdrawal: Withdrawal, sessions: Collection[str]) -> bool:
        summary = (await self._rolling.held(key)).summary
        if not summary:
            return False
        said_here = await self._took_in(key, withdrawal, sessions)
        return withdrawal.everything or said_here or withdrawal.words.hold(summary)

    async def _took_in(self, key: str, withdrawal: Withdrawal, sessions: Collection[str]) -> bool:
        """Whether a conversation's summary took in a message that the withdrawal names."""
        cursor = await self._cursors.get(f"summary-{key}")
        first, last = message_in(cursor, "from"), message_in(cursor)
        if not last:
            return False  # most conversations have no summary, and a bulk deletion names thousands of both
        return any(
            first < int(message) <= last
            for message, channel in (*withdrawal.messages.items(), *withdrawal.changed.items())
            if message.isdigit() and _is_in(channel, key, sessions)
        )

    async def _withdraw(self, key: str, withdrawal: Withdrawal) -> None:
        """Take one summary out of use. Raises MemoryFault."""
        base = _left_of((await self._rolling.held(key)).summary, withdrawal)

        def again(known: Mapping[str, object]) -> Mapping[str, object]:
            times = known.get("again")
            return {**known, "again": (times if isinstance(times, int) else 0) + 1, "base": base}

        if not await self._cursors.update(f"summary-{key}", again):
            self._cursors.forget(f"summary-{key}")
            raise MemoryFault(f"that the summary of {key} has to be made again could not be noted")
        await self._rolling.clear(key)

    async def _strike(self, key: str, withdrawal: Withdrawal, sessions: Collection[str]) -> None:
        """Withdraw from the remains of a summary that has yet to be written again. Raises MemoryFault."""
        known = withdrawal.everything or withdrawal.words
        if not known and not await self._took_in(key, withdrawal, sessions):
            return
        base = (await self._cursors.get(f"summary-{key}")).get("base")
        if not isinstance(base, str) or (left := _left_of(base, withdrawal)) == base:
            return
        if not await self._cursors.update(f"summary-{key}", lambda known: {**known, "base": left}):
            self._cursors.forget(f"summary-{key}")
            raise MemoryFault(f"what is left of the summary of {key} could not be changed")

    async def _unname(self, key: str, user_id: str) -> None:
        """Remove somebody's name from the cursor of a conversation's summary. Raises MemoryFault."""
        name = f"people-{key}"
        if user_id not in names_of(await self._cursors.get(name)):
            return

        def unnamed(known: Mapping[str, object]) -> Mapping[str, object]:
            names = {one: called for one, called in names_of(known).items() if one != user_id}
            return {**known, "names": names}

        if not await self._cursors.update(name, unnamed):
            self._cursors.forget(name)
            raise MemoryFault(f"a name in the summary of {key} could not be removed")


def _left_of(text: str, withdrawal: Withdrawal) -> str:
    """The rest of a summary after a withdrawal of what it rests on."""
    if withdrawal.everything or not withdrawal.words:
        return ""
    return struck(text, withdrawal.words)


def struck(text: str, words: Words, but: frozenset[str] = frozenset(), *, half: bool = False) -> str:
    """A text without the sentences that have any of these words, or half of them; see `Words.hold`.

    A line of a section goes as a whole.
    """
    lines = (
        [one for one in sentences(line) if not words.hold(one, but, half=half)] for line in text.splitlines()
    )
    return str(read_text("\n".join(" ".join(line) for line in lines if line)))


def message_in(cursor: Mapping[str, object], name: str = "upTo") -> int:
    """The id of a message (snowflake) in a cursor; 0 if there is none."""
    value = cursor.get(name)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0


def _is_in(channel: str, key: str, sessions: Collection[str]) -> bool:
    """Whether a channel's talk belongs to a conversation; a DM's key does not name its channel."""
    if person_of(key) is None:
        return key.rpartition(":")[2] == channel
    return not {f"discord:channel:{channel}", f"discord:thread:{channel}"} & set(sessions)
