"""The accounts: each call of a model is asked for before it begins, and written down when it has ended.

    begin    which model may make the call; what it may cost is put aside
    end      what it used and cost

Both are in the sums in RAM at once, and lines of one log (`usage/log`); one task writes them, all that wait
at a time. Where one process alone has the store, its sums have everything, so no call waits for the disk. If
it is killed, what is lost is what was put aside for calls that began since the last write did, which takes
milliseconds. In a store that processes share a call waits, as an answer waits for any disk: a decision is
made while nobody else writes, by sums that have what the others wrote, and is on disk before the call
begins. A disk that is full or hangs stops no answer: the sums in RAM decide, and what waits is written when
it can be.
Knows nothing about models.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Final

from discoclaw.core.budgets import BACK_MS, SMALL_FROM, Book, Choice, Limit, Spent, Wish
from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import ChatError, ChatUnavailable, MemoryFault, Overtaken, faulting
from discoclaw.core.model import Usage
from discoclaw.core.ports import Clock
from discoclaw.core.purge import NOTHING_PURGED, Derived, Outcome, Phase, Purge, Purged, Readable
from discoclaw.core.subject import user_subject
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import NOBODY, NOTHING, Call, For, Hold, Lately, Payer, Record, Total, dollars
from discoclaw.memory.cursors import Cursors
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import TRIES, rest
from discoclaw.usage.log import Fresh, UsageLog, key_of
from discoclaw.work import Worker, Working

# ----------------------------------------------------------------------
# Calls that are asked for, and permissions for them. Values only; knows nothing about who decides.


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission for one call. `choice` says which model makes it; no model if a budget is spent."""

    id: str
    at: int
    purpose: For
    payer: Payer
    choice: Choice
    held: bool = False


@dataclass(slots=True)
class Pending:
    """A call that waits for a decision."""

    purpose: For
    payer: Payer
    wishes: Sequence[Wish]
    background: bool
    decided: Grant | None = None
    """The decision, as soon as it was made; `granted` follows when it is on disk."""
    granted: asyncio.Future[Grant] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


def unused(grant: Grant) -> Call:
    """A call that was granted and not made."""
    return Call(grant.id, grant.at, grant.purpose, "", Usage(), payer=grant.payer, requests=0)


def new_id() -> str:
    return secrets.token_hex(8)


log = logging.getLogger(__name__)

WAIT_S: Final = 2.0
"""How long a call waits for the disk, as all that an answer needs of a disk."""
MOST_WAITING: Final = 10_000
"""The most lines that wait for a disk; beyond that the oldest are lost."""
REST_S: Final = 30.0
"""The pause after a failure before the disk is tried again."""
_LINES: Final = "lines"


@dataclass(frozen=True, slots=True)
class Rules:
    """The budgets, whose days are those of `zone`. `names_people`: lines may name whom a call was for."""

    limits: tuple[Limit, ...] = ()
    zone: tzinfo = UTC
    names_people: bool = True


