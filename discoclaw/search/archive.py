"""The archive: what was said, as searchable entries. A port with two implementations; everything here blocks.

    `archive_sqlite`    one file, beside a store of one process
    `archive_postgres`  tables of the database that several processes share

What is not SQL is shared: the changes (`archive_rows`), the queries (`archive_queries`), what a person took
back (`archive_withdrawing`), and the vectors (`archive_vectors`). Both find the same entries in the same
order. Failures become `MemoryFault`. Independent of ranking, and of who decides what is archived.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from discoclaw.core.audit import Readable
from discoclaw.core.consent import Consent
from discoclaw.core.entry import Entry
from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import Erasure, PersonalData, Removed, Withdrawn
from discoclaw.core.purge import Withdrawal
from discoclaw.core.subject import user_of
from discoclaw.search.archive_queries import Looked, Reader, Visible, look
from discoclaw.search.archive_rows import Change, Words
from discoclaw.search.archive_vectors import StoredVectors
from discoclaw.store.files import in_thread

T = TypeVar("T")


class Archive(PersonalData, ABC):
    """The archive of what was said. `vectors` are those of its messages."""

    name = "archive"
    vectors: StoredVectors

    @abstractmethod
    def readable(self) -> Iterator[Readable]: ...

    # ------------------------------------------------------------------ writing

    @abstractmethod
    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        """Make all of these changes, or none. Raises MemoryFault.

        `consent` is checked at the last moment, because the author may have been erased meanwhile.
        """

    @abstractmethod
    def purge(self, before_ms: int) -> int:
        """Remove what was said before a time (ms). Returns how many entries. Raises MemoryFault."""

    @abstractmethod
    def drop_channel(self, channel_id: str) -> int:
        """Remove what was said in a channel, or a thread, that was deleted. Raises MemoryFault."""

    @abstractmethod
    def sweep(self, consent: Consent) -> int:
        """Remove messages and answers that may no longer be stored.

        Returns how many entries. Raises MemoryFault.
        """

    @abstractmethod
    def erase_person(self, user_id: str) -> int:
        """Remove a person's messages, their direct messages, and the answers to them.

        Returns how many entries there were. Raises MemoryFault if any may be left; it can then be repeated.
        """

    @abstractmethod
    def take_out(self, withdrawal: Withdrawal) -> int:
        """Remove what a person took back.

        Returns how many entries there were. Raises MemoryFault if any may be left; it can then be repeated.
        """

    def erase(self, erasure: Erasure) -> Removed:
        """Remove everything about a person; all of it counts as one entry."""
        user_id = user_of(erasure.subject)
        try:
            return Removed(min(1, self.erase_person(user_id))) if user_id is not None else Removed()
        except MemoryFault as fault:
            return Removed(left=(str(fault),))

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        return Withdrawn(archived=await in_thread(self.take_out, withdrawal))

    # ------------------------------------------------------------------ reading

    @abstractmethod
    def ask(self, work: Callable[[Reader], T], nothing: T) -> T:
        """Return what queries find, or `nothing` if there is no archive. Raises MemoryFault."""

    def look(self, terms: Sequence[str], visible: Visible, asked: Sequence[float] | None = None) -> Looked:
        """Return what matches terms, and what is near a question's vector. Raises MemoryFault."""
        return self.ask(lambda reader: look(reader, terms, visible, asked), Looked())

    def holding(self, text: str, visible: Visible, *, limit: int) -> list[Entry]:
        """Return the newest entries that contain a literal text, among the newest that may be seen.

        Raises MemoryFault.
        """
        if not text or not visible.places:
            return []
        nothing: list[Entry] = []
        return self.ask(lambda reader: reader.holding(text, visible.places, limit), nothing)

    def speakers(self, visible: Visible) -> set[str]:
        """Return the names of those who spoke lately, where that may be seen. Raises MemoryFault."""
        return self.ask(lambda reader: reader.speakers(visible.places), set[str]())

    def present(self, channel_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the channels that have any entries. Raises MemoryFault."""
        wanted = frozenset(channel_ids)
        return self.ask(lambda reader: reader.present(wanted), frozenset[str]())

    @abstractmethod
    def close(self) -> None:
        """Release what is open until its next use."""
