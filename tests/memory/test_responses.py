"""Answers that are kept for a while: each person's for themselves, and gone when they are to go."""

import asyncio
import json
import os
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import Purged, erasing
from discoclaw.memory.conversations.responses import LONGEST, Response, Responses, kept
from tests.memory.kit import ANN, BOB, NOW, Clock, erased_at
from tests.purging import from_all
from tests.tables import naming

MINUTE = 60_000
TTL = 60 * MINUTE
SHA = "0" * 64


def entry(key: str, said: str = "", *, at: int = NOW, used: int | None = None) -> Response:
    return Response(key, SHA, "haiku", said or f"answer {key}", at, at if used is None else used)


@pytest.fixture
def responses(tmp_path: Path, clock: Clock) -> Responses:
    return Responses(tmp_path / "responses", clock=clock, ttl_ms=TTL, most=3)


def again(responses: Responses, clock: Clock, **given: Any) -> Responses:
    """A store that has just started on the same folder."""
    return Responses(responses.folder, clock=clock, **{"ttl_ms": TTL, "most": 3, **given})


async def erase_from(responses: Responses, subject: str = ANN) -> Purged:
    return await from_all(responses, erasing(subject, NOW))


def keys(responses: Responses, subject: str = ANN) -> list[str]:
    """What the file of a subject holds."""
    return [one["key"] for one in json.loads((responses.folder / f"{subject}.json").read_bytes())]


class TestAnAnswer:
    async def test_is_there_again_after_a_start_for_its_person_and_its_question_alone(
        self, responses: Responses, clock: Clock
    ) -> None:
        await responses.put(ANN, entry("k"))
        for one in (responses, again(responses, clock)):
            assert await one.get(ANN, "k", SHA) == "answer k"
            for subject, key, sha in ((BOB, "k", SHA), (ANN, "k", "1" * 64), (ANN, "K", SHA)):
                assert await one.get(subject, key, sha) is None

    async def test_lies_on_disk_as_documented(self, responses: Responses) -> None:
        await responses.put(ANN, entry("k", "Grüezi 🐦", at=NOW - 5, used=NOW))
        assert json.loads((responses.folder / f"{ANN}.json").read_text(encoding="utf-8")) == [
            {
                "key": "k",
                "response": "Grüezi 🐦",
                "created": NOW - 5,
                "last_access": NOW,
                "model": "haiku",
                "sha256": SHA,
            }
        ]

    async def test_replaces_the_one_of_its_key(self, responses: Responses) -> None:
        await responses.put(ANN, entry("k", "old"))
        await responses.put(ANN, replace(entry("k", "new"), sha256="1" * 64))
        assert keys(responses) == ["k"]
        assert (await responses.get(ANN, "k", SHA), await responses.get(ANN, "k", "1" * 64)) == (None, "new")

    async def test_that_is_very_long_is_not_kept(self, responses: Responses) -> None:
        await responses.put(ANN, entry("k", "x" * (LONGEST + 1)))
        assert await responses.get(ANN, "k", SHA) is None and not responses.folder.exists()

    async def test_may_be_any_text(self, responses: Responses, clock: Clock) -> None:
        await responses.put(ANN, entry("k", "a\ud800b\x00"))
        assert (
            await again(responses, clock).get(ANN, "k", SHA)
            == await responses.get(ANN, "k", SHA)
            == "a\ufffdb"
        )

    async def test_of_nobody_is_refused(self, responses: Responses) -> None:
        for subject in ("../user-1", "", "user 1", "user-1/x"):
            with naming(subject):
                with pytest.raises(MemoryFault):
                    await responses.get(subject, "k", SHA)
                with pytest.raises(MemoryFault):
                    await responses.put(subject, entry("k"))


