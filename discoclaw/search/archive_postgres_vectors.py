"""The vectors of an archive in PostgreSQL. Nothing of them lies in RAM. Blocking; raises psycopg.Error.

The signs are compared in the database, rather than in each process: an erasing in one process would have to
reach the RAM of all others. That costs 24 ms for 100,000 messages that may be seen, and 1 ms for those of one
channel; in RAM it is 2 ms for all of them. A vector leaves in the transaction in which its text does, by the
foreign keys.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from discoclaw.core.entry import Entry
from discoclaw.search.archive_postgres_rows import LOCK, WANTED, place_number
from discoclaw.search.archive_rows import COLUMNS, entry_of
from discoclaw.search.archive_vectors import VectorWriter
from discoclaw.search.signatures import MIXING, MOST_BITS

if TYPE_CHECKING:
    from discoclaw.store.postgres.connection import Connection

T = TypeVar("T")

AT_ONCE = 5_000
"""How many entries are listed as without a vector in one transaction."""


class PostgresVectorWriter:
    """A `VectorWriter` of one transaction."""

    def __init__(self, db: "Connection") -> None:
        self._db = db
        db.execute(LOCK)

    def begin(self, model: str) -> bool:
        """Remove vectors of another model, and list entries that need one. Returns whether there are more."""
        if self.state()[0] != model:
            self._db.execute("UPDATE archive_state SET model = %s", (model,))
            self.start_over(0)
        sql = """SELECT e.seq FROM archive_state, LATERAL (
            SELECT seq FROM archive_entries WHERE seq < unlisted ORDER BY seq DESC LIMIT %s) AS e"""
        seqs = [row[0] for row in self._db.execute(sql, (AT_ONCE,))]
        if seqs:
            self._db.execute(WANTED, {"seqs": seqs})
            self._db.execute("UPDATE archive_state SET unlisted = %s", (min(seqs),))
        return len(seqs) == AT_ONCE

    def state(self) -> tuple[str, int]:
        ((model, dims),) = self._db.execute("SELECT model, dims FROM archive_state").fetchall()
        return str(model), int(dims)

    def starts(self) -> int:
        ((starts,),) = self._db.execute("SELECT starts FROM archive_state").fetchall()
        return int(starts)

    def start_over(self, dims: int) -> None:
        self._db.execute("TRUNCATE archive_vectors, archive_signs, archive_unembedded")
        self._db.execute("""UPDATE archive_state SET starts = starts + 1,
            unlisted = 1 + coalesce((SELECT max(seq) FROM archive_entries), 0)""")
        self.set_dims(dims)

    def set_dims(self, dims: int) -> None:
        self._db.execute("UPDATE archive_state SET dims = %s", (dims,))

    def sent(self, day: int) -> int:
        ((known, sent),) = self._db.execute("SELECT day, sent FROM archive_state").fetchall()
        return int(sent) if known == day else 0

    def spend(self, texts: int, day: int) -> None:
        sql = """UPDATE archive_state SET day = %(day)s,
            sent = %(texts)s + CASE WHEN day = %(day)s THEN sent ELSE 0 END"""
        self._db.execute(sql, {"day": day, "texts": texts})

    def waiting(self, place: str | None, without: Collection[int], most: int) -> list[int]:
        sql = f"""SELECT id FROM archive_unembedded
            WHERE {"" if place is None else "place = %(place)s AND"} id <> ALL(%(without)s::bigint[])
            ORDER BY id DESC LIMIT %(most)s"""
        # As a text: psycopg takes 0.7 s for a list of 300,000, and the server ends what idles for 1.5 s.
        ids = ",".join(map(str, without))
        given = {"place": place_number(place or ""), "without": f"{{{ids}}}", "most": most}
        return [row[0] for row in self._db.execute(sql, given)]

    def entries(self, numbers: Collection[int]) -> tuple[Entry, ...]:
        sql = f"SELECT {COLUMNS} FROM archive_entries WHERE id = ANY(%s) ORDER BY id DESC"
        return tuple(entry_of(row) for row in self._db.execute(sql, (list(numbers),)))

    def leave_out(self, ids: Iterable[str]) -> None:
        self._db.execute("DELETE FROM archive_unembedded WHERE id = ANY(%s)", (list(map(int, ids)),))

    def put(self, made: Mapping[Entry, bytes]) -> None:
        ids = [int(entry.id) for entry in made]
        # The vectors and the texts are of what was taken; what is stored by now decides.
        sql = """INSERT INTO archive_vectors (id, vector)
            SELECT e.id, given.vector FROM unnest(%s::bigint[], %s::text[], %s::bytea[])
                AS given (id, text, vector) JOIN archive_entries e ON e.id = given.id AND e.text = given.text
            ON CONFLICT (id) DO UPDATE SET vector = excluded.vector RETURNING id"""
        texts = [entry.text for entry in made]
        kept = [row[0] for row in self._db.execute(sql, (ids, texts, list(made.values())))]
        signs = {int(entry.id): bits_of(_numbers(vector)) for entry, vector in made.items()}
        sql = """INSERT INTO archive_signs (id, place, mixed, signs)
            SELECT e.id, e.place, given.mixed, given.signs::bit varying
            FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS given (id, mixed, signs)
                JOIN archive_entries e ON e.id = given.id
            ON CONFLICT (id) DO UPDATE SET signs = excluded.signs"""
        self._db.execute(sql, (kept, list(map(_mixed, kept)), [signs[one] for one in kept]))
        self.leave_out(map(str, kept))


class PostgresVectors:
    """The vectors of an archive in PostgreSQL. `write` is one transaction of the archive."""

    size = 0

    def __init__(self, write: Callable[[Callable[["Connection"], object]], object]) -> None:
        self._write = write
        self.dims = 0
        """Length of the vectors when last read: another process may have changed it since."""

    def compares(self, length: int) -> bool:
        return self.dims in (0, length)

    def change(self, work: Callable[[VectorWriter], T], nothing: T, *, model: str | None = None) -> T:
        outcome = nothing

        def begun(db: "Connection") -> bool:
            return model is not None and PostgresVectorWriter(db).begin(model)

        def changed(db: "Connection") -> None:
            nonlocal outcome
            writer = PostgresVectorWriter(db)
            if model is not None or writer.state()[0]:
                outcome = work(writer)
            self.dims = writer.state()[1]

        while self._write(begun):
            pass
        self._write(changed)
        return outcome


def bits_of(numbers: Sequence[float]) -> str:
    """The signs of a vector: which of its first numbers are above 0, as they are in `signatures`."""
    import numpy as np

    return "".join(np.where(np.asarray(numbers, np.float32)[:MOST_BITS] > 0, "1", "0").tolist())


def _numbers(vector: bytes) -> Sequence[float]:
    import numpy as np

    numbers: Sequence[float] = np.frombuffer(vector, np.int8).tolist()
    return numbers


def _mixed(number: int) -> int:
    """An id in an order that has nothing to do with time; the same order as in `signatures`."""
    return (number * MIXING) % 2**64 - 2**63
