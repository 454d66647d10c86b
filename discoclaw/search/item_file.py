"""One file with a full-text index of a branch's items and links: the candidates of a big memory. Blocking.

    memories       the items that hold, with their terms and a stamp of what of them is indexed
    memories_fts   FTS5 over the terms, kept in line by triggers; its content is `memories`
    memories_vocab in how many items each term is
    memory_links   pairs of linked items, in both directions; a deleted item's links go with it
    state          the commit of which the file has everything, none while something is missing; their number

Everything in it was made from a view and can be made again. Each `write` is one transaction, so a file that a
killed process leaves is sound, and says by its head that it is not complete. Knows nothing about ranking.
"""

import sqlite3
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from discoclaw.core.text import scrub
from discoclaw.core.words import fold
from discoclaw.memory.disk.database import (
    FAULTS,
    checkpoint,
    code_of,
    connect,
    make_tables,
    placeholders,
    remove,
    transaction,
    version_of,
)
from discoclaw.search.fulltext import NAME, TOKENIZER, any_of
from discoclaw.search.item_rows import (
    Candidates,
    Instead,
    Row,
    escaped,
    first,
    nothing_instead,
    telling,
    terms_of,
    values_of,
)

VERSION = 1
NEIGHBOURS_OF = 50
"""For how many of the best candidates the linked items become candidates too."""
MOST_LIKE = 8
"""For how many terms a substring search is made when no item has one of them as a term."""
LONGEST = 1000
"""The most characters of a term in a search; no item has a longer one."""
MOST_MISSING = 16
"""For how many terms without an item replacements are looked up."""
MOST_ALIKE = 10_000
SPOT_CHECK = 32
"""In a file from an earlier run, how many items are checked for terms that would differ today."""

_SCHEMA = (
    """CREATE TABLE memories (
        rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, key TEXT, content TEXT NOT NULL,
        category TEXT NOT NULL, timestamp INTEGER NOT NULL, terms TEXT NOT NULL, length INTEGER NOT NULL,
        stamp INTEGER NOT NULL)""",
    f"""CREATE VIRTUAL TABLE memories_fts USING fts5(
        terms, content = 'memories', content_rowid = 'rowid', tokenize = '{TOKENIZER}')""",
    "CREATE VIRTUAL TABLE memories_vocab USING fts5vocab(memories_fts, 'row')",
    """CREATE TABLE memory_links (
        from_id TEXT NOT NULL, to_id TEXT NOT NULL, PRIMARY KEY (from_id, to_id)) WITHOUT ROWID""",
    "CREATE INDEX memory_links_to ON memory_links (to_id)",
    """CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1), head TEXT, total INTEGER NOT NULL, average REAL NOT NULL)""",
    "INSERT INTO state VALUES (1, NULL, 0, 1.0)",
    """CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
        INSERT INTO memories_fts(rowid, terms) VALUES (new.rowid, new.terms);
    END""",
    """CREATE TRIGGER memories_gone AFTER DELETE ON memories BEGIN
        INSERT INTO memories_fts(memories_fts, rowid, terms) VALUES ('delete', old.rowid, old.terms);
        DELETE FROM memory_links WHERE from_id = old.id OR to_id = old.id;
    END""",
    """CREATE TRIGGER memories_changed AFTER UPDATE ON memories BEGIN
        INSERT INTO memories_fts(memories_fts, rowid, terms) VALUES ('delete', old.rowid, old.terms);
        INSERT INTO memories_fts(rowid, terms) VALUES (new.rowid, new.terms);
    END""",
)
_UPSERT = """
INSERT INTO memories (id, key, content, category, timestamp, terms, length, stamp)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET key = excluded.key, content = excluded.content, category = excluded.category,
  timestamp = excluded.timestamp, terms = excluded.terms, length = excluded.length, stamp = excluded.stamp
"""
_MERGE = "INSERT INTO memories_fts(memories_fts) VALUES ('optimize')"
_DISK = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOLFS,
}
"""Disk or temporary failures, by SQLite's primary codes. All others mean that the file is at fault."""


class Unusable(Exception):
    """The file is of another version or damaged and must be made again. The text says why."""


