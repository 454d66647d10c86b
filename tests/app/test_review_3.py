"""What vectors of talk cost and send when something changes meanwhile."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from discoclaw.search.archive_queries import Visible
from discoclaw.search.archive_rows import Drop, Put
from discoclaw.search.archive_vectors import Provider
from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.app.test_live_config import edit
from tests.app.test_live_fields import here
from tests.app.test_vectors_of_talk import CAT, OTHERS, far, ready, say, say_only, search, talk_of
from tests.memory.test_archive import ANN, BOB, in_dm, said, write
from tests.memory.test_vectors_of_talk import NOW, TEXT, Desk, crowd, near_to
from tests.servers.embeddings_api import EmbeddingsServer


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer(same={"feline": "cat", "nap": "sleeps"}) as server:
        yield server


class TestElsewhere:
    async def test_nothing_more_goes_there_from_where_the_archive_is_switched_off_meanwhile(
        self, start: Start, server: EmbeddingsServer
    ) -> None:
        async with start(Scripted(), **far(server, embedding_provider="")) as world:
            await say_only(world, CAT, *OTHERS)
            await world.restart(embedding_provider="openai", embedding_talk_per_day=2)
            await say(world, "the soup boils")
            assert len(talk_of(server)) == 2
            edit(world, {here(world): {"archive": False}})
            await world.ann.send(world.dev, "elsewhere life goes on")
            await world.env.advance_time(86_400)
            await ready(world)
            assert talk_of(server)[2:] == ["elsewhere life goes on"]

    async def test_nor_a_search_that_nobody_else_sees(self, start: Start, server: EmbeddingsServer) -> None:
        async with start(Scripted(), **far(server)) as world:
            await say(world, CAT, *OTHERS)
            await search(world, world.bob, "where is the secret lion")
        assert CAT in server.texts
        assert "lion" not in " ".join(server.texts)

    async def test_what_a_provider_fails_to_answer_counts_as_sent_too(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path / "archive.sqlite", Provider("far", most=5))
        desk.vectors.saw("@g55", open_=True)
        write(desk.archive, *crowd(20))
        sent = 0
        for _ in range(5):  # each time the answer is lost, as at a kill or on a full disk
            sent += len(desk.vectors.take(3, NOW).entries)
        desk.close()
        assert sent == 5

    async def test_a_limit_that_is_reached_is_logged_once_a_day(
        self, start: Start, server: EmbeddingsServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "discoclaw.loops.talk_embedding")
        async with start(Scripted(), **far(server, embedding_talk_per_day=0)) as world:
            for one in OTHERS:
                await say(world, one)
        assert caplog.text.count("no more vectors today") == 1


class TestWhatIsGone:
    def test_with_the_last_vector_its_length_goes_too(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path / "archive.sqlite")
        write(desk.archive, Put(said(7, TEXT)))
        desk.embed()
        write(desk.archive, Drop("7"))
        assert (desk.vectors.size, desk.vectors.dims) == (0, 0)
        desk.close()

    def test_of_an_erased_person_not_even_the_place_stays_in_ram(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path / "archive.sqlite")
        write(desk.archive, Put(in_dm(7, TEXT)), *crowd(9), Put(said(900, "far away", group_id="77")))
        desk.embed()
        assert f"@d{ANN}" in desk.vectors._signatures._places
        desk.archive.erase_person(ANN)
        assert set(desk.vectors._signatures._places) == {"@g55"}
        write(desk.archive, Put(said(901, TEXT, BOB, group_id="78")))
        desk.embed()
        assert set(desk.found(near_to(TEXT), Visible(frozenset({"78"})))) == {TEXT}
        assert TEXT not in desk.found(near_to(TEXT))
        desk.close()

    def test_of_a_file_that_is_replaced_no_sign_stays_in_ram(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path / "archive.sqlite")
        write(desk.archive, *crowd(9))
        desk.embed()
        desk.close()
        for path in tmp_path.glob("archive.sqlite*"):
            path.unlink()
        write(Desk(desk.archive.path).archive, Put(said(7, TEXT)))  # by another process
        assert desk.embed() == [TEXT]
        assert list(desk.found(near_to(TEXT))) == [TEXT]
        assert len(desk.vectors._signatures) == 1
        desk.close()

    def test_so_many_refused_messages_as_a_statement_has_no_places_for_are_passed_over(
        self, tmp_path: Path
    ) -> None:
        desk = Desk(tmp_path / "archive.sqlite")
        write(desk.archive, Put(said(7, TEXT)))
        assert [one.text for one in desk.vectors.take(5, NOW, range(1_000, 300_000)).entries] == [TEXT]
        desk.close()
