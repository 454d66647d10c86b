"""Years of reminders in minutes: a clock, ledgers, cursors and a Discord in RAM, and a naive oracle.

`Reminding`, `Cursors`, drafts and the fold of reminders are real. Whatever is durable is in `Durable`, so a
kill is a new `Reminding` on the same one. The oracle knows when each reminder has to come, from the calendar
and `zoneinfo` alone, and checks each message against it: none early, none twice, none late, none lost.
"""

import calendar
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.history import Branches
from discoclaw.core.item import MANUAL, Facets, Item
from discoclaw.core.reminder import Reminder
from discoclaw.core.subject import user_of, user_subject
from discoclaw.core.view import View
from discoclaw.core.zones import KEY
from discoclaw.memory import cursors, kept
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.subjects import follow
from discoclaw.reminders import due
from discoclaw.reminders.due import Delivery, Given, Reminding
from discoclaw.store.port import Documents, Head, Ledgers, Mark

START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = round(START.timestamp() * 1000)
DAY_MS = 86_400_000
NONCE_MS = 120_000
"""How long Discord drops a message with a nonce that it has had."""


class Killed(OSError):
    """The process is gone. An OSError, so that a worker takes it for one, and the log stays short."""


async def here(work: Callable[..., Any], *args: Any) -> Any:
    """Instead of a thread: what these documents do waits for nothing."""
    return work(*args)


def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have cursors and ledgers read and written where they stand, which saves nine tenths of the time."""
    for module in (cursors, follow, kept, due):
        for name in ("in_thread", "read_in_thread"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, here)


# ---------------------------------------------------------------------- what is durable


@dataclass
class Durable:
    """All that outlives a kill."""

    now_ms: int = START_MS
    texts: dict[str, bytes] = field(default_factory=dict)
    branches: dict[str, Branches] = field(default_factory=dict)
    zones: dict[str, str] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    """The subjects whose ledgers changed, in order."""
    messages: list[tuple[int, Delivery]] = field(default_factory=list)
    nonces: dict[str, int] = field(default_factory=dict)
    in_flight: list[Delivery] = field(default_factory=list)
    """The same of the last process that was killed."""


class RamDocuments(Documents):
    """The cursors, in RAM."""

    def __init__(self, run: "Run") -> None:
        self._run = run

    @property
    def folder(self) -> Path:
        return Path("cursors")

    def names(self) -> list[str]:
        return sorted(self._run.durable.texts)

    def read(self, name: str) -> bytes:
        try:
            return self._run.durable.texts[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def write(self, name: str, content: bytes) -> None:
        with self._run.writing():
            self._run.durable.texts[name] = content

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        with self._run.writing():
            return sum(self._run.durable.texts.pop(name, None) is not None for name in names), []


class RamLedgers(Ledgers):
    """Which ledgers changed, in RAM."""

    def __init__(self, durable: Durable) -> None:
        self._durable = durable

    def by_age(self) -> list[tuple[str, int]]:
        return [(subject, 1) for subject in dict.fromkeys(self._durable.changes)]

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        begun = mark if isinstance(mark, int) else 0
        return list(dict.fromkeys(self._durable.changes[begun:])), len(self._durable.changes)

    def log(self, subject: str) -> Any:
        size = self._durable.branches[subject].last_ms if subject in self._durable.branches else 0
        return type("Log", (), {"head": lambda _: Head(size)})()


class writing:  # noqa: N801 - reads like a function
    """A write, before or after which the process may be killed."""

    def __init__(self, run: "Run") -> None:
        self._run = run

    def __enter__(self) -> None:
        self._run.step()

    def __exit__(self, *_: object) -> None:
        self._run.step()


class Run:
    """One process. `kills` says, at each step, whether it ends there."""

    def __init__(self, durable: Durable, kills: Callable[[], bool], default: str) -> None:
        self.durable = durable
        self.dead = False
        self.in_flight: list[Delivery] = []
        """What it had sent when it was killed, and Discord hasn't seen yet."""
        self._kills = kills
        self.ledgers = RamLedgers(durable)
        self.reminding = Reminding(
            self,  # type: ignore[arg-type]
            Cursors(RamDocuments(self), clock=lambda: durable.now_ms),
            lambda user_id: False,
            self.send,
            zone=ZoneInfo(default),
            clock=lambda: durable.now_ms,
        )

    def step(self) -> None:
        """A moment at which the process may be killed. Raises Killed."""
        self.dead = self.dead or self._kills()
        if self.dead:
            raise Killed("killed")

    def writing(self) -> writing:
        return writing(self)

    # --- the memory, as far as reminders need one ---

    async def branches(self, subject: str) -> Branches:
        return self.durable.branches.get(subject, Branches())

    async def view(self, subject: str) -> View:
        return view_of(self.durable.zones.get(user_of(subject) or "", ""))

    def erased_at(self, subject: str) -> int:
        return -1

    async def change(
        self, subject: str, why: str, wish: Callable[[Draft], Any], *, by: str = "command"
    ) -> Any:
        with self.writing():
            outcome = changed(self.durable, subject, why, wish, by=by)
        self.reminding.recorded(subject)
        return outcome

    # --- Discord ---

    async def send(self, one: Delivery) -> Given:
        if self.dead:
            raise Killed("killed")
        if one.since is not None and self.durable_has(one):
            self.step()
            return "sent"
        if self._kills():  # while it is on its way: it may arrive later, or never
            self.dead = True
            if int(one.token, 16) % 2:
                self.in_flight.append(one)
            raise Killed("killed")
        arrives(self.durable, one)
        self.step()
        return "sent"

    def durable_has(self, one: Delivery) -> bool:
        assert one.since is not None
        recent = (sent for at, sent in reversed(self.durable.messages) if at >= (one.since or 0) - NONCE_MS)
        return any(sent.token == one.token for sent in recent)


