"""Killed with SIGKILL at any moment: what was signed is there, once, and arrives under the id it had."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discoclaw.nostr.outbox import DeliveryProgress
from discoclaw.nostr.schemas import APP
from tests.memory.kit import REPOSITORY, Doomed
from tests.nostr.delivery_child import NAMES
from tests.nostr.outbox_kit import START_S, UNIT, address, ids, opened
from tests.nostr.test_delivery import IN_TIME_S, delivering, held, sent
from tests.servers.nostr_relay import LyingRelay

ROUNDS = 12


def start(*arguments: str | Path) -> "subprocess.Popen[str]":
    """A program of `delivery_child`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.nostr.delivery_child", *map(str, arguments)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class DoomedPublisher(Doomed):
    def __init__(self, path: Path) -> None:
        self._forge = start("forge", "publish_for_ever", path)


@contextmanager
def killed_in_the_end(process: "subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.communicate()


class TestAKilledPublisher:
    def test_never_signs_a_version_twice_and_loses_none(self, tmp_path: Path) -> None:
        path, dice = tmp_path / "outbox.sqlite", random.Random(7)
        said: dict[int, list[str]] = {}
        with DoomedPublisher(path) as doomed:
            for _ in range(ROUNDS):
                words = doomed.live_for(dice.uniform(0, 0.01), words=dice.randint(1, 6))
                said |= {number: made for number, made in words if made}
                with opened(path) as outbox:
                    last = outbox.cursor(UNIT)
                    assert last >= max(said)
                    for place, name in enumerate(NAMES):
                        versions = outbox.versions(APP, address(name))
                        row = outbox.latest(APP, address(name))
                        assert row is not None
                        assert (row.digest, row.event_id) == (str(last), versions[-1])
                        assert len(versions) == last + 1  # one for each number, and no other
                        assert row.ts == START_S + last
                        assert all(made[place] == versions[number] for number, made in said.items())
        assert len(said) >= ROUNDS


class TestAKilledDelivery:
    async def test_sends_what_has_no_answer_again_and_it_is_the_very_same(self, tmp_path: Path) -> None:
        path, count, answered = tmp_path / "outbox.sqlite", 100, 30
        async with LyingRelay() as server:
            server.lies.refuses_if = lambda event: setattr(server.lies, "silent", len(server.sent) > answered)
            with killed_in_the_end(start("deliver", path, server.url, str(count))):
                # And no more: twenty are on their way. A process takes its time to start.
                await server.wait_until(lambda relay: len(relay.sent) >= answered + 20, timeout_s=60)
            first = sent(server)
            await server.wait_until(lambda relay: relay.peers == 0)
            server.lies.refuses_if, server.lies.silent = None, False
            with opened(path) as outbox:
                waiting = {event.id for event in outbox.due(server.url, START_S * 1000, count)}
                assert set(first[answered:]) <= waiting < ids(outbox)
                async with delivering(outbox, server.url) as delivery:
                    assert await delivery.drain(IN_TIME_S) == DeliveryProgress(count, count, count)
                assert held(server) == set(sent(server)) == ids(outbox)
            assert len(server.events) == count
            assert sorted(sent(server)[len(first) :]) == sorted(waiting)
