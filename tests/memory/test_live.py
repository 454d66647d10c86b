"""Live configuration on disk: files that people edit, events that do not come back, disks that fail."""

import asyncio
import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.core.live import GLOBAL, NO_OVERRIDES, Scope, address
from discoclaw.core.message import Place
from discoclaw.core.policy import Policy
from discoclaw.memory import live
from discoclaw.memory.live import AHEAD_S, FILE, LOCK, SIGNED, LiveConfig, change_file, read_file
from discoclaw.memory.stores import Disks
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import Documents
from tests.memory.kit import NOW, REPOSITORY, STAMP, Clock, asides
from tests.tables import naming

NOW_S = NOW // 1000
HOME = Place("channel", "9", "9", "general", private=False)
THREAD = Place("thread", "91", "9", "a thread", private=False)
DM = Place("dm", "5", None, "dm", private=True)
D = address(GLOBAL)
ANNS = Scope("user", "7")


def event_id(digits: str) -> str:
    return (digits * 64)[:64]


@pytest.fixture
def anew(fresh: Callable[[], Disks]) -> Iterator[Callable[[], Documents]]:
    """Where the files are, in whichever store, as a new process finds them."""
    opened: list[Disks] = []

    def begin() -> Documents:
        opened.append(fresh())
        return opened[-1].used.documents("")

    yield begin
    for disks in opened:
        disks.close()


@pytest.fixture
def documents(anew: Callable[[], Documents]) -> Documents:
    return anew()


@pytest.fixture
def config(documents: Documents, clock: Clock) -> LiveConfig:
    opened = LiveConfig(documents, clock=clock)
    opened.load()
    return opened


@pytest.fixture
def again(anew: Callable[[], Documents], clock: Clock) -> Callable[[], LiveConfig]:
    """The same after a restart, which knows what is on disk and nothing else."""

    def begin() -> LiveConfig:
        opened = LiveConfig(anew(), clock=clock)
        opened.load()
        return opened

    return begin


def put(documents: Documents, name: str, value: Any) -> None:
    """Somebody writes a file."""
    documents.write(name, value if isinstance(value, bytes) else json.dumps(value).encode())


