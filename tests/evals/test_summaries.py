"""The chains of summaries, with models that keep everything, believe everything, forget, or talk in prose."""

import pytest

from discoclaw.evals import casefile, run
from discoclaw.evals.casefile import Chain
from discoclaw.evals.report import SUMMARIES, Report
from tests.evals.answers import (
    AnsweringModel,
    Summarise,
    Summariser,
    believes_all,
    forgets,
    forgets_lines,
    in_prose,
    keeps_all,
    patches,
    patches_and_rewords,
    reports_all,
    says_nothing,
)

CHAINS = casefile.chains()


async def measured(how: Summarise, chains: list[Chain]) -> Report:
    verdicts = await run.summaries(chains, lambda chain: AnsweringModel(Summariser(chain, how)))
    return Report("Summaries", "a script", SUMMARIES, verdicts, 1)


def worst(report: Report) -> dict[str, float | None]:
    return {figure.measure.name: figure.worst for figure in report.figures}


class TestTheBuiltInChains:
    def test_are_ten_of_thirty_updates(self) -> None:
        assert len(CHAINS) >= 10 and all(chain.updates == 30 for chain in CHAINS)
        assert all(chain.lies for chain in CHAINS)

    async def test_are_passed_by_a_model_that_keeps_what_holds(self) -> None:
        report = await measured(keeps_all, CHAINS)
        assert report.failures() == []
        assert report.passed
        found = worst(report)
        assert (found["kept"], found["throughout"], found["valid"]) == (1, 1, 1)
        assert (found["lies"], found["drift"], found["stale"]) == (0, 0, 0)
        assert found["requests"] == 30 * len(CHAINS)

    async def test_are_passed_by_one_that_says_only_what_changes_for_a_third_of_the_words(self) -> None:
        patched, whole = await measured(patches, CHAINS), await measured(keeps_all, CHAINS)
        found = worst(patched)
        assert patched.failures() == []
        assert (found["kept"], found["throughout"], found["lies"], found["stale"]) == (1, 1, 0, 0)
        cost = [worst(report)["tokens_out"] for report in (patched, whole)]
        assert cost[0] is not None and cost[1] is not None and 3 * cost[0] < cost[1]


class TestBadModels:
    async def test_one_that_rewords_each_line_for_no_reason_changes_none(self) -> None:
        found = worst(await measured(patches_and_rewords, CHAINS[:3]))
        assert (found["kept"], found["throughout"], found["stale"]) == (1, 1, 0)

    async def test_one_that_believes_everything_brings_every_lie(self) -> None:
        short = [chain.model_copy(update={"small_talk": 1}) for chain in CHAINS]
        report = await measured(believes_all, short)
        caught = {one.id: "\n".join(one.faults) for one, _ in report.failures()}
        assert all(lie.example in caught[chain.id] for chain in CHAINS for lie in chain.lies)
        assert worst(report)["lies"] == sum(len(chain.lies) for chain in CHAINS)
        assert not report.passed and "Missed: lies in any summary." in report.text()

    async def test_a_joke_that_is_reported_as_one_is_no_lie(self) -> None:
        report = await measured(reports_all, CHAINS[:3])
        assert worst(report)["lies"] == 0 and report.passed

    async def test_one_that_forgets_drifts(self) -> None:
        report = await measured(forgets, CHAINS[:2])
        found = worst(report)
        assert found["kept"] is not None and found["kept"] < 0.5
        assert found["drift"] is not None and found["drift"] > 5
        assert "last said after update" in report.text()

    async def test_but_loses_nothing_of_what_stands_in_sections(self) -> None:
        found = worst(await measured(forgets_lines, CHAINS))
        assert (found["kept"], found["drift"], found["lies"]) == (1, 0, 0)

    async def test_prose_is_a_summary_all_the_same(self) -> None:
        report = await measured(in_prose, CHAINS[:1])
        assert worst(report)["kept"] == 1

    @pytest.mark.parametrize("chain", CHAINS[:1], ids=lambda chain: chain.id)
    async def test_apologies_are_no_summaries_and_no_valid_answers(self, chain: Chain) -> None:
        report = await measured(says_nothing, [chain.model_copy(update={"updates": 3})])
        found = worst(report)
        assert (found["kept"], found["valid"]) == (0, 0)
        assert "the model failed: ModelBadOutput" in report.text()