def arrives(durable: Durable, one: Delivery) -> None:
    """Discord gets a message: once for each nonce, as long as it remembers that."""
    if durable.now_ms - durable.nonces.get(one.token, -NONCE_MS) < NONCE_MS:
        return
    durable.nonces[one.token] = durable.now_ms
    durable.messages.append((durable.now_ms, one))


def changed(
    durable: Durable, subject: str, why: str, wish: Callable[[Draft], Any], *, by: str = "command"
) -> Any:
    """A change of a ledger, as `Memory.change` makes one."""
    before = durable.branches.get(subject, Branches())
    view = View(head=before.all["main"].head, updated_at=before.last_ms)
    draft = Draft(view, now_ms=before.next_ms(durable.now_ms), reminders=before.reminders)
    outcome = wish(draft)
    if (commit := draft.commit(why, by=by)) is not None:
        durable.branches[subject] = before.after(commit)
        durable.changes.append(subject)
    return outcome


def view_of(zone: str) -> View:
    """A memory that says which zone somebody is in, if that is known."""
    if not zone:
        return View()
    facets = Facets(key=KEY)
    item = Item("durable-1", "fact", f"User's time zone is {zone}.", (), "active", MANUAL, 1, 1, facets)
    return View({item.id: item})


# ---------------------------------------------------------------------- the oracle


def naive_moment(wall: str, zone: tzinfo) -> int:
    """The moment of a clock's time, by PEP 495: fold 0 is the first of two, and the later one in a gap."""
    return round(datetime.fromisoformat(wall).replace(tzinfo=zone, fold=0).timestamp() * 1000)


def fits(rule: str, day: date, begun: date) -> bool:
    """Whether a rule that had a day goes on on another one, by looking at that day alone."""
    parts = dict(one.split("=") for one in rule.split(";"))
    every, last = int(parts.get("INTERVAL", 1)), calendar.monthrange(day.year, day.month)[1]
    weekday = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[day.weekday()]
    months = (day.year - begun.year) * 12 + day.month - begun.month
    if parts["FREQ"] == "DAILY":
        return (day - begun).days % every == 0
    if parts["FREQ"] == "WEEKLY":
        mondays = [one - timedelta(days=one.weekday()) for one in (day, begun)]
        return weekday in parts["BYDAY"].split(",") and (mondays[0] - mondays[1]).days // 7 % every == 0
    if parts["FREQ"] == "YEARLY":
        that_day = (int(parts["BYMONTH"]), min(int(parts["BYMONTHDAY"]), last))
        return (day.month, day.day) == that_day and (day.year - begun.year) % every == 0
    if months % every:
        return False
    if "BYDAY" in parts:
        nth = int(parts["BYDAY"][:-2])
        counted = (last - day.day) // 7 + 1 if nth < 0 else (day.day - 1) // 7 + 1
        return weekday == parts["BYDAY"][-2:] and counted == abs(nth)
    wanted = int(parts["BYMONTHDAY"])
    return day.day == (last if wanted < 0 else min(wanted, last))