class TestTheOwnersEvents:
    async def test_a_replaced_one_stays_replaced_after_a_restart(
        self, config: LiveConfig, again: Callable[[], LiveConfig]
    ) -> None:
        config.take(D, NOW_S - 10, event_id("a"), {"respond_mode": "all", "context_history": 50})
        config.take(D, NOW_S, event_id("b"), NO_OVERRIDES)
        assert await config.save()
        restarted = again()
        assert restarted.policy(HOME, "7") == Policy(minimum_window=20)
        assert not restarted.take(
            D, NOW_S - 10, event_id("a"), {"respond_mode": "all", "context_history": 50}
        )
        assert not restarted.take(D, NOW_S, event_id("b"), NO_OVERRIDES)

    async def test_what_holds_and_what_was_only_noted_outlives_a_restart(
        self, config: LiveConfig, again: Callable[[], LiveConfig]
    ) -> None:
        config.take(address(ANNS), NOW_S, event_id("a"), {"respond_mode": "none", "context_history": 3})
        config.take("snowclaw:memory:npub:7", NOW_S, event_id("b"))
        await config.save()
        restarted = again()
        assert restarted.policy(DM, "7") == Policy("none", 3)
        assert restarted.signed(ANNS) == config.signed(ANNS)
        assert not restarted.fresh("snowclaw:memory:npub:7", NOW_S, event_id("b"))
        assert restarted.fresh("snowclaw:memory:npub:7", NOW_S + 1, event_id("c"))

    def test_one_of_the_future_is_refused_and_bars_nothing(
        self, config: LiveConfig, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert not config.take(D, NOW_S + AHEAD_S + 1, event_id("a"), {"respond_mode": "all"})
        assert "an event of the future" in caplog.text
        assert config.take(D, NOW_S + AHEAD_S, event_id("b"), {"respond_mode": "owner"})
        assert not config.take(D, NOW_S, event_id("c"), {"respond_mode": "none"})
        clock.forward(minutes=1)
        assert config.take(D, NOW_S + AHEAD_S + 1, event_id("a"), {"respond_mode": "all"})

    def test_more_addresses_than_anybody_needs_are_not_kept(
        self, config: LiveConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("discoclaw.memory.live.MOST_ADDRESSES", 2)
        assert config.take(D, NOW_S, event_id("a"), {"respond_mode": "all"})
        assert config.take(address(ANNS), NOW_S, event_id("b"), {"respond_mode": "all"})
        assert not config.take(address(Scope("user", "8")), NOW_S, event_id("c"), {"respond_mode": "all"})
        assert config.take(D, NOW_S + 1, event_id("d"), {"respond_mode": "owner"})

    @given(
        events=st.lists(
            st.tuples(st.integers(-3, 3), st.sampled_from("abc"), st.sampled_from(["all", "none", "owner"])),
            unique_by=lambda event: event[:2],
            min_size=1,
        ),
        order=st.randoms(use_true_random=False),
    )
    def test_come_to_the_same_in_any_order(self, events: list[Any], order: Any) -> None:
        config = LiveConfig(Path("/nonexistent"), clock=Clock())
        best = min(events, key=lambda event: (-event[0], event[1]))
        order.shuffle(events)
        for at, digit, mode in [*events, *events]:
            config.take(D, NOW_S + at, event_id(digit), {"respond_mode": mode})
        assert config.policy(HOME, "7").respond_mode == best[2]

    def test_one_address_in_other_letters_is_the_same_scope(self, config: LiveConfig) -> None:
        d = address(Scope("user", "ab" * 16))
        assert config.take(d, NOW_S, event_id("b"), {"respond_mode": "all"})
        assert config.take(d.replace("ab", "AB"), NOW_S - 1, event_id("a"), {"respond_mode": "none"})
        assert config.explain(Scope("user", "ab" * 16))["respond_mode"].value == "all"

    def test_names_that_are_known_later_count_then(self, config: LiveConfig) -> None:
        class Names:
            def user(self, user_id: str) -> str:
                return event_id("1") if user_id == "7" else event_id("2")

            channel = user

        config.take(address(Scope("user", "1" * 32)), NOW_S, event_id("a"), {"respond_mode": "none"})
        assert config.policy(HOME, "7").respond_mode == "mention"
        config.names = Names()
        assert config.policy(HOME, "7").respond_mode == "none"
        assert config.policy(HOME, "8").respond_mode == "mention"


class TestWritingThemDown:
    async def test_many_at_once_are_one_write(
        self, config: LiveConfig, documents: Documents, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written: list[str] = []
        write = documents.write
        monkeypatch.setattr(
            type(documents),
            "write",
            lambda self, name, content, **_: (written.append(name), write(name, content)),
        )
        for number in range(20):
            config.take(address(Scope("user", str(number))), NOW_S, event_id("a"), {"respond_mode": "all"})
        assert await asyncio.gather(*(config.save() for _ in range(20))) == [True] * 20
        assert await config.save()
        assert written == [SIGNED]

    async def test_a_disk_that_fails_costs_the_memory_of_it_and_not_the_change(
        self,
        config: LiveConfig,
        documents: Documents,
        again: Callable[[], LiveConfig],
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        config.take(D, NOW_S, event_id("a"), {"respond_mode": "all"})
        with monkeypatch.context() as broken:
            broken.setattr(type(documents), "write", full)
            assert not await config.save()
        assert "signed.json could not be written" in caplog.text
        assert config.policy(HOME, "7").respond_mode == "all"
        assert again().policy(HOME, "7").respond_mode == "mention"
        assert await config.save()
        assert again().policy(HOME, "7").respond_mode == "all"

    async def test_a_file_of_a_newer_version_is_never_overwritten(
        self, documents: Documents, again: Callable[[], LiveConfig], caplog: pytest.LogCaptureFixture
    ) -> None:
        put(documents, SIGNED, {"version": 2, "events": {}})
        config = again()
        assert config.take(D, NOW_S, event_id("a"), {"respond_mode": "all"})
        assert not await config.save()
        assert config.policy(HOME, "7").respond_mode == "all"
        assert json.loads(documents.read(SIGNED)) == {"version": 2, "events": {}}
        assert "version 2 is not known here" in caplog.text

    async def test_one_that_makes_no_sense_is_kept_aside_when_it_is_written_anew(
        self, documents: Documents, again: Callable[[], LiveConfig]
    ) -> None:
        for content in (
            b"{",
            b"[]",
            b'{"events":{}}',
            b'{"version":1,"events":{"snowclaw:config:global":{"created_at":true,"id":"aa"}}}',
            b'{"version":1,"events":{"x":{"created_at":1,"id":"%s","wishes":{}}}}' % (b"a" * 64),
            b'{"version":1,"events":[]}',
        ):
            with naming(content):
                put(documents, SIGNED, content)
                config = again()
                assert documents.read(SIGNED) == content  # whoever only looks changes nothing
                config.take(D, NOW_S, event_id("a"), {"respond_mode": "all"})
                assert await config.save()
                (aside,) = [name for name in documents.names() if "corrupt" in name]
                assert (aside, documents.read(aside)) == (f"{SIGNED}.corrupt-{STAMP}", content)
                assert again().policy(HOME, "7").respond_mode == "all"
                documents.remove([aside])


class TestTheLocalFile:
    @pytest.mark.every_store
    async def test_edited_by_hand_counts_for_the_next_message(
        self, config: LiveConfig, documents: Documents, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(live, "LOOK_EVERY_S", 0.0)
        for mode in ("all", "none"):
            put(documents, FILE, {"global": {"respond_mode": mode}})
            await config.look()
            assert config.policy(HOME, "7").respond_mode == mode
        documents.remove([FILE])
        await config.look()
        assert config.policy(HOME, "7").respond_mode == "mention"

    async def test_that_did_not_change_is_not_read_again(
        self, config: LiveConfig, documents: Documents, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(documents, FILE, {"global": {"respond_mode": "all"}})
        await config.look()
        monkeypatch.setattr(live, "LOOK_EVERY_S", 1000.0)
        monkeypatch.setattr(type(documents), "read", None)
        for _ in range(3):
            await config.look()
        assert config.policy(HOME, "7").respond_mode == "all"

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"{", "makes no sense"),
            (b"\xff\xfe", "makes no sense"),
            (b"[]", "it is not a JSON object"),
            (b'{"global":{"respond_mode":"loud"}}', "respond_mode must be one of all, mention, owner, none"),
            (b'{"global":{"context_history":0}}', "a whole number from 1 to 200, not 0"),
            (b'{"global":{"respnd_mode":"all"}}', "global has 'respnd_mode'; there are respond_mode, "),
            (b'{"group:9":{"dm_privacy":"open"}}', "dm_privacy can't be set for group:9, only for global"),
            (b'{"globe":{}}', "unknown scope 'globe'"),
            (b'{"global":[]}', "expected a JSON object, not list"),
            (b'{"version":2}', "version 2 is not known here"),
        ],
    )
    async def test_that_makes_no_sense_changes_nothing_and_is_said_once(
        self,
        config: LiveConfig,
        documents: Documents,
        content: bytes,
        why: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        put(documents, FILE, {"global": {"respond_mode": "all"}})
        await config.look()
        put(documents, FILE, content)
        for _ in range(3):
            await config.look()
        assert config.policy(HOME, "7").respond_mode == "all"
        (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert why in said
        assert "what it said before holds" in said
        put(documents, FILE, {"global": {"respond_mode": "owner"}})
        await config.look()
        assert config.policy(HOME, "7").respond_mode == "owner"

    def test_that_makes_no_sense_at_the_start_stops_nothing(
        self, documents: Documents, again: Callable[[], LiveConfig]
    ) -> None:
        put(documents, FILE, b"nonsense")
        assert again().policy(HOME, "7") == Policy(minimum_window=20)

    async def test_on_a_disk_that_hangs_is_waited_for_once_and_not_long(
        self, config: LiveConfig, documents: Documents, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        free = threading.Event()
        read = documents.read
        monkeypatch.setattr(live, "LOOK_WAIT_S", 0.01)
        monkeypatch.setattr(type(documents), "read", lambda self, name: (free.wait(10), read(name))[1])
        put(documents, FILE, {"global": {"respond_mode": "all"}})
        await config.look()
        monkeypatch.setattr(live, "LOOK_WAIT_S", 100.0)
        await config.look()
        assert config.policy(HOME, "7").respond_mode == "mention"
        free.set()
        await config.close()
        assert config.policy(HOME, "7").respond_mode == "all"
        await config.look()

    async def test_that_can_not_be_read_is_tried_again(
        self, config: LiveConfig, documents: Documents, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> bytes:
            raise OSError(5, "Input/output error")

        put(documents, FILE, {"global": {"respond_mode": "all"}})
        with monkeypatch.context() as failing:
            failing.setattr(type(documents), "read", broken)
            await config.look()
        assert config.policy(HOME, "7").respond_mode == "mention"
        monkeypatch.setattr(live, "LOOK_EVERY_S", 0.0)
        await config.look()
        assert config.policy(HOME, "7").respond_mode == "all"


class TestChangingTheLocalFile:
    def test_waits_for_another_program_only_so_long(
        self, documents: Documents, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(live, "LOCK_WAIT_S", 0.01)
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / LOCK), pytest.raises(MemoryFault, match="is being changed by another program"):
            change_file(documents, GLOBAL, {"respond_mode": "all"}, root / LOCK)

    def test_a_program_that_is_killed_at_it_leaves_the_old_file_or_the_new_one(self, root: Path) -> None:
        loop = (
            "import sys; from pathlib import Path; from discoclaw.core.live import GLOBAL\n"
            "from discoclaw.store.plain import FileDocuments; from discoclaw.memory.live import *\n"
            "root = Path(sys.argv[1]); n = 0\n"
            "while True:\n"
            "    n = n % 200 + 1\n"
            "    change_file(FileDocuments(root), GLOBAL, {'context_history': n}, root / LOCK)\n"
            "    print(n, flush=True)\n"
        )
        program = [sys.executable, "-c", loop, str(root)]
        with subprocess.Popen(program, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(7)]
            process.send_signal(signal.SIGKILL)
            last = int([*said, *process.stdout.readlines()][-1])
        documents = FileDocuments(root)
        found = read_file(documents)[GLOBAL]["context_history"]
        assert found in (last, last + 1)
        assert change_file(documents, GLOBAL, {"context_history": 9}, root / LOCK) == {"context_history": 9}
        assert asides(root / FILE, "corrupt") == []