class Accounts(Working, Derived):
    """The accounts of one store.

    `lines` None: nothing is written down. `news` is called with each budget that is nearly spent, again with
    each call that counts for it. A call waits `wait_s` for the disk at most.
    """

    name = "usage"

    def __init__(
        self,
        lines: UsageLog | None,
        *,
        clock: Clock,
        rules: Rules = Rules(),
        consent: Consent = UNLIMITED,
        news: Callable[[Spent], None] = lambda spent: None,
        wait_s: float = WAIT_S,
    ) -> None:
        self.rules = rules
        self._lines = lines
        self.written = lines is not None
        self._news = news
        self._clock = clock
        self._consent = consent
        self._book = Book(rules.limits, rules.zone, secrets.token_bytes(32))
        self._waiting: deque[Record] = deque(maxlen=MOST_WAITING)
        self._asked: list[Pending] = []
        self._alone = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._wait_s = wait_s
        self._late = False
        """Whether the disk let a call wait too long: until it answers, nobody waits for it."""
        self._worker = Worker("usage", self._write, retry_s=REST_S, longest_s=REST_S)
        self._ended: dict[tuple[str, str], Total] = {}
        self._unpriced: set[str] = set()

    # ------------------------------------------------------------------ the lifecycle

    async def start(self) -> None:
        """Read what was spent in the periods that last still. A failing disk is a line in the log."""
        await super().start()
        if self._lines is None:
            return
        now = self._clock()
        try:
            for record in await read_in_thread(self._lines.load, now, self._book.begin(now)):
                self._count(self._book, record)
        except (OSError, MemoryFault) as error:
            log.warning("the usage log can't be read, so budgets begin anew: %s", error)
        for spent in self.all_spent():
            self._tell(spent)

    # ------------------------------------------------------------------ calls

    async def begin(
        self, purpose: For, payer: Payer, wishes: Sequence[Wish], *, background: bool = False
    ) -> Grant:
        """Ask for a call, which the first of `wishes` that the budgets allow is to make. Never raises.

        `background`: nobody waits for it, so it is put off before people's answers are.
        """
        asked = Pending(purpose, payer, wishes, background)
        if not self.rules.limits or not any(one.nano for one in wishes):
            return Grant(new_id(), self.now(), purpose, payer, Choice(wishes[0]))
        if self._lines is None or self._late or not self._lines.shared:
            return self._grant(asked)
        self._asked.append(asked)
        self._worker.note(_LINES, first=True)
        try:
            await asyncio.wait([asked.granted], timeout=self._wait_s)
        except asyncio.CancelledError:
            if not asked.granted.cancel():
                self.end(unused(asked.granted.result()))
            raise
        if not asked.granted.done():
            self._late = True
            log.warning("the usage log doesn't answer; until it does, the sums in RAM decide about calls")
            asked.granted.set_result(asked.decided or self._grant(asked))
        return asked.granted.result()

    def would(self, wishes: Sequence[Wish], payer: Payer) -> Choice:
        """The choice that `begin` would make now. Nothing is put aside."""
        return self._book.choose(wishes, payer, self.now())

    def end(self, call: Call) -> None:
        """Count a call that has ended, also one that used nothing. Never blocks."""
        payer, user = call.payer, call.payer.user
        self._count(self._book, call)
        if user is not None and payer.as_of(call.at) <= self._consent.erased_at(user):
            call = replace(call, payer=payer.without(user))  # not even RAM may know
            self._book.forget(user)
        if call.requests or self.rules.limits:
            self._put(call)
        if not call.priced and call.model not in self._unpriced:
            self._unpriced.add(call.model)
            log.warning(
                "there is no price for the model %s, so it counts as the dearest one; "
                "write its price into a file that DISCOCLAW_PRICES names (see docs/admins/usage.md)",
                call.model,
            )
        if call.requests:
            key = (call.purpose, call.model)
            self._ended[key] = self._ended.get(key, NOTHING) + Total.of(call)
        for spent in self.spent(call.payer):
            self._tell(spent)

    def now(self) -> int:
        """The time (ms) that counts, which doesn't go back with the clock."""
        return self._book.time(self._clock())

    def spent(self, payer: Payer) -> list[Spent]:
        """The sums under each budget that calls for `payer` count for."""
        return self._book.spent(payer, self._clock())

    def all_spent(self) -> list[Spent]:
        """The sums under each budget, of every server, channel and person, nearest to its limit first.

        The budgets of everything are there also if nothing is spent.
        """
        found = {(one.limit, one.whose): one for one in self.spent(NOBODY)}
        found |= {(one.limit, one.whose): one for one in self._book.all_spent(self._clock())}
        return sorted(found.values(), key=lambda one: -one.percent)

    async def calls(self, since_ms: int, user_id: str | None = None) -> list[Call]:
        """The calls since a time (ms), all or those for one person, as they ended. Raises MemoryFault."""
        if self._lines is None:
            return []
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self.settle()
        async with self._reading:  # a busy month is a second's work: never for several people at once
            with faulting("the usage log can't be read"):
                return await read_in_thread(calls_since, self._lines, since_ms, user_id)

    async def lately(self, user_id: str | None = None) -> Lately:
        """The use of the last thirty days and of this month, by all or for one person. Raises MemoryFault."""
        now, zone = self.now(), self.rules.zone
        calls = await self.calls(Lately.begin(now, zone), user_id)
        return await asyncio.to_thread(Lately.of, calls, now, zone)

    @property
    def ended(self) -> dict[tuple[str, str], Total]:
        """The calls that ended since the start, by purpose and model."""
        return dict(self._ended)

    # ------------------------------------------------------------------ personal data

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        """Take the id of an erased person out of everything. What was spent stays: it is the admin's."""
        if not (purge.erases and purge.user_id):
            return None
        if phase == "ram":
            self._leave_out(purge.user_id)
        return self._erase(purge.user_id) if phase == "disk" else None

    def _leave_out(self, user_id: str) -> None:
        self._book.forget(user_id)
        self._waiting = deque(
            (replace(one, payer=one.payer.without(user_id)) for one in self._waiting), MOST_WAITING
        )

    async def _erase(self, user_id: str) -> Purged:
        async with self._alone:
            self._leave_out(user_id)  # what a write that failed put back
            if (lines := self._lines) is None:
                return NOTHING_PURGED
            try:
                return Purged(
                    await in_thread(lines.change, lambda one: replace(one, payer=one.payer.without(user_id)))
                )
            except (OSError, MemoryFault) as error:
                return Purged(left=(f"usage of models: {error}",))

    def audit(self) -> Iterator[Readable]:
        if self._lines is not None:
            for one in self._lines.since(0):
                if one.payer.user is not None:
                    yield Readable(self._lines.path, "", "", user_subject(one.payer.user), at=one.at)

    # ------------------------------------------------------------------ inside

    def _put(self, record: Record) -> None:
        """Have a record written down, without a person who wants nothing remembered."""
        payer, user = record.payer, record.payer.user
        if user is not None and not (
            self.rules.names_people and self._consent.may_keep(user, payer.as_of(record.at))
        ):
            record = replace(record, payer=payer.without(user))
            self._book.unnamed(user)
        if self._lines is not None:
            self._waiting.append(record)
            self._worker.note(_LINES)

    def _grant(self, asked: Pending) -> Grant:
        """Decide about a call. What it may cost is put aside, and to be written down."""
        now = self.now()
        if asked.background:
            choice = self._book.background(asked.wishes[0], asked.payer, now)
        else:
            choice = self._book.choose(asked.wishes, asked.payer, now)
        grant = Grant(new_id(), now, asked.purpose, asked.payer, choice)
        if choice.wish is None or not choice.wish.nano:
            return grant
        hold = Hold(grant.id, now, choice.wish.nano, asked.payer)
        self._count(self._book, hold)
        self._put(hold)
        return replace(grant, held=True)

    async def _write(self, _: str) -> None:
        """Decide what is asked and write what waits. Raises OSError and MemoryFault; that waits on then.

        What was decided before another process wrote is decided again, on what that one has spent too.
        """
        async with self._alone:
            try:
                for attempt in range(TRIES):
                    try:
                        if (fresh := await self._begun()) is not None:
                            self._take_in(fresh)
                            await self._append()
                        return
                    except Overtaken:
                        if attempt == TRIES - 1:
                            raise
                    await in_thread(rest, attempt)
            except (OSError, MemoryFault):  # the sums in RAM have it all the same
                self._give_all(self._granted())
                raise
            finally:
                self._late = False

    async def _begun(self) -> Fresh | None:
        """What others wrote to the log; None if all of ours is written by then.

        If nobody asks, and no other process has written, one hop does both. Raises OSError and MemoryFault.
        """
        assert self._lines is not None
        now, batch = self.now(), deque[Record](maxlen=MOST_WAITING)
        if not self._asked:
            batch, self._waiting = self._waiting, batch
        try:
            fresh = await in_thread(self._lines.begin, now, self._book.begin(now), batch)
        except BaseException:
            self._put_back(batch)
            raise
        if fresh is not None:
            self._put_back(batch)
        return fresh

    async def _append(self) -> None:
        assert self._lines is not None
        granted = self._granted()
        batch, self._waiting = self._waiting, deque(maxlen=MOST_WAITING)
        try:
            await in_thread(self._lines.append, batch)
        except Overtaken:
            self._put_back(batch)
            granted = self._asked_again(granted)
            raise
        except BaseException:
            self._put_back(batch)
            raise
        finally:
            self._give_all(granted)

    def _asked_again(self, granted: Sequence[tuple[Pending, Grant]]) -> list[tuple[Pending, Grant]]:
        """Take decisions back that nobody has been told yet. Returns the others."""
        again = [(one, grant) for one, grant in granted if not one.granted.done()]
        free = {grant.id for _, grant in again if grant.held}
        self._waiting = deque(
            (one for one in self._waiting if not (isinstance(one, Hold) and one.id in free)), MOST_WAITING
        )
        for one, grant in again:
            one.decided = None
            if grant.held:
                self._count(self._book, unused(grant))
        self._asked = [*(one for one, _ in again), *self._asked]
        return [pair for pair in granted if pair[0].granted.done()]

    def _give_all(self, granted: Iterable[tuple[Pending, Grant]]) -> None:
        """Hand decisions to those who wait for them; what was put aside for others is free again."""
        for one, grant in granted:
            if not one.granted.done():
                one.granted.set_result(grant)
            elif one.granted.cancelled() and grant.held:
                self.end(unused(grant))

    def _put_back(self, batch: Iterable[Record]) -> None:
        """Have what could not be written wait again, before what came since."""
        self._waiting = deque([*batch, *self._waiting], MOST_WAITING)

    def _granted(self) -> list[tuple[Pending, Grant]]:
        asked, self._asked = self._asked, []
        asked = [one for one in asked if not one.granted.done()]
        for one in asked:
            one.decided = self._grant(one)
        return [(one, one.decided) for one in asked if one.decided is not None]

    def _take_in(self, fresh: Fresh) -> None:
        """Count what other processes wrote; everything, if the log is no longer the one we knew.

        Of what waits, some may be there nevertheless: it is counted already, and not written again.
        """
        there, counted = set(map(key_of, fresh.records)), set(map(key_of, self._waiting))
        self._waiting = deque((one for one in self._waiting if key_of(one) not in there), MOST_WAITING)
        if fresh.anew:
            everything = [*fresh.records, *self._waiting]
            self._book = self._book.anew(lambda book: self._count_all(book, everything))
        else:
            new = (one for one in fresh.records if key_of(one) not in counted)
            self._count_all(self._book, new)

    def _count_all(self, book: Book, records: Iterable[Record]) -> None:
        for record in records:
            self._count(book, record)

    def _count(self, book: Book, record: Record) -> None:
        if isinstance(record, Hold):
            book.hold(record.id, record.at, record.nano, record.payer)
        else:
            book.spend(record.id, record.at, record.nano, record.payer)

    def _tell(self, spent: Spent) -> None:
        if spent.percent >= SMALL_FROM:
            self._news(spent)


