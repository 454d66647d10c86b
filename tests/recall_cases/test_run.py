"""The benchmark asks the cases of a part, with and without vectors, and with each step left out."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from bench.recall.__main__ import Shown
from bench.recall.cases import KINDS, cases
from bench.recall.cases_run import Asked, ask_cases, misses
from bench.recall.runs import Run, learn, of_cases
from bench.recall.systems import WITH_VECTORS, Ours, item_systems
from bench.recall.variants import FOR_ITEMS_WITH_VECTORS, STEPS, Without
from bench.recall.vectors import Vectors, made_up, question
from discoclaw.core.item import MANUAL, Facets, Item, new_item
from discoclaw.recall import index

FEW, FEWER = Asked(step=40), Asked(step=120)
SEED = 7


class Everything:
    """A system that returns all it has."""

    def load(self, items: Sequence[Item]) -> None:
        self._items = items

    def search(self, query: str, limit: int) -> list[str]:
        return [item.id for item in self._items]


class Nothing(Everything):
    def search(self, query: str, limit: int) -> list[str]:
        return []


def item(text: str, **facets: str) -> Item:
    return new_item("fact", text, source=MANUAL, now_ms=0, facets=Facets(**facets))


def run(vectors: Vectors) -> Run:
    return Run(SEED, FEW, False, vectors, say=lambda line: None)


def printed(wanted: Sequence[str], run: Run, *, with_misses: bool = False) -> str:
    console = Console(file=io.StringIO(), width=200)
    Shown(run, wanted, with_misses=with_misses).print(console)
    return console.file.getvalue()


class TestTheCases:
    @pytest.mark.parametrize("part", ["develop", "final"])
    def test_those_of_the_part_are_asked_and_no_others(self, part):
        found = ask_cases(Nothing, Asked(part, 50))
        assert set(found) == set(KINDS)
        for kind, answers in found.items():
            assert answers
            assert all(f"{kind}/{part}/" in one.case.name for one in answers)

    def test_each_is_asked_of_its_own_memory(self):
        for answers in ask_cases(Everything, FEW).values():
            for one in answers:
                assert set(one.ids) == {item.id for item in one.case.items}

    def test_ours_knows_what_the_person_of_a_case_is_called_also_without_a_step(self):
        inner = Ours()
        for system in (inner, Without(inner, ())):
            (one, *_) = ask_cases(lambda system=system: system, Asked(step=1000), ["oneself"])["oneself"]
            assert inner.own_name == one.case.own_name != Ours().own_name

    def test_what_is_missing_and_what_came_in_vain_are_listed(self):
        (case, *_) = cases("names", "develop")
        texts = {item.id: item.text for item in case.items}
        told = "\n".join(misses(ask_cases(Nothing, FEW, ["names"])))
        assert all(f"missing  {texts[one]}" in told for one in case.must)
        assert "in vain" not in told
        told = "\n".join(misses(ask_cases(Everything, FEW, ["nothing"])))
        assert "in vain" in told
        assert "missing" not in told

    def test_the_command_prints_every_figure_as_json(self):
        command = [sys.executable, "-m", "bench.recall", "--only", "cases", "--every", "80", "--no-vectors"]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout)
        assert figures["part"] == "develop"
        assert set(figures["cases"]) == set(item_systems())
        for kinds in figures["cases"].values():
            assert set(kinds) == set(KINDS)
            assert 0 < kinds["names"]["recall"] <= 1
            assert kinds["nothing"]["empty"] is not None
            assert kinds["unanswerable"]["lines"] >= kinds["unanswerable"]["in_vain"] >= 0


class TestVectors:
    def test_each_text_is_embedded_once_and_kept_for_the_next_run(self, tmp_path: Path):
        seen: list[str] = []

        def embed(texts: Sequence[str]) -> list[list[float]]:
            seen.extend(texts)
            return [[float(len(text)), 1.0] for text in texts]

        vectors = Vectors(embed, folder=tmp_path)
        assert vectors.learn(["a", "bb", "a"]) == 2
        vectors.matrix([item("bb"), item("ccc")])
        again = Vectors(embed, folder=tmp_path)
        assert again.learn(["a", "bb", "ccc", "dddd"]) == 1
        assert seen == ["a", "bb", "ccc", "dddd"]
        assert again.vector("a") == vectors.vector("a")

    def test_everything_that_is_asked_is_embedded_beforehand(self):
        seen: list[str] = []

        def embed(texts: Sequence[str]) -> list[list[float]]:
            seen.extend(texts)
            return [[float(len(text)), 1.0] for text in texts]

        asked = run(Vectors(embed))
        learn(asked, ["cases"])
        before = len(seen)
        of_cases(asked)
        assert len(seen) == before > 0

    def test_what_is_confidential_gets_no_vector(self):
        secret, known = item("the code is 4711", sensitivity="confidential"), item("likes tea")
        matrix = made_up().matrix([secret, known])
        assert known.text in matrix
        assert secret.text not in matrix

    def test_the_name_of_the_person_is_no_part_of_the_meaning(self):
        assert question("Where does Somebody's brother live?", ["Somebody"]) == "Where does brother live?"
        assert Ours().embedded("Somebody") == ""

    def test_our_row_finds_by_meaning_what_no_word_finds_and_says_the_floor(self):
        def embed(texts: Sequence[str]) -> list[list[float]]:
            return [[1.0, 0.0] if "boat" in text or "yacht" in text else [0.1, 1.0] for text in texts]

        system = Ours(Vectors(embed, floor=0.2))
        about = ["tea", "moss", "rain", "brass", "clay", "dusk", "hemp", "iron", "jazz", "kelp", "lime"]
        items = [item("owns a boat"), *(item(f"likes {one}") for one in about)]
        system.load(items)
        assert system.search("anything on a yacht?", 3) == [items[0].id]
        assert system.signals("anything on a yacht?").floor == 0.2
        words = Ours()
        words.load(items)
        assert words.search("anything on a yacht?", 3) == []


class TestLeavingOut:
    def test_a_step_is_idle_while_its_row_loads_and_searches(self):
        class Watching(Nothing):
            def load(self, items: Sequence[Item]) -> None:
                seen.append(index.K1)

            def search(self, query: str, limit: int) -> list[str]:
                seen.append(index.K1)
                return []

        seen: list[float] = []
        row = Without(Watching(), ((index, "K1", 7.0),))
        row.load([])
        row.search("?", 1)
        assert seen == [7.0, 7.0]
        assert index.K1 != 7.0

    def test_a_step_changes_what_is_found_or_is_said_to_be_worth_nothing(self):
        told = printed(["cases"], Run(SEED, FEWER, True, made_up(), say=lambda line: None))
        whole = ids(Ours(made_up()))
        for name in FOR_ITEMS_WITH_VECTORS:
            same = ids(Without(Ours(made_up()), STEPS[name])) == whole
            row = f"{WITH_VECTORS} without {name}"
            assert (f"{row} finds the same of memories" in told) == same, name
            assert row in told

    def test_everything_is_back_in_place_afterwards(self):
        before = {name: [getattr(place, one) for place, one, _ in steps] for name, steps in STEPS.items()}
        for steps in STEPS.values():
            system = Without(Nothing(), steps)
            system.load([])
            system.search("?", 1)
        after = {name: [getattr(place, one) for place, one, _ in steps] for name, steps in STEPS.items()}
        assert after == before


def ids(system: Ours | Without[Item]) -> list[tuple[str, ...]]:
    answers = ask_cases(lambda: system, FEWER)
    return [one.ids for found in answers.values() for one in found]
