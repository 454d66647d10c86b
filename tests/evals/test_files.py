"""Files of cases: what is checked before anything is sent, and what comes with the program."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.errors import Refused
from discoclaw.evals import casefile
from discoclaw.loops.facts import BRIEF, SYSTEM

LINE = {"by": "A", "at": "2026-11-19T18:06:00+01:00", "text": "I prefer tabs"}
MUST = {"op": "add", "all": ["tabs"], "source": 0, "example": "User prefers tabs."}


def case(**given: Any) -> dict[str, Any]:
    return {"id": "mine-01", "talk": [LINE], "must": [MUST]} | given


def must(**given: Any) -> dict[str, Any]:
    return case(must=[MUST | given])


def written(folder: Path, *values: object, name: str = "mine.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(json.dumps(value) for value in values), encoding="utf-8")
    return path


def fault_of(path: Path) -> str:
    with pytest.raises(Refused) as refused:
        casefile.cases([path])
    return str(refused.value)


class TestTheBuiltInCases:
    def test_are_many_in_all_groups(self) -> None:
        cases = casefile.cases()
        groups = {one.group for one in cases}
        assert len(cases) >= 80
        assert groups == {
            "plain",
            "empty",
            "dates",
            "confirmations",
            "irony",
            "hypotheticals",
            "third-parties",
            "injection",
            "updates",
            "contradictions",
            "forgotten",
            "sensitive",
            "languages",
            "long",
        }

    def test_repeat_no_example_of_the_prompt(self) -> None:
        shown = re.sub(r"\W+", " ", SYSTEM + BRIEF).casefold()
        lines = [line.text for one in casefile.cases() for line in one.talk if line.by != "bot"]
        words = [re.sub(r"\W+", " ", line).strip().casefold() for line in lines]
        assert [line for line in words if line.count(" ") >= 2 and line in shown] == []


class TestAFile:
    def test_has_one_case_a_line(self, tmp_path: Path) -> None:
        path = written(tmp_path, case(), case(id="mine-02", group="special"))
        read = casefile.cases([path])
        assert [(one.id, one.group) for one in read] == [("mine-01", "mine"), ("mine-02", "special")]

    def test_may_be_json_with_one_case_or_a_list(self, tmp_path: Path) -> None:
        one = written(tmp_path, case(), name="one.json")
        many = written(tmp_path, [case(id="a"), case(id="b")], name="many.json")
        assert [found.id for found in casefile.cases([one, many])] == ["mine-01", "a", "b"]

    def test_with_a_fault_is_refused_with_file_case_and_fault(self, tmp_path: Path) -> None:
        for value, fault in (
            (case(mustnt=[]), "mine-01: mustnt: Extra inputs are not permitted"),
            (case(talk=[]), "mine-01: talk: List should have at least 1 item"),
            (case(talk=[{"by": "A", "text": "hi"}]), 'mine-01: the first line of "talk" needs "at"'),
            (case(talk=[LINE | {"at": "tomorrow"}]), "mine-01: a time is not ISO 8601"),
            (case(talk=[LINE, LINE | {"at": "2026-11-18T00:00:00+01:00"}]), "not in the order"),
            (case(who="B"), 'no line is by "B", whom it is about'),
            (case(tz="Middle/Earth"), "mine-01: tz: 'Middle/Earth' is not a time zone"),
            (must(all=["ta(bs"]), "mine-01: must.0.all.0: 'ta(bs' is not a regular expression"),
            (must(all=["spaces"]), 'mine-01: must.0: the example has nothing for the pattern "spaces"'),
            (must(example=""), 'mine-01: must.0: "example" is missing'),
            (must(source=3), "mine-01: must.0: there is no line 3; the first is 0"),
            (must(op="update"), 'mine-01: must.0: "update" needs "item"'),
            (must(op="update", item=1), "mine-01: must.0: there is no item 1"),
            (must(op="jump"), "mine-01: must.0.op: Input should be 'add', 'update', 'retire' or 'ask'"),
            (case(must_not=["prefers"]), 'the example has what "must_not" forbids: "prefers"'),
            (case(talk=[LINE | {"by": "B"}, LINE]), 'must.0: line 0 is not by "A"'),
        ):
            path = written(tmp_path, case(id="fine"), value)
            said = fault_of(path)
            assert said.startswith(f"{path}:2: ") and fault in said and "\n" not in said

    def test_that_is_no_json_or_no_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "broken.jsonl"
        path.write_text(json.dumps(case()) + "\n{oops\n")
        assert fault_of(path).startswith(f"{path}:2: not JSON: ")
        path.write_bytes(b"\xff\xfe")
        assert fault_of(path) == f"{path}: not UTF-8 text"
        path.write_text("\n")
        assert fault_of(path) == f"{path}: there is no case in it"
        missing = tmp_path / "missing.jsonl"
        assert fault_of(missing) == f"can't read {missing}: No such file or directory"

    def test_with_two_cases_of_one_id_is_refused(self, tmp_path: Path) -> None:
        path = written(tmp_path, case(), case())
        assert fault_of(path) == f"{path}:2: there are two cases 'mine-01'; ids must be unique"