class TestWhatGoes:
    async def test_is_what_is_too_old(self, responses: Responses, clock: Clock) -> None:
        await responses.put(ANN, entry("k"))
        clock.now = NOW + TTL - 1
        assert await responses.get(ANN, "k", SHA) == "answer k"
        clock.now = NOW + TTL
        assert await responses.get(ANN, "k", SHA) is None
        assert await again(responses, clock).get(ANN, "k", SHA) is None

    async def test_is_what_was_used_longest_ago(self, responses: Responses, clock: Clock) -> None:
        for number in range(3):
            clock.forward(minutes=1)
            await responses.put(ANN, entry(f"k{number}", at=clock()))
        clock.forward(minutes=1)
        assert await responses.get(ANN, "k0", SHA) == "answer k0"
        await responses.put(ANN, entry("k3", at=clock(), used=clock()))
        assert sorted(keys(responses)) == ["k0", "k2", "k3"]

    async def test_is_what_is_of_the_future(self, responses: Responses, clock: Clock) -> None:
        await responses.put(ANN, entry("k", at=NOW + 1))
        assert await responses.get(ANN, "k", SHA) is None

    @given(
        st.lists(st.tuples(st.integers(-TTL, 2 * TTL), st.integers(0, TTL)), max_size=12),
        st.integers(0, 6),
    )
    def test_follows_the_rule_written_a_second_time(self, ages: list[tuple[int, int]], most: int) -> None:
        entries = [
            entry(f"{number:02}", at=NOW - age, used=NOW - idle) for number, (age, idle) in enumerate(ages)
        ]
        left = [one for one in entries if 0 <= NOW - one.created < TTL]
        while len(left) > most:
            left.remove(min(left, key=lambda one: (one.last_access, one.created, one.key)))
        assert set(kept(entries, now_ms=NOW, ttl_ms=TTL, most=most)) == set(left)

    async def test_is_the_file_of_somebody_who_does_not_come_back(
        self, responses: Responses, clock: Clock
    ) -> None:
        await responses.put(BOB, entry("b"))
        theirs = responses.folder / f"{BOB}.json"
        os.utime(theirs, (NOW / 1000, NOW / 1000))
        for minutes, there in ((60, True), (1, False)):
            clock.forward(minutes=minutes)
            await again(responses, clock).put(ANN, entry("a", at=clock()))
            assert theirs.exists() is there


class TestRam:
    async def test_is_left_by_who_is_idle(self, tmp_path: Path, clock: Clock) -> None:
        responses = Responses(tmp_path, clock=clock, ttl_ms=TTL, idle_ms=10 * MINUTE)
        await responses.put(ANN, entry("k"))
        path = tmp_path / f"{ANN}.json"
        path.write_text(path.read_text().replace("answer k", "as edited"))
        for minutes, said in ((9, "answer k"), (11, "as edited")):
            clock.forward(minutes=minutes)
            assert await responses.get(ANN, "k", SHA) == said


