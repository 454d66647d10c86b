"""What was said on Thursday about tomorrow is over on Saturday, also where it is learned only then."""

import re
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from discoclaw.core.times import time_of_snowflake
from tests.citing import cited, own_of
from tests.process.forks import Source
from tests.process.house import House, is_talk
from tests.servers.messages_api import Behaviour, Received, json_answer, text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as these exist on POSIX only")

TWO_DAYS_MS = 2 * 86_400_000
LINE = re.compile(r"^m\d+ (\w{3}) ([-\d]{10}) [:\d]{5} »\[Ann\]: .*release tomorrow", re.M)
TODAY = re.compile(r"^Current time:\n(?:- now: )?\w{3} ([-\d]{10})", re.M)


def dated(request: Received) -> Behaviour:
    """A model that counts from the date of the line, as it is told to."""
    if is_talk(request):
        return text("ok")
    found = [] if "Talk:" not in request.prompt else LINE.findall(request.prompt)
    if not found:
        return json_answer({"upserts": [], "deprecations": []})
    day = date.fromisoformat(found[0][1]) + timedelta(days=1)
    item = {"kind": "fact", "text": f"User ships the release on {day}.", "source": "release tomorrow"}
    return json_answer(cited({"upserts": [item], "deprecations": []}, request.prompt))


class TestTomorrow:
    @pytest.mark.parametrize("every", ["1", "2"], ids=["learned on Thursday", "learned on Saturday"])
    async def test_is_a_day_in_the_past_two_days_later(
        self, tmp_path: Path, forks: Source | None, every: str
    ) -> None:
        changes = {"DISCOCLAW_DURABLE_EVERY_N_TURNS": every, "DISCOCLAW_SUMMARY_ENABLED": "false"}
        async with House(tmp_path, forks=forks) as house:
            house.model.default = dated
            house.discord.set_back(TWO_DAYS_MS)
            bot = await house.running(**changes)
            cafe = house.discord.add_channel("cafe")
            asked = await house.ask(house.ann, cafe, "we ship the release tomorrow")
            await house.answered(cafe)
            bot.terminate()
            assert await bot.ended() == 0
            assert len(house.durable(house.ann)) == (1 if every == "1" else 0)
            house.discord.set_back(0)
            await house.running(**changes)
            await house.answered_to(house.ann, cafe, "good morning")
            await house.remembers(house.ann, "release")
            await house.answered_to(house.ann, cafe, "what about the release?")
        talk, learning = (
            [one for one in house.model.requests if is_talk(one) is kind] for kind in (True, False)
        )
        told = next(one.prompt for one in learning if LINE.search(one.prompt))
        thursday = datetime.fromtimestamp(time_of_snowflake(asked.id) / 1000, UTC).date()
        friday, saturday = (thursday + timedelta(days=days) for days in (1, 2))
        assert LINE.findall(told) == [(f"{thursday:%a}", str(thursday))]
        assert len(own_of(told)) == int(every)
        (today,) = TODAY.findall(talk[-1].prompt)
        assert f"User ships the release on {friday}." in talk[-1].prompt
        assert str(friday) < str(saturday) <= today
