"""The vectors of talk: which messages need one, and what is stored of a batch. Blocking; raises MemoryFault.

They lie in the archive, in three tables:

    archive_vectors     one row for each message that has one: its vector, with a byte for each number
    archive_unembedded  the messages that still need one
    `Engine.about`      one row: the model that made them, their length, how many texts were sent on which day

A message that is deleted, edited, or taken back leaves the first two with its words; the engine sees to that.
`Archive.look` compares vectors with questions. Independent of who makes the vectors, and when.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.consent import Consent
from discoclaw.core.message import Entry
from discoclaw.search.archive import COLUMNS, Archive, entry_of
from discoclaw.search.signatures import quantised
from discoclaw.store.port import Sql

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider of vectors: `model`, and `most` texts a day, None for any number.

    `here`: it runs on this machine, so that it may see private talk.
    """

    model: str
    here: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to embed, the newest first. `spent`: more are waiting, but not for today.

    `token` tells whether the model was replaced since.
    """

    entries: tuple[Entry, ...] = ()
    spent: bool = False
    token: int = 0


class TalkVectors:
    """The vectors that a provider made of an archive's messages."""

    def __init__(self, archive: Archive, provider: Provider, *, consent: Consent) -> None:
        self._engine = archive.engine
        self._provider = provider
        self._consent = consent
        self._outdated = 0
        self._open: dict[str, Callable[[], bool]] = {}

    @property
    def dims(self) -> int:
        """The length of the vectors, 0 if there are none, or if that is not known yet."""
        return self._engine.dims or 0

    def asked(self, vector: Sequence[float]) -> Sequence[float] | None:
        """The vector to search the archive with for a question; None if nothing can be compared with it."""
        return tuple(vector) if self._engine.dims in (None, len(vector)) else None

    def saw(self, place: str, *, open_: bool, still: Callable[[], bool] = lambda: True) -> None:
        """Note whether talk of a place may go to a provider elsewhere; it may not until that is known.

        `still` is asked again before each batch.
        """
        if open_:
            self._open[place] = still
        else:
            self._open.pop(place, None)

    def take(self, most: int, now_ms: int, without: Collection[int] = ()) -> Batch:
        """Up to `most` messages that need a vector, the newest first, but for those with these ids.

        Vectors of another model are removed first. A provider elsewhere gets only messages of open places.
        """
        outdated, day = self._outdated, now_ms // DAY_MS
        model, limit = self._provider.model, self._provider.most
        places = sorted(place for place, still in list(self._open.items()) if still())

        def begun(sql: Sql) -> bool:
            other = self._about(sql)[0] != model
            if other:
                self._set(sql, model=model, dims=0)
            return self._engine.begin(sql, anew=other)

        def work(sql: Sql) -> Batch:
            _, _, counted, sent = self._about(sql)
            sent = sent if counted == day else 0
            left = most if limit is None else min(most, limit - sent)
            waiting = self._waiting(sql, max(1, left), places, without)
            while never := [int(one.id) for one in waiting if not one.allowed(self._consent)]:
                self._leave_out(sql, never)
                waiting = self._waiting(sql, max(1, left), places, without)
            entries = tuple(waiting) if left > 0 else ()
            if entries and limit is not None:  # before they are sent: it may charge for what fails, too
                self._set(sql, day=day, sent=sent + len(entries))
            # Both only grow, so that the sum tells whether either did.
            return Batch(entries, bool(waiting) and left <= 0, outdated + self._engine.starts(sql))

        while self._engine.change(begun, False):
            pass
        return self._engine.change(work, Batch())

    def keep(self, made: Mapping[Entry, Sequence[float]], token: int) -> None:
        """Store the vectors of a batch with this token; none if the model was replaced since.

        One without a direction, or of another length, is left out. Vectors of another length than before
        replace those, which are made again.
        """
        packed = {entry: quantised(vector) for entry, vector in made.items()}
        length = max((len(vector) for vector in made.values()), default=0)
        good = {entry: one for entry, one in packed.items() if one is not None and len(one) == length}

        def work(sql: Sql) -> None:
            if token != self._outdated + self._engine.starts(sql):
                return
            model, dims, *_ = self._about(sql)
            allowed = {entry: one for entry, one in good.items() if entry.allowed(self._consent)}
            if allowed and model == self._provider.model:
                if dims not in (0, length):
                    self._engine.start_over(sql)
                self._set(sql, dims=length)
                self._store(sql, allowed)
            self._leave_out(sql, [int(entry.id) for entry in made.keys() - good.keys()])

        self._engine.change(work, None)

    def outdate(self) -> None:
        """Make `keep` ignore what was taken before; `start_over` follows. Never blocks."""
        self._outdated += 1

    def start_over(self) -> None:
        """Remove all vectors, to make new ones."""

        def work(sql: Sql) -> None:
            if self._about(sql)[0]:
                self._engine.start_over(sql)
                self._set(sql, dims=0)

        self._engine.change(work, None)

    # ------------------------------------------------------------------ inside: in a transaction

    def _about(self, sql: Sql) -> tuple[str, int, int, int]:
        """Model and length of the vectors, "" and 0 if not known yet; a day, and how many texts were sent."""
        ((model, dims, day, sent),) = sql.rows(f"SELECT model, dims, day, sent FROM {self._engine.about}")
        return model, dims, day, sent

    def _set(self, sql: Sql, **columns: object) -> None:
        changes = ", ".join(f"{name} = :{name}" for name in columns)
        sql.run(f"UPDATE {self._engine.about} SET {changes}", **columns)

    def _waiting(self, sql: Sql, most: int, places: Sequence[str], without: Collection[int]) -> list[Entry]:
        """The newest messages that need a vector, of those that the provider may see."""
        given = {} if self._provider.here else {"places": self._engine.places(places)}
        query = f"""SELECT {COLUMNS} FROM archive_entries WHERE id IN (
                SELECT id FROM archive_unembedded WHERE id NOT IN :without
                    {"AND place IN :places" if given else ""} ORDER BY id DESC LIMIT :most)
            ORDER BY id DESC"""
        return list(map(entry_of, sql.rows(query, without=list(without), most=most, **given)))

    def _store(self, sql: Sql, made: Mapping[Entry, bytes]) -> None:
        """Store the vectors of messages that are still there with the same text."""
        vectors = {int(entry.id): (entry.text, vector) for entry, vector in made.items()}
        rows = sql.rows("SELECT id, place, text FROM archive_entries WHERE id IN :ids", ids=list(vectors))
        kept = [
            (number, place, vectors[number][1]) for number, place, text in rows if text == vectors[number][0]
        ]
        self._engine.store(sql, kept)
        self._leave_out(sql, [number for number, *_ in kept])

    def _leave_out(self, sql: Sql, ids: Sequence[int]) -> None:
        """Remove messages from those that need a vector."""
        if ids:
            sql.run("DELETE FROM archive_unembedded WHERE id IN :ids", ids=ids)
