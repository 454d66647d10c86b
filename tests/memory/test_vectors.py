"""The cache of vectors on disk, and the matrix of one owner in RAM."""

import asyncio
import json
import logging
import math
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import Purged, erasing
from discoclaw.core.query import Cosines
from discoclaw.memory.subjects.store import Memory
from discoclaw.search import vectors as vectors_
from discoclaw.search.matrix import Matrix, packed
from discoclaw.search.vectors import VectorCache, hash_of
from tests.cosines import cosine
from tests.memory.kit import ANN, BOB, NOW, Clock
from tests.purging import from_disk, from_ram
from tests.tables import each_row

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "knowledge.json").read_text("utf-8")
)

ANNS = erasing(ANN, NOW)

MODEL = "openai/m"


def rows(*texts: str, dims: int = 4) -> dict[bytes, bytes]:
    """Some vectors, a different one for each text."""
    return {hash_of(text): packed([*hash_of(text)[:dims]]) for text in texts}


def put(cache: VectorCache, owner: str, vectors: dict[bytes, bytes], model: str = MODEL) -> None:
    assert cache.put(owner, model, vectors, erasings=cache.erasings(owner))


def bytes_below(folder: Path) -> bytes:
    """All bytes of all files."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[VectorCache]:
    opened = VectorCache(path)
    yield opened
    opened.close()


class TestTheCache:
    def test_gives_back_what_was_put_after_a_restart_too_and_never_holds_a_text(
        self, cache: VectorCache, path: Path
    ) -> None:
        assert asyncio.run(from_disk(cache, ANNS)) == Purged()
        assert not path.exists()
        put(cache, ANN, rows("a very secret text", "tea"))
        put(cache, ANN, rows("cats"))
        put(cache, BOB, rows("tea"))
        cache.close()
        assert b"secret" not in bytes_below(path.parent)
        with closing(VectorCache(path)) as again:
            assert again.load(ANN, MODEL) == rows("a very secret text", "tea", "cats")
            assert again.load(BOB, MODEL) == rows("tea")

    def test_another_model_sees_nothing_and_takes_the_place(self, cache: VectorCache) -> None:
        put(cache, ANN, rows("tabs", "tea"))
        put(cache, BOB, rows("cats"))
        assert cache.load(ANN, "other/m") == {}
        put(cache, ANN, rows("tabs"), "other/m")
        assert cache.load(ANN, MODEL) == {}
        assert cache.load(BOB, MODEL) == rows("cats")

    def test_vectors_of_another_length_take_the_place(self, cache: VectorCache) -> None:
        put(cache, ANN, rows("tabs", "tea"))
        put(cache, ANN, rows("cats", dims=6))
        assert cache.load(ANN, MODEL) == rows("cats", dims=6)

    def test_the_oldest_leave_when_there_are_too_many(
        self, cache: VectorCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vectors_, "MOST_ROWS", 50)
        texts = [f"text {number}" for number in range(55)]
        put(cache, ANN, rows(*texts[:49]))
        put(cache, BOB, rows("tea"))
        put(cache, ANN, rows(*texts[49:]))
        assert list(cache.load(ANN, MODEL)) == [hash_of(text) for text in texts[5:]]
        assert cache.load(BOB, MODEL) == rows("tea")

    def test_nothing_is_put_by_who_knew_the_owner_before_an_erasing(self, cache: VectorCache) -> None:
        before = cache.erasings(ANN)
        from_ram(cache, ANNS)
        assert not cache.put(ANN, MODEL, rows("tabs"), erasings=before)
        between = cache.erasings(ANN)
        asyncio.run(from_disk(cache, ANNS))
        assert not cache.put(ANN, MODEL, rows("tabs"), erasings=between)
        assert cache.load(ANN, MODEL) == {}
        put(cache, ANN, rows("new words"))

    def test_without_a_file_it_is_in_ram_alone(self, tmp_path: Path) -> None:
        with closing(VectorCache(None)) as cache:
            put(cache, ANN, rows("tabs"))
            assert cache.load(ANN, MODEL) == rows("tabs")
            assert asyncio.run(from_disk(cache, ANNS)) == Purged(1)
            assert cache.load(ANN, MODEL) == {}
        assert list(tmp_path.iterdir()) == []

    def test_many_threads_at_once_lose_nothing(self, cache: VectorCache) -> None:
        def work(name: str) -> None:
            for number in range(20):
                put(cache, name, rows(f"{name} {number}"))
                cache.load(name, MODEL)

        threads = [threading.Thread(target=work, args=(f"user-{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [len(cache.load(f"user-{number}", MODEL)) for number in range(8)] == [20] * 8


class TestErasing:
    def test_destroys_every_byte_and_nobody_elses(self, cache: VectorCache, path: Path) -> None:
        put(cache, ANN, rows(*(f"text {number}" for number in range(500)), dims=32))
        put(cache, BOB, rows("tea", dims=32))
        gone = [*rows("text 7", "text 499", dims=32).items()]
        before = bytes_below(path.parent)
        assert all(key in before and vector in before for key, vector in gone)
        assert asyncio.run(from_disk(cache, ANNS)) == Purged(500)
        after = bytes_below(path.parent)
        assert not any(key in after or vector in after for key, vector in gone)
        assert ANN.encode() not in after
        assert cache.load(BOB, MODEL) == rows("tea", dims=32)

    def test_finishes_what_was_deleted_before_a_kill(self, cache: VectorCache, path: Path) -> None:
        put(cache, ANN, rows("tabs"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("PRAGMA secure_delete = ON")
        other.execute("DELETE FROM vectors")
        other.close()
        with closing(VectorCache(path)) as again:
            assert asyncio.run(from_disk(again, ANNS)) == Purged()
        assert ANN.encode() not in bytes_below(path.parent)

    def test_somebody_who_reads_meanwhile_does_not_keep_it(self, cache: VectorCache, path: Path) -> None:
        put(cache, ANN, rows("tabs"))
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM vectors").fetchall()
        removed = asyncio.run(from_disk(cache, ANNS))
        reader.close()
        assert removed == Purged(1)
        assert ANN.encode() not in bytes_below(path.parent)

    def test_a_damaged_cache_goes_as_a_whole(self, cache: VectorCache, path: Path) -> None:
        put(cache, ANN, rows("tabs"))
        cache.close()
        path.write_bytes(b"not a database, but " + ANN.encode() + b" is in it" * 100)
        assert asyncio.run(from_disk(VectorCache(path), ANNS)) == Purged(1)
        assert list(path.parent.iterdir()) == []

    def test_says_what_stays_and_why(self, path: Path) -> None:
        path.mkdir(parents=True)  # what lies there cannot be opened, and isn't a file to remove
        removed = asyncio.run(from_disk(VectorCache(path), ANNS))
        assert removed.count == 0
        assert [str(path) in one for one in removed.left] == [True]

    async def test_goes_with_a_persons_memory(self, root: Path, clock: Clock) -> None:
        memory, cache = Memory(root, clock=clock), VectorCache(root.parent / "cache" / "vectors.sqlite")
        memory.join(cache)
        memory.open()
        put(cache, ANN, rows("tabs"))
        put(cache, BOB, rows("tea"))
        erased = await memory.erase(ANN)
        assert (erased.removed, erased.left) == (1, ())
        assert cache.load(ANN, MODEL) == {}
        assert cache.load(BOB, MODEL) == rows("tea")
        cache.close()
        memory.close()
        assert ANN.encode() not in bytes_below(root.parent / "cache")


class TestDamage:
    @pytest.mark.parametrize("content", [b"", b"prose" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
    def test_a_damaged_file_is_built_anew_and_that_is_said(
        self, path: Path, content: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        path.parent.mkdir()
        path.write_bytes(content)
        cache = VectorCache(path)
        assert cache.load(ANN, MODEL) == {}
        put(cache, ANN, rows("tabs"))
        assert cache.load(ANN, MODEL) == rows("tabs")
        cache.close()
        assert ("it is a cache, and built anew" in caplog.text) == bool(content)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: content.replace(b"CREATE TABLE", b"CR\xc8ATE TABLE"),
            lambda content: content[:4096] + b"\xaa" * (len(content) - 4096),
        ],
        ids=["in the words of its schema", "behind its first page"],
    )
    def test_damage_that_comes_while_it_is_used_is_no_end(
        self, cache: VectorCache, path: Path, damage: Callable[[bytes], bytes]
    ) -> None:
        put(cache, ANN, rows(*(f"text {number}" for number in range(500)), dims=32))
        cache.close()
        path.write_bytes(damage(path.read_bytes()))
        assert cache.load(ANN, MODEL) == {}
        put(cache, ANN, rows("tabs"))
        assert cache.load(ANN, MODEL) == rows("tabs")

    @pytest.mark.parametrize(
        "made",
        [
            "CREATE TABLE vectors (owner TEXT); INSERT INTO vectors VALUES ('user-123')",
            "CREATE TABLE vectors (owner TEXT); PRAGMA user_version = 1",
            "PRAGMA user_version = 7",
        ],
    )
    def test_tables_of_another_version_are_made_anew(self, path: Path, made: str) -> None:
        path.parent.mkdir()
        other = sqlite3.connect(path)
        other.executescript(made)
        other.close()
        cache = VectorCache(path)
        assert cache.load(ANN, MODEL) == {}
        put(cache, ANN, rows("tabs"))
        assert cache.load(ANN, MODEL) == rows("tabs")
        cache.close()

    def test_a_row_that_is_no_vector_is_passed_over(self, cache: VectorCache, path: Path) -> None:
        put(cache, ANN, rows("tabs", "tea"))
        other = sqlite3.connect(path)
        other.execute("UPDATE vectors SET vector = x'00ff' WHERE hash = ?", (hash_of("tabs"),))
        other.commit()
        other.close()
        assert cache.load(ANN, MODEL) == rows("tea")

    def test_a_disk_that_can_not_be_used_is_a_fault(self, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("no folder")
        cache = VectorCache(tmp_path / "cache" / "vectors.sqlite")
        with pytest.raises(MemoryFault, match="the cache of vectors cannot be used"):
            cache.load(ANN, MODEL)


def _said(cosines: Cosines) -> tuple[float, ...]:
    return cosines.low, cosines.high, cosines.mean, cosines.spread


vectors = st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=5, max_size=5), min_size=1, max_size=20)


class TestTheMatrix:
    @given(vectors, st.lists(st.floats(-1e6, 1e6, width=32), min_size=5, max_size=5))
    def test_agrees_with_cosines_one_by_one(self, given: list[list[float]], question: list[float]) -> None:
        texts = {f"item-{number}": f"text {number}" for number in range(len(given))}
        matrix = Matrix()
        for text, vector in zip(texts.values(), given, strict=True):
            matrix.add({hash_of(text): packed(vector)})
        found = matrix.cosines(question, texts)
        said = {
            key: vector for key, vector in zip(texts, given, strict=True) if any(vector) and any(question)
        }
        assert found.keys() == said.keys()
        for key, vector in said.items():
            assert found[key] == pytest.approx(cosine(vector, question), abs=1e-5)

    @each_row("case", [one for one in GOLDEN["cosine"] if one["a"] and len(one["a"]) == len(one["b"])])
    def test_golden_values(self, case: dict[str, Any]) -> None:
        matrix = Matrix({hash_of("it"): packed(case["a"])})
        assert matrix.cosines(case["b"], {"it": "it"}).get("it", 0.0) == pytest.approx(case["cos"], abs=1e-5)

    def test_compares_only_what_is_asked_for_and_known(self) -> None:
        matrix = Matrix(rows("tabs", "tea"))
        found = matrix.cosines([1, 0, 0, 0], {"a": "tea", "b": "unknown", "c": "tea"})
        assert found.keys() == {"a", "c"} and found["a"] == found["c"]
        assert matrix.cosines([1, 0, 0, 0], {}) == Matrix().cosines([1.0], {"a": "tea"}) == {}
        assert "tea" in matrix
        assert "unknown" not in matrix

    @pytest.mark.parametrize("question", [[], [1.0], [1.0] * 5])
    def test_a_question_of_another_length_is_near_nothing(self, question: list[float]) -> None:
        assert Matrix(rows("tea")).cosines(question, {"a": "tea"}) == {}

    def test_vectors_of_another_length_begin_anew(self) -> None:
        matrix = Matrix(rows("tabs", "tea"))
        assert "tea" in matrix
        matrix.add(rows("cats", dims=6))
        assert (matrix.dims, len(matrix), "tea" in matrix) == (6, 1, False)

    def test_numbers_that_a_disk_has_spoiled_count_as_missing(self) -> None:
        spoiled = packed([1, 0, 0, 0])[:12] + b"\x00\x00\xc0\x7f"  # not a number
        matrix = Matrix({hash_of("tea"): spoiled, **rows("tabs")})
        found = matrix.cosines([1, 1, 1, 1], {"a": "tea", "b": "tabs"})
        assert found.keys() == {"b"}
        assert math.isfinite(found["b"])
        assert ("tea" in matrix, "tabs" in matrix) == (False, True)

    def test_a_vector_of_zeros_is_near_nothing_and_not_made_again(self) -> None:
        matrix = Matrix({hash_of("tea"): packed([0, 0, 0, 0]), **rows("tabs")})
        assert matrix.cosines([1, 1, 1, 1], {"a": "tea", "b": "tabs"}).keys() == {"b"}
        assert "tea" in matrix

    @pytest.mark.parametrize("odd", [0.0, math.nan, math.inf])
    def test_a_question_of_zeros_or_of_no_numbers_is_near_nothing(self, odd: float) -> None:
        assert Matrix(rows("tea")).cosines([odd] * 4, {"a": "tea"}) == {}

    @given(vectors, st.integers(1, 5))
    def test_it_does_not_matter_in_how_many_steps_vectors_are_added(
        self, given: list[list[float]], step: int
    ) -> None:
        packs = {hash_of(f"text {number}"): packed(vector) for number, vector in enumerate(given)}
        texts = {f"item-{number}": f"text {number}" for number in range(len(given))}
        matrix, keys = Matrix(), list(packs)
        for begin in range(0, len(keys), step):
            matrix.add({key: packs[key] for key in keys[begin : begin + step]})
        assert matrix.cosines([1, 2, 3, 4, 5], texts) == Matrix(packs).cosines([1, 2, 3, 4, 5], texts)

    @given(vectors)
    def test_says_of_all_of_them_what_going_through_them_says(self, given: list[list[float]]) -> None:
        texts = {f"item-{number}": f"text {number}" for number in range(len(given))}
        matrix = Matrix({hash_of(f"text {number}"): packed(one) for number, one in enumerate(given)})
        found = matrix.cosines([1, 2, 3, 4, 5], texts)
        plain = Cosines.of(dict(found))
        assert [*found.nearest] == [*plain.nearest]
        for one, other in zip(_said(found), _said(plain), strict=True):
            assert one == pytest.approx(other, abs=1e-6)

    @given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=8))
    def test_packed_vectors_have_length_one_or_zero(self, vector: list[float]) -> None:
        values = memoryview(packed(vector)).cast("f")
        assert math.hypot(*values) == pytest.approx(1 if any(vector) else 0, abs=1e-4)