def calls_since(lines: UsageLog, since_ms: int, user_id: str | None = None) -> list[Call]:
    """The calls in a log since a time (ms), all or those for one person.

    Blocking. Raises OSError and MemoryFault.
    """
    return [one for one in lines.since(since_ms, user_id) if isinstance(one, Call) and one.requests]


# ----------------------------------------------------------------------
# Tells the bot's owners when a budget is nearly spent and when it is spent: once for each period and stage.

CURSOR: Final = "budgets-told"
LONGEST_S: Final = 600.0
"""The longest pause before Discord is tried again."""

Tell = Callable[[str, str], Awaitable[None]]
"""Sends an owner (user id) a text. Raises ChatError."""


class Telling(Working, Derived):
    """Tells `owners` (user ids) with `tell`. It is a `core.ports.Service`."""

    name = "budget notices"

    def __init__(self, owners: Iterable[str], tell: Tell, cursors: Cursors, *, clock: Clock) -> None:
        self._owners = sorted(owners)
        self._tell = tell
        self._cursors = cursors
        self._clock = clock
        self._news: dict[str, Spent] = {}
        """The news of the periods that last still, by key."""
        self._left: dict[str, list[str]] = {}
        """The owners who are still to be told, by the key of the news that this process tells."""
        self._worker = Worker("budget notices", self._say, longest_s=LONGEST_S)

    def news(self, spent: Spent) -> None:
        """A budget is nearly spent, or is spent. Called again and again; never blocks."""
        if (key := _key(spent)) in self._news:
            return
        now = self._clock()
        self._news = {one: known for one, known in self._news.items() if known.until > now - BACK_MS}
        self._news[key] = spent
        self._worker.note(key)

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Name somebody who was erased to nobody, also where an owner is still to be told."""
        for key, spent in list(self._news.items()) if phase == "ram" and purge.erases else ():
            if spent.limit.scope == "person" and spent.whose == purge.user_id != "":
                del self._news[key]

    async def _say(self, key: str) -> None:
        """Tell the owners, unless they were told. Raises ChatUnavailable while Discord can't be reached."""
        if (spent := self._news.get(key)) is None:
            return
        text = notice(spent)
        if key not in self._left:
            if not await self._is_new(key, spent.until):
                return
            log.warning("%s", notice(spent, plain=True))
            self._left[key] = list(self._owners)
        for owner in list(self._left[key]):
            try:
                await self._tell(owner, text)
            except ChatUnavailable:
                raise
            except ChatError as error:
                log.warning("the owner %s can't be told about a budget: %s", owner, error)
            self._left[key].remove(owner)
        del self._left[key]

    async def _is_new(self, key: str, until: int) -> bool:
        """Whether nobody was told yet. Whoever finds that out first, in all processes, is to do it.

        With a disk that fails it is new: rather twice than never.
        """
        known, now = False, self._clock()
        ours = f"{until} {secrets.token_hex(4)}"  # else another process's note would look like our own

        def noted(told: Mapping[str, object]) -> Mapping[str, object] | None:
            nonlocal known
            known = key in told
            recent = {one: note for one, note in told.items() if _until(note) > now - BACK_MS}
            return None if known else {**recent, key: ours}

        await self._cursors.update(CURSOR, noted)
        return not known


