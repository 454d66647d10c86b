"""One form of statement for SQLite and PostgreSQL. Blocking; raises what the driver raises.

A statement is PostgreSQL's, with parameters by name:

    :name                    a value; `:name::bigint` where PostgreSQL can't know the type
    IN :names, NOT IN :names one of a list of numbers or texts, of any length
    EACH :names::text[]      such a list as a table with the column `value`

For SQLite, what only PostgreSQL understands is left out: casts, `FOR UPDATE …`, `COLLATE "C"`.

Both run the same statement only if it avoids what one of them lacks. PostgreSQL refuses NUL in texts, numbers
for booleans, `max(a, b)`, and sums big numbers as Decimal. SQLite wants `WHERE true` in an INSERT … SELECT …
ON CONFLICT, and refuses LIMIT NULL. A colon before a letter is a parameter, in a literal too. Independent of
what is in the tables.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_CAST = re.compile(r"::[a-z0-9]+(?: varying)?(?:\[\])?")
_FOREIGN = re.compile(r' COLLATE "C"| FOR (?:UPDATE|SHARE)(?: OF \w+)?(?: SKIP LOCKED)?')
_LIST = re.compile(r"\b(IN|EACH) :(\w+)")
_NAME = re.compile(r"(?<!:):([a-z_]\w*)")
_OF_POSTGRES = (
    (re.compile(r"\bNOT IN :(\w+)"), r"<> ALL(:\1)"),
    (re.compile(r"\bIN :(\w+)"), r"= ANY(:\1)"),
    (re.compile(r"\bEACH :(\w+(?:::\w+\[\])?)"), r"unnest(:\1) AS each (value)"),
    (re.compile("%"), "%%"),
    (_NAME, r"%(\1)s"),
)


class Sql:
    """A connection of either driver, for one thread. Rows are tuples.

    `prefix`: how the names of tables begin in statements, but not in a file of SQLite, which has no others.
    """

    def __init__(self, db: Any, *, prefix: str = "") -> None:
        self.db = db
        self.lite = isinstance(db, sqlite3.Connection)
        self._prefix = prefix

    def rows(self, statement: str, **given: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        found: list[tuple[Any, ...]] = self._run(statement, given).fetchall()
        return found

    def one(self, statement: str, **given: object) -> tuple[Any, ...] | None:
        """The first row of a query, None if there is none."""
        found: tuple[Any, ...] | None = self._run(statement, given).fetchone()
        return found

    def run(self, statement: str, **given: object) -> int:
        """Run a statement. Returns how many rows it changed."""
        return int(self._run(statement, given).rowcount)

    def many(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Run a statement for each of some rows of parameters, as one request where the server can that."""
        given = [self._packed(row) for row in rows]
        if given:
            self.db.cursor().executemany(self._translated(statement), given)

    def _run(self, statement: str, given: Mapping[str, object]) -> Any:
        return self.db.execute(self._translated(statement), self._packed(given))

    def _translated(self, statement: str) -> str:
        return _for_sqlite(statement, self._prefix) if self.lite else _for_postgres(statement)

    def _packed(self, given: Mapping[str, object]) -> dict[str, object]:
        """Parameters, with lists as the driver takes them."""
        return {
            name: self._list(value) if isinstance(value, list | tuple) else value
            for name, value in given.items()
        }

    def _list(self, values: "list[Any] | tuple[Any, ...]") -> object:
        if self.lite:
            return json.dumps(values)
        if values and isinstance(values[0], int):
            return f"{{{','.join(map(str, values))}}}"  # psycopg takes 0.7 s for a list of 300,000
        return list(values)


@lru_cache
def _for_sqlite(statement: str, prefix: str) -> str:
    statement = _FOREIGN.sub("", _CAST.sub("", statement))
    statement = re.sub(rf"\b{prefix}(?=\w)", "", statement) if prefix else statement
    return _LIST.sub(
        lambda found: (
            f"IN (SELECT value FROM json_each(:{found[2]}))"
            if found[1] == "IN"
            else f"json_each(:{found[2]}) AS each"
        ),
        statement,
    )


@lru_cache
def _for_postgres(statement: str) -> str:
    for form, other in _OF_POSTGRES:
        statement = form.sub(other, statement)
    return statement
