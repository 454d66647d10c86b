"""The interview: what the model is given of it, and how it survives a restart."""

from pathlib import Path

from discoclaw.core.model import AssistantTurn, UserTurn
from discoclaw.soul import interview as interviews
from discoclaw.soul.interview import BEGIN, IDLE_MS, MAX_LINE, QUESTIONS, Interview, Line
from discoclaw.soul.soul import read
from discoclaw.store.files import render_json, write_atomic
from tests.session.scene import NOW
from tests.tables import each_row


def held(*lines: Line) -> Interview:
    one = Interview("1", "discord:dm:1", NOW, NOW)
    for line in lines:
        one = one.with_line(line, NOW)
    return one


ASKED = held(Line("", "Who shall I be?", ours=True), Line("10", "A cat."), Line("11", "Called\nMog."))


class TestWhatTheModelIsGiven:
    def test_turns_alternate_and_the_first_is_ours(self) -> None:
        assert interviews.turns(ASKED) == (
            UserTurn(BEGIN),
            AssistantTurn("Who shall I be?"),
            UserTurn("A cat.\nCalled\nMog."),
        )

    def test_no_turn_is_blank(self) -> None:
        assert interviews.turns(held(Line("", "Who?", ours=True), Line("10", "")))[-1] == UserTurn("…")

    def test_the_prompt_shows_a_block_that_is_itself_well_formed_but_for_the_dots(self) -> None:
        (block,) = interviews.system(ASKED, "DiscoClaw [x]: (owner)")
        assert "You are DiscoClaw x : owner on Discord" in block.text
        example = block.text[block.text.index("<soul>") : block.text.index("</soul>") + len("</soul>")]
        assert read(example).fault != ""  # a trait has a letter in it
        assert read(example.replace("…", "words")).soul is not None

    def test_a_fault_is_told_and_too_many_questions_are_ended(self) -> None:
        faulty = Interview("1", "k", NOW, NOW, ASKED.lines, fault="identity: is missing")
        assert "identity: is missing" in interviews.system(faulty, "DiscoClaw")[-1].text
        long = held(*(Line(str(number), "Because.") for number in range(QUESTIONS + 1)))
        assert interviews.system(long, "DiscoClaw")[-1].text == interviews.ENOUGH


class TestAMessageThatChanges:
    def test_is_deleted_or_edited_here_too_but_only_the_persons(self) -> None:
        assert [line.text for line in ASKED.without("10").lines] == ["Who shall I be?", "Called\nMog."]
        assert ASKED.without("12") is ASKED
        assert ASKED.amended("10", "A dog.").lines[1] == Line("10", "A dog.")
        assert ASKED.amended("", "Forged.") is ASKED
        assert ASKED.without("") is ASKED

    def test_is_not_kept_longer_than_that(self) -> None:
        assert len(held(Line("10", "x" * 99_999)).lines[0].text) == MAX_LINE
        assert len(ASKED.amended("10", "x" * 99_999).lines[1].text) == MAX_LINE


class TestOnDisk:
    def test_comes_back_as_it_was(self, tmp_path: Path) -> None:
        import json

        one = Interview(
            "1", "k", NOW, NOW + 5, (*ASKED.lines, Line("", "ä 😀\n x", ours=True)), "f", "<soul>"
        )
        write_atomic(tmp_path / "c.json", render_json(interviews.to_cursor(one)))
        assert interviews.from_cursor("1", json.loads((tmp_path / "c.json").read_bytes())) == one

    @each_row(
        "value",
        [
            {},
            {"session": "k", "began": NOW, "last": NOW},
            {"session": "k", "began": "x", "last": NOW, "lines": []},
            {"session": 7, "began": NOW, "last": NOW, "lines": []},
            {"session": "k", "began": NOW, "last": NOW, "lines": [7]},
            {"session": "k", "began": NOW, "last": NOW, "lines": ["somebody 1 x"]},
        ],
    )
    def test_anything_else_is_none(self, value: dict[str, object]) -> None:
        assert interviews.from_cursor("1", value) is None

    def test_a_lone_surrogate_can_be_written(self) -> None:
        assert render_json(interviews.to_cursor(held(Line("10", "\ud800"))))


class TestIdling:
    def test_begins_an_hour_after_the_last_word(self) -> None:
        assert not ASKED.idle(NOW + IDLE_MS)
        assert ASKED.idle(NOW + IDLE_MS + 1)
        later = ASKED.with_line(Line("12", "x"), NOW + IDLE_MS)
        assert not later.idle(NOW + IDLE_MS + 1)
