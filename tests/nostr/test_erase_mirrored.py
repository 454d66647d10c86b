"""Erasing what was published: only tombstones and requests to delete stay, whatever happens meanwhile."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.draft import Origin
from discoclaw.core.errors import MemoryFault, NostrError
from discoclaw.core.history import PEOPLE
from discoclaw.core.item import item_id
from discoclaw.core.purge import Derived, Phase, Purge, Purged
from discoclaw.memory.changes import SESSION
from discoclaw.memory.people import tool_log
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event, SecretBox
from discoclaw.nostr.mirror import STEP, RelayCopies
from discoclaw.nostr.outbox import Outbox, OutboxEntry
from discoclaw.nostr.schemas import DELETE, ERASED, INVENTORY, LEDGER, SUMMARY, Codec, Names
from discoclaw.store.files import session_name
from discoclaw.store.port import ROLLING
from tests.memory.kit import NOW, Clock, remember
from tests.nostr.mirror_kit import (
    ANN,
    ANN_ID,
    BOB,
    BOB_ID,
    CODEC,
    DM,
    GROUP,
    KEYS,
    NAMES,
    PLACE,
    RELAY,
    MirrorSetup,
    Relay,
    is_deletion,
    mirror_setup,
)

CANARY = "Kanarie-Ü🐦-4711"
STATED = Origin("stated")


class Undeletable(Derived):
    """A part whose file cannot be removed."""

    name = "an undeletable part"

    def purge(self, purge: Purge, phase: Phase) -> Purged | None:
        return Purged(left=("a file that does not go",)) if phase == "disk" else None


async def fill(setup: MirrorSetup) -> None:
    """Have something of two people everywhere, with older versions, all of it published."""
    for subject, word in ((ANN, CANARY), (BOB, "coffee")):
        await setup.memory.change(subject, f"why {word}", remember(f"User prefers {word}.", "preference"))
        await setup.memory.change(subject, f"why {word}", remember(f"User likes {word}."))
    setup.profile(notes=[f"User likes {CANARY}."])
    setup.profile(BOB_ID, notes=["User likes coffee."])
    setup.tool(content=f"Found: {CANARY}")
    setup.summary(f"They spoke of {CANARY}.", NOW - 9_000)
    setup.summary(f"Ann spoke of {CANARY}.", NOW - 9_000, DM)
    setup.clear(NOW - 60_000, DM)
    setup.group(themes=[f"theme {CANARY}", "cakes"])
    for user_id, word in ((ANN_ID, CANARY), (BOB_ID, "coffee")):
        people = {PEOPLE: [user_id]}
        await setup.memory.change(GROUP, "why", remember(f"We talk of {word}."), **people)
    await setup.mirror.push()
    setup.clock.now += 60_000
    await setup.memory.change(ANN, "why", remember(f"User has {CANARY}."))
    setup.profile(notes=[f"User has {CANARY}."])
    await setup.mirror.push()


def opened(path: Path) -> str:
    """Every word in an outbox, decrypted, whatever table it lies in."""
    said = []
    with sqlite3.connect(path) as db:
        for (text,) in db.execute("SELECT event FROM events UNION ALL SELECT event FROM quarantine"):
            value = json.loads(text)
            event = Event(**{**value, "tags": tuple(tuple(tag) for tag in value["tags"])})
            said.append(json.dumps(CODEC.decode(event), ensure_ascii=False) if event.kind != DELETE else "")
    db.close()
    return "\n".join(said)


def check_erased(setup: MirrorSetup, relays: Sequence[Relay]) -> None:
    """Nothing of Ann is left anywhere, and all of Bob is."""
    for relay in relays:
        assert CANARY not in relay.says()
        assert "coffee" in relay.says()
    assert CANARY not in opened(setup.outbox.path)
    for unit in (ANN, f"{SESSION}{DM}"):
        rows = setup.known(unit).values()
        assert rows
        assert all(row.tombstone or row.kind == DELETE for row in rows)
        assert setup.outbox.cursor(NAMES.keyed_hash(unit)) == 0
        assert all(not setup.outbox.versions(row.kind, row.d) for row in rows)
    assert setup.memory.pending_erasures() == []


class TestErasing:
    async def test_nothing_of_the_person_is_left_anywhere_and_all_of_others_stays(
        self, tmp_path: Path
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            obeys, ignores = Relay(), Relay(obeys=False)
            await fill(setup)
            before = setup.sent()
            published = {key: row.event_id for key, row in setup.known(ANN).items()}
            versions = {key: setup.outbox.versions(*key) for key in published}
            assert max(map(len, versions.values())) == 2  # an older one of the profile is known by its id
            await setup.memory.erase(ANN)
            await setup.mirror.settle()
            after = setup.sent()
            relays = [obeys.take([*before, *after]), ignores.take([*before, *after])]
            check_erased(setup, relays)
            asked = {tag[1] for event in filter(is_deletion, after) for tag in event.tags if tag[0] == "e"}
            assert asked >= {event_id for ids in versions.values() for event_id in ids}
            tombstones = [body for body in ignores.holds().values() if ERASED in body]
            assert len(tombstones) >= len(published) + 3
            index = json.dumps([body for (_, d), body in ignores.holds().items() if d.startswith(INVENTORY)])
            assert NAMES.keyed_hash(ANN) not in index and NAMES.keyed_hash(BOB) in index
            group = [
                body for (_, d), body in obeys.holds().items() if d.startswith(NAMES.ledger_prefix(GROUP))
            ]
            assert "We talk of coffee." in json.dumps(group)
            assert len([one for one in group if one["record"]["type"] == "commit"]) == 1
            await setup.mirror.close()

    async def test_what_still_waits_is_never_sent(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            setup.outbox.set_relays([RELAY])
            await fill(setup)
            await setup.memory.erase(ANN)
            await setup.mirror.push()
            assert "not on this disk" not in caplog.text  # that is what was asked for
            assert CANARY not in Relay(obeys=False).take(setup.sent()).says()
            await setup.mirror.close()

    async def test_a_later_memory_is_published_behind_it_though_the_clock_went_back(
        self, tmp_path: Path
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            relay = Relay()
            await fill(setup)
            await setup.memory.erase(ANN)
            await setup.mirror.settle()
            relay.take(setup.sent())
            setup.clock.now -= 3_600_000
            await setup.memory.change(ANN, "why", remember("User prefers silence.", "preference"))
            setup.profile(notes=["User is back."])
            await setup.mirror.push()
            relay.take(setup.sent())
            assert "User is back." in relay.says()
            assert "User prefers silence." in relay.says()
            bodies = [
                body for (_, d), body in relay.holds().items() if d.startswith(NAMES.ledger_prefix(ANN))
            ]
            assert [body["line"] for body in bodies] == [0]
            await setup.mirror.close()

    async def test_a_group_that_remembers_nothing_any_more_is_emptied(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            setup.group(themes=["cakes"])
            people = {PEOPLE: [ANN_ID]}
            await setup.memory.change(GROUP, "why", remember("We talk of cakes."), **people)
            await setup.mirror.push()
            relay = Relay().take(setup.sent())
            assert "We talk of cakes." in relay.says()
            await setup.memory.erase(ANN)
            await setup.mirror.settle()
            relay.take(setup.sent())
            assert "cakes" not in relay.says()
            assert setup.outbox.cursor(NAMES.keyed_hash(GROUP)) == 0
            await setup.mirror.close()

    async def test_as_long_as_something_is_left_on_disk_nothing_is_published_again(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            await fill(setup)
            relay = Relay().take(setup.sent())
            setup.memory.join(Undeletable())
            setup.clock.now += 1_000
            erased = await setup.memory.erase(ANN)
            assert erased.left
            setup.profile(notes=[f"User likes {CANARY}."])
            await setup.mirror.push()
            relay.take(setup.sent())
            assert CANARY not in json.dumps(
                [body for (_, d), body in relay.holds().items() if NAMES.user(ANN_ID)[:32] in d]
            )
            assert setup.memory.pending_erasures(STEP) == [ANN]
            await setup.mirror.close()


class Killed(NostrError):
    """Stands for a kill: nothing after it happens, and what was durable before it stays."""


class Mortal(Outbox):
    """An outbox whose process dies right before a number of acts on it, once that is armed."""

    acts = -1

    def _live(self) -> None:
        if self.acts == 0:
            raise Killed("killed")
        self.acts -= self.acts > 0

    def put(self, unit: str, entries: Sequence[OutboxEntry], *, cursor: int | None = None) -> None:
        self._live()
        super().put(unit, entries, cursor=cursor)

    def set_meta(self, key: str, value: str) -> None:
        self._live()
        super().set_meta(key, value)

    def forget(self, unit: str, **given: Any) -> None:
        self._live()
        super().forget(unit, **given)


class TestInterrupted:
    @pytest.mark.parametrize("acts", [0, 1, 2, 3, 5, 7])
    async def test_it_is_finished_by_the_next_start(self, tmp_path: Path, acts: int) -> None:
        relays = [Relay(), Relay(obeys=False)]
        with mirror_setup(tmp_path, outbox=Mortal, retry_s=600.0) as setup:
            await fill(setup)
            for relay in relays:
                relay.take(sent := setup.sent())
            assert sent is not None
            setup.outbox.acts = acts  # type: ignore[attr-defined]
            await setup.memory.erase(ANN)
            await setup.mirror.settle()
            assert setup.memory.pending_erasures(STEP) == [ANN]
            await setup.mirror.close()
        with mirror_setup(tmp_path, Clock(NOW + 120_000)) as later:
            await later.mirror.push()
            sent = later.sent()
            check_erased(later, [relay.take(sent) for relay in relays])
            await later.mirror.close()

    async def test_a_step_that_can_not_be_noted_is_done_again(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await fill(setup)
            done = setup.memory.finish_step

            async def fails(subject: str, step: str) -> None:
                raise MemoryFault("the disk is full")

            setup.memory.finish_step = fails  # type: ignore[method-assign]
            await setup.memory.erase(ANN)
            await setup.mirror.settle()
            assert setup.memory.pending_erasures(STEP) == [ANN]
            setup.memory.finish_step = done  # type: ignore[method-assign]
            await setup.mirror.push()
            check_erased(setup, [])
            await setup.mirror.close()

    async def test_a_summary_that_went_along_is_found_by_the_next_start(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await fill(setup)
            relay = Relay().take(setup.sent())
            await setup.mirror.close()
            await setup.memory.erase(ANN)
        with mirror_setup(tmp_path, Clock(NOW + 120_000)) as later:
            await later.mirror.push()
            relay.take(later.sent())
            assert CANARY not in relay.says()
            assert [kind for kind, _ in relay.holds() if kind == SUMMARY] == []
            await later.mirror.close()


class TestSwitchedOff:
    """Erased while nothing is mirrored: the step waits, if something is published."""

    async def test_the_step_waits_until_it_is_on_again(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await fill(setup)
            relay = Relay().take(setup.sent())
            await setup.mirror.close()
            path = setup.outbox.path
        off = Memory(tmp_path / "memory", clock=Clock(NOW + 120_000))
        off.join(RelayCopies(path, off.disk, lambda: NAMES))
        off.open()
        assert (await off.erase(ANN)).todo == (STEP,)
        off.close()
        with mirror_setup(tmp_path, Clock(NOW + 180_000)) as on:
            assert on.memory.pending_erasures(STEP) == [ANN]
            await on.mirror.push()
            check_erased(on, [relay.take(on.sent())])
            await on.mirror.close()

    async def test_looking_leaves_no_file_beside_the_outbox(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await fill(setup)
            await setup.mirror.close()
            path, disk = setup.outbox.path, setup.memory.disk
        assert RelayCopies(path, disk, lambda: NAMES).outside(ANN) == (STEP,)
        assert [one.name for one in path.parent.iterdir()] == [path.name]

    async def test_there_is_none_for_somebody_of_whom_nothing_is_published(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            path, disk = setup.outbox.path, setup.memory.disk

            def steps(subject: str, outbox: Path = path, names: Names | None = NAMES) -> Collection[str]:
                return RelayCopies(outbox, disk, lambda: names).outside(subject)

            assert steps(ANN, outbox=tmp_path / "none.sqlite") == ()
            await setup.memory.change(BOB, "why", remember("User likes coffee."))
            assert steps(ANN, names=None) == ()
            await setup.mirror.push()
            assert steps(ANN) == ()
            assert steps(BOB) == (STEP,)
            assert steps(ANN, names=None) == (STEP,)  # nobody can tell without the key
            assert steps("bot") == ()
            setup.group()
            await setup.mirror.push()
            assert steps(ANN) == (STEP,)  # what groups remember may be theirs
            path.rename(path.with_name("moved"))
            path.write_bytes(b"nonsense" * 1_000)
            assert steps(ANN) == (STEP,)
            await setup.mirror.close()


class TestWithdrawn:
    """What a person took back leaves the relays although nobody erased anything."""

    @pytest.mark.parametrize("plain", [False, True])
    async def test_a_summary_a_tool_call_and_a_preference_follow(self, tmp_path: Path, plain: bool) -> None:
        codec = Codec(KEYS, SecretBox.of(KEYS), allow_plaintext=plain)
        with mirror_setup(tmp_path, codec=codec) as setup:
            key = item_id("preference", f"User prefers {CANARY}.")
            text = f"User prefers {CANARY}."
            await setup.memory.change(ANN, "why", remember(text, "preference"))
            call = setup.tool(content=f"Found: {CANARY}")
            setup.summary(f"They spoke of {CANARY}.", NOW - 9_000)
            await setup.mirror.push()
            relay = Relay().take(setup.sent())
            assert CANARY in relay.says()
            setup.clock.now += 60_000
            await setup.memory.change(
                ANN, "why", lambda draft: draft.deprecate(draft.items[key], Origin("stated"))
            )
            tool_log.log_of(setup.memory.disk, ANN).replace(b"")
            setup.memory.disk.documents(ROLLING).remove([session_name(PLACE)])
            setup.clear(setup.clock.now)
            await setup.mirror.push()
            relay.take(setup.sent())
            views = {one: body for one, body in relay.holds().items() if not one[1].startswith(LEDGER)}
            assert CANARY not in json.dumps(list(views.values()), ensure_ascii=False)
            assert call.id not in json.dumps(list(views.values()))
            await setup.mirror.close()
