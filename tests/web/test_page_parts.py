"""The parts of the admin's page by themselves: tokens and time, readings that hang, and what the log said."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import erasing
from discoclaw.settings_types import Listen
from discoclaw.web.listening import Listener
from discoclaw.web.page.guard import (
    HEADERS,
    IDLE_S,
    LONGEST_S,
    MOST_SESSIONS,
    TRIES,
    TRIES_S,
    Access,
    Guard,
    TooManyTries,
)
from discoclaw.web.page.pages import FRESH_S, HANGS, Read, Reading
from discoclaw.web.page.rendering import MOST, MOST_CHARS, RecentErrors
from tests.purging import from_ram
from tests.test_work import on_a_jumping_clock, passes


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class TestASession:
    def test_ends_when_nobody_asks_for_anything(self) -> None:
        clock = Clock()
        access = Access("the token", clock)
        key = access.enter("the token")
        assert key is not None
        clock.now += IDLE_S - 1
        assert access.session(key) is not None
        clock.now += IDLE_S - 1
        assert access.session(key) is not None
        clock.now += IDLE_S
        assert access.session(key) is None

    def test_ends_in_any_case_after_some_hours(self) -> None:
        clock = Clock()
        access = Access("the token", clock)
        key = access.enter("the token")
        assert key is not None
        for _ in range(int(LONGEST_S / 600) - 1):
            clock.now += 600
            assert access.session(key) is not None
        clock.now += 600
        assert access.session(key) is None

    def test_is_not_found_by_anything_else(self) -> None:
        access = Access("the token", Clock())
        key = access.enter("the token")
        assert key is not None
        for other in ("", key[:-1], key + "x", "the token", "\ud800"):
            assert access.session(other) is None

    def test_gives_way_to_newer_ones(self) -> None:
        access = Access("the token", Clock())
        keys = [access.enter("the token") or "" for _ in range(MOST_SESSIONS + 1)]
        assert access.session(keys[0]) is None
        assert all(access.session(key) is not None for key in keys[1:])


class TestTries:
    def test_are_a_few_each_minute(self) -> None:
        clock = Clock()
        access = Access("the token", clock)
        for number in range(TRIES):
            assert access.enter(f"{number}") is None
            clock.now += 1
        with pytest.raises(TooManyTries):
            access.enter("the token")
        clock.now += TRIES_S - TRIES
        assert access.enter("the token") is not None
        assert access.enter("wrong") is None  # the oldest was forgotten
        with pytest.raises(TooManyTries):
            access.enter("the token")


class Source:
    """Counts how often it is read, and waits as long as it is told to."""

    def __init__(self) -> None:
        self.reads = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def __call__(self, number: int = 0) -> str:
        self.reads += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return f"page {number}"


class TestAReading:
    @on_a_jumping_clock
    async def test_is_shown_again_for_a_moment(self) -> None:
        source = Source()
        reading = Reading("a test", source, fresh_s=2)
        assert [await reading.get(1), await reading.get(1)] == [Read("page 1")] * 2
        assert source.reads == 1
        assert await reading.get(2) == Read("page 2")
        await passes(2)
        assert await reading.get(2) == Read("page 2")
        assert source.reads == 3

    @on_a_jumping_clock
    async def test_that_hangs_is_begun_once_and_costs_each_page_a_moment(self) -> None:
        source, loop = Source(), asyncio.get_running_loop()
        source.gate.clear()
        reading = Reading("a test", source, within_s=2)
        began = loop.time()
        found = await asyncio.gather(*(reading.get(number) for number in range(50)))
        assert found == [Read(None, HANGS)] * 50
        assert loop.time() - began == pytest.approx(2)
        assert (await reading.get(7)).value is None
        assert source.reads == 1
        source.gate.set()
        assert await reading.get(7) == Read("page 7")
        await reading.close()

    @on_a_jumping_clock
    async def test_is_not_shown_again_once_it_is_forgotten(self) -> None:
        source = Source()
        reading = Reading("a test", source, fresh_s=60)
        await reading.get()
        reading.forget()
        source.gate.clear()
        waiting = asyncio.create_task(reading.get())
        await passes(1)
        reading.forget()  # what is being read may have it, too
        source.gate.set()
        assert await waiting == Read("page 0")
        assert source.reads == 3
        await reading.get()
        assert source.reads == 3

    @on_a_jumping_clock
    async def test_ends_when_it_is_closed(self) -> None:
        source = Source()
        source.gate.clear()
        reading = Reading("a test", source)
        waiting = asyncio.create_task(reading.get())
        await passes(1)
        await reading.close()
        source.gate.set()
        assert await waiting == Read("page 0")  # who still waits reads it again
        assert source.reads == 2

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (MemoryFault("the store is gone"), "the store is gone"),
            (OSError("no space left"), "no space left"),
            (KeyError("x"), "could not be read; the log says why"),
        ],
    )
    async def test_that_fails_says_why(
        self, error: Exception, said: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        source = Source()
        source.error = error
        assert await Reading("a test", source).get() == Read(None, said)
        assert ("a test" in caplog.text) == isinstance(error, KeyError)

    @on_a_jumping_clock
    async def test_that_failed_is_tried_again_soon(self) -> None:
        source = Source()
        source.error = OSError("no space left")
        reading = Reading("a test", source, fresh_s=60)
        await reading.get()
        source.error = None
        await passes(FRESH_S)
        assert await reading.get() == Read("page 0")


@pytest.fixture
async def errors() -> AsyncIterator[RecentErrors]:
    """What the log says during a test, without the word “secret”."""
    found = RecentErrors(lambda text: text.replace("secret", "…"))
    await found.start()
    yield found
    await found.close()


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    yield logging.getLogger("test.page")


class TestRecentErrors:
    async def test_are_counted_and_the_newest_comes_first(
        self, errors: RecentErrors, log: logging.Logger
    ) -> None:
        for text in ("a secret failed", "b failed", "a secret failed"):
            log.warning(text)
        log.info("c")
        assert [(one.text, one.count, one.bad) for one in errors.newest()] == [
            ("a … failed", 2, False),
            ("b failed", 1, False),
        ]

    async def test_of_different_people_are_different(self, errors: RecentErrors, log: logging.Logger) -> None:
        for user_id in (100_000_001, 100_000_002):
            log.error("user-%d failed after %d s", user_id, user_id % 7)
        assert len(errors.newest()) == 2
        from_ram(errors, erasing("user-100000001", 0))
        assert [one.text for one in errors.newest()] == ["user-100000002 failed after 4 s"]

    async def test_are_bounded(self, errors: RecentErrors, log: logging.Logger) -> None:
        for number in range(MOST + 10):
            log.error("thing %s failed", chr(0x4E00 + number))
        log.error("x" * 10_000)
        assert len(errors.newest()) == MOST
        assert len(errors.newest()[0].text) == MOST_CHARS

    async def test_that_cannot_be_written_stop_nothing(
        self, errors: RecentErrors, log: logging.Logger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(logging, "raiseExceptions", False)  # which pytest sets, to raise them
        log.warning("%d isn't a number", "x")
        assert errors.newest() == []

    async def test_end_with_their_service(self, errors: RecentErrors, log: logging.Logger) -> None:
        await errors.close()
        log.error("too late")
        assert errors.newest() == []


@asynccontextmanager
async def guarded(access: Access) -> AsyncIterator[str]:
    """A page with a bug, behind the guard. Yields its address."""

    async def broken(_: web.Request) -> web.Response:
        raise ZeroDivisionError("a secret of the code")

    def error_page(status: int, why: str) -> web.Response:
        return web.Response(text=why, status=status)

    app = web.Application(middlewares=[Guard(access, "key", error_page).middleware()])
    app.router.add_get("/broken", broken, name="broken")
    listener = Listener(app, Listen("127.0.0.1", 0), "TEST")
    await listener.start()
    yield f"http://127.0.0.1:{listener.port}"
    await listener.close()


class TestABug:
    async def test_is_a_page_without_a_traceback(self, caplog: pytest.LogCaptureFixture) -> None:
        access = Access("the token", Clock())
        key = access.enter("the token")
        async with (
            guarded(access) as address,
            aiohttp.ClientSession(cookies={"key": key or ""}) as http,
            http.get(f"{address}/broken?token=the-token") as response,
        ):
            said = "The page had trouble with this. The log says why."
            assert (response.status, await response.text()) == (500, said)
            assert response.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
        assert "the page broken failed" in caplog.text
        assert "the-token" not in caplog.text
