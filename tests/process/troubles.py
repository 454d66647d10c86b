"""What can go wrong with some processes, their database and the network between them.

Each trouble is a block: it begins, the test goes on inside, and at the end it is over. A process that ended
is not started again here; `Fleet.up` does that, as a supervisor would.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import TypeAlias

import psycopg
from psycopg import sql

from tests.process.fleet import Fleet, Member
from tests.servers.postgres import OWNER, Postgres

LONGER_THAN_A_LEASE_S = 6.5
LONGER_THAN_A_START_S = 10.0
Trouble: TypeAlias = Callable[[Fleet, random.Random], AbstractAsyncContextManager[None]]


def _some(fleet: Fleet, by: random.Random) -> Member:
    """A process that runs, and that no other one is about to replace."""
    one = by.choice([one for one in fleet.members if one.runs and one not in fleet.in_pairs])
    fleet.troubled.add(one)
    return one


async def _pair(fleet: Fleet, by: random.Random) -> tuple[Member, Member] | None:
    """A process, and a second one that waits for its shards; None where none can, as without a database.

    No other trouble has to do with either: who then has the shards in the end would be anybody's guess.
    """
    busy = fleet.troubled | fleet.in_pairs
    one = by.choice([one for one in fleet.members if one.runs and one not in busy])
    second = fleet.twin(one)
    fleet.in_pairs |= {one, second}
    await second.start()
    try:
        async with asyncio.timeout(LONGER_THAN_A_START_S):
            await second.waits()
    except TimeoutError:
        await second.kill9()
        fleet.members.remove(second)
        return None
    return one, second


async def _mended(one: Member, by: random.Random) -> None:
    """Let its line to the database work again, at once or when its leases are lost."""
    await asyncio.sleep(by.choice((0.0, LONGER_THAN_A_LEASE_S)))
    one.line.mend()


@asynccontextmanager
async def killed(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """kill -9 of a process; its supervisor starts it again at once."""
    one = _some(fleet, by)
    await one.kill9()
    await one.start(**one.told)
    yield


@asynccontextmanager
async def two_killed(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """kill -9 of two processes, which stay away until the end of the block."""
    two = dict.fromkeys((_some(fleet, by), _some(fleet, by)))
    for one in two:
        await one.kill9()
    yield
    for one in two:
        await one.start(**one.told)


@asynccontextmanager
async def ended(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """A process is stopped as by its admin, and started again."""
    one = _some(fleet, by)
    await one.end()
    await one.start(**one.told)
    yield


@asynccontextmanager
async def stopped(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """SIGSTOP for longer than a lease, or for a moment, and then SIGCONT."""
    one = _some(fleet, by)
    one.stop()
    yield
    await asyncio.sleep(by.choice((0.0, LONGER_THAN_A_LEASE_S)))
    one.go_on()


@asynccontextmanager
async def overtaken(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """SIGSTOP of a process while another one waits for its shards, and SIGCONT once that one has them."""
    if (pair := await _pair(fleet, by)) is None:
        yield
        return
    one, second = pair
    one.stop()
    yield
    await asyncio.sleep(LONGER_THAN_A_LEASE_S)
    one.go_on()
    one.line.mend()  # it learns from the database that its shards are another's, and all may be split
    await fleet.one_of(one, second)


@asynccontextmanager
async def doubled(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """A second process with the shards of another one, which is then killed."""
    if (pair := await _pair(fleet, by)) is None:
        yield
        return
    one, second = pair
    yield
    await one.kill9()
    await fleet.one_of(one, second)


@asynccontextmanager
async def cut_off(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """The line from a process to the database is cut."""
    one = _some(fleet, by)
    one.line.cut()
    yield
    await _mended(one, by)


@asynccontextmanager
async def split(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """Nothing gets through between a process and the database, and no connection is closed."""
    one = _some(fleet, by)
    one.line.hold()
    yield
    await _mended(one, by)


@asynccontextmanager
async def all_split(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """No process reaches the database."""
    for one in fleet.members:
        one.line.hold()
    yield
    for one in fleet.members:
        one.line.mend()


@asynccontextmanager
async def slow(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """The way to the database takes a process between a tenth of a second and five seconds."""
    one = _some(fleet, by)
    one.line.delay(by.choice((0.05, 0.5, 2.5)))  # each way
    yield
    await asyncio.sleep(by.choice((0.0, 3.0)))
    one.line.delay(0.0)


@asynccontextmanager
async def commit_cut(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """Connections break off at a COMMIT, before or after the server has got it."""
    for one in fleet.members:
        by.choice((one.line.cut_before, one.line.cut_after))(b"COMMIT")
    yield


@asynccontextmanager
async def database_killed(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """PostgreSQL crashes, and is started again at the end."""
    await asyncio.to_thread(fleet.postgres.kill9)
    if by.random() < 0.5:
        await asyncio.to_thread(fleet.postgres.start)
    yield
    if not fleet.postgres.running():
        await asyncio.to_thread(fleet.postgres.start)


@asynccontextmanager
async def database_restarted(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """PostgreSQL is restarted."""
    await asyncio.to_thread(fleet.postgres.restart)
    yield


@asynccontextmanager
async def database_paused(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """PostgreSQL does nothing, and keeps all connections."""
    await asyncio.to_thread(fleet.postgres.pause)
    yield
    await asyncio.to_thread(fleet.postgres.resume)


@asynccontextmanager
async def read_only(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """PostgreSQL takes no writes."""
    await asyncio.to_thread(fleet.postgres.read_only, True)
    yield
    await asyncio.to_thread(fleet.postgres.read_only, False)


@asynccontextmanager
async def no_connections(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """PostgreSQL ends all connections of the bot, and takes no new ones."""

    def limit(most: int) -> None:
        query = sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}").format(sql.Identifier(OWNER), sql.Literal(most))
        fleet.postgres.execute(query)

    def refuse() -> None:
        limit(0)
        fleet.postgres.execute(
            sql.SQL("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = {}").format(
                sql.Literal(OWNER)
            )
        )

    await asyncio.to_thread(refuse)
    yield
    await asyncio.to_thread(limit, -1)


@asynccontextmanager
async def full_disk(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """The disk of the database is full, if it has one of its own: a standby that took over has none."""
    if not fleet.postgres.own_disk:
        yield
        return
    await asyncio.to_thread(fleet.postgres.fill_disk)
    yield
    await asyncio.to_thread(fleet.postgres.recover)


@asynccontextmanager
async def failed_over(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """A standby takes the place of the database, which is gone for good."""
    stack = ExitStack()
    standby: Postgres = await asyncio.to_thread(lambda: stack.enter_context(fleet.postgres.standby()))
    fleet.resources.callback(stack.close)
    yield
    await asyncio.to_thread(fleet.postgres.kill9)
    await asyncio.to_thread(standby.promote)
    fleet.moved_to(standby)


@asynccontextmanager
async def another_clock(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """The clock of a process's machine differs by a minute."""
    one = _some(fleet, by)
    await one.kill9()
    await one.start(TEST_CLOCK_AHEAD_S=by.choice(("60", "-60")))
    yield


