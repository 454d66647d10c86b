"""The archive of talk: what was said, as entries that can be searched. Everything here blocks.

It lies in one of two engines, which find the same entries in the same order:

    archive_file     one SQLite file, beside a store of one process
    archive_tables   tables of the database that several processes share

An engine runs transactions, keeps an index of the terms, chooses and ranks by it, and removes the bytes of
what is deleted. Everything else is here, once: the statements, the changes, and what a person took back.

- The place of an entry says who may find it: a channel with its open threads ("@g55"), a private thread, or
  the direct messages of one person ("@d7"). Every query filters by places, so nothing else leaves a database.
- A search costs the same however much there is: rare terms choose by BM25 among at most `MOST_SCORED`
  entries, and common ones bring only their newest.
- A message that is deleted, edited, or taken back loses its words and its vector in the same transaction.

Failures become `MemoryFault`. Independent of how talk is ranked for an answer, and of who decides what is
archived.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from discoclaw.core.consent import ALWAYS, NEVER, Consent
from discoclaw.core.message import Entry
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged, Readable, terms_of
from discoclaw.core.purge import Words as Spoken
from discoclaw.core.text import scrub
from discoclaw.core.words import others_for
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.search.archive_tables import ArchiveTables
from discoclaw.search.signatures import cosines
from discoclaw.store.files import in_thread
from discoclaw.store.port import Sql

AT_ONCE = 500
"""The most entries that are stored together."""
CANDIDATES = 100
WITH_NEIGHBOURS = 30
"""For how many candidates, best first, the two messages before and after are fetched too."""
NEAREST = 150
"""How many of the nearest by their signs are compared by their vectors."""
NEAR = 30
"""How many of these are candidates."""
NEAREST_WITH_NEIGHBOURS = 10
"""For how many of the nearest by meaning the two messages before and after are fetched too."""
USUAL = 64
"""From how many messages the usual cosine of a question is taken."""
LATELY = 500
"""The messages from which the names of speakers are taken, the newest."""
MOST_SCORED = 3_000
"""The most entries scored for one query."""
MOST_SEARCHED = 20_000
"""The most entries, newest first, that a literal search goes through."""
OFTEN = 20
"""In how many messages of a person a word may be and still identify one."""

_LARGEST = 2**63 - 1
_ENDING = 3
"""How much longer than the other a term may be: the stems of two languages end differently."""


# ---------------------------------------------------------------------- values


@dataclass(frozen=True, slots=True)
class Indexed:
    """An entry's index data: its terms, and its length for scoring.

    The first `own` terms are from its text, with repetitions; the next `marks` name it; the rest are dates.
    """

    terms: Sequence[str]
    length: int
    own: int
    marks: int


Words = Callable[[Entry], Indexed]
"""Returns the index data of an entry."""


@dataclass(frozen=True, slots=True)
class Put:
    """Insert an entry, or update one with its id by the same author; `fresh`: only insert.

    Where a message is and who wrote it never change.
    """

    entry: Entry
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Amend:
    """Replace the text of a person's message."""

    id: str
    author_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete a message."""

    id: str


@dataclass(frozen=True, slots=True)
class Only:
    """Delete a conversation's other messages by people between the first and the last of these."""

    session_key: str
    ids: tuple[str, ...]


Change = Put | Amend | Drop | Only