def _until(note: object) -> int:
    """Until when (ms) a note that somebody was told counts."""
    first = note.partition(" ")[0] if isinstance(note, str) else ""
    return int(first) if first.isascii() and first.isdigit() else 0


def _key(spent: Spent) -> str:
    """The key under which news is told once. Of people's budgets, only the first in each period is told."""
    limit = spent.limit
    whose = "" if limit.scope == "person" else spent.whose
    return " ".join([limit.scope, whose, limit.period, spent.span.name, str(limit.nano), _stage(spent)])


def _stage(spent: Spent) -> str:
    return "spent" if spent.percent >= 100 else "nearly spent"


def notice(spent: Spent, *, plain: bool = False) -> str:
    """The notice for owners, with Discord's mentions and times; if `plain`, with ids and UTC, for a log."""
    limit = spent.limit
    until = f"at {iso_ms(spent.until)}" if plain else f"<t:{spent.until // 1000}:R>"
    what = f"the budget of {dollars(limit.nano)} a {limit.period}"
    if limit.scope == "person":
        who = spent.whose if plain else f"<@{spent.whose}>"
        first = f"{who} is the first person who has {_stage(spent)} {what}"
    else:
        channel = f"the channel {spent.whose}" if plain else f"<#{spent.whose}>"
        of = {"all": "", "server": f" for the server {spent.whose}", "channel": f" for {channel}"}
        first = f"T{what[1:]}{of[limit.scope]} is {_stage(spent)}"
    less = "from memory alone" if spent.percent >= 100 else "from a smaller model, if there is a cheaper one,"
    return f"{first} ({dollars(spent.nano)} so far). Answers come {less} until it begins anew {until}."
