"""The archive in PostgreSQL, which several processes may share. Everything here blocks.

Every process may write and search. One transaction at a time changes the archive, and each is short: what
may be much is removed in parts. Failures become `MemoryFault`. After one, the caller offers again what it
wanted to write; that changes nothing if it was written after all. The tables are in
`memory/disk/postgres/archive`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from discoclaw.core.audit import Readable
from discoclaw.core.consent import NEVER, Consent
from discoclaw.core.entry import Entry
from discoclaw.core.errors import MemoryFault
from discoclaw.core.taken_back import Withdrawal
from discoclaw.search.archive import Archive
from discoclaw.search.archive_postgres_reader import PostgresReader
from discoclaw.search.archive_postgres_rows import PostgresWriter
from discoclaw.search.archive_postgres_vectors import PostgresVectors
from discoclaw.search.archive_queries import Reader
from discoclaw.search.archive_rows import Change, Indexed, Put, Words, make, number_of
from discoclaw.search.archive_withdrawing import withdraw

if TYPE_CHECKING:
    from discoclaw.memory.disk.postgres.connection import Connection
    from discoclaw.memory.disk.postgres.tables import Tables

T = TypeVar("T")

AT_ONCE = 500
"""The most entries that one transaction removes or reads."""
_THEIRS = """(author_id = %(person)s OR (to_id = %(person)s AND to_id <> '') OR place = %(place)s)
    AND sent_at <= %(until)s"""
_FOR_EVER = 2**63 - 1
# Each person once, without reading all entries: from one to the next along the index.
_PEOPLE = """WITH RECURSIVE people AS (
        (SELECT {column} AS person FROM archive_entries WHERE {column} > %(after)s ORDER BY 1 LIMIT 1)
        UNION ALL
        SELECT (SELECT {column} FROM archive_entries WHERE {column} > person ORDER BY 1 LIMIT 1)
        FROM people WHERE person IS NOT NULL)
    SELECT person FROM people WHERE person IS NOT NULL LIMIT %(most)s"""
_READABLE = """SELECT seq, id, session_key, author_id, text, sent_at, by_us, to_id FROM archive_entries
    WHERE seq > %s ORDER BY seq LIMIT %s"""


class PostgresArchive(Archive):
    """The archive in the database of a store."""

    def __init__(self, tables: "Tables") -> None:
        self._tables = tables
        self.vectors: PostgresVectors = PostgresVectors(self._change)

    def readable(self) -> Iterator[Readable]:
        after = 0
        while rows := self._rows(_READABLE, (after, AT_ONCE)):
            for _, message, session, author, text, sent_at, by_us, to in rows:
                who, whom = ("-", to) if by_us else (author, "")
                where = str(self._tables.path / "archive_entries")
                yield Readable(where, text, session, "", who, whom, str(message), sent_at)
            after = rows[-1][0]

    # ------------------------------------------------------------------ writing

    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        # A transaction that waits for us blocks all others, so the words are made before it.
        made = {one.entry: words(one.entry) for one in changes if isinstance(one, Put)}

        def known(entry: Entry) -> Indexed:
            return made[entry] if entry in made else words(entry)

        def work(db: "Connection") -> None:
            writer = PostgresWriter(db)
            for change in changes:
                make(writer, change, known, consent)
            writer.flush()

        self._change(work)

    def purge(self, before_ms: int) -> int:
        return self._remove("sent_at < %(before)s", {"before": before_ms})

    def drop_channel(self, channel_id: str) -> int:
        where = "(channel_id = %(channel)s OR (place = %(place)s AND place > 0))"
        return self._remove(where, {"channel": channel_id, "place": number_of(channel_id) or 0})

    def sweep(self, consent: Consent) -> int:
        gone = 0
        for person in self._people():
            if (until := consent.cutoff(person)) > NEVER:
                gone += self._remove_person(person, until)
        return gone

    def erase_person(self, user_id: str) -> int:
        return self._remove_person(user_id)

    def take_out(self, withdrawal: Withdrawal) -> int:
        if withdrawal.everything:
            return self._remove_person(withdrawal.user_id, withdrawal.at)
        return self._change(lambda db: len(withdraw(PostgresWriter(db), withdrawal)))

    # ------------------------------------------------------------------ reading

    def ask(self, work: Callable[[Reader], T], nothing: T) -> T:
        def asked(db: "Connection") -> T:
            reader = PostgresReader(db)
            outcome = work(reader)
            self.vectors.dims = reader.dims if reader.dims is not None else self.vectors.dims
            return outcome

        try:
            return self._tables.read(asked)
        except OSError as error:
            raise MemoryFault(f"the archive cannot be read: {error}") from error

    def close(self) -> None:
        """The connections belong to the store, which closes them."""

    # ------------------------------------------------------------------ inside

    def _change(self, work: Callable[["Connection"], T]) -> T:
        try:
            return self._tables.write(work)
        except OSError as error:
            raise MemoryFault(f"the archive cannot be changed: {error}") from error

    def _rows(self, sql: str, given: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self._tables.read(lambda db: db.execute(sql, given).fetchall())

    def _remove(self, where: str, given: Mapping[str, Any]) -> int:
        """Delete entries in parts, each with everything that was made of it. Returns how many."""
        gone = 0
        while part := self._change(lambda db: PostgresWriter(db).remove(where, given, AT_ONCE)):
            gone += part
        return gone

    def _remove_person(self, person: str, until_ms: int = _FOR_EVER) -> int:
        """Delete a person's messages, the answers to them, and everything in their direct messages."""
        if not person:
            return 0
        place = -(number_of(person) or 0) or None
        return self._remove(_THEIRS, {"person": person, "place": place, "until": until_ms})

    def _people(self) -> Iterator[str]:
        """Authors and addressees. Raises MemoryFault."""
        for column in ("author_id", "to_id"):
            sql, after = _PEOPLE.format(column=column), ""
            while people := self._read(sql, {"after": after, "most": AT_ONCE}):
                yield from (person for (person,) in people)
                after = people[-1][0]

    def _read(self, sql: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._rows(sql, given)
        except OSError as error:
            raise MemoryFault(f"the archive cannot be read: {error}") from error
