"""`discoclaw nostr`: a mirror on a real relay, looked at, filled, emptied, and brought back from."""

import asyncio
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import Result

from discoclaw.cli.common import now_ms
from discoclaw.cli.main import cli
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.config import key_path, save_state, state_path
from discoclaw.nostr.delivery import RelayStatus
from discoclaw.nostr.event import Keys
from discoclaw.nostr.outbox import QueueStatus
from discoclaw.nostr.relays.relay import ConnectionStatus
from tests.cli.shell import Runner, Shell
from tests.servers.nostr_relay import LyingRelay

KEYS = Keys.parse("1".rjust(64, "0"))
NOBODY = "ws://127.0.0.1:9"


class Beside:
    """A relay in a thread of its own, beside commands that have an event loop of theirs."""

    def __init__(self) -> None:
        self.relay = LyingRelay()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> "Beside":
        self._thread.start()
        self.wait(self.relay.revive)
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(self.relay.kill)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, work: Callable[[], Any]) -> None:
        """Do something with the relay, in its thread."""
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(10)


class Nostr:
    """Runs `discoclaw nostr …` on the data folder of a shell."""

    def __init__(self, shell: Shell, relay: LyingRelay) -> None:
        self.shell = shell
        self.memory = shell.memory_folder
        self.data = self.memory.parent
        self.relay = relay
        self.settings = {
            **shell.settings,
            "COLUMNS": "300",
            "NOSTR_RELAYS": relay.url,
            "NOSTR_SECRET_KEY": KEYS.nsec(),
            "NOSTR_TIMEOUT_S": "2",
        }

    def run(self, *words: str, typed: str | None = None, **settings: str) -> Result:
        ours = ("DISCORD_", "DISCOCLAW_", "ANTHROPIC_", "NOSTR_")
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith(ours)}
        environment = {**unset, **self.settings, **settings}
        result = Runner().invoke(cli, ["nostr", *words], input=typed, env=environment)
        assert KEYS.nsec() not in result.output and "nsec1" not in result.output
        return result

    def says(self, *words: str, **settings: str) -> str:
        result = self.run(*words, **settings)
        assert result.exit_code == 0, result.output
        return result.output

    def fails(self, *words: str, **settings: str) -> str:
        result = self.run(*words, **settings)
        assert result.exit_code == 1, result.output
        return result.output

    def json(self, *words: str, **settings: str) -> Any:
        return json.loads(self.run(*words, "--json", **settings).stdout)

    def ledgers(self) -> dict[str, bytes]:
        """The ledgers and durable files, byte for byte."""
        found = [*self.memory.glob("ledger/*"), *self.memory.glob("durable/*")]
        return {path.name: path.read_bytes() for path in found}


@pytest.fixture
def nostr(shell: Shell) -> Iterator[Nostr]:
    """A memory of two people that was never mirrored, and a relay that has nothing."""
    with Beside() as beside:
        yield Nostr(shell, beside.relay)


class TestTheKey:
    def test_a_new_one_is_readable_by_us_alone_and_shown_nowhere(self, nostr: Nostr) -> None:
        said = nostr.says("new-key", NOSTR_SECRET_KEY="")
        path = key_path(nostr.data)
        key = path.read_text().strip()
        assert key.startswith("nsec1") and key not in said
        assert f"Created the key {Keys.parse(key).npub} in {path}." in said and "Keep a copy" in said
        assert path.stat().st_mode & 0o777 == 0o600
        assert nostr.json("status", NOSTR_SECRET_KEY="")["npub"] == Keys.parse(key).npub

    def test_one_that_is_there_is_never_replaced(self, nostr: Nostr) -> None:
        path = key_path(nostr.data)
        path.parent.mkdir(parents=True)
        path.write_text("nsec of old\n")
        assert "exists, and may hold the only key" in nostr.fails("new-key")
        assert path.read_text() == "nsec of old\n"

    def test_with_a_password_only_that_opens_it(self, nostr: Nostr) -> None:
        typed = "correct horse\ncorrect horse\n"
        result = nostr.run("new-key", "--password", typed=typed, NOSTR_SECRET_KEY="")
        assert result.exit_code == 0, result.output
        key = key_path(nostr.data).read_text().strip()
        npub = Keys.parse(key, "correct horse").npub
        assert key.startswith("ncryptsec1") and npub in result.output
        given = {"NOSTR_SECRET_KEY": "", "NOSTR_KEY_PASSWORD": "correct horse"}
        assert nostr.json("status", **given)["npub"] == npub
        wrong = {**given, "NOSTR_KEY_PASSWORD": "wrong"}
        assert str(key_path(nostr.data)) in nostr.fails("status", **wrong)

    def test_the_setting_counts_before_the_file_and_that_is_said(self, nostr: Nostr) -> None:
        assert "NOSTR_SECRET_KEY is set" in nostr.says("new-key")
        assert nostr.json("status")["npub"] == KEYS.npub

    def test_without_one_nothing_is_sent_or_fetched(self, nostr: Nostr) -> None:
        for command in ("push", "recover"):
            assert "discoclaw nostr new-key" in nostr.fails(command, NOSTR_SECRET_KEY="")
        assert nostr.relay.connections == 0