class TestAFileThatIsNone:
    async def test_counts_as_empty_and_is_said(
        self, responses: Responses, caplog: pytest.LogCaptureFixture
    ) -> None:
        responses.folder.mkdir()
        for number, content in enumerate(
            (
                b"",
                b"[",
                b"\xff\xfe",
                b"{}x",
                b"[1]",
                b'"text"',
                b"7",
                b"[" * 100_000,
                b'[{"key": "k"}]',
                json.dumps([{**entry("k").to_json(), "created": "soon"}]).encode(),
                json.dumps([{**entry("k").to_json(), "last_access": -1}]).encode(),
                json.dumps([{**entry("k").to_json(), "response": None}]).encode(),
            )
        ):
            with naming(content):
                subject = f"user-{number}"
                (responses.folder / f"{subject}.json").write_bytes(content)
                assert await responses.get(subject, "k", SHA) is None
                (said,) = caplog.messages
                assert "counts as empty" in said and f"{subject}.json" in said
                await responses.put(subject, entry("k"))
                assert keys(responses, subject) == ["k"]
                caplog.clear()

    async def test_nor_can_be_read_costs_nothing(self, responses: Responses) -> None:
        (responses.folder / f"{ANN}.json").mkdir(parents=True)
        assert await responses.get(ANN, "k", SHA) is None
        await responses.put(ANN, entry("k"))
        assert await responses.get(ANN, "k", SHA) == "answer k"

    async def test_on_a_full_disk_is_a_warning_and_the_old_one_stays(
        self, responses: Responses, caplog: pytest.LogCaptureFixture
    ) -> None:
        await responses.put(ANN, entry("k"))
        before = (responses.folder / f"{ANN}.json").read_bytes()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
        try:
            await responses.put(ANN, entry("l"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert "could not be written" in caplog.text
        assert [path.name for path in responses.folder.iterdir()] == [f"{ANN}.json"]
        assert (responses.folder / f"{ANN}.json").read_bytes() == before
        assert await responses.get(ANN, "l", SHA) == "answer l"


class TestErasing:
    async def test_takes_the_file_and_what_ram_holds_and_leaves_whose_ids_begin_alike(
        self, responses: Responses
    ) -> None:
        assert await erase_from(responses, "user-1") == Purged()
        for subject in ("user-1", "user-12", "user-1-2"):
            await responses.put(subject, entry("k"))
        (responses.folder / ".user-1.json.0a1b2c3d.tmp").write_text("half")
        assert await erase_from(responses, "user-1") == Purged(2)
        assert await responses.get("user-1", "k", SHA) is None
        assert sorted(path.name for path in responses.folder.iterdir()) == ["user-1-2.json", "user-12.json"]
        assert await responses.get("user-12", "k", SHA) == "answer k"

    async def test_that_the_disk_refuses_names_what_stays(self, responses: Responses) -> None:
        (responses.folder / f"{ANN}.json" / "x").mkdir(parents=True)
        removed = await erase_from(responses, ANN)
        assert removed.count == 0 and len(removed.left) == 1 and f"{ANN}.json" in removed.left[0]

    async def test_is_not_undone_by_an_answer_that_comes_late(self, tmp_path: Path, clock: Clock) -> None:
        erased: dict[str, int] = {}
        responses = Responses(tmp_path, clock=clock, ttl_ms=TTL, consent=erased_at(erased))
        erased[ANN] = clock()
        await erase_from(responses, ANN)
        clock.forward(minutes=1)
        await responses.put(ANN, entry("k", at=NOW, used=clock()))
        assert list(tmp_path.iterdir()) == []
        await responses.put(ANN, entry("k", at=NOW + 1, used=clock()))
        assert await responses.get(ANN, "k", SHA) == "answer k"

    async def test_counts_though_the_file_is_still_there(self, tmp_path: Path, clock: Clock) -> None:
        """It was read again between the mark and the removal, or put back from elsewhere."""
        erased: dict[str, int] = {}
        responses = Responses(tmp_path, clock=clock, ttl_ms=TTL, consent=erased_at(erased))
        await responses.put(ANN, entry("k"))
        erased[ANN] = clock()
        assert await responses.get(ANN, "k", SHA) is None
        clock.forward(minutes=1)
        await responses.put(ANN, entry("l", at=clock()))
        assert keys(responses) == ["l"]


class TestManyAtOnce:
    @pytest.mark.design(146)
    async def test_lose_nothing_and_end_with_whole_files(self, tmp_path: Path, clock: Clock) -> None:
        responses = Responses(tmp_path, clock=clock, ttl_ms=TTL, most=1000)

        async def work(number: int) -> None:
            for count in range(25):
                subject = (ANN, BOB)[count % 2]
                await responses.put(subject, entry(f"{number}-{count}"))
                assert await responses.get(subject, f"{number}-{count}", SHA) == f"answer {number}-{count}"

        await asyncio.gather(*(work(number) for number in range(8)))
        assert len(keys(responses, ANN)) == 8 * 13 and len(keys(responses, BOB)) == 8 * 12

    async def test_do_not_bring_back_what_is_erased(self, tmp_path: Path, clock: Clock) -> None:
        erased: dict[str, int] = {}
        responses = Responses(tmp_path, clock=clock, ttl_ms=TTL, consent=erased_at(erased))

        async def write() -> None:
            for number in range(60):
                await responses.put(ANN, entry(f"k{number}", "canary"))

        async def erase() -> None:
            await asyncio.sleep(0.01)
            erased[ANN] = clock()
            await erase_from(responses, ANN)

        await asyncio.gather(write(), write(), erase())
        assert list(tmp_path.iterdir()) == []
        for number in range(60):
            assert await responses.get(ANN, f"k{number}", SHA) is None