@asynccontextmanager
async def newer_tables(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """Another process has brought the tables to a newer version; who starts meanwhile refuses to.

    Not while the database is away: nobody can bring them anywhere.
    """

    def bring(by_steps: int) -> None:
        with psycopg.connect(fleet.url, connect_timeout=2) as db:
            db.execute("SET TRANSACTION READ WRITE")
            db.execute("UPDATE discoclaw SET version = version + %s", (by_steps,))

    try:
        await asyncio.to_thread(bring, 1)
    except psycopg.OperationalError:
        yield
        return
    one = _some(fleet, by)
    await one.end()
    late = await one.start(**one.told)
    assert await late.ended() != 0
    assert any(words in late.stderr for words in ("newer than this program", "PostgreSQL 127.0.0.1")), (
        late.stderr
    )
    yield
    await asyncio.to_thread(bring, -1)


@asynccontextmanager
async def sockets_dropped(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """Discord drops all connections; some sessions are over."""
    if by.random() < 0.5:
        fleet.discord.gateway.sessions.clear()
    fleet.discord.drop_sockets(by.choice((4000, None)))
    yield


@asynccontextmanager
async def nothing(fleet: Fleet, by: random.Random) -> AsyncIterator[None]:
    """All is well."""
    yield


EVERY: tuple[Trouble, ...] = (
    killed,
    two_killed,
    ended,
    stopped,
    overtaken,
    doubled,
    cut_off,
    split,
    all_split,
    slow,
    commit_cut,
    database_killed,
    database_restarted,
    database_paused,
    read_only,
    no_connections,
    full_disk,
    failed_over,
    another_clock,
    newer_tables,
    sockets_dropped,
    nothing,
)
OF_THE_DATABASE = frozenset(
    (
        database_killed,
        database_restarted,
        database_paused,
        read_only,
        no_connections,
        full_disk,
        failed_over,
    )
)
"""Of these there is one at a time: no standby can be made of a server that is away or has no room."""
