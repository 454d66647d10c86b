"""`discoclaw eval`: what it says before it sends anything, what it reports, and how it fails."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from typer.testing import Result

from discoclaw.cli.main import cli
from discoclaw.evals import casefile
from discoclaw.loops.facts import BRIEF, SYSTEM
from tests.cli.shell import Runner, Shell
from tests.evals.answers import Summariser, keeps_all, perfect
from tests.servers.messages_api import Behaviour, MessagesServer, Raw, Received, failure, text

NOTE = "Nothing of your own data is sent, and nothing is written into your data folder.\n"


@contextmanager
def serving(answer: Callable[[Received], Behaviour]) -> Iterator[MessagesServer]:
    """A server in a thread of its own: a command runs its own event loop."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    server = MessagesServer(answer)
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield server
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def run(shell: Shell, *words: str, **settings: str) -> Result:
    unset: dict[str, str | None] = {"ANTHROPIC_API_KEY": None, "ANTHROPIC_BASE_URL": None}
    environment = {**unset, **shell.settings, **settings}
    return Runner().invoke(cli, ["eval", *words], env=environment)


def refused(result: Result) -> str:
    """The reason of a failure: one line of ours at the end of stderr, and nothing printed."""
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    last = result.stderr.splitlines()[-1]
    assert last.startswith("discoclaw: "), result.stderr
    return last.removeprefix("discoclaw: ")


class TestExtraction:
    def test_asks_the_configured_model_and_reports_what_became_of_it(self, empty: Shell) -> None:
        cases = [one for one in casefile.cases() if one.id in ("date-01", "date-02")]
        with serving(lambda asked: text(perfect(asked.prompt))) as server:
            result = run(
                empty,
                *("extraction", "--case", "date-01", "--case", "date-02", "--runs", "2", "--json"),
                ANTHROPIC_BASE_URL=server.base_url,
                DISCOCLAW_DURABLE_MODEL="tiny",
            )
            asked = len(server.requests)
            assert {one.body["model"] for one in server.requests} == {"tiny"}
        assert result.exit_code == 0, result.output
        assert result.stderr == (
            f"note: sending {len(cases)} made-up talks, 2 times each, to tiny at {server.base_url}: "
            f"at least {2 * len(cases)} requests. {NOTE}"
        )
        report = json.loads(result.stdout)
        assert report["passed"] and report["cases"] == [] and not report["tokens_estimated"]
        figures = report["figures"]
        assert figures["recall"]["runs"] == [1.0, 1.0] and figures["dates"]["worst"] == 1.0
        assert figures["requests"]["mean"] * 2 == asked == 2 * len(cases)
        assert figures["tokens_in"]["mean"] == 10 * len(cases)
        assert figures["tokens_out"]["mean"] == 5 * len(cases)

    def test_gives_a_model_that_reads_little_the_shorter_rules_as_the_bot_does(self, empty: Shell) -> None:
        listed = json.dumps({"data": [{"id": "tiny", "max_model_len": 8192}]}).encode()
        with serving(lambda asked: text(perfect(asked.prompt))) as server:
            server.models = Raw(listed, 200, {"content-type": "application/json"})
            for told, rules in ((None, BRIEF), ("32768", SYSTEM)):
                server.requests.clear()
                result = run(
                    empty,
                    *("extraction", "--case", "plain-01", "--runs", "1"),
                    ANTHROPIC_BASE_URL=server.base_url,
                    DISCOCLAW_DURABLE_MODEL="tiny",
                    **({"DISCOCLAW_CONTEXT_TOKENS": told} if told else {}),
                )
                assert result.exit_code == 0, result.output
                assert server.requests and all(one.system.startswith(rules) for one in server.requests)

    def test_leaves_the_data_folder_alone(self, empty: Shell) -> None:
        with serving(lambda asked: text("{}")) as server:
            run(empty, "extraction", "--case", "date-01", "--runs", "1", ANTHROPIC_BASE_URL=server.base_url)
        assert len(server.requests) == 1
        assert not empty.memory_folder.parent.exists()

    def test_ends_with_1_when_a_gate_is_missed_and_says_what_is_there(self, empty: Shell) -> None:
        with serving(lambda asked: text("Anna seems nice.")) as server:
            words = ("extraction", "--case", "plain-01", "--runs", "1")
            result = run(empty, *words, ANTHROPIC_BASE_URL=server.base_url)
        assert result.exit_code == 1
        assert "plain-01 (plain)" in result.stdout
        assert "  missing: add tabs + spaces from line 0" in result.stdout
        assert "  the model failed: ModelBadOutput" in result.stdout
        assert "  nothing was changed" in result.stdout
        assert result.stdout.endswith("Missed: recall: what had to be learned, and was.\n")

    def test_counts_an_answer_that_took_two_requests_as_not_valid(self, empty: Shell) -> None:
        prompts: list[str] = []

        def answer(asked: Received) -> Behaviour:
            prompts.append(asked.prompt)
            return text(perfect(prompts[0]) if len(prompts) > 1 else "Sure! Here is what I found.")

        with serving(answer) as server:
            words = ("extraction", "--case", "plain-01", "--runs", "1", "--json")
            report = json.loads(run(empty, *words, ANTHROPIC_BASE_URL=server.base_url).stdout)
        figures = {name: one["worst"] for name, one in report["figures"].items()}
        assert (figures["recall"], figures["valid"], figures["requests"]) == (1.0, 0.0, 2.0)
        assert figures["tokens_in"] == 20.0

    def test_takes_cases_of_ones_own(self, empty: Shell, tmp_path: Path) -> None:
        path = tmp_path / "mine.jsonl"
        line = {"by": "A", "at": "2026-11-19T18:06:00+01:00", "text": "good morning"}
        path.write_text(json.dumps({"id": "hello", "talk": [line], "names": {"A": "Zoë"}}))
        with serving(lambda asked: text("{}")) as server:
            words = ("extraction", "--cases", str(path), "--runs", "1")
            result = run(empty, *words, ANTHROPIC_BASE_URL=server.base_url)
            assert "[Zoë]" in server.requests[0].prompt
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(f"Extraction: 1 case, 1 run, claude-haiku-5-5 at {server.base_url}\n")


