"""Four processes with eight shards on one PostgreSQL: what people were promised holds whatever happens."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.process.fleet import Fleet
from tests.process.forks import Source
from tests.process.promises import Broken
from tests.servers.messages_api import text, tool_use
from tests.servers.postgres import Postgres

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.usefixtures("database"),  # which sets the server right again
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres, forks: Source | None
) -> AsyncIterator[Fleet]:
    async with Fleet(tmp_path_factory.mktemp("fleet"), postgres, forks=forks) as built:
        yield built


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(shared: Fleet) -> AsyncIterator[Fleet]:
    """All processes run. Whatever a test does to them, in the end every promise is kept."""
    await shared.up()
    await shared.greeted()
    yield shared
    await shared.up()
    try:
        await shared.promises.kept()
    except Broken as broken:
        raise Broken(f"{broken}\n{shared.logs()}") from None


class TestAllAtOnce:
    async def test_one_person_talks_everywhere_while_others_opt_out_and_are_erased(
        self, fleet: Fleet
    ) -> None:
        ann, bea, cid = (fleet.person(name) for name in ("Ann", "Bea", "Cid"))
        places = [fleet.place(guild, "hall") for guild in fleet.guilds]
        everywhere = [*places, fleet.discord.dm(ann)]
        for place in everywhere:
            await fleet.asks(bea, places[1])
            await fleet.likes(cid, place if place in places else places[0])
            await fleet.likes(ann, place)
            await fleet.remember(ann, place)
        assert await fleet.promises.answered() == []
        await asyncio.gather(
            fleet.erased(cid, places[0]),
            fleet.opted_out(bea, places[1]),
            *(fleet.remember(ann, place) for place in everywhere for _ in range(2)),
        )
        for place in places:
            await fleet.likes(bea, place)  # none of which is kept
            await fleet.asks(cid, place)


class TestProcesses:
    async def test_a_second_one_with_the_same_shards_takes_over_an_answer_of_the_first(
        self, fleet: Fleet
    ) -> None:
        ann, guild = fleet.person("Ann"), fleet.guilds[0]
        place, first = fleet.place(guild, "mill"), fleet.members[0]
        second = fleet.twin(first)
        await second.start()
        await second.waits()
        fleet.brain.answer("grind", text("It grinds ", "slowly.", hold=asyncio.Event()))
        asked = await fleet.asks(ann, place, "does it grind?")
        await fleet.discord.wait_for_message(place, "It grinds", timeout=30)
        await fleet.remember(ann, fleet.place(fleet.guilds[2], "mill"))
        await first.kill9()
        await fleet.one_of(first, second)
        assert "ok" in (await fleet.replied(asked, "ok")).content

    async def test_one_that_was_stopped_writes_nothing_once_another_has_its_shards(
        self, fleet: Fleet
    ) -> None:
        ann, place = fleet.person("Ann"), fleet.place(fleet.guilds[1], "lake")
        first = fleet.serves(place)
        second = fleet.twin(first)
        await second.start()
        await second.waits()
        for _ in range(3):
            await fleet.remember(ann, place)
            await fleet.likes(ann, place)
        first.stop()
        await fleet.asks(ann, place)
        assert second.bot is not None
        await second.bot.logged("all shards of")
        first.go_on()
        await fleet.one_of(first, second)
        assert first.bot is not None
        assert first.bot.process.returncode == 75

    async def test_one_that_was_stopped_in_a_turn_ends_and_shows_no_model_what_was_erased_meanwhile(
        self, fleet: Fleet
    ) -> None:
        ann, place = fleet.person("Ann"), fleet.place(fleet.guilds[1], "quay")
        one, answers = fleet.serves(place), asyncio.Event()
        looks = tool_use(("look", "memory_search", {"query": "boats"}), said="I look.", hold=answers)
        fleet.brain.answer("which boats", looks)
        asked = await fleet.asks(ann, place, "which boats do I like?")
        await fleet.discord.wait_for_message(place, "I look", timeout=30)
        one.stop()
        answers.set()
        await fleet.erased(ann, fleet.place(fleet.guilds[2], "quay"))
        one.go_on()
        assert one.bot is not None
        assert await one.bot.ended() == 75
        await fleet.up()
        await fleet.discord.wait_for_message(place, "I erased what I know about you", after=asked, timeout=30)


class TestTheDatabase:
    async def test_out_of_reach_of_one_process_leaves_that_one_without_memory_for_a_while(
        self, fleet: Fleet
    ) -> None:
        ann, place = fleet.person("Ann"), fleet.place(fleet.guilds[2], "barn")
        one = fleet.serves(place)
        assert one.bot is not None
        await fleet.replied(await fleet.remember(ann, place))
        one.line.hold()
        await one.bot.logged("out of touch")
        liked = await fleet.likes(ann, place)
        await fleet.replied(liked, "ok")
        assert "I keep" not in fleet.request(liked.content.split()[-1]).prompt
        one.line.mend()
        back = asyncio.create_task(one.bot.logged("in touch with the store again"))
        ended = asyncio.create_task(one.bot.process.wait())  # if others needed something that it had
        await asyncio.wait({back, ended}, return_when=asyncio.FIRST_COMPLETED)
        back.cancel()
        await fleet.up()
        await fleet.asks(ann, place)
        await fleet.learned(liked)

    async def test_out_of_reach_of_one_process_that_others_need_ends_that_one_which_learns_later(
        self, fleet: Fleet
    ) -> None:
        ann, bea, place = fleet.person("Ann"), fleet.person("Bea"), fleet.place(fleet.guilds[2], "shed")
        one = fleet.serves(place)
        assert one.bot is not None
        await fleet.replied(await fleet.remember(ann, place))
        one.line.hold()
        await one.bot.logged("out of touch")
        liked = await fleet.likes(ann, place)
        await fleet.replied(liked, "ok")
        await fleet.erased(bea, fleet.place(fleet.guilds[0], "shed"))  # waits for all who count
        one.line.mend()
        assert await one.bot.ended() == 75
        await fleet.up()
        await fleet.asks(ann, place)
        await fleet.learned(liked)

    async def test_that_is_killed_and_started_again_under_load_loses_nothing(self, fleet: Fleet) -> None:
        people = [fleet.person(name) for name in ("Ann", "Bea")]
        places = [fleet.place(guild, "dock") for guild in fleet.guilds]
        for number in range(12):
            for person in people:
                await fleet.remember(person, places[number % 4])
                await fleet.likes(person, places[number % 4])
            if number in (3, 8):
                await asyncio.to_thread(fleet.postgres.kill9)
                await asyncio.to_thread(fleet.postgres.start)
