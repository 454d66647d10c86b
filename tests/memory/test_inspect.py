"""Looking at memory from outside: nothing is changed by it, and what is wrong is named."""

from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.inspect import end_of, held, subject_named, subjects, unfinished, view_at
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.plain import FilesDisk
from tests.memory.kit import (
    ANN,
    BOB,
    Clock,
    durable_of,
    edit,
    fingerprint,
    ledger_of,
    remember,
    set_first,
)
from tests.tables import naming


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

    def test_damage_by_line_what_hangs_on_it_and_an_unfinished_last_line(
        self, memory: Memory, root: Path
    ) -> None:
        lines = ledger_of(memory).read_bytes().splitlines(keepends=True)
        ledger_of(memory).write_bytes(lines[0].replace(b"tea", b"tee") + lines[1] + b"torn")
        looked = held(root, ANN)
        assert [(one.line, one.newer) for one in looked.damage] == [(1, False)]
        (orphan,) = looked.history.orphans()
        _, torn, hanging = looked.faults
        assert torn == "user-123.jsonl: an unfinished last line of 4 bytes, which is left out"
        assert hanging.startswith(f"user-123.jsonl: commit {orphan} follows ")

    def test_a_ledger_that_can_not_be_read(self, memory: Memory, root: Path) -> None:
        ledger_of(memory).unlink()
        ledger_of(memory).mkdir()
        with pytest.raises(MemoryFault, match="can't read the memory of user-123"):
            held(root, ANN)

    def test_an_erasing_that_was_interrupted_but_not_one_that_waits_for_others(self, root: Path) -> None:
        assert unfinished(root) == set()
        (root / "erasing").mkdir(exist_ok=True)
        for name, content in (("1", '{"at": 1}'), ("2", '{"todo": ["transparency"]}'), ("3", "{ oops")):
            (root / "erasing" / f"user-{name}.json").write_text(content)
        assert unfinished(root) == {"user-1", "user-3"}

    def test_a_missing_durable_file(self, memory: Memory, root: Path) -> None:
        durable_of(memory).unlink()
        looked = held(root, ANN)
        assert looked.faults == ()
        (note,) = looked.notes
        assert note.startswith("123.json is missing")

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
            "7.json has 1 items and no ledger yet; the bot takes them over when it next reads it, "
            "1 of them as learned in private, because they don't say where",
        )

    def test_a_durable_folder_elsewhere_is_looked_into(self, root: Path, tmp_path: Path) -> None:
        (note,) = held(FilesDisk(root, durable=tmp_path / "elsewhere"), ANN).notes
        assert "missing" in note


class TestNamingASubject:
    def test_the_ways_people_name_somebody_and_other_subjects_as_they_are(self) -> None:
        for name in ("123", " 123 ", "<@123>", "<@!123>", "user-123", "group-9", "bot"):
            with naming(name):
                assert subject_named(name) == (name if name in ("group-9", "bot") else ANN)

    def test_what_can_be_no_subject_is_refused(self) -> None:
        for name in ("", "../user-123", "a/b", "²", "a b", "<@1/2>"):
            with naming(name), pytest.raises(MemoryFault):
                subject_named(name)


class TestAPointInTime:
    def test_a_time_means_the_end_of_what_it_says(self) -> None:
        for text, last in (
            ("2026-02-03", "2026-02-03T23:59:59.999Z"),
            (" 2026-02-03T16 ", "2026-02-03T16:59:59.999Z"),
            ("2026-02-03T16:29", "2026-02-03T16:29:59.999Z"),
            ("2026-02-03 16:29z", "2026-02-03T16:29:59.999Z"),
            ("2026-02-03T16:29:35", "2026-02-03T16:29:35.999Z"),
            ("2026-02-03T16:29:35.123Z", "2026-02-03T16:29:35.123Z"),
            ("2026-02-03T16:29+02:00", "2026-02-03T14:29:59.999Z"),
            ("9999-12-31", "9999-12-31T23:59:59.999Z"),
        ):
            with naming(text, last):
                assert end_of(text) == ms_of_iso(last)

    def test_other_words_are_no_time(self) -> None:
        for text in ("", "main", "HEAD~2", "20260203", "2026", "2026-02-03-x", "3720777d"):
            with naming(text):
                assert end_of(text) is None

    def test_a_time_that_there_is_not_is_refused(self) -> None:
        for text in ("2026-02-30", "2026-13-01", "2026-02-03T25", "0000-01-01"):
            with naming(text), pytest.raises(Refused, match="is not a time"):
                end_of(text)


class TestTheViewAtAPoint:
    @pytest.fixture(autouse=True)
    async def personas(self, memory: Memory, clock: Clock) -> None:
        """A minute later the person is on "coding" and changes something; another later, back on main."""
        for branch, text in (("coding", "writes Rust"), ("main", "has a cat")):
            clock.forward(minutes=1)
            if branch != "main":
                await verbs.create_branch(memory, ANN, branch)
            await verbs.switch(memory, ANN, branch)
            await memory.change(ANN, "why", remember(text))

    def texts(self, view: View) -> list[str]:
        return [item.text for item in view.active()]

    def test_is_what_held_there(self, root: Path) -> None:
        for wanted, branch, last in (
            ("HEAD", None, "has a cat"),
            ("HEAD~1", None, "works at Acme"),
            ("coding", None, "writes Rust"),
            ("HEAD", "coding", "writes Rust"),
            ("HEAD~1", "Coding", "works at Acme"),
            ("2026-02-03T16:29", None, "works at Acme"),
            ("2026-02-03T16:30", None, "writes Rust"),
            ("2026-02-03T16:30", "main", "works at Acme"),
            ("2026-02-03T16:31", None, "has a cat"),
            ("2099-01-01", "coding", "writes Rust"),
        ):
            with naming(wanted, branch, last):
                assert self.texts(view_at(held(root, ANN).history, wanted, branch=branch))[-1] == last

    def test_before_the_beginning_it_is_empty(self, root: Path) -> None:
        assert self.texts(view_at(held(root, ANN).history, "2026-02-02")) == []
        assert view_at(held(root, BOB).history, "2026-02-02") == EMPTY

    def test_no_such_point_is_refused(self, root: Path) -> None:
        for wanted, branch, why in (
            ("nope", None, "there is no commit or branch 'nope'"),
            ("HEAD", "codin", "did you mean 'coding'"),
            ("2026-02-03", "codin", "did you mean 'coding'"),
            ("2026-02-03T16:29", "coding", "the branch 'coding' was not there on 2026-02-03T16:29"),
        ):
            with naming(wanted, branch, why), pytest.raises(Refused, match=why):
                view_at(held(root, ANN).history, wanted, branch=branch)

    async def test_after_a_deletion_a_time_shows_the_branch_no_more(self, memory: Memory, root: Path) -> None:
        await verbs.delete_branch(memory, ANN, "coding")
        history = held(root, ANN).history
        assert self.texts(view_at(history, "2026-02-03T16:30"))[-1] == "writes Rust"
        with pytest.raises(Refused, match="there is no branch 'coding'"):
            view_at(history, "2026-02-03T16:30", branch="coding")
