"""One lifecycle for all that runs."""

import asyncio
import logging
from pathlib import Path

import pytest

from discoclaw.app import build
from discoclaw.app.services import Services
from discoclaw.models.offline.model import OfflineModel
from discoclaw.settings import Settings


def settings_for(folder: Path) -> Settings:
    """Settings that read no environment."""
    return Settings(_env_file=None, data_dir=folder / "data", content_dir=folder / "content")


class Probe:
    """A service that writes down what is asked of it. It fails where it is told to."""

    def __init__(self, name: str, asked: list[str], *, fails: str = "") -> None:
        self._name = name
        self._asked = asked
        self._fails = fails

    async def start(self) -> None:
        self._note("start")

    async def settle(self) -> None:
        self._note("settle")

    async def close(self) -> None:
        self._note("close")

    def _note(self, what: str) -> None:
        self._asked.append(f"{what} {self._name}")
        if what == self._fails:
            raise OSError(what)


class TestTheLifecycle:
    async def test_is_in_order_and_back(self) -> None:
        asked: list[str] = []
        services = Services([Probe("a", asked), Probe("b", asked)])
        await services.start()
        await services.settle()
        await services.close()
        assert asked == ["start a", "start b", "settle b", "settle a", "close b", "close a"]

    async def test_what_was_started_is_closed_when_a_later_start_fails(self) -> None:
        asked: list[str] = []
        services = Services([Probe("a", asked), Probe("b", asked, fails="start"), Probe("c", asked)])
        with pytest.raises(OSError, match="start"):
            await services.start()
        assert asked == ["start a", "start b", "close b", "close a"]

    async def test_one_that_cannot_be_closed_does_not_keep_the_others_open(self) -> None:
        asked: list[str] = []
        services = Services([Probe("a", asked), Probe("b", asked, fails="close")])
        await services.start()
        with pytest.raises(OSError, match="close"):
            await services.close()
        assert asked[-2:] == ["close b", "close a"]

    async def test_every_service_of_ours_can_be_closed_twice(self, tmp_path: Path) -> None:
        app = build(settings_for(tmp_path), model=OfflineModel())
        before = asyncio.all_tasks()
        async with app:
            assert asyncio.all_tasks() != before  # there is something to close
        for service in reversed(app.services):
            await service.close()
        assert asyncio.all_tasks() == before


class TestStopping:
    async def test_says_nothing_when_all_is_done(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        async with build(settings_for(tmp_path), model=OfflineModel()) as app:
            await app.settle()
        assert caplog.messages == []