class TestOutAndIn:
    def test_a_lost_memory_comes_back_and_twice_is_once(self, nostr: Nostr) -> None:
        before = nostr.ledgers()
        assert "on every relay" in nostr.says("push")
        frames = b"".join(nostr.relay.frames)
        assert not any(word in frames for word in (b"tabs", b"coding", b"user-", b"discord"))
        shutil.rmtree(nostr.memory)

        told = nostr.says("recover", "--dry-run")
        assert "of 2 memories" in told and "would be recovered" in told
        assert not nostr.memory.exists()
        assert "of 2 memories" in nostr.says("recover")
        assert nostr.ledgers() == before
        assert "0 records of 0 memories and 0 files were recovered" in nostr.says("recover")
        sent = len(nostr.relay.sent)
        nostr.says("push", "--check")
        assert len(nostr.relay.sent) == sent

    def test_a_relay_that_lost_everything_gets_it_again_when_asked(self, nostr: Nostr) -> None:
        nostr.says("push")
        events = nostr.relay.events
        nostr.relay.lose_all()
        assert "on every relay" in nostr.says("push")
        assert nostr.relay.events == []
        assert f"lost {len(events)} events" in nostr.says("push", "--check")
        assert {one["id"] for one in nostr.relay.events} == {one["id"] for one in events}

    def test_what_a_relay_refused_is_named_and_tried_again_when_asked(self, nostr: Nostr) -> None:
        nostr.relay.lies.refuses = "blocked: we do not know you"
        said = nostr.fails("push")
        assert "blocked: we do not know you" in said and "0 on every relay" in said
        found = nostr.json("status")
        refused = {"reason": "blocked: we do not know you", "events": found["events"]}
        assert found["relays"][0]["parked"] == [refused]
        nostr.relay.lies.refuses = None
        assert "blocked" in nostr.fails("push")
        nostr.says("push", "--check")

    def test_plain_text_goes_to_no_relay_that_is_far_away(self, nostr: Nostr) -> None:
        far = {"NOSTR_RELAYS": f"{nostr.relay.url} wss://relay.invalid", "NOSTR_ALLOW_PLAINTEXT": "1"}
        for command in ("push", "recover"):
            assert "wss://relay.invalid is not on this machine" in nostr.fails(command, **far)
        assert nostr.relay.connections == 0

    @pytest.mark.long
    def test_one_of_two_relays_is_enough_unless_more_are_wanted(self, nostr: Nostr) -> None:
        # The time limit is for the relay that answers too, so it has to be one that a busy machine can keep.
        both = {"NOSTR_RELAYS": f"{nostr.relay.url} {NOBODY}", "NOSTR_TIMEOUT_S": "2"}
        assert f"{NOBODY}: " in nostr.says("push", **both)
        assert "on at least 2" in nostr.fails("push", **both, NOSTR_MIN_ACKS="2")

    def test_relays_that_can_not_be_reached_change_nothing(self, nostr: Nostr) -> None:
        before = nostr.ledgers()
        said = nostr.fails("recover", NOSTR_RELAYS=NOBODY, NOSTR_TIMEOUT_S="0.1")
        assert "no relay could be read, so nothing was done" in said
        assert NOBODY in said and f"{NOBODY}: {NOBODY}" not in said
        assert nostr.ledgers() == before

    def test_with_another_key_it_asks_whether_that_is_the_one(self, nostr: Nostr) -> None:
        nostr.says("push")
        other = Keys.generate()
        said = nostr.says("recover", "--dry-run", NOSTR_SECRET_KEY=other.nsec())
        assert f"no relay has any event by {other.npub}" in said

    def test_for_programs_everything_is_json(self, nostr: Nostr) -> None:
        nostr.says("push")
        shutil.rmtree(nostr.memory)
        found = nostr.json("recover")
        assert found["sure"] and found["memories"].keys() == {"user-123", "user-456"}
        assert found["relays"][0]["complete"] and found["warnings"] == []

    def test_the_embedded_relay_keeps_it_on_this_disk(self, nostr: Nostr) -> None:
        before, here = nostr.ledgers(), {"NOSTR_RELAYS": "embedded"}
        nostr.says("push", **here)
        shutil.rmtree(nostr.memory)
        nostr.says("recover", **here)
        assert nostr.ledgers() == before
        (one,) = nostr.json("status", **here)["relays"]
        assert (one["error"], one["waiting"]) == ("it runs only while the bot runs", 0)


