"""Looking at memory from outside: nothing is changed by it, and what is wrong is named."""

from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.core.view import EMPTY
from discoclaw.memory.inspect import held, subject_named, subjects
from discoclaw.memory.store import Memory
from tests.memory.kit import ANN, BOB, durable_of, edit, fingerprint, ledger_of, remember, set_first


@pytest.fixture(autouse=True)
async def known(memory: Memory) -> None:
    for text in ("likes tea", "works at Acme"):
        await memory.change(ANN, "why", remember(text))


class TestLookingChangesNothing:
    @pytest.mark.parametrize("broken", [b"", b"torn", b"{}\n"])
    async def test_whatever_is_wrong(self, memory: Memory, root: Path, broken: bytes) -> None:
        with ledger_of(memory).open("ab") as file:
            file.write(broken)
        edit(durable_of(memory), set_first(text="likes mate"))
        before = fingerprint(root)
        held(root, ANN)
        subjects(root)
        assert fingerprint(root) == before

    async def test_it_sees_what_the_running_bot_sees(self, memory: Memory, root: Path) -> None:
        looked = held(root, ANN)
        assert looked.view == await memory.view(ANN)
        assert [commit.message for commit in looked.commits] == ["why", "why"]
        assert looked.faults == ()

    def test_somebody_unknown_has_an_empty_memory(self, root: Path) -> None:
        looked = held(root, BOB)
        assert (looked.view, looked.commits, looked.faults) == (EMPTY, (), ())

    async def test_the_subjects_are_listed_and_nothing_else(self, memory: Memory, root: Path) -> None:
        await memory.change("group-9", "why", remember("likes tea"))
        (memory.ledger_folder / "user-123.jsonl.torn-20260203-162935").write_bytes(b"x")
        assert subjects(root) == ["group-9", ANN]
        assert subjects(root / "missing") == []


class TestFaultsAreNamed:
    def test_a_damaged_line_with_number_and_reason(self, memory: Memory, root: Path) -> None:
        lines = ledger_of(memory).read_bytes().splitlines(keepends=True)
        ledger_of(memory).write_bytes(lines[0] + lines[1].replace(b"Acme", b"Ecma"))
        looked = held(root, ANN)
        (fault,) = looked.faults
        assert fault.startswith("user-123.jsonl, line 2: ")
        assert "does not match its content" in fault
        assert [item.text for item in looked.view.active()] == ["likes tea"]

    def test_an_unfinished_last_line_with_its_length(self, memory: Memory, root: Path) -> None:
        with ledger_of(memory).open("ab") as file:
            file.write(b"torn")
        assert held(root, ANN).faults == (
            "user-123.jsonl: an unfinished last line of 4 bytes, which is left out",
        )

    def test_a_missing_durable_file(self, memory: Memory, root: Path) -> None:
        durable_of(memory).unlink()
        (fault,) = held(root, ANN).faults
        assert fault.startswith("123.json is missing")

    def test_an_edit_the_bot_has_not_read_yet(self, memory: Memory, root: Path) -> None:
        edit(durable_of(memory), set_first(text="likes mate"))
        (fault,) = held(root, ANN).faults
        assert fault.startswith("123.json was edited")

    @pytest.mark.parametrize(
        ("content", "word"), [(b"{ oops", "JSON"), (b'{"version": 3, "items": []}', "version 3")]
    )
    def test_a_file_that_is_no_edit_is_not_called_one(
        self, memory: Memory, root: Path, content: bytes, word: str
    ) -> None:
        durable_of(memory).write_bytes(content)
        (fault,) = held(root, ANN).faults
        assert "edited" not in fault
        assert word in fault

    def test_a_file_that_was_not_taken_over_yet(self, root: Path) -> None:
        (root / "durable").mkdir(parents=True, exist_ok=True)
        (root / "durable" / "7.json").write_text('{"version": 1, "items": [{"kind": "fact", "text": "x"}]}')
        assert "user-7" in subjects(root)
        assert held(root, "user-7").faults == (
            "7.json has 1 items and no ledger yet; the bot takes them over when it next reads it",
        )

    def test_a_durable_folder_elsewhere_is_looked_into(self, root: Path, tmp_path: Path) -> None:
        (fault,) = held(root, ANN, tmp_path / "elsewhere").faults
        assert "missing" in fault


class TestNamingASubject:
    @pytest.mark.parametrize("name", ["123", " 123 ", "<@123>", "<@!123>", "user-123"])
    def test_the_ways_people_name_somebody(self, name: str) -> None:
        assert subject_named(name) == ANN

    @pytest.mark.parametrize("name", ["group-9", "bot"])
    def test_other_subjects_are_named_as_they_are(self, name: str) -> None:
        assert subject_named(name) == name

    @pytest.mark.parametrize("name", ["", "../user-123", "a/b", "²", "a b", "<@1/2>"])
    def test_what_can_be_no_subject_is_refused(self, name: str) -> None:
        with pytest.raises(MemoryFault):
            subject_named(name)
