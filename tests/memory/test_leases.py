"""Leases, epochs and the fence on a real PostgreSQL, in every order that is found by trying."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discoclaw.core.errors import LeaseLost
from discoclaw.store.postgres.connection import Connection, Database, as_ours
from discoclaw.store.postgres.processes import ProcessRows
from discoclaw.store.postgres.schema import prepare
from discoclaw.store.sharing import FENCES, SHARDS, Fence, Member, State

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres

LEASES = ("mirror", "shard/0/1")
LEASE_S = 60.0
"""Nothing here waits: a test says when a process counts as dead."""


class Impatient(Database):
    """A database in which nobody waits for a row."""

    def connect(self) -> Connection:
        db = super().connect()
        db.execute("SET lock_timeout = '20ms'")
        return db


@dataclass
class One:
    """A process, and what it believes."""

    database: Database
    rows: ProcessRows
    epoch: int = 0
    holds: dict[str, Fence] = field(default_factory=dict)
    lost: dict[str, Fence] = field(default_factory=dict)
    """Leases that it had, under which a task may still try to write."""
    writing: tuple[Connection, str] | None = None


class Steps:
    """Some processes on one database. Each step checks what has to hold after it."""

    def __init__(self, url: str, count: int) -> None:
        self.watching = psycopg.connect(url, autocommit=True)
        self.watching.execute("TRUNCATE processes, leases, claims, changes")
        self.all = []
        for _ in range(count):
            database = Impatient(url)
            one = One(database, ProcessRows(database, LEASE_S))
            one.epoch = database.presence.epoch = one.rows.enter(Member("bot")).epoch
            self.all.append(one)

    def close(self) -> None:
        for one in self.all:
            if one.writing is not None:
                one.writing[0].close()
            one.rows.close()
            one.database.close()
        self.watching.close()

    def alive(self, one: One) -> bool:
        query = "SELECT until > clock_timestamp() FROM processes WHERE id = %s"
        return self.watching.execute(query, (one.epoch,)).fetchone() == (True,)

    def holder(self, name: str) -> int | None:
        row = self.watching.execute("SELECT epoch FROM leases WHERE name = %s", (name,)).fetchone()
        return row[0] if row is not None else None

    def check(self) -> None:
        """No lease has two holders that live; each that lives and believes to have one has it."""
        for name in LEASES:
            living = [one for one in self.all if name in one.holds and self.alive(one)]
            assert len(living) <= 1
            assert all(self.holder(name) == one.epoch for one in living)

    # ---- the steps

    def take(self, one: One, name: str) -> None:
        holder = self.holder(name)
        free = holder is None or not any(self.alive(other) for other in self.all if other.epoch == holder)
        # Whoever takes over waits until what the holder is writing has ended; here, nobody can wait.
        busy = any(
            other.writing is not None and other.writing[1] == name and other is not one for other in self.all
        )
        try:
            taken = one.rows.take(name, one.epoch)
        except OSError:
            assert busy
            return
        assert taken == (holder == one.epoch or (self.alive(one) and free))
        if taken:
            one.holds[name] = Fence(name, one.epoch)

    def release(self, one: One, name: str) -> None:
        if name in one.holds and one.writing is None:
            one.rows.release([name], one.epoch)
            del one.holds[name]

    def stop(self, one: One, name: str) -> None:
        """It dies, or is stopped for too long."""
        self.watching.execute(
            "UPDATE processes SET until = clock_timestamp() - interval '1 s' WHERE id = %s", (one.epoch,)
        )

    def renew(self, one: One, name: str) -> None:
        lived = self.alive(one)
        assert one.rows.renew(one.epoch, State(0, 0.0)) == lived
        if lived or one.writing is not None:
            return
        entered = one.rows.enter_again(Member("bot"), one.epoch, 0, list(one.holds))
        assert entered.overtaken == any(name.startswith(SHARDS) for name in one.holds.keys() - entered.kept)
        if entered.overtaken:  # it ends, but before that it may try to write
            one.lost |= one.holds
            one.holds = {}
            return
        one.epoch = one.database.presence.epoch = entered.epoch
        one.lost = {name: one.holds[name] for name in one.holds.keys() - entered.kept}
        one.holds = {name: Fence(name, entered.epoch) for name in entered.kept}

    def begin(self, one: One, name: str) -> None:
        """Write under a lease, up to just before the COMMIT."""
        fence = one.lost.get(name) or one.holds.get(name)
        if one.writing is not None or fence is None:
            return
        db, lawful = one.database.connect(), self.alive(one) and self.holder(name) == fence.epoch
        token = FENCES.set((fence,))
        try:
            with as_ours("it"):
                db.execute("BEGIN")
                db.execute("INSERT INTO documents (name, content) VALUES (gen_random_uuid()::text, '')")
                db.execute("SELECT fence(%(own)s, %(held)s, %(epochs)s, %(margin)s)", one.database.fence())
            assert lawful
            one.writing = db, name
        except LeaseLost:
            assert not lawful
            db.close()
        finally:
            FENCES.reset(token)

    def commit(self, one: One, name: str) -> None:
        if one.writing is None:
            return
        (db, name), one.writing = one.writing, None
        epoch = one.epoch
        assert self.holder(name) == epoch
        db.execute("COMMIT")
        assert self.holder(name) == epoch
        db.close()


STEPS = {"take": 5, "release": 1, "stop": 2, "renew": 2, "begin": 3, "commit": 2}
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
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_lease_ever_has_two_living_holders_and_each_write_is_its_holders(tables: str, seed: int) -> None:
    choose, world = random.Random(seed), Steps(tables, 3)
    try:
        for _ in range(50):
            step = choose.choices(list(STEPS), list(STEPS.values()))[0]
            name = LEASES[choose.random() < 0.1]
            getattr(world, step)(choose.choice(world.all), name)
            world.check()
    finally:
        world.close()