class TestWhileTheBotRuns:
    @pytest.fixture(autouse=True)
    def running(self, nostr: Nostr) -> Iterator[None]:
        nostr.says("push")
        bot = Memory(nostr.memory, clock=now_ms)
        bot.open()
        yield
        bot.close()

    @pytest.mark.parametrize("command", ["push", "recover"])
    def test_it_alone_may_write(self, nostr: Nostr, command: str) -> None:
        said = nostr.fails(command)
        assert "is in use by" in said
        assert ("!nostr push" in said) == (command == "push")
        assert ("--dry-run" in said) == (command == "recover")

    def test_looking_works(self, nostr: Nostr) -> None:
        assert "0 records of 0 memories" in nostr.says("recover", "--dry-run")
        said = nostr.says("status")
        assert KEYS.npub in said and nostr.relay.url in said and "yes" in said

    def test_what_it_noted_is_told(self, nostr: Nostr) -> None:
        connections = nostr.relay.connections
        relay = ConnectionStatus(nostr.relay.url, nostr.relay.url, 1, now_ms(), "", "be kind", False, 0, {})
        status = RelayStatus(relay, QueueStatus(0, None, ()), 0.0, "it sulks")
        save_state(state_path(nostr.data), [status], now_ms())
        (one,) = nostr.json("status")["relays"]
        assert (one["connected"], one["error"], one["notice"]) == (True, "it sulks", "be kind")
        assert one["last_eose"] is not None
        assert nostr.relay.connections == connections
        save_state(state_path(nostr.data), [status], now_ms() - 600_000)
        assert nostr.json("status")["running"] is False


class TestStatus:
    def test_looking_leaves_nothing_beside_an_outbox_that_nobody_uses(self, nostr: Nostr) -> None:
        nostr.says("push")
        folder = nostr.memory / "outbox"
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        nostr.says("status")
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert list(before) == ["outbox.sqlite"]

    def test_a_dead_relay_and_what_waits_for_it(self, nostr: Nostr) -> None:
        nostr.fails("push", NOSTR_RELAYS=NOBODY, NOSTR_TIMEOUT_S="0.2")
        found = nostr.json("status", NOSTR_RELAYS=NOBODY, NOSTR_TIMEOUT_S="0.2")
        (one,) = found["relays"]
        assert (one["url"], one["connected"]) == (NOBODY, False)
        assert one["waiting"] == found["events"] > 0 and one["error"]

    def test_without_relays_it_says_how_to_have_some(self, nostr: Nostr) -> None:
        assert "NOSTR_RELAYS" in nostr.says("status", NOSTR_RELAYS="")
        assert "NOSTR_RELAYS" in nostr.fails("push", NOSTR_RELAYS="")
        far = {"NOSTR_RELAYS": "wss://relay.example.org", "NOSTR_ALLOW_PLAINTEXT": "1"}
        assert "wss://relay.example.org is not on this machine" in nostr.fails("push", **far)

    def test_a_mode_that_is_off_is_noted(self, nostr: Nostr) -> None:
        assert "mode: off" in nostr.says("status", NOSTR_MODE="off")
        assert "NOSTR_MODE=off" in nostr.says("push", NOSTR_MODE="off")
