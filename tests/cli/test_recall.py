"""`discoclaw recall`: what would be remembered at a question, and why."""

import asyncio
import json
from collections.abc import Iterable

from typer.testing import Result

from discoclaw.cli.main import cli
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Author, Kind
from discoclaw.memory.subjects.store import Memory
from tests.cli.shell import Runner, Shell
from tests.memory.kit import ANN, BOB, Clock


def run(shell: Shell, *words: str) -> Result:
    return Runner().invoke(cli, ["recall", *words], env={**shell.settings, "COLUMNS": "200"})


def says(shell: Shell, *words: str) -> str:
    result = run(shell, *words)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


class TestWhatWouldBeInThePrompt:
    def test_standing_items_and_what_the_question_is_about(self, shell: Shell) -> None:
        shown = says(shell, ANN, "what do you know of Acme?").splitlines()
        assert [line.split(" (src")[0] for line in shown] == [
            "- [preference] User prefers tabs, 8 wide.",
            "- [fact] User works at Acme.",
        ]

    def test_another_persona_has_other_memories(self, shell: Shell) -> None:
        assert "Rust" in says(shell, ANN, "do I write Rust?", "--branch", "coding")
        assert "Rust" not in says(shell, ANN, "do I write Rust?")

    def test_nothing_is_said_when_there_is_nothing(self, shell: Shell) -> None:
        assert says(shell, BOB, "what of zeppelins?") == "No item would be used.\n"


class TestExplained:
    def test_every_candidate_stands_with_its_parts(self, shell: Shell) -> None:
        table = says(shell, ANN, "where is Acme?", "--explain")
        assert "words" in table
        assert "coverage 1.00" in table
        assert "shown: acm" in table
        assert "shown: standing" in table

    def test_programs_get_the_fields_of_an_entry(self, shell: Shell) -> None:
        rows = json.loads(says(shell, ANN, "where is Acme?", "--json"))
        acme = next(row for row in rows if "Acme" in row["content"])
        assert acme.keys() >= {"id", "key", "content", "category", "timestamp", "links", "score", "parts"}
        assert acme["score"] > 0
        assert acme["parts"]["coverage"] == 1

    def test_what_is_left_out_says_why(self, shell: Shell) -> None:
        rows = json.loads(says(shell, ANN, "who works near the harbour at noon in Oslo?", "--json"))
        assert [row["outcome"] for row in rows if "Acme" in row["content"]] == ["left out: no real evidence"]

    def test_a_preference_among_many_waits_for_its_topic(self, shell: Shell) -> None:
        asyncio.run(_learn_tastes(shell))
        rows = json.loads(says(shell, BOB, "is the thing12 fine?", "--json"))
        outcomes = {row["content"]: row["outcome"] for row in rows}
        assert outcomes.pop("User likes their thing12 blue.") == "shown: thing12"
        assert {what for text, what in outcomes.items() if "thing" in text} == {
            "left out: standing, waits for its topic"
        }

    def test_what_another_line_says_already_is_left_out_for_that(self, shell: Shell) -> None:
        told = ("Keep the kettle full.", "Keep a kettle full.", "The kettle is red.", "Kettle is red.")
        asyncio.run(_learn(shell, "constraint", told[:2], "stated"))
        asyncio.run(_learn(shell, "fact", told[2:], "stated"))
        rows = json.loads(says(shell, BOB, "is the kettle red?", "--json"))
        outcomes = {row["content"]: row["outcome"] for row in rows}
        assert {outcomes[text] for text in told[:2]} > {"left out: standing, said already"}
        assert {outcomes[text] for text in told[2:]} > {"left out: said already"}


async def _learn_tastes(shell: Shell) -> None:
    await _learn(shell, "preference", [f"User likes their thing{n} blue." for n in range(20)], "inferred")


async def _learn(shell: Shell, kind: Kind, texts: Iterable[str], author: Author) -> None:
    memory = Memory(shell.memory_folder, clock=Clock())
    memory.open()

    def learn(draft: Draft) -> None:
        for text in texts:
            draft.upsert(kind, text, Origin(author, said_at=1))

    try:
        await memory.change(BOB, "learned from talk", learn)
    finally:
        memory.close()


class TestWrongUse:
    def test_nobody_is_said_to_be_nobody(self, shell: Shell) -> None:
        result = run(shell, "user-999", "anything")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "there is no memory of user-999" in result.stderr

    def test_an_unknown_persona_is_named(self, shell: Shell) -> None:
        result = run(shell, ANN, "anything", "--branch", "nope")
        assert result.exit_code == 1
        assert "nope" in result.stderr
