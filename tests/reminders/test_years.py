"""None lost, none twice, none early, none late, over years, kills, jumps of the clock, and all zones."""

import os
from zoneinfo import available_timezones

import pytest

from tests.reminders.world import Simulation, without_threads

ZONES = sorted(one for one in available_timezones() if "/" in one and not one.startswith("System"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    without_threads(monkeypatch)


@pytest.mark.parametrize("seed", range(3))
async def test_each_comes_once_at_its_time_whenever_the_process_is_killed(seed: int) -> None:
    simulation = Simulation(seed, people=8, zones=ZONES[seed::4][:8], kill_one_in=25)
    report = await simulation.live(years=1, once=60, repeating=10)
    assert report.set == 70 and report.kills > 20
    assert report.delivered >= 60 and report.latest_ms == 0, report


async def test_without_kills_none_is_late_at_all() -> None:
    simulation = Simulation(7, people=4, zones=ZONES[::150], kill_one_in=0)
    report = await simulation.live(years=1, once=30, repeating=4)
    assert report.kills == 0 and report.latest_ms == 0, report


@pytest.mark.long
async def test_twenty_years_in_all_zones() -> None:
    count = int(os.environ.get("REMINDERS", "4000"))
    simulation = Simulation(2026, people=count // 50, zones=ZONES, kill_one_in=count // 250)
    report = await simulation.live(years=20, once=count - count // 200, repeating=count // 200)
    print(report)  # noqa: T201 - the figures are what one runs it for
    assert report.set == count and report.kills > 200
    assert report.delivered >= count - count // 200 and report.latest_ms == 0, report