def naive_next(one: Reminder, now_ms: int, zone: tzinfo) -> Reminder | None:
    """A reminder as it has to be after it was delivered at a time; looks at one day after another."""
    if not one.rule:
        return None
    if not one.wall:
        hours = int(dict(part.split("=") for part in one.rule.split(";")).get("INTERVAL", 1))
        at = one.at
        while at <= now_ms:
            at += hours * 3_600_000
        return Reminder(one.id, one.text, at=at, rule=one.rule)
    begun = day = date.fromisoformat(one.wall[:10])
    while True:
        day += timedelta(days=1)
        wall = f"{day}{one.wall[10:]}"
        if fits(one.rule, day, begun) and naive_moment(wall, zone) > now_ms:
            return Reminder(one.id, one.text, wall=wall, rule=one.rule)


# ---------------------------------------------------------------------- the simulation


@dataclass
class Report:
    """What a simulation saw."""

    set: int = 0
    delivered: int = 0
    messages: int = 0
    kills: int = 0
    zones: int = 0
    latest_ms: int = 0


class Simulation:
    """People who set, change and delete reminders and move, over years, with a process that is killed."""

    def __init__(self, seed: int, *, people: int, zones: list[str], kill_one_in: int) -> None:
        self.random = random.Random(seed)
        self.durable = Durable()
        self.people = [str(10_000 + number) for number in range(people)]
        self.report = Report(zones=len(zones))
        self.default = "UTC"
        self._kill_one_in = kill_one_in
        self._seen = 0
        self._up_since = START_MS
        for number, user_id in enumerate(self.people):
            self.durable.zones[user_id] = zones[number % len(zones)]
        self.expected: dict[str, dict[str, Reminder]] = {user_id: {} for user_id in self.people}
        self.run = self._new_run()

    def _kills(self) -> bool:
        return self._kill_one_in > 0 and self.random.randrange(self._kill_one_in) == 0

    def _new_run(self) -> Run:
        return Run(self.durable, self._kills, self.default)

    async def begin(self) -> None:
        """Start the process, again and again until it isn't killed meanwhile."""
        while True:
            try:
                await self.run.reminding.start()
                await self.run.reminding.ready()
                await self.run.reminding.settle()
            except Killed:
                self.run.dead = True
            if not self.run.dead:
                return
            await self.killed()

    async def killed(self) -> None:
        """The process is gone; another one follows, some seconds or minutes later."""
        self.report.kills += 1
        await self.run.reminding.close()
        for one in self.durable.in_flight:  # of the process before: nothing is on its way for minutes
            arrives(self.durable, one)
        late, self.durable.in_flight = self.run.in_flight, []
        pause_ms = self.random.choice((500, 5_000, 50_000, 300_000))
        if pause_ms > NONCE_MS or self.random.random() < 0.5:
            for one in late:
                arrives(self.durable, one)
            late = []
        self.durable.now_ms += pause_ms
        self._up_since = self.durable.now_ms
        self.durable.in_flight = late  # it arrives after the new process began to send the same
        self.run = self._new_run()

    async def settle(self) -> None:
        """Let everything that is due be given, by as many processes as it takes, and check it."""
        while True:
            try:
                await self.run.reminding.settle()
            except Killed:
                self.run.dead = True
            if not self.run.dead:
                break
            await self.killed()
            await self.begin()
        late, self.durable.in_flight = self.durable.in_flight, []
        for one in late:
            arrives(self.durable, one)
        self.check()

    def check(self) -> None:
        """Compare each new message with what has to come."""
        for at, one in self.durable.messages[self._seen :]:
            zone = ZoneInfo(self.durable.zones[one.user_id])
            self.report.messages += 1
            for reminder in one.reminders:
                expected = self.expected[one.user_id].pop(reminder.id, None)
                assert expected is not None, f"twice, or never asked for: {reminder}"
                assert (expected.wall, expected.at) == (reminder.wall, reminder.at), (expected, reminder)
                due = self.due(expected, zone)
                assert due <= at, f"early: {reminder} at {at}"
                self.report.latest_ms = max(self.report.latest_ms, at - max(due, self._up_since))
                self.report.delivered += 1
                if (after := naive_next(expected, one.now_ms, zone)) is not None:
                    self.expected[one.user_id][reminder.id] = after
        self._seen = len(self.durable.messages)

    def due(self, one: Reminder, zone: tzinfo) -> int:
        return naive_moment(one.wall, zone) if one.wall else one.at

    def assert_none_lost(self) -> None:
        """Nothing that is due by now is still to come."""
        for user_id, reminders in self.expected.items():
            zone = ZoneInfo(self.durable.zones[user_id])
            for one in reminders.values():
                assert self.due(one, zone) > self.durable.now_ms, f"lost: {one} of {user_id}"

    # --- what people do ---

    def set(self, user_id: str, one: Reminder) -> None:
        """Somebody sets or changes a reminder. Their ledger has it, whichever process is there."""
        origin = Origin("stated")
        changed(self.durable, user_subject(user_id), "set", lambda draft: draft.remind(one, origin, "set"))
        self.expected[user_id][one.id] = one
        self.run.reminding.recorded(user_subject(user_id))

    def delete(self, user_id: str, one: Reminder) -> None:
        """Somebody deletes one."""
        origin, subject = Origin("stated"), user_subject(user_id)

        def wish(draft: Draft) -> None:
            draft.remind(draft.reminders[one.id], origin, "deleted", gone=True)

        changed(self.durable, subject, "deleted", wish)
        del self.expected[user_id][one.id]
        self.run.reminding.recorded(subject)

    def move(self, user_id: str, zone: str) -> None:
        """Somebody goes to another zone, where no reminder of theirs is over already."""
        self.durable.zones[user_id] = zone
        self.durable.changes.append(user_subject(user_id))
        self.run.reminding.recorded(user_subject(user_id))

    def any_reminder(self, number: int, zone: tzinfo, years: float, *, repeats: bool) -> Reminder:
        """Some reminder that is still to come."""
        pick, now = self.random, datetime.fromtimestamp(self.durable.now_ms / 1000, zone).replace(tzinfo=None)
        key = f"{number:08x}"
        minutes = pick.randrange(1, int(years * 525_600))
        wall = (now + timedelta(days=1, minutes=minutes)).isoformat(timespec="minutes")
        if not repeats:
            if pick.random() < 0.3:
                return Reminder(key, "x", at=self.durable.now_ms + pick.randrange(1, 200) * 60_000)
            return Reminder(key, "x", wall=wall)
        if pick.random() < 0.05:
            at = self.durable.now_ms + 3_600_000
            return Reminder(key, "x", at=at, rule=f"FREQ=HOURLY;INTERVAL={pick.randrange(24 * 20, 1_000)}")
        day = date.fromisoformat(wall[:10])
        every = pick.choice((1, 1, 1, 2, 3))
        weekday = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[day.weekday()]
        rule = pick.choice(
            (
                f"FREQ=DAILY;INTERVAL={every * 30}",
                f"FREQ=WEEKLY;INTERVAL={every * 4};BYDAY={weekday}",
                f"FREQ=MONTHLY;INTERVAL={every};BYMONTHDAY={day.day}",
                f"FREQ=MONTHLY;INTERVAL={every};BYDAY={(day.day - 1) // 7 + 1}{weekday}",
                f"FREQ=YEARLY;BYMONTH={day.month};BYMONTHDAY={day.day}",
            )
        )
        return Reminder(key, "x", wall=wall, rule=rule)

    # --- a run of it ---

    async def live(self, *, years: float, once: int, repeating: int) -> Report:
        """So many reminders, set over the years, each given when it is due, whatever happens."""
        logging.disable(logging.ERROR)
        try:
            await self.begin()
            end = START_MS + int(years * 365 * DAY_MS)
            total = once + repeating
            gap = (end - START_MS) // total
            for number in range(total):
                user_id = self.people[number % len(self.people)]
                zone = ZoneInfo(self.durable.zones[user_id])
                left = max(0.001, (end - self.durable.now_ms) / DAY_MS / 365 - 0.02)
                self.set(user_id, self.any_reminder(number, zone, min(left, 5), repeats=number < repeating))
                self.report.set += 1
                await self.until(START_MS + (number + 1) * gap)
            await self.until(end)
            self.assert_none_lost()
            return self.report
        finally:
            logging.disable(logging.NOTSET)
            await self.run.reminding.close()

    async def until(self, then_ms: int) -> None:
        """Let time pass: to each due time in turn, or past several at once if the clock jumps."""
        await self.settle()
        while True:
            order = self.run.reminding._order
            at = order[0][0] if order else then_ms
            if at >= then_ms:
                break
            what = self.random.random()
            if what < 0.02:  # the clock is put forward, or the machine slept
                at = min(then_ms, at + self.random.randrange(3 * DAY_MS))
                self._up_since = at
            elif what < 0.03:  # and back
                at = max(START_MS, self.durable.now_ms - self.random.randrange(3_600_000))
            elif what < 0.05:  # the process is off for a while
                await self.run.reminding.close()
                at = min(then_ms, at + self.random.randrange(10 * DAY_MS))
                self._up_since, self.durable.now_ms = at, max(at, self.durable.now_ms)
                self.run = self._new_run()
                await self.begin()
            self.durable.now_ms = max(at, self.durable.now_ms) if what >= 0.03 else at
            await self.settle()
        self.durable.now_ms = max(then_ms, self.durable.now_ms)
        await self.settle()
