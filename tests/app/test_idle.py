"""What nobody uses leaves RAM after a while, with a word in the log, and comes back when it is used."""

import logging

import pytest

from tests.app.conftest import Start
from tests.app.models import Scripted

IDLE_S = 600


class TestAnIdlePerson:
    @pytest.mark.design(147, 148)
    async def test_leaves_ram_and_so_does_their_conversation(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="discoclaw")
        async with start(Scripted(), idle_s=IDLE_S, extraction_enabled=False, heartbeat_minutes=0) as world:
            windows, key = world.app.talk.listener._windows, f"discord:channel:{world.general.id}"
            await world.ann.send(world.general, "I like tea")
            await world.settle()
            subject = f"user-{world.ann.id}"
            assert f"{subject}: into memory" in caplog.text
            assert f"{key}: a window is opened" in caplog.text
            assert "out of memory" not in caplog.text and "is closed" not in caplog.text
            before = windows.use(key)
            await world.env.advance_time(IDLE_S + 61)
            await world.bob.send(world.dev, "hello")
            await world.settle()
            assert f"{subject}: out of memory, idle" in caplog.text
            assert f"{key}: its window is closed, idle" in caplog.text
            assert windows.use(key) is not before

    async def test_finds_all_as_it_was(self, start: Start) -> None:
        model = Scripted()
        async with start(model, idle_s=IDLE_S) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.ann.send(world.general, "hello")
            await world.env.advance_time(IDLE_S + 61)
            await world.bob.send(world.dev, "hello")
            await world.ann.send(world.general, "do I like tea?")
            assert "I like tea" in model.prompt and "hello" in model.prompt

    @pytest.mark.design(147, 148)
    async def test_stays_for_an_hour_since_the_last_use(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="discoclaw")
        async with start(Scripted(), extraction_enabled=False, heartbeat_minutes=0) as world:
            key = f"discord:channel:{world.general.id}"
            for _ in range(3):
                await world.ann.send(world.general, "I like tea")
                await world.settle()
                await world.env.advance_time(3590)
            await world.bob.send(world.dev, "hello")
            assert caplog.text.count(f"{key}: a window is opened") == 1
            assert f"{key}: its window is closed, idle" not in caplog.text
            await world.env.advance_time(11)
            await world.bob.send(world.dev, "hello")
            assert caplog.text.count(f"{key}: its window is closed, idle") == 1
