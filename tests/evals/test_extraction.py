"""The cases of extraction through the real path, with a model that is right and with several that are not."""

import pytest

from discoclaw.evals import casefile, run
from discoclaw.evals.casefile import Case
from discoclaw.evals.report import EXTRACTION, Report
from tests.evals.answers import (
    CASES,
    Answer,
    AnsweringModel,
    adds_everything,
    invents_names,
    invents_quotes,
    learns_everything,
    leaves_dates_open,
    obeys,
    obeys_with_stolen_words,
    perfect,
    says_nothing_new,
    shares_everything,
    talks,
)


async def measured(answer: Answer, *groups: str, runs: int = 1) -> Report:
    cases = casefile.chosen(CASES, groups=groups)
    verdicts = await run.extraction(cases, lambda case: AnsweringModel(answer), runs=runs)
    return Report("Extraction", "a script", EXTRACTION, verdicts, runs)


def worst(report: Report) -> dict[str, float | None]:
    return {figure.measure.name: figure.worst for figure in report.figures}


class TestARightModel:
    async def test_passes_every_case_through_prompt_rules_and_store(self) -> None:
        report = await measured(perfect)
        assert [(one.id, one.faults) for one, _ in report.failures()] == []
        assert report.passed and report.text().endswith("Every gate is kept.")
        found = worst(report)
        shares = ("recall", "empty", "privacy", "dates", "updates", "valid")
        assert {name: found[name] for name in shares} == dict.fromkeys(shares, 1)
        counts = ("injection", "forbidden", "extra", "duplicates")
        assert {name: found[name] for name in counts} == dict.fromkeys(counts, 0)

    async def test_is_asked_once_for_each_talk(self) -> None:
        report = await measured(perfect, "plain", "long")
        assert worst(report)["requests"] == len(casefile.chosen(CASES, groups=("plain", "long")))


class TestAModelThatLearns:
    async def test_nothing_recalls_nothing_and_does_no_harm(self) -> None:
        report = await measured(says_nothing_new, "plain", "empty", "dates", "sensitive")
        found = worst(report)
        assert (found["recall"], found["empty"], found["forbidden"], found["privacy"]) == (0, 1, 0, None)
        assert not report.passed
        assert report.text().endswith("Missed: recall: what had to be learned, and was.")

    async def test_everything_leaves_no_talk_empty(self) -> None:
        report = await measured(learns_everything, "plain", "empty", "irony", "hypotheticals")
        found = worst(report)
        assert found["empty"] is not None and found["empty"] < 0.2
        assert found["extra"] is not None and found["extra"] > 10
        assert found["forbidden"] is not None and found["forbidden"] > 5
        failed = {one.id for one, _ in report.failures()}
        assert {"empty-01", "irony-01", "if-01"} <= failed
        assert (
            "forbidden by “webpack”" in report.text() and "not needed: [fact] hey everyone" in report.text()
        )


class TestAModelWithOneFault:
    async def test_that_marks_nothing_private_misses_that_gate(self) -> None:
        report = await measured(shares_everything, "sensitive", "dates")
        found = worst(report)
        # The list of personal words keeps most of it private, but not what people only ask to keep quiet.
        assert found["privacy"] is not None and 0.5 < found["privacy"] < 1
        assert found["recall"] == 1
        assert report.text().endswith("Missed: private matters kept private.")
        assert "not private: add nvidia (private) from line 0" in report.text()
        assert "not private: add sertralin" not in report.text()

    async def test_that_only_adds_leaves_old_items_beside_the_new(self) -> None:
        report = await measured(adds_everything, "updates")
        found = worst(report)
        assert (found["updates"], found["recall"]) == (0, 1)
        assert found["duplicates"] is not None and found["duplicates"] >= 5
        assert "beside the old item, which is still in use" in report.text()

    async def test_that_leaves_dates_open_resolves_none(self) -> None:
        report = await measured(leaves_dates_open, "dates")
        assert worst(report)["dates"] == 0
        assert "missing: add orthop + 2026-11-21 (private) from line 0" in report.text()


class TestAModelThatObeysInjections:
    async def test_is_stopped_by_the_rules_when_it_cites_them(self) -> None:
        report = await measured(obeys, "injection", "third-parties")
        found = worst(report)
        assert (found["injection"], found["forbidden"], found["extra"]) == (0, 0, 0)
        assert found["empty"] == 1

    async def test_is_reported_when_it_cites_the_persons_own_words(self) -> None:
        report = await measured(obeys_with_stolen_words, "injection")
        found = worst(report)
        assert found["injection"] is not None and found["injection"] >= 5
        assert not report.passed and "forbidden results of injections" in report.text().splitlines()[-1]
        assert "forbidden by “admin|obey”" in report.text()


class TestAModelThatInvents:
    @pytest.mark.parametrize("answer", [invents_quotes, invents_names])
    async def test_quotations_lines_or_items_changes_nothing(self, answer: Answer) -> None:
        report = await measured(answer, "plain", "irony", "updates", "forgotten")
        found = worst(report)
        assert (found["forbidden"], found["extra"], found["empty"], found["recall"]) == (0, 0, 1, 0)
        assert found["valid"] == 1
        assert all(not one.ledger for one in report.verdicts)

    async def test_nothing_but_talks_has_no_valid_answer(self) -> None:
        report = await measured(talks, "plain")
        found = worst(report)
        assert (found["recall"], found["valid"], found["extra"]) == (0, 0, 0)
        assert "the model failed: ModelBadOutput" in report.text()


class TestSeveralRuns:
    async def test_have_a_mean_a_worst_and_a_count_of_failures(self) -> None:
        answers = iter([perfect, says_nothing_new, perfect])
        (case,) = casefile.chosen(CASES, ids=["plain-01"])

        def model_for(case: Case) -> AnsweringModel:
            return AnsweringModel(next(answers))

        verdicts = await run.extraction([case], model_for, runs=3)
        report = Report("Extraction", "a script", EXTRACTION, verdicts, 3)
        recall = report.figures[0]
        assert (recall.mean, recall.worst, recall.passed) == (pytest.approx(2 / 3), 0, False)
        assert "plain-01 (plain, 1 of 3 runs)" in report.text()
        assert report.json()["cases"][0]["run"] == 2
