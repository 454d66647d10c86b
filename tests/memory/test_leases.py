"""Leases, silence and the fence on a real PostgreSQL, in every order that is found by trying."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import LeaseLost
from discoclaw.store.postgres.connection import Connection, Database, as_ours
from discoclaw.store.postgres.processes import ProcessRows
from discoclaw.store.postgres.schema import prepare

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres

LEASES = ("mirror", "shard/0/1")
LEASE_S = 60.0
"""Nothing here waits: a test says when a process is silent, and when it has lived for long."""


@dataclass
class One:
    """A process, and what it believes."""

    database: Database
    rows: ProcessRows
    holds: set[str] = field(default_factory=set)
    writing: Connection | None = None

    @property
    def number(self) -> int:
        return self.database.presence.process


class Steps:
    """Some processes on one database. Each step checks what has to hold after it."""

    def __init__(self, url: str, count: int) -> None:
        self.watching = psycopg.connect(url, autocommit=True)
        self.watching.execute("TRUNCATE processes, beats, leases, claims, changes")
        self.all = []
        for _ in range(count):
            database = Database(url)
            one = One(database, ProcessRows(database, LEASE_S))
            database.presence.process, *_ = one.rows.enter("bot")
            self.all.append(one)
            self.live_long(one, "")

    def close(self) -> None:
        for one in self.all:
            if one.writing is not None:
                one.writing.close()
            one.rows.beating.close()
            one.database.close()
        self.watching.close()

    def _is(self, what: str, one: One) -> bool:
        query = f"SELECT {what} FROM processes JOIN beats ON process = id WHERE id = %s"
        return self.watching.execute(query.encode(), (one.number,)).fetchone() == (True,)

    def counts(self, one: One) -> bool:
        return self._is("processes.until > '-infinity'", one)

    def silent(self, one: One) -> bool:
        return self._is("beats.until < clock_timestamp()", one)

    def lived_long(self, one: One) -> bool:
        return self._is("beats.until > clock_timestamp() AND since < clock_timestamp() - interval '1 h'", one)

    def holder(self, name: str) -> One | None:
        row = self.watching.execute("SELECT epoch FROM leases WHERE name = %s", (name,)).fetchone()
        return next(one for one in self.all if one.number == row[0]) if row is not None else None

    def check(self) -> None:
        """Whoever counts and believes to have a lease has it, and nobody who writes was replaced."""
        for name in LEASES:
            for one in self.all:
                if name in one.holds and self.counts(one):
                    assert self.holder(name) is one
        assert all(self.counts(one) for one in self.all if one.writing is not None)

    # ---- the steps

    def take(self, one: One, name: str) -> None:
        holder, counted = self.holder(name), self.counts(one)
        free = (
            holder in (None, one)
            or not self.counts(holder)
            or (self.silent(holder) and self.lived_long(one) and holder.writing is None)
        )
        try:
            taken = one.rows.take(name)
        except LeaseLost:
            assert not counted
            return
        assert counted
        assert taken == free
        if taken:
            one.holds.add(name)

    def release(self, one: One, name: str) -> None:
        if name in one.holds and one.writing is None:
            one.rows.release(name)
            one.holds.discard(name)

    def stop(self, one: One, name: str) -> None:
        """It dies, or is stopped for too long."""
        if not self.silent(one):
            self.watching.execute(
                "UPDATE beats SET until = clock_timestamp() - interval '1 s' WHERE process = %s",
                (one.number,),
            )

    def beat(self, one: One, name: str) -> None:
        counted, silent, lived = self.counts(one), self.silent(one), self.lived_long(one)
        assert one.rows.beat(0, 0.0) == counted
        if counted:
            assert not self.silent(one)
            assert self.lived_long(one) == (lived and not silent)

    def live_long(self, one: One, name: str) -> None:
        """It is heard from for so long that it may replace others."""
        self.watching.execute(
            "UPDATE beats SET since = since - interval '2 h' WHERE process = %s", (one.number,)
        )

    def begin(self, one: One, name: str) -> None:
        """Write, up to just before the COMMIT."""
        if one.writing is not None:
            return
        db, counted = one.database.connect(), self.counts(one)
        try:
            with as_ours("it"):
                db.execute("SET idle_in_transaction_session_timeout = 0")
                db.execute("BEGIN")
                db.execute("INSERT INTO documents (name, content) VALUES (gen_random_uuid()::text, '')")
                db.execute("SELECT fence(%s)", (one.number,))
            assert counted
            one.writing = db
        except LeaseLost:
            assert not counted
            db.close()

    def commit(self, one: One, name: str) -> None:
        if one.writing is None:
            return
        db, one.writing = one.writing, None
        with closing(db):
            assert self.counts(one)
            db.execute("COMMIT")


STEPS = {"take": 5, "release": 1, "stop": 3, "beat": 1, "live_long": 1, "begin": 3, "commit": 2}
"""How often each step is tried. Hypothesis draws only a seed, because it would draw too few steps."""


@pytest.fixture(scope="module")
def tables(postgres: "Postgres") -> Iterator[str]:
    """The URL of a database with the tables."""
    url = postgres.new_database()
    with closing(Database(url)) as database:
        prepare(database)
    yield url
    postgres.drop_database(url)


@given(st.integers(0, 1 << 32))
def test_no_lease_ever_has_two_holders_that_count_and_nobody_is_replaced_while_writing(
    tables: str, seed: int
) -> None:
    choose, world = random.Random(seed), Steps(tables, 3)
    try:
        for _ in range(50):
            step = choose.choices(list(STEPS), list(STEPS.values()))[0]
            name = LEASES[choose.random() < 0.1]
            getattr(world, step)(choose.choice(world.all), name)
            world.check()
    finally:
        world.close()