@dataclass(frozen=True, slots=True)
class Visible:
    """The places somebody may see: channels with their open threads, single private threads, one person's DM.

    All are Discord ids; invalid ones are ignored.
    """

    channel_ids: frozenset[str] = frozenset()
    dm_of: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The places of entries that may be seen."""
        channels = [f"@g{one}" for one in sorted(self.channel_ids) if _is_id(one)]
        return (*channels, *([f"@d{self.dm_of}"] if self.dm_of is not None and _is_id(self.dm_of) else []))


@dataclass(frozen=True, slots=True)
class Looked:
    """Entries that were found, with their neighbours, as they are searched too, and which are next to which.

    `total` is the number of all entries, `average` their mean length; `frequencies` say how many have a term.
    `cosines` are those of a question's vector with the entries that have one, `usual` is the mean one with
    what may be seen.
    """

    entries: tuple[Entry, ...] = ()
    indexed: Mapping[str, Indexed] = field(default_factory=dict)
    neighbours: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    total: int = 0
    average: float = 1.0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    usual: float = 0.0


Engine = ArchiveFile | ArchiveTables
"""What an archive lies in. `ArchiveFile` says what each method does."""


# ---------------------------------------------------------------------- statements

COLUMNS = "id, session_key, channel_id, group_id, guild_id, author_id, name, text, sent_at, by_us, to_id"
"""The columns of an `Entry`, in the order of its fields."""
_INDEXED = "terms, length, own, marks"
_ALL = f"{COLUMNS}, place, {_INDEXED}"
_OF_AUTHOR = f"SELECT {COLUMNS} FROM archive_entries WHERE id = :id AND author_id = :author"
_INSERT = f"INSERT INTO archive_entries ({_ALL}) VALUES (:{_ALL.replace(', ', ', :')})"
# Rows are updated in place: replacing one would bypass the triggers of a file, and leave its words.
_UPDATE = """UPDATE archive_entries SET name = :name, text = :text,
        terms = :terms, length = :length, own = :own, marks = :marks WHERE id = :id"""
_OF_PERSON = """(author_id = :person OR (to_id = :person AND to_id <> '') OR place IN :places)
    AND sent_at <= :until"""
_THEIRS = """((author_id = :person AND NOT :alone) OR (to_id = :person AND to_id <> ''))
    AND sent_at <= :until"""
_OPEN = "group_id IS NOT NULL AND NOT (session_key LIKE :thread AND group_id = channel_id)"
_THREAD = "discord:thread:%"
_BETWEEN = "session_key = :key AND id BETWEEN :first AND :last AND NOT by_us AND id NOT IN :ids"
# Each person once, without reading all entries: from one to the next along the index.
_PEOPLE = """WITH RECURSIVE people (person) AS (
        SELECT min({0}) FROM archive_entries WHERE {0} > :after AND {0} <> ''
        UNION ALL
        SELECT (SELECT min({0}) FROM archive_entries WHERE {0} > person AND {0} <> '')
        FROM people WHERE person IS NOT NULL)
    SELECT person FROM people WHERE person IS NOT NULL LIMIT :most"""
_BESIDE = """SELECT id,
        (SELECT id FROM archive_entries WHERE session_key = here.session_key AND id < here.id
            ORDER BY id DESC LIMIT 1),
        (SELECT id FROM archive_entries WHERE session_key = here.session_key AND id > here.id
            ORDER BY id LIMIT 1)
    FROM archive_entries AS here WHERE id IN :ids"""
_VECTORS = "SELECT id, vector FROM archive_vectors WHERE id IN :ids AND length(vector) = :length ORDER BY id"


class Archive(Derived):
    """The archive of what was said, in an engine."""

    name = "archive"

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def audit(self) -> Iterator[Readable]:
        columns = "id, session_key, author_id, text, sent_at, by_us, to_id"
        for message, session, author, text, sent_at, by_us, to in self.engine.listed(columns):
            who, whom = ("-", to) if by_us else (author, "")
            yield Readable(self.engine.where, text, session, "", who, whom, str(message), sent_at)
        yield from (Readable(self.engine.where, one) for one in self.engine.orphans())

    def close(self) -> None:
        """Release what is open until its next use."""
        self.engine.close()

    # ------------------------------------------------------------------ writing

    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        """Make all of these changes, or none. An entry whose id does not fit a database is left out.

        `consent` is checked at the last moment, because the author may have been erased meanwhile. Raises
        MemoryFault.
        """
        # A transaction that waits for us blocks all others, so the words are made before it.
        made = {one.entry: words(one.entry) for one in changes if isinstance(one, Put)}

        def indexed(entry: Entry) -> Indexed:
            return made[entry] if entry in made else words(entry)

        def work(sql: Sql) -> None:
            puts: dict[int, Put] = {}
            for change in changes:
                if not isinstance(change, Put) or len(puts) >= AT_ONCE or _id_of(change) in puts:
                    self._put(sql, puts, indexed)
                    puts = {}
                if isinstance(change, Only):  # the bot's own answers stay: the chat may lack some
                    if ids := [number for one in change.ids if (number := _number_of(one)) is not None]:
                        given = {"key": change.session_key, "first": min(ids), "last": max(ids), "ids": ids}
                        self._remove(sql, _BETWEEN, given)
                elif (number := _id_of(change)) is None:
                    continue
                elif isinstance(change, Drop):
                    self._remove(sql, "id = :id", {"id": number})
                elif isinstance(change, Put):
                    if change.entry.allowed(consent):
                        puts[number] = change
                elif (known := sql.one(_OF_AUTHOR, id=number, author=change.author_id)) is not None:
                    entry = replace(entry_of(known), text=scrub(change.text))
                    if entry.allowed(consent):
                        puts[number] = Put(entry)
            self._put(sql, puts, indexed)

        self.engine.change(work, None, create=bool(made))

    def _put(self, sql: Sql, puts: Mapping[int, Put], words: Words) -> None:
        """Store entries by their ids."""
        if not puts:
            return
        query = "SELECT id, author_id, name, text FROM archive_entries WHERE id IN :ids"
        known = {row[0]: row[1:] for row in sql.rows(query, ids=list(puts))}
        new = [number for number in puts if number not in known]
        edited, renamed = [], []
        for number, (author, name, text) in known.items():
            entry = puts[number].entry
            if puts[number].fresh or entry.author_id != author:
                continue
            if scrub(entry.text) != text:
                edited.append(number)
            elif scrub(entry.name) != name:
                renamed.append(number)
        if edited or renamed:
            self.engine.leave(sql, [*edited, *renamed], edited=edited)
        for statement, numbers in ((_UPDATE, [*edited, *renamed]), (_INSERT, new)):
            if numbers:
                sql.many(statement, [self._row(number, puts[number].entry, words) for number in numbers])
                self.engine.enter(sql, numbers)

    def _row(self, number: int, entry: Entry, words: Words) -> dict[str, object]:
        """An entry as the values of all columns."""
        indexed = words(entry)
        return {name: getattr(entry, name) for name in COLUMNS.split(", ")} | {
            "id": number,
            "name": scrub(entry.name),
            "text": scrub(entry.text),
            "place": (self.engine.places([place_of(entry)]) or [0])[0],
            "terms": scrub(" ".join(indexed.terms)),
            "length": indexed.length,
            "own": indexed.own,
            "marks": indexed.marks,
        }

    # ------------------------------------------------------------------ removing

    def expire(self, before_ms: int) -> int:
        """Remove what was said before a time (ms). Returns how many entries. Raises MemoryFault."""
        self.engine.remove_copies(before_ms)
        return self._removed("sent_at < :before", {"before": before_ms})

    def drop_channel(self, channel_id: str) -> int:
        """Remove what was said in a channel, or a thread, that was deleted. Raises MemoryFault."""
        places = self.engine.places([f"@g{channel_id}"])
        where = "(channel_id = :channel OR place IN :places)"
        return self._removed(where, {"channel": channel_id, "places": places})

    def sweep(self, consent: Consent) -> int:
        """Remove messages and answers that may no longer be stored.

        Returns how many entries. Raises MemoryFault.
        """
        gone = 0
        for person in self._people():
            if (until := consent.cutoff(person)) > NEVER:
                gone += self._remove_person(person, until)
        return gone

    def erase_person(self, user_id: str) -> int:
        """Remove a person's messages, their direct messages, and the answers to them.

        Returns how many entries there were. Raises MemoryFault if any may be left; it can then be repeated.
        """
        gone = self._remove_person(user_id, ALWAYS, anew=True)
        self.engine.remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        return in_thread(self._purged, purge) if phase == "disk" else None

    def _purged(self, purge: Purge) -> Purged:
        """Everything about a person who is erased counts as one entry. Raises MemoryFault."""
        if not purge.erases:
            return Purged(archived=self.take_out(purge))
        return Purged(min(1, self.erase_person(purge.user_id))) if purge.user_id else Purged()

    def take_out(self, purge: Purge) -> int:
        """Remove what a person took back.

        Returns how many entries there were. Raises MemoryFault if any may be left; it can then be repeated.
        """

        def rested_on(sql: Sql) -> int:
            """Delete the messages that it rested on, and those that have the words."""
            rested = {number for one in purge.messages if (number := _number_of(one)) is not None}
            query = "SELECT id, text FROM archive_entries WHERE id IN :ids"
            ids = sorted(rested.union(_having(sql, self.engine, purge)))
            given = {"thread": _THREAD} if purge.open_only else {}
            texts = dict(sql.rows(query + (f" AND {_OPEN}" if given else ""), ids=ids, **given))
            self._delete(sql, list(texts), traces_of(texts.values(), purge))
            return len(texts)

        if purge.everything:
            gone = self._remove_person(purge.user_id, purge.at)
        else:
            gone = self.engine.change(rested_on, 0, sure=True)
        if not purge.open_only:
            self.engine.remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

    def _people(self) -> Iterator[str]:
        """Authors and addressees. Raises MemoryFault."""
        nothing: list[tuple[Any, ...]] = []
        for column in ("author_id", "to_id"):
            query, people = _PEOPLE.format(column), [("",)]

            def some(sql: Sql, query: str = query, after: str = "") -> list[tuple[Any, ...]]:
                return sql.rows(query, after=after, most=AT_ONCE)

            # Not by `read`: by a change, a damaged file is begun anew, and bytes that a killed run left go.
            while people := self.engine.change(partial(some, after=people[-1][0]), nothing, sure=True):
                yield from (person for (person,) in people)

    def _remove_person(self, person: str, until_ms: int, *, anew: bool = False) -> int:
        """Delete a person's messages, the answers to them, and everything in their direct messages."""
        places = self.engine.places([f"@d{person}"])
        given = {"person": person, "places": places, "until": until_ms}
        return self._removed(_OF_PERSON, given, anew=anew) if person else 0

    def _removed(self, where: str, given: Mapping[str, object], *, anew: bool = False) -> int:
        """Delete entries, in parts if they are many. Returns how many. Raises MemoryFault."""
        gone, most = 0, self.engine.most
        while True:
            part = self.engine.change(
                lambda sql: self._remove(sql, where, given, most), 0, sure=True, anew=anew
            )
            gone += part
            if part < most:
                return gone

    def _remove(self, sql: Sql, where: str, given: Mapping[str, object], most: int = _LARGEST) -> int:
        """Delete entries, at most so many. Returns how many."""
        rows = sql.rows(f"SELECT id FROM archive_entries WHERE {where} LIMIT :most", most=most, **given)
        self._delete(sql, [number for (number,) in rows])
        return len(rows)

    def _delete(self, sql: Sql, ids: Sequence[int], traces: Sequence[bytes] = ()) -> None:
        if ids:
            self.engine.leave(sql, ids, traces=traces)
            sql.run("DELETE FROM archive_entries WHERE id IN :ids", ids=ids)

    # ------------------------------------------------------------------ reading

    def look(self, terms: Sequence[str], visible: Visible, asked: Sequence[float] | None = None) -> Looked:
        """Return the entries that match a query's terms, with the messages around the best of them.

        With the query's vector also the nearest by meaning, and the messages around the best of these. Raises
        MemoryFault.
        """
        places = visible.places
        if not terms or not places:
            return Looked()
        return self.engine.read(lambda sql: self._look(sql, terms, places, asked), Looked())

    def _look(
        self, sql: Sql, terms: Sequence[str], places: Sequence[str], asked: Sequence[float] | None
    ) -> Looked:
        known = self.engine.frequencies(sql, terms)
        others = [other for term in terms if term not in known for other in others_for(term)]
        known |= self.engine.frequencies(sql, others)
        entries, length = self.engine.totals(sql)
        found = self._candidates(sql, known, places)
        best = found[:WITH_NEIGHBOURS]
        usual = dict[int, float]()
        if asked is not None:
            near = _cosines(sql, asked, self.engine.nearest(sql, asked, places, NEAREST))
            nearest = sorted(near, key=lambda number: (-near[number], -number))[:NEAR]
            found = list(dict.fromkeys([*found, *nearest]))
            closest = nearest[:NEAREST_WITH_NEIGHBOURS]
            best = list(dict.fromkeys([*best, *closest]))
            usual = _cosines(sql, asked, [*set(self.engine.some(sql, places, USUAL)).difference(closest)])
        beside = _beside(sql, best)
        beside += _beside(sql, {other for _, other in beside}.difference(best))
        wanted = list(dict.fromkeys([*found, *(other for pair in beside for other in pair)]))
        query = f"SELECT {COLUMNS}, {_INDEXED} FROM archive_entries WHERE id IN :ids AND +place IN :places"
        there = {row[0]: row for row in sql.rows(query, ids=wanted, places=self.engine.places(places))}
        rows = {one: there[one] for one in wanted if one in there}
        return Looked(
            tuple(map(entry_of, rows.values())),
            {str(key): Indexed(row[11].split(" "), *row[12:]) for key, row in rows.items()},
            _both_ways(beside, rows),
            entries,
            max(1.0, length / entries) if entries else 1.0,
            known,
            {str(key): one for key, one in _cosines(sql, asked, list(rows)).items()},
            math.fsum(usual.values()) / len(usual) if usual else 0.0,
        )

    def _candidates(self, sql: Sql, known: Mapping[str, int], places: Sequence[str]) -> list[int]:
        """Ids, best first: matches of rare terms by BM25, then the newest of common ones."""
        rare: list[str] = []
        common: list[str] = []
        left = MOST_SCORED
        for term in sorted(known, key=lambda term: known[term]):
            left -= known[term]
            (rare if left >= 0 else common).append(term)
        found: list[int] = []
        if rare:
            found = self.engine.best(sql, rare, places, CANDIDATES)
        if common and len(found) < CANDIDATES:
            newest = self.engine.newest(sql, common, places, CANDIDATES)
            found = list(dict.fromkeys([*found, *newest]))
        return found[:CANDIDATES]

    def holding(self, text: str, visible: Visible, *, limit: int) -> list[Entry]:
        """Return the newest entries that contain a text, among the newest `MOST_SEARCHED` that may be seen.

        ASCII letters are the same in both cases. Raises MemoryFault.
        """
        if not text or not visible.places:
            return []
        like = "".join(f"\\{char}" if char in "\\%_" else char for char in text)
        newest = self._newest_of(visible.places, COLUMNS)
        query = rf"""SELECT * FROM ({newest}) AS newest
            WHERE lower(text COLLATE "C") LIKE lower(:like::text COLLATE "C") ESCAPE '\'
            ORDER BY id DESC LIMIT :limit"""
        places = self.engine.places(visible.places)
        given = {"places": places, "most": MOST_SEARCHED, "like": f"%{like}%", "limit": limit}
        return [entry_of(row) for row in self._rows(query, **given)]

    def speakers(self, visible: Visible) -> set[str]:
        """Return the names of those who spoke lately, where that may be seen. Raises MemoryFault."""
        query = self._newest_of(visible.places, "name")
        rows = self._rows(query, places=self.engine.places(visible.places), most=LATELY)
        return {name for (name,) in rows}

    def present(self, channel_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the channels that have any entries. Raises MemoryFault."""
        query = """SELECT value FROM EACH :places::bigint[]
            WHERE EXISTS (SELECT 1 FROM archive_entries WHERE place = value)"""
        ids = {place: one for one in channel_ids if _is_id(one) for place in self.engine.places([f"@g{one}"])}
        return frozenset(ids[place] for (place,) in self._rows(query, places=list(ids)))

    def _newest_of(self, places: Sequence[str], columns: str) -> str:
        """The query for the newest entries of `:places`, at most `:most`."""
        column = "place" if len(places) <= self.engine.few else "+place"
        return f"""SELECT {columns} FROM archive_entries WHERE {column} IN :places
            ORDER BY id DESC LIMIT :most"""

    def _rows(self, query: str, **given: object) -> list[tuple[Any, ...]]:
        nothing: list[tuple[Any, ...]] = []
        return self.engine.read(lambda sql: sql.rows(query, **given), nothing)


# ---------------------------------------------------------------------- what is near to what was found


def _beside(sql: Sql, ids: Collection[int]) -> list[tuple[int, int]]:
    """Pairs of ids: these entries and the ones directly before and after them in their conversation."""
    rows = sql.rows(_BESIDE, ids=list(ids)) if ids else []
    return sorted((row[0], other) for row in rows for other in row[1:] if other is not None)


def _both_ways(pairs: Iterable[tuple[int, int]], seen: Collection[int]) -> dict[str, tuple[str, ...]]:
    """For each id that may be seen, its neighbours."""
    beside: dict[str, dict[str, None]] = {}
    for one, other in pairs:
        if one in seen and other in seen:
            beside.setdefault(str(one), {})[str(other)] = None
            beside.setdefault(str(other), {})[str(one)] = None
    return {key: tuple(others) for key, others in beside.items()}


def _cosines(sql: Sql, question: Sequence[float] | None, ids: Sequence[int]) -> dict[int, float]:
    """The cosines of a question with those of the messages that have a vector of its length."""
    if question is None or not ids:
        return {}
    rows = sql.rows(_VECTORS, ids=ids, length=len(question))
    return dict(zip((row[0] for row in rows), cosines(question, [row[1] for row in rows]), strict=True))


# ---------------------------------------------------------------------- what was taken back


def _having(sql: Sql, engine: Engine, purge: Purge) -> Iterator[int]:
    """The ids of what a person wrote, or was answered, until then, and that has the words.

    A word that the person uses all the time identifies little: it counts only in a message that has at least
    half of the words. The index names the messages that may have a word; their text decides, since it is
    compared in more forms than the index has.
    """
    terms, texts = purge.words.terms, purge.words.texts
    theirs = {"person": purge.user_id, "until": purge.at, "alone": purge.alone}
    if not purge.user_id:
        return
    if terms:
        found, given = engine.beginning([_stump(term) for term in sorted(terms)])
        query = f"SELECT id, terms, text FROM ({found}) AS found WHERE {_THEIRS}"
        rows = sql.rows(query, **theirs, **given)
        have = {number: terms.intersection(indexed.split(" ")) for number, indexed, _ in rows}
        counted = Counter(term for some in have.values() for term in some)
        telling = {term for term in terms if counted[term] <= OFTEN}
        begins = tuple(map(_stump, telling))
        for number, indexed, text in rows:
            may = any(term.startswith(begins) for term in indexed.split(" "))
            if len(have[number]) >= (len(terms) + 1) // 2 or (may and telling & terms_of(text)):
                yield number
    if texts:
        whole = Spoken(texts=texts)
        for number, text in sql.rows(f"SELECT id, text FROM archive_entries WHERE {_THEIRS}", **theirs):
            if whole.hold(text):
                yield number


def _stump(term: str) -> str:
    """How every form of a term in the index begins; of a number, what stands before its first separator."""
    if term.isdigit() and len(term) > _ENDING:
        return term[: (len(term) - 1) % _ENDING + 1]
    return term[: max(_ENDING, len(term) - _ENDING)]


def traces_of(texts: Iterable[str], purge: Purge) -> list[bytes]:
    """Possible traces of deleted texts in a file: the words as they were written, or else a whole text."""
    found = set[str]()
    for text in texts:
        words = {word for word in text.split() if not terms_of(word).isdisjoint(purge.words.terms)}
        found |= words or {text}
    return [one.encode() for one in found if one]


# ---------------------------------------------------------------------- ids, places, rows


def place_of(entry: Entry) -> str:
    """The place that decides who may find an entry: a channel, or one person's direct messages."""
    if entry.group_id is None:
        return f"@d{entry.session_key.removeprefix('discord:dm:')}"
    return f"@g{entry.group_id}"


def entry_of(row: Sequence[Any]) -> Entry:
    """A row that begins with `COLUMNS`."""
    values: list[Any] = [str(row[0]), *row[1:9], bool(row[9]), row[10]]
    return Entry(*values)


def _is_id(text: str) -> bool:
    """Whether a text can be a Discord id."""
    return text.isascii() and text.isdigit() and len(text) <= 20


def _number_of(message_id: str) -> int | None:
    """A Discord id as a number that fits the database; None if it does not."""
    number = int(message_id) if _is_id(message_id) else _LARGEST + 1
    return number if number <= _LARGEST else None


def _id_of(change: Put | Amend | Drop) -> int | None:
    return _number_of(change.entry.id if isinstance(change, Put) else change.id)