class ItemFile:
    """An open file, to be used as a context. All methods raise Unusable, or OSError for disk failures."""

    def __init__(self, path: Path) -> None:
        with _faults():
            if not path.exists():
                remove(path)  # SQLite would play a leftover WAL back into the new file
            self._connection = connect(path, check=_check_version, prepare=_prepare)

    def __enter__(self) -> "ItemFile":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

    # ------------------------------------------------------------------ writing

    def head(self) -> str | None:
        """The commit that the file is complete for; None if something may be missing."""
        with _faults():
            head = self._one("SELECT head FROM state")
        return head if isinstance(head, str) else None

    def stamps(self) -> dict[str, int]:
        """The stamps of the items in the file, by id."""
        with _faults():
            return dict(self._connection.execute("SELECT id, stamp FROM memories"))

    def check(self) -> None:
        """Raise Unusable if the index does not fit the items, or pages are damaged."""
        with _faults():
            if (found := self._one("PRAGMA quick_check(1)")) != "ok":
                raise Unusable(f"it is damaged: {found}")
            self._connection.execute(
                "INSERT INTO memories_fts(memories_fts, rank) VALUES ('integrity-check', 1)"
            )

    def check_terms(self, rows: Iterable[Row]) -> None:
        """Raise Unusable if an item in the file has other terms than it would get today."""
        with _faults():
            for row in rows:
                held = self._one("SELECT terms FROM memories WHERE id = ?", scrub(row.item.id))
                if held is not None and held != terms_of(row):
                    raise Unusable("its terms are those of another tokeniser")

    def write(self, rows: Iterable[Row], gone: Collection[str] = ()) -> None:
        """Remove the ids `gone`, with their words in the index, and add items or change others.

        The file then counts as incomplete.
        """
        with _faults(), transaction(self._connection):
            self._connection.execute("UPDATE state SET head = NULL")
            if gone:
                self._connection.executemany("DELETE FROM memories WHERE id = ?", ((one,) for one in gone))
                self._connection.execute(_MERGE)
            self._connection.executemany(_UPSERT, map(values_of, rows))

    def without(self, texts: Iterable[str]) -> None:
        """Remove items by their texts, with their words in the index; the file then counts as incomplete."""
        plain = [scrub(fold(text)) for text in texts]  # see `values_of`
        with _faults():
            sql = "SELECT id FROM memories WHERE substr(content, 1, length(:text)) = :text"
            gone = [one for text in plain for (one,) in self._connection.execute(sql, {"text": text})]
        if gone:
            self.write((), gone)
            with _faults():
                checkpoint(self._connection)

    def complete(self, links: Collection[tuple[str, str]], head: str | None, *, merge: bool = False) -> None:
        """Store exactly these links, and record that the file is complete for the commit `head`.

        `merge` merges the index's segments, which pays off after many writes.
        """
        with _faults(), transaction(self._connection):
            held = set(self._connection.execute("SELECT from_id, to_id FROM memory_links"))
            self._connection.executemany(
                "DELETE FROM memory_links WHERE from_id = ? AND to_id = ?", held.difference(links)
            )
            new = ((scrub(one), scrub(other)) for one, other in set(links) - held)
            self._connection.executemany("INSERT INTO memory_links VALUES (?, ?) ON CONFLICT DO NOTHING", new)
            if merge:
                self._connection.execute(_MERGE)
            self._connection.execute(
                "UPDATE state SET head = ?, (total, average) ="
                " (SELECT count(*), ifnull(avg(length), 1.0) FROM memories)",
                (head,),
            )

    # ------------------------------------------------------------------ querying

    def candidates(
        self,
        terms: Sequence[str],
        *,
        limit: int,
        among: Container[str] | None = None,
        instead: Instead = nothing_instead,
    ) -> Candidates:
        """Return the items with any of the terms, best first, at most `limit`, and as many linked with them.

        `among` limits the ids. Whoever is named by a term (`fulltext.NAME`) is among the first. For another
        term that no item has, `instead` gives replacements; if no item has any term, a substring search
        follows.
        """
        wanted = [one for one in dict.fromkeys(terms) if one.strip() and one == scrub(one)[:LONGEST]]
        if not wanted:
            return Candidates()
        names = [one for one in wanted if one.startswith(NAME)]
        wanted = [one for one in wanted if not one.startswith(NAME)]
        with _faults():
            total, average = self._connection.execute("SELECT total, average FROM state").fetchone()
            frequencies = self._frequencies(wanted)
            missing = [term for term in wanted if not frequencies[term]][:MOST_MISSING]
            others = (other for term in missing for other in instead(term, self._alike(term)))
            frequencies |= self._frequencies([one for one in others if one not in frequencies])
            rarest = telling(frequencies, total)
            best = self._matching(rarest, limit, among) or self._matching([*frequencies], limit, among)
            best = best or self._having_letters(wanted, limit, among)
            if known := {name: count for name, count in self._frequencies(names).items() if count}:
                best = list(dict.fromkeys([*self._matching([*known], limit, among), *best]))
                frequencies |= known
            near = self._linked(best[:NEIGHBOURS_OF], limit, among)
            return Candidates((*best, *near), total, average, frequencies)

    def _matching(self, terms: Sequence[str], limit: int, among: Container[str] | None) -> list[str]:
        if not terms:
            return []
        found = self._connection.execute(
            "SELECT m.id FROM memories_fts f CROSS JOIN memories m ON m.rowid = f.rowid"
            " WHERE f.terms MATCH ? ORDER BY f.rank",
            (any_of(terms),),
        )
        return first(found, limit, among)

    def _having_letters(self, terms: Sequence[str], limit: int, among: Container[str] | None) -> list[str]:
        """The newest items whose text contains a term as a substring."""
        if not terms:
            return []
        patterns = [f"%{escaped(term)}%" for term in terms[:MOST_LIKE]]
        either = " OR ".join(["content LIKE ? ESCAPE '\\'"] * len(patterns))
        found = self._connection.execute(
            f"SELECT id FROM memories WHERE {either} ORDER BY timestamp DESC, id", patterns
        )
        return first(found, limit, among)

    def _linked(self, ids: Sequence[str], limit: int, among: Container[str] | None) -> list[str]:
        found = self._connection.execute(
            f"SELECT DISTINCT to_id FROM memory_links WHERE from_id IN ({placeholders(ids)}) ORDER BY to_id",
            ids,
        )
        held = set(ids)
        return first(((one,) for (one,) in found if one not in held), limit, among)

    def _frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        found = self._connection.execute(
            f"SELECT term, doc FROM memories_vocab WHERE term IN ({placeholders(terms)})", terms
        )
        return {**dict.fromkeys(terms, 0), **dict(found)}

    def _alike(self, term: str) -> list[str]:
        """The indexed terms that begin with the same letter, or contain a one-character term."""
        if len(term) == 1:
            found = self._connection.execute(
                "SELECT term FROM memories_vocab WHERE instr(term, ?) LIMIT ?", (term, MOST_ALIKE)
            )
        else:
            found = self._connection.execute(
                "SELECT term FROM memories_vocab WHERE term >= ? AND term <= ? LIMIT ?",
                (term[0], f"{term[0]}\U0010ffff", MOST_ALIKE),
            )
        return [one for (one,) in found]

    # ------------------------------------------------------------------ inside

    def _one(self, statement: str, *values: str) -> "int | str | None":
        """The first column of the first row, or None."""
        row = self._connection.execute(statement, values).fetchone()
        return row[0] if row is not None else None


def _prepare(db: sqlite3.Connection) -> None:
    make_tables(db, _SCHEMA, VERSION)


def _check_version(db: sqlite3.Connection) -> None:
    version = version_of(db)
    if version not in (0, VERSION):
        raise Unusable(f"it is of version {version}, not {VERSION}")
    if version == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        raise Unusable("it has tables of another program")


@contextmanager
def _faults() -> Iterator[None]:
    """Convert SQLite's errors: OSError for the disk's, Unusable for the file's."""
    try:
        yield
    except FAULTS as error:
        code = code_of(error)
        if isinstance(error, sqlite3.Error) and (not code or code in _DISK):
            raise OSError(f"{type(error).__name__}: {error}") from error
        raise Unusable(f"{type(error).__name__}: {error}") from error
