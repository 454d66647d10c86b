"""Topics side by side: one that hangs, crashes or fails costs the others nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from discoclaw.checkup.topic import Looked, Topic, examine
from discoclaw.core.errors import SettingsError
from discoclaw.core.health import Finding

GOOD = Finding("first", "good", "fine")


async def well() -> AsyncIterator[Finding]:
    yield GOOD


async def hangs() -> AsyncIterator[Finding]:
    yield GOOD
    await asyncio.Event().wait()


async def crashes() -> AsyncIterator[Finding]:
    yield GOOD
    raise LookupError("the flaw")


async def refuses() -> AsyncIterator[Finding]:
    yield GOOD
    raise SettingsError("X=1: must be 2;\n set it to 2")


async def test_what_was_found_counts_whatever_comes_after_it(caplog: pytest.LogCaptureFixture) -> None:
    topics = [
        Topic("hangs", "Hangs", hangs, within_s=0.05),
        Topic("crashes", "Crashes", crashes),
        Topic("refuses", "Refuses", refuses),
        Topic("well", "Well", well),
    ]
    with caplog.at_level(logging.ERROR):
        found: dict[str, Looked] = {one.topic.name: one async for one in examine(topics)}
    assert list(found)[-1] == "hangs"
    assert all(one.findings[0] == GOOD for one in found.values())
    assert found["well"].findings == (GOOD,)
    assert found["hangs"].findings[1].text == "gave up after 0.05 s"
    assert found["refuses"].findings[1] == Finding("Refuses", "bad", "X=1: must be 2", "set it to 2")
    crash = found["crashes"].findings[1]
    assert (crash.state, "couldn't be checked (LookupError)" in crash.text) == ("bad", True)
    assert "the flaw" in caplog.text and "Traceback" in caplog.text
    assert "the flaw" not in crash.text


async def test_leaving_early_ends_what_still_runs() -> None:
    ended: list[str] = []

    async def waits() -> AsyncIterator[Finding]:
        try:
            await asyncio.Event().wait()
            yield GOOD
        finally:
            ended.append("waits")

    looking = examine([Topic("well", "Well", well), Topic("waits", "Waits", waits)])
    assert (await anext(looking)).topic.name == "well"
    await looking.aclose()
    assert ended == ["waits"]