class TestSummaries:
    def test_ask_the_configured_model_for_every_update(self, empty: Shell) -> None:
        (chain,) = (one for one in casefile.chains() if one.id == "support")
        answer = Summariser(chain, keeps_all)
        with serving(lambda asked: text(answer(asked.prompt))) as server:
            words = ("summaries", "--case", "support", "--json")
            result = run(empty, *words, ANTHROPIC_BASE_URL=server.base_url)
        assert result.exit_code == 0, result.output
        assert "sending 1 made-up conversation, once, to claude-haiku-5-5 at" in result.stderr
        assert "at least 30 requests" in result.stderr
        assert len(server.requests) == 30
        report = json.loads(result.stdout)
        assert report["figures"]["kept"]["worst"] == 1.0 and report["figures"]["longest"]["worst"] > 100


class TestFailures:
    def test_without_a_key_nothing_is_sent(self, empty: Shell) -> None:
        assert refused(run(empty, "extraction")).startswith("ANTHROPIC_API_KEY is not set; set it, or ")

    def test_a_wrong_key_ends_it_at_once(self, empty: Shell) -> None:
        with serving(lambda asked: failure(401, "authentication_error")) as server:
            result = run(empty, "extraction", "--at-once", "1", ANTHROPIC_BASE_URL=server.base_url)
        reason = refused(result)
        assert "refuses the key" in reason and reason.endswith("; check ANTHROPIC_API_KEY")
        assert len(server.requests) == 1

    def test_a_model_that_is_not_there_is_named(self, empty: Shell) -> None:
        with serving(lambda asked: failure(404, "not_found_error", "model: tiny")) as server:
            result = run(empty, "summaries", "--at-once", "1", ANTHROPIC_BASE_URL=server.base_url)
        reason = refused(result)
        assert "doesn't have the model 'haiku'" in reason and "model: tiny" in reason
        assert "DISCOCLAW_SUMMARY_MODEL" in reason

    def test_a_server_that_is_not_there_is_said_to_be(self, empty: Shell) -> None:
        with serving(lambda asked: text("{}")) as server:
            gone = server.base_url
        result = run(empty, "extraction", "--case", "plain-01", ANTHROPIC_BASE_URL=gone)
        reason = refused(result)
        assert f"{gone} can't be reached" in reason
        assert reason.endswith("; check ANTHROPIC_BASE_URL and the network")

    def test_a_failure_in_between_is_a_fault_of_that_case(self, empty: Shell) -> None:
        def answer(asked: Received) -> Behaviour:
            broken = "Atlas" in asked.prompt
            return failure(400, "invalid_request_error") if broken else text(perfect(asked.prompt))

        with serving(answer) as server:
            words = ("extraction", "--group", "plain", "--runs", "1", "--at-once", "1", "--json")
            report = json.loads(run(empty, *words, ANTHROPIC_BASE_URL=server.base_url).stdout)
        (failed,) = report["cases"]
        assert failed["id"] == "plain-02"
        assert any(fault.startswith("the model failed: ModelBadRequest") for fault in failed["faults"])
        assert report["figures"]["valid"]["worst"] == 1.0

    def test_an_unknown_name_is_refused_with_those_there_are(self, empty: Shell) -> None:
        reason = refused(run(empty, "extraction", "--group", "poems"))
        assert reason.startswith("no group is called 'poems'; there are ") and "injection" in reason

    def test_a_faulty_file_is_refused_before_anything_is_sent(self, empty: Shell, tmp_path: Path) -> None:
        path = tmp_path / "mine.jsonl"
        broken: dict[str, Any] = {"id": "x", "talk": [{"by": "A", "text": "hi", "at": "noon"}]}
        path.write_text(json.dumps(broken))
        result = run(empty, "extraction", "--cases", str(path), ANTHROPIC_BASE_URL="http://127.0.0.1:9")
        assert refused(result).startswith(f"{path}:1: x: a time is not ISO 8601")
        assert "sending" not in result.stderr
