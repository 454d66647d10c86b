"""The history: one order for every order, branches, replicas, names of commits, and forged records."""

import copy
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import LedgerDamaged, NewerSchema, Refused
from discoclaw.core.event import Commit, Event, Record, Ref, decode_line, encode_line, record_of_json
from discoclaw.core.history import (
    LONGEST_PERSONA,
    MOST_BRANCHES,
    Branches,
    History,
    as_shown,
    branch_name,
    in_order,
    union,
)
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.core.view import EMPTY, fold
from tests.core.builders import (
    DEEDS,
    DEEDS_AND_REVERTS,
    MINUTE,
    MORE_DEEDS,
    NOW,
    Chronicle,
    by_dice,
    live,
    stated,
    told,
)
from tests.examples import FEW
from tests.tables import each_row

LATER = st.sampled_from([0, 1, 7, MINUTE, 50 * MINUTE])


def everything(history: History) -> dict[str, Any]:
    """All that a history says, as JSON."""
    return {
        "records": [record.id for record in history.records],
        "current": history.branches.current,
        "branches": [
            [branch.name, branch.head, branch.base, branch.persona, branch.created_at]
            for branch in history.branches.all.values()
        ],
        "views": {key: told(history.view(key)) for key in history.commits},
        "shown": told(history.shown()),
        "parents": {key: history.parents(key) for key in history.commits},
    }


def lived(deeds: Iterable[Any]) -> Chronicle:
    return live(Chronicle(), deeds)


def apart(before: Any, here: Any, there: Any, later: int) -> tuple[Chronicle, Chronicle]:
    """Two replicas that went separate ways."""
    start = lived(before)
    return live(start.replica(), here), live(start.replica(later=later), there)


class TestTheSameRecordsAreTheSameHistory:
    @FEW
    @given(DEEDS_AND_REVERTS, MORE_DEEDS, MORE_DEEDS, LATER, st.randoms(use_true_random=False))
    def test_in_whatever_order_they_lie(
        self, before: Any, here: Any, there: Any, later: int, dice: random.Random
    ) -> None:
        one, other = apart(before, here, there, later)
        records = list(union(one.records, other.records))
        shuffled = [*records, *dice.sample(records, len(records) // 2)]
        dice.shuffle(shuffled)
        assert everything(History(shuffled)) == everything(History(records))
        assert in_order(records) == tuple(records)

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_what_one_replica_wrote_is_in_order_already_and_in_its_lines(self, deeds: Any) -> None:
        chronicle = lived(deeds)
        assert chronicle.history.records == tuple(chronicle.records)
        read = History(decode_line(encode_line(record)) for record in chronicle.records)
        assert everything(read) == everything(chronicle.history)

    @FEW
    @given(st.randoms(use_true_random=False))
    def test_parents_stand_before_children_though_clocks_go_wrong(self, dice: random.Random) -> None:
        parent, records = None, []
        for number in range(6):
            parent = commit(number, parent=parent, ms=NOW - dice.randrange(5) * MINUTE)
            records.append(parent)
        dice.shuffle(records)
        assert [one.message for one in History(records).commits.values()] == [f"commit {n}" for n in range(6)]

    def test_a_merge_stands_behind_what_it_merged_though_clocks_go_wrong(self) -> None:
        merged = commit(0, branch="coding", ms=NOW + MINUTE)
        merge = commit(1, merged=merged.id, ms=NOW)
        assert in_order([merge, merged]) == (merged, merge)

    def test_of_two_records_with_one_id_it_is_always_the_same_one(self) -> None:
        one = commit(0)
        other = Commit(branch="main", events=one.events, message="x", parent_id=None, timestamp=one.timestamp)
        assert one.id == other.id
        assert in_order([one, other]) == in_order([other, one])
        assert len(in_order([one, other, one])) == 1

    def test_in_a_process_with_another_hash_seed(self) -> None:
        said = subprocess.run(
            [sys.executable, "-c", "from tests.core.test_history import a_life; print(a_life())"],
            env={**os.environ, "PYTHONHASHSEED": "4242"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        assert said.decode() == f"{a_life()}\n"
        assert said.count(b"\n") > 50


def a_life() -> str:
    """The records of a random life of two replicas, and what they say."""
    dice = random.Random(7)
    one, other = apart(by_dice(dice, 20), by_dice(dice, 15), by_dice(dice, 15), 7)
    records = list(union(one.records, other.records))
    dice.shuffle(records)
    united = live(Chronicle(records, now=NOW * 2), by_dice(dice, 15))
    lines = [encode_line(record).decode() for record in in_order(united.records)]
    return "".join(lines) + json.dumps(everything(united.history))


class TestTwoReplicasAreUnited:
    @FEW
    @given(DEEDS, MORE_DEEDS, MORE_DEEDS, LATER)
    def test_whichever_comes_first_and_how_often(
        self, before: Any, here: Any, there: Any, later: int
    ) -> None:
        one, other = apart(before, here, there, later)
        both = union(one.records, other.records)
        assert union(other.records, one.records) == both
        assert union(both, one.records) == union(other.records, both) == union(both, both) == both

    @FEW
    @given(DEEDS, MORE_DEEDS, MORE_DEEDS, MORE_DEEDS, LATER)
    def test_however_three_are_grouped(
        self, before: Any, here: Any, there: Any, elsewhere: Any, later: int
    ) -> None:
        one, other = apart(before, here, there, later)
        third = live(lived(before).replica(later=3 * later), elsewhere)
        assert union(union(one.records, other.records), third.records) == union(
            one.records, union(other.records, third.records)
        )

    @FEW
    @given(DEEDS, MORE_DEEDS, MORE_DEEDS, LATER)
    def test_nothing_that_either_knew_is_missing(
        self, before: Any, here: Any, there: Any, later: int
    ) -> None:
        one, other = apart(before, here, there, later)
        both = History(union(one.records, other.records))
        assert {held.hash for held in both.records} == {held.hash for held in [*one.records, *other.records]}
        on_main = {key for key, held in both.commits.items() if held.branch == "main"}
        assert on_main == {held.id for held in both.chain(both.branch("main").head)} & on_main

    def test_changes_of_different_fields_do_not_undo_each_other(self) -> None:
        start = Chronicle()
        held = start.remember("lives in Oslo", tags=["home"])
        one, other = start.replica(), start.replica(later=5)
        one.change(lambda draft: draft.mark(held, "private", stated()))
        other.remember("lives in Rome", given_id=held.id, marked="private")
        both = Chronicle(union(one.records, other.records)).view().items[held.id]
        assert (both.text, both.tags, both.facets.sensitivity) == ("lives in Rome", ("home",), "private")

    def test_a_branch_that_both_have_made_keeps_what_both_said_there(self) -> None:
        start = Chronicle()
        start.remember("from before")
        one, other = start.replica(), start.replica(later=MINUTE + 5)
        for replica, text in ((one, "said here"), (other, "said there")):
            replica.remember(f"{text} on main")
            replica.fork("coding", persona=text)
            replica.remember(text, on="coding")
        both = Chronicle(union(one.records, other.records))
        assert {"said here", "said there"} <= set(both.texts("coding"))
        assert both.history.branch("coding").persona == "said here", "the older one counts"
        assert both.history.branch("coding").head == both.history.chain(both.head("coding"))[-1].id

    def test_what_was_said_on_a_branch_after_it_was_deleted_elsewhere_is_not_lost(self) -> None:
        start = Chronicle()
        start.fork("coding")
        one, other = start.replica(), start.replica(later=5)
        one.delete("coding")
        other.remember("likes tabs", on="coding")
        both = Chronicle(union(one.records, other.records))
        assert both.texts("coding") == ["likes tabs"]

    def test_head_goes_home_when_a_replica_deleted_its_branch(self) -> None:
        start = Chronicle()
        start.remember("from before")
        start.fork("coding")
        one, other = start.replica(), start.replica(later=5)
        other.switch("coding")
        one.tick()
        one.delete("coding")
        branches = History(union(one.records, other.records)).branches
        assert (branches.current, list(branches.all)) == ("main", ["main"])
        assert [name for _, name in branches.moves] == ["coding", "main"]


class TestStepByStepIsTheSameAsAtOnce:
    @FEW
    @given(DEEDS_AND_REVERTS, MORE_DEEDS, MORE_DEEDS, LATER)
    def test_branches_and_views(self, before: Any, here: Any, there: Any, later: int) -> None:
        one, other = apart(before, here, there, later)
        history = History(union(one.records, other.records))
        branches = Branches()
        for record in history.records:
            branches = branches.after(record)
        assert branches == history.branches
        for branch in branches.all.values():
            view = EMPTY
            for held in history.chain(branch.head):
                view = view.after(held)
                assert (view, list(view.items)) == (
                    history.view(held.id) if held.branch == branch.name else view,
                    list(view.items),
                )
            assert view == history.view(branch.head) == fold(history.chain(branch.head))

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_a_view_is_the_same_whichever_was_asked_for_first(self, deeds: Any) -> None:
        chronicle = lived(deeds)
        forwards, backwards = History(chronicle.records), History(chronicle.records)
        views = {key: forwards.view(key) for key in forwards.commits}
        assert {key: backwards.view(key) for key in reversed(list(backwards.commits))} == views
        assert {key: fold(forwards.chain(key)) for key in forwards.commits} == views

    @FEW
    @given(DEEDS_AND_REVERTS, st.integers(0, 20))
    def test_the_past_is_a_replay_of_what_was_known_then(self, deeds: Any, count: int) -> None:
        chronicle = lived(deeds)
        known = chronicle.records[:count]
        when = ms_of_iso(known[-1].timestamp) if known else 0
        then = chronicle.history.until(when)
        assert everything(then) == everything(History(known))
        for key in then.commits:
            assert told(chronicle.history.view(key)) == told(then.view(key))

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_times_never_stand_still_and_a_parent_is_known(self, deeds: Any) -> None:
        history = lived(deeds).history
        times = [ms_of_iso(record.timestamp) for record in history.records]
        assert times == sorted(set(times))
        assert history.branches.last_ms == (times[-1] if times else 0)
        assert history.orphans() == {}
        for key, held in history.commits.items():
            rests_on = (held.parent_id, held.metadata.get("merged"))  # main may have been empty
            assert history.parents(key) == [one for one in rests_on if one is not None]


class TestBranchesAreApart:
    @FEW
    @given(DEEDS_AND_REVERTS, MORE_DEEDS)
    def test_no_deed_on_a_branch_touches_the_others(self, deeds: Any, more: Any) -> None:
        chronicle = lived(deeds)
        for deed in more:
            before = {name: told(chronicle.view(name)) for name in chronicle.history.branches.all}
            known = len(chronicle.records)
            live(chronicle, [deed])
            written = {record.branch for record in chronicle.records[known:]}
            for name in before.keys() - written:
                assert told(chronicle.view(name)) == before[name]
            assert len(written) <= 1

    def test_a_fork_copies_no_commit_and_says_what_its_start_says(self) -> None:
        chronicle = Chronicle()
        for number in range(5):
            chronicle.remember(f"number {number}")
        known = len(chronicle.records)
        chronicle.fork("coding", persona="  writes \n code ")
        assert len(chronicle.records) == known + 1
        branch = chronicle.history.branch("coding")
        assert (branch.head, branch.base, branch.persona) == (
            chronicle.head(),
            chronicle.head(),
            "writes code",
        )
        assert chronicle.view("coding") == chronicle.view()
        assert chronicle.history.chain(branch.head) == chronicle.history.chain(chronicle.head())

    def test_a_branch_may_begin_empty(self) -> None:
        chronicle = Chronicle()
        chronicle.fork("coding")
        chronicle.remember("likes tea")
        assert chronicle.texts("coding") == []
        chronicle.remember("likes tabs", on="coding")
        assert chronicle.history.branch("coding").base is None
        assert chronicle.history.base(chronicle.head(), chronicle.head("coding")) is None

    def test_a_name_is_free_again_when_its_branch_is_gone(self) -> None:
        chronicle = Chronicle()
        chronicle.remember("likes tea")
        chronicle.fork("coding")
        lost = chronicle.remember("likes tabs", on="coding")
        head = chronicle.head("coding")
        chronicle.delete("Coding")
        assert list(chronicle.history.branches.all) == ["main"]
        assert lost.id in chronicle.history.view(head).items, "the history keeps what was said there"
        chronicle.fork("coding")
        assert chronicle.texts("coding") == ["likes tea"]

    def test_head_moves_and_its_moves_are_known(self) -> None:
        chronicle = Chronicle()
        chronicle.remember("likes tea")
        chronicle.fork("coding")
        chronicle.switch("CODING")
        there = chronicle.now
        chronicle.remember("likes tabs", on="coding")
        chronicle.switch("main")
        branches = chronicle.history.branches
        assert branches.current == "main"
        assert branches.moves == ((there, "coding"), (chronicle.now, "main"))
        assert [branches.head_at(ms) for ms in (0, there - 1, there, chronicle.now - 1, chronicle.now)] == [
            "main",
            "main",
            "coding",
            "coding",
            "main",
        ]

    def test_what_is_shown_is_as_young_as_the_last_move_of_head(self) -> None:
        chronicle = Chronicle()
        chronicle.remember("likes tea")
        chronicle.fork("coding")
        assert chronicle.history.shown() == chronicle.view(), "a fork shows nothing new"
        chronicle.switch("coding")
        assert chronicle.history.shown().updated_at == chronicle.now
        chronicle.remember("likes tabs", on="coding")
        assert chronicle.history.shown() == as_shown(chronicle.view("coding"), chronicle.history.branches)
        assert chronicle.history.shown().updated_at == chronicle.now

    def test_switching_to_where_head_is_writes_nothing(self) -> None:
        assert Branches().switch("MAIN", now_ms=NOW) is None
        assert Branches().switch("head", now_ms=NOW) is None


class TestTheRulesOfBranches:
    def test_a_second_one_of_the_same_name_is_refused(self) -> None:
        chronicle = Chronicle()
        chronicle.fork("Küche")
        for again in ("küche", "KÜCHE", " ku\u0308che "):
            with pytest.raises(Refused, match=r"^the branch 'küche' already exists; choose another name$"):
                chronicle.fork(again)
        with pytest.raises(Refused, match="already exists"):
            chronicle.fork("Main")

    def test_main_and_the_current_one_stay(self) -> None:
        chronicle = Chronicle()
        chronicle.fork("coding")
        chronicle.switch("coding")
        with pytest.raises(Refused, match=r"^'main' can't be deleted$"):
            chronicle.delete("main")
        with pytest.raises(Refused, match="'coding' is the current branch; switch to another one first"):
            chronicle.delete("coding")
        with pytest.raises(Refused, match="is the current branch"):
            chronicle.delete("HEAD")

    def test_one_that_is_not_there_is_refused_and_the_nearest_is_named(self) -> None:
        chronicle = Chronicle()
        chronicle.fork("coding")
        for verb in (chronicle.switch, chronicle.delete, chronicle.history.branch):
            with pytest.raises(Refused, match=r"no branch 'codnig'; did you mean 'coding'\? there are: main"):
                verb("codnig")

    def test_there_are_at_most_so_many(self) -> None:
        chronicle = Chronicle()
        for number in range(MOST_BRANCHES - 1):
            chronicle.fork(f"persona-{number}")
        with pytest.raises(Refused, match=f"there can be at most {MOST_BRANCHES} branches"):
            chronicle.fork("one-more")
        chronicle.delete("persona-7")
        chronicle.fork("one-more")

    def test_a_description_is_one_line_and_not_too_long(self) -> None:
        longest = "x" * LONGEST_PERSONA
        made = Branches().create("coding", f" {longest}\n", now_ms=NOW, start=None)
        assert made.persona == longest
        with pytest.raises(Refused, match=f"at most {LONGEST_PERSONA} characters"):
            Branches().create("coding", longest + "x", now_ms=NOW, start=None)
        hostile = Branches().create("coding", "a\x00b\ud800\r\nc", now_ms=NOW, start=None)
        assert hostile.persona == "ab\ufffd c"
        assert decode_line(encode_line(hostile)) == hostile

    def test_records_are_younger_than_all_before_though_the_clock_goes_back(self) -> None:
        chronicle = Chronicle()
        chronicle.fork("coding")
        chronicle.now = 5
        chronicle.switch("coding")
        chronicle.remember("likes tea", on="coding")
        times = [ms_of_iso(record.timestamp) for record in chronicle.records]
        assert times == [times[0], times[0] + 1, times[0] + 2]


NAMES = {
    "coding": "coding",
    "Coding": "coding",
    "  work-2 ": "work-2",
    "7of9": "7of9",
    "abc": "abc",
    "snake_case": "snake_case",
    "Straße": "strasse",
    "KÜCHE": "küche",
    "cafe\u0301": "café",
    "日本語": "日本語",
    "हिन्दी": "हिन्दी",
    "Привет": "привет",
    "ＷＯＲＫ": "work",
    "x" * 32: "x" * 32,
}
NO_NAMES = [
    "",
    " ",
    "HEAD",
    "head",
    "ｈｅａｄ",
    "../../etc/passwd",
    "a/b",
    "a\\b",
    ".",
    "..",
    "a.b",
    "-rf",
    "_x",
    "two words",
    "a\nb",
    "a\x00b",
    "a~1",
    "a`b",
    "@everyone",
    "<#1>",
    "x" * 33,
    "ß" * 17,
    "x" * 10_000,
    "a\u200bb",
    "a\u202eb",
    "\u3164",
    "\u0301",
    "🐍",
    "dead",
    "DEADBEEF",
    "0123456789abcdef",
    "１２３４",
    "1",
    "²",
]


class TestTheNameOfABranch:
    @each_row("name", NAMES)
    def test_letters_of_every_script_name_one(self, name: str) -> None:
        assert branch_name(name) == NAMES[name]
        chronicle = Chronicle()
        chronicle.fork(name)
        assert chronicle.history.branch(name.upper()).name == NAMES[name]

    @each_row("name", NO_NAMES)
    def test_what_can_not_be_one_is_refused_in_a_few_words(self, name: str) -> None:
        with pytest.raises(Refused) as refusal:
            branch_name(name)
        is_a_sentence_for_people(str(refusal.value))

    @each_row("name", ["\ud800", "a\udfff"])
    def test_half_a_character_names_none(self, name: str) -> None:
        with pytest.raises(Refused) as refusal:
            branch_name(name)
        str(refusal.value).encode()

    @given(st.text(st.characters(), max_size=40))
    def test_a_name_that_is_taken_is_taken_as_it_is(self, name: str) -> None:
        try:
            tidy = branch_name(name)
        except Refused as refusal:
            is_a_sentence_for_people(str(refusal))
            return
        assert branch_name(tidy) == tidy
        assert 1 <= len(tidy) <= 32
        assert not set(tidy) & set("./\\~ \n\0`@<>")
        if tidy == "main":
            return  # it is there already
        made = Branches().create(name, "", now_ms=NOW, start=None)
        assert decode_line(encode_line(made)) == made
        assert Branches().after(made).named(name).name == tidy


def is_a_sentence_for_people(text: str) -> None:
    """Short, in one line, printable, not ending like a sentence, beginning in lower case or with a name."""
    assert 10 < len(text) < 800
    assert text.isprintable()
    assert not text.endswith(".")
    assert not text[0].isupper()


@pytest.fixture
def three() -> Chronicle:
    """Three commits on main, and one more on coding."""
    chronicle = Chronicle()
    for number in range(3):
        chronicle.remember(f"number {number}")
    chronicle.fork("coding")
    chronicle.remember("likes tabs", on="coding")
    chronicle.fork("empty", start="main")
    return chronicle


class TestNamingACommit:
    def test_head_branches_ids_and_steps_back(self, three: Chronicle) -> None:
        first, second, third, tabs = three.history.commits
        meant = {
            "HEAD": third,
            "head": third,
            "main": third,
            " MAIN ": third,
            "coding": tabs,
            "coding~1": third,
            "coding~": third,
            "HEAD~0": third,
            "HEAD~2": first,
            "main~002": first,
            "main~00000000000000": third,
            "main~00000000000002": first,
            first: first,
            first.upper(): first,
            third[:4]: third,
            f"{third[:7]}~1": second,
            f"{tabs}~3": first,
            "empty": third,
        }
        assert {wanted: three.history.commit(wanted).id for wanted in meant} == meant

    def test_head_stands_for_the_branch_one_is_on(self, three: Chronicle) -> None:
        tabs = three.head("coding")
        assert three.history.commit("HEAD", on="coding").id == tabs
        assert three.history.commit("HEAD~1", on="coding").id == three.head()
        three.switch("coding")
        assert three.history.commit("HEAD").id == tabs
        assert three.history.commit("HEAD", on="main").id == three.head()

    def test_an_ambiguous_beginning_lists_what_it_may_mean(self) -> None:
        chronicle = Chronicle()
        found: dict[str, list[str]] = {}
        commits = [commit(number) for number in range(600)]
        for one in commits:
            found.setdefault(one.id[:4], []).append(one.id)
        prefix, twins = next((key, ids) for key, ids in found.items() if len(ids) > 1)
        chronicle.records = list(commits)
        with pytest.raises(Refused, match=f"{len(twins)} commits begin with '{prefix}'") as refusal:
            chronicle.history.commit(prefix)
        for one in twins:
            assert f"{one} commit " in str(refusal.value)
        assert chronicle.history.commit(twins[0][:12]).id == twins[0]

    def test_the_candidates_are_few_and_short(self) -> None:
        prefix, alike = self._alike()
        with pytest.raises(Refused, match=f"{len(alike)} commits begin with") as refusal:
            History(alike).commit(prefix)
        assert len(str(refusal.value)) < 1_000

    @staticmethod
    def _alike() -> tuple[str, list[Commit]]:
        found: dict[str, list[Commit]] = {}
        for number in range(100_000):
            one = commit(number % 900, ms=NOW + number, message="long " * 100)
            alike = found.setdefault(one.id[:4], [])
            alike.append(one)
            if len(alike) == 3:
                return one.id[:4], alike
        raise AssertionError("no three commits of one beginning")

    @each_row(
        ("wanted", "why"),
        [
            ("codnig", r"there is no commit or branch 'codnig'; did you mean 'coding'\?"),
            ("HEAD~3", r"'HEAD~3' goes back beyond the first commit; there are only 3"),
            ("HEAD~999999999999", "goes back beyond the first commit"),
            ("HEAD~" + "9" * 10_000, "goes back beyond the first commit"),
            ("HEAD~-1", "~ must be followed by a number"),
            ("HEAD~x", "~ must be followed by a number"),
            ("HEAD~²", "~ must be followed by a number"),
            ("HEAD~1~1", "~ must be followed by a number"),
            ("HEAD~~", "~ must be followed by a number"),
            ("~~", "there is no commit or branch ''"),
            ("~", "there is no commit or branch ''"),
            ("", "there is no commit or branch ''"),
            ("../../etc/passwd", "there is no commit or branch"),
            ("a\x00b\x1b[2J\u202e\n", "there is no commit or branch"),
            ("x" * 10_000, "there is no commit or branch"),
            ("~" * 10_000, "there is no commit or branch"),
            ("ffff", "there is no commit or branch 'ffff'"),
            ("@everyone", "there is no commit or branch"),
            ("ﷺ" * 3_000, "there is no commit or branch"),
        ],
    )
    def test_what_names_none_is_refused_in_a_few_words(self, three: Chronicle, wanted: str, why: str) -> None:
        with pytest.raises(Refused, match=why) as refusal:
            three.history.commit(wanted)
        is_a_sentence_for_people(str(refusal.value))

    def test_three_digits_are_too_few(self, three: Chronicle) -> None:
        head = three.head() or ""
        with pytest.raises(Refused, match=f"there is no commit or branch '{head[:3]}'"):
            three.history.commit(head[:3])

    def test_an_id_with_a_slip_names_the_nearest(self, three: Chronicle) -> None:
        head = three.head() or ""
        with pytest.raises(Refused, match=f"did you mean '{head}'"):
            three.history.commit(head[:-1] + ("0" if head[-1] != "0" else "1"))

    def test_so_does_the_beginning_of_one_and_what_is_like_nothing_names_none(self, three: Chronicle) -> None:
        head = three.head() or ""
        with pytest.raises(Refused, match=rf"did you mean '{head[:8]}'\?"):
            three.history.commit(head[:5] + ("0" if head[5] != "0" else "1") + head[6:8])
        with pytest.raises(Refused, match=r"^there is no commit or branch 'zzzzzzzz'$"):
            three.history.commit("zzzzzzzz")

    def test_where_nothing_was_said_yet_there_is_no_commit(self) -> None:
        history = History()
        for wanted in ("HEAD", "main", "HEAD~1"):
            with pytest.raises(Refused, match="the branch 'main' has no commits yet"):
                history.commit(wanted)

    @given(st.text(st.characters(), max_size=40))
    def test_any_text_names_a_commit_or_is_refused(self, wanted: str) -> None:
        chronicle = Chronicle()
        chronicle.remember("likes tea")
        try:
            assert chronicle.history.commit(wanted).id == chronicle.head()
        except Refused as refusal:
            is_a_sentence_for_people(str(refusal))


class TestParentsAndBases:
    def test_a_merge_rests_on_both_sides(self, three: Chronicle) -> None:
        ours, theirs = three.head(), three.head("coding")
        merged = three.merge("coding").commit
        assert merged is not None
        assert merged.metadata["merged"] == theirs
        assert three.history.parents(merged.id) == [ours, theirs]
        assert three.history.ancestors(merged.id) == set(three.history.commits)

    def test_the_base_is_the_newest_that_both_rest_on(self, three: Chronicle) -> None:
        ours, theirs = three.head(), three.head("coding")
        assert three.history.base(ours, theirs) == three.history.base(theirs, ours) == ours
        assert three.history.base(None, theirs) is None
        three.remember("plays chess")
        three.merge("coding")
        three.remember("likes spaces", on="coding")
        assert three.history.base(three.head(), three.head("coding")) == theirs

    @FEW
    @given(DEEDS, st.randoms(use_true_random=False))
    def test_it_is_the_same_from_either_side_and_in_any_order(self, deeds: Any, dice: random.Random) -> None:
        chronicle = lived([*CRISS_CROSS, *deeds])
        shuffled = list(chronicle.records)
        dice.shuffle(shuffled)
        other = History(shuffled)
        heads = [branch.head for branch in other.branches.all.values()]
        for one in heads:
            for two in heads:
                base = chronicle.history.base(one, two)
                assert base == other.base(two, one)
                shared = other.ancestors(one) & other.ancestors(two)
                ranks = list(other.commits)
                assert base == max(shared, key=ranks.index, default=None)


CRISS_CROSS = [
    ("add", 0, 0, True),
    ("fork", 0, 0, True),
    ("add", 1, 2, True),
    ("add", 0, 3, True),
    ("merge", 0, 1, True),
    ("merge", 1, 0, True),
    ("reword", 0, 4, True),
    ("reword", 1, 5, True),
]


# ---------------------------------------------------------------------- golden values


def commit(
    number: int,
    *,
    parent: Commit | None = None,
    branch: str = "main",
    ms: int | None = None,
    message: str | None = None,
    **metadata: Any,
) -> Commit:
    """A commit that adds one item."""
    when = iso_ms(NOW + number if ms is None else ms)
    text = f"number {number}"
    event = Event(
        event_type="add",
        subject="user",
        predicate="fact",
        object=text,
        timestamp=when,
        ext={"item": {"id": f"durable-{number:08x}", "kind": "fact", "text": text}},
    )
    return Commit(
        branch=branch,
        events=(event,),
        message=message if message is not None else f"commit {number}",
        parent_id=parent.id if parent is not None else None,
        timestamp=when,
        metadata=metadata,
    )


def ref(action: Any, branch: str, number: int, **given: Any) -> Ref:
    return Ref(action=action, branch=branch, timestamp=iso_ms(NOW + number), **given)


def little_history() -> list[Record]:
    first = commit(0, by="a command")
    fork = ref("create", "küche", 1, head=first.id, persona="Köchin 🐍", metadata={"by": "1"})
    turn = ref("switch", "küche", 2)
    cooked = commit(3, parent=first, branch="küche")
    home = ref("switch", "main", 4)
    merged = commit(5, parent=first, merged=cooked.id, **{"from": "küche"})
    gone = ref("delete", "küche", 6, head=cooked.id)
    united = ref("union", "", 7, metadata={"records": 3})
    mended = ref("mend", "", 8, head="0123456789abcdef")
    return [first, fork, turn, cooked, home, merged, gone, united, mended]


GOLDEN_IDS = [
    "de9ebd1606849a2b",
    "0718d17af6156260",
    "52f866e8a9e116fc",
    "50109c0e33ac69fa",
    "34542584e9f3bdf3",
    "9ebe7d9b55c6842c",
    "ecc47a3b0a3ea512",
    "7f59f0093ef21a6e",
    "7a77fa270d7c9f9e",
]
GOLDEN_SHA256 = "922f44ea58957a2a49be6665ea64180a86f9cb09877beca965cb9681359ca7b2"


class TestTheFormatNeverDrifts:
    def test_the_ids_of_a_little_history(self) -> None:
        assert [record.id for record in little_history()] == GOLDEN_IDS

    def test_the_bytes_of_its_ledger(self) -> None:
        ledger = b"".join(encode_line(record) for record in little_history())
        assert hashlib.sha256(ledger).hexdigest() == GOLDEN_SHA256

    def test_the_line_of_a_ref(self) -> None:
        assert encode_line(little_history()[6]).decode() == (
            '{"action": "delete", "branch": "küche", '
            '"hash": "806fa1c436975bd2528645944d052542fb9efaec620115ddb7d9dc8019b75073", '
            '"head": "50109c0e33ac69fa", "id": "ecc47a3b0a3ea512", "metadata": {}, "persona": "", '
            '"timestamp": "2026-02-02T02:40:00.006Z", "type": "ref"}\n'
        )

    def test_the_documented_algorithm_reproduces_id_and_hash_of_a_ref(self) -> None:
        made = little_history()[1]
        assert isinstance(made, Ref)
        hashed = {
            "action": "create",
            "branch": "küche",
            "head": made.head,
            "persona": "Köchin 🐍",
            "timestamp": "2026-02-02T02:40:00.001Z",
        }
        assert made.id == sha(hashed)[:16]
        assert made.hash == sha({**hashed, "id": made.id, "metadata": {"by": "1"}})

    def test_what_it_says(self) -> None:
        history = History(little_history())
        assert list(history.branches.all) == ["main"]
        assert history.accepted == {"0123456789abcdef"}
        assert [name for _, name in history.branches.moves] == ["küche", "main"]
        assert [held.text for held in history.shown().active()] == ["number 0", "number 5"]


def sha(value: object) -> str:
    """The documented hash, written down a second time."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class TestTamperingWithARefIsFound:
    FIELDS = ("action", "branch", "head", "persona", "timestamp", "metadata", "id", "hash", "type")

    @staticmethod
    def line() -> dict[str, Any]:
        return copy.deepcopy(little_history()[1].to_json())

    def test_the_untouched_one_is_taken(self) -> None:
        assert set(self.line()) == set(self.FIELDS)
        assert record_of_json(self.line()) == little_history()[1]

    @each_row(
        ("field", "value"),
        [
            ("action", "delete"),
            ("action", "rename"),
            ("branch", "coding"),
            ("head", None),
            ("head", "0000000000000000"),
            ("persona", "Köchin"),
            ("timestamp", "2026-02-02T02:40:00.002Z"),
            ("timestamp", "2026-02-02T03:40:00.001+01:00"),
            ("timestamp", "yesterday"),
            ("metadata", {}),
            ("metadata", {"by": "2"}),
            ("metadata", []),
            ("id", "0000000000000000"),
            ("hash", "0" * 64),
            ("type", "commit"),
        ],
    )
    def test_any_other_value(self, field: str, value: Any) -> None:
        with pytest.raises(LedgerDamaged):
            record_of_json({**self.line(), field: value})

    @each_row("field", FIELDS)
    @each_row("value", [None, 5, [], {}, "", True])
    def test_a_value_of_another_type(self, field: str, value: Any) -> None:
        with pytest.raises((LedgerDamaged, NewerSchema)):
            record_of_json({**self.line(), field: value})

    @each_row("field", FIELDS)
    def test_a_field_that_was_taken_out(self, field: str) -> None:
        line = self.line()
        del line[field]
        with pytest.raises(LedgerDamaged):
            record_of_json(line)

    def test_a_field_that_was_put_in(self) -> None:
        with pytest.raises(LedgerDamaged, match="unknown or missing fields"):
            record_of_json({**self.line(), "parent_id": None})

    def test_the_reason_names_the_ref(self) -> None:
        made = little_history()[1]
        with pytest.raises(LedgerDamaged, match=f"ref {made.id} was changed after it was written"):
            record_of_json({**self.line(), "metadata": {"by": "2"}})
        with pytest.raises(LedgerDamaged, match=f"ref {made.id} does not match its content"):
            record_of_json({**self.line(), "branch": "coding"})

    @given(st.data())
    def test_any_byte_of_its_line(self, data: st.DataObject) -> None:
        line = bytearray(encode_line(little_history()[1]))
        at = data.draw(st.integers(0, len(line) - 2))
        line[at] ^= data.draw(st.integers(1, 255))
        with pytest.raises((LedgerDamaged, NewerSchema)):
            decode_line(bytes(line))

    @each_row("action", ["", "rename", "Create", None, 5, []])
    def test_what_is_no_action_is_refused(self, action: Any) -> None:
        with pytest.raises(
            Refused, match=r"unknown action .*; expected one of create, switch, delete, union, mend"
        ):
            ref(action, "coding", 0)


# ---------------------------------------------------------------------- forged records


def used(records: Sequence[Record]) -> History:
    """Everything that can be asked of a history is asked; it still has every record."""
    history = History(records)
    assert {record.id for record in history.records} == {record.id for record in records}
    assert everything(History(reversed(records))) == everything(history)
    heads = [branch.head for branch in history.branches.all.values()]
    for one in heads:
        for other in heads:
            history.base(one, other)
        history.ancestors(one)
        history.chain(one)
        told(history.view(one))
    history.orphans()
    history.branches.head_at(NOW)
    return history


class TestForgedRecordsDoNoHarm:
    def test_a_circle_of_merges(self) -> None:
        first = commit(0)
        second = commit(1, parent=first)
        later = [commit(2, parent=second)]
        for number in range(3, 9):
            later.append(commit(number, parent=later[-1]))
        forged = Commit(
            branch="main",
            events=first.events,
            message="forged",
            parent_id=None,
            timestamp=first.timestamp,
            metadata={"merged": later[-1].id},
        )
        assert forged.id == first.id
        history = used([forged, second, *later])
        assert [held.text for held in history.shown().active()] == [f"number {n}" for n in range(9)]
        assert history.ancestors(later[-1].id) == {first.id, second.id, *(one.id for one in later)}

    def test_a_circle_across_branches_beside_an_honest_branch(self) -> None:
        first = commit(0)
        left, right = commit(1, parent=first, branch="left"), commit(2, parent=first, branch="right")
        honest = commit(3, parent=first)
        knotted = [
            Commit(
                branch=one.branch,
                events=one.events,
                message="forged",
                parent_id=one.parent_id,
                timestamp=one.timestamp,
                metadata={"merged": other.id},
            )
            for one, other in ((left, right), (right, left))
        ]
        history = used([first, *knotted, honest])
        assert [held.text for held in history.shown().active()] == ["number 0", "number 3"]
        assert [held.text for held in history.view(right.id).active()] == ["number 0", "number 2"]
        assert history.base(left.id, right.id) is not None

    def test_a_merge_with_itself_or_with_nothing_known(self) -> None:
        for merged in ("itself", "0" * 16, "", 5, None, ["x"], {"x": 1}, True):
            first = commit(0)
            one = commit(1, parent=first, merged=merged)
            if merged == "itself":
                one = commit(1, parent=first, merged=one.id)
            history = used([first, one])
            assert len(history.view(one.id).items) == 2

    def test_a_commit_of_a_branch_that_nobody_created(self) -> None:
        first = commit(0)
        stray = commit(1, parent=first, branch="stray")
        wild = commit(2, branch="../../etc\n~1")
        history = used([first, stray, wild])
        assert [held.text for held in history.view(history.branch("stray").head).active()] == [
            "number 0",
            "number 1",
        ]
        assert history.branch("stray").base == first.id
        assert len(history.view(history.branch("../../etc\n~1").head).items) == 1

    def test_a_commit_whose_parent_is_lost(self) -> None:
        lost, here = commit(0), commit(2)
        orphan = commit(1, parent=lost)
        history = used([here, orphan])
        assert history.orphans() == {orphan.id: lost.id}
        assert len(history.shown().items) == 2
        assert used([here, orphan, ref("mend", "", 9, head=lost.id)]).orphans() == {}

    def test_a_branch_that_began_at_a_lost_commit_begins_before_it(self) -> None:
        first = commit(0)
        lost = commit(1, parent=first)
        fork = ref("create", "coding", 3, head=lost.id)
        mend = ref("mend", "", 2, head=lost.id, metadata={"follows": first.id})
        history = used([first, mend, fork])
        assert history.branch("coding").head == history.branch("coding").base == first.id
        assert [held.text for held in history.view(history.branch("coding").head).active()] == ["number 0"]
        assert used([first, lost, mend, fork]).branch("coding").head == lost.id  # it came back
        chronicle = Chronicle([first, mend, fork])
        chronicle.remember("likes tea", on="coding")
        assert chronicle.texts("coding") == ["number 0", "likes tea"]

    @each_row("follows", ["0" * 16, "self", None, 7, []])
    def test_a_mend_that_follows_nothing_that_is_here(self, follows: object) -> None:
        first, lost = commit(0), "f" * 16
        told = {"follows": lost if follows == "self" else follows}
        history = used(
            [first, ref("mend", "", 2, head=lost, metadata=told), ref("create", "x", 3, head=lost)]
        )
        assert history.view(history.branch("x").head).items == {}

    def test_refs_to_commits_that_are_not_here(self) -> None:
        first = commit(0)
        wild = ref("create", "wild", 1, head="0" * 16)
        history = used([first, wild])
        assert history.view(history.branch("wild").head).items == {}
        assert history.base(history.branch("wild").head, first.id) is None
        assert history.ancestors("0" * 16) == set()
        with pytest.raises(Refused, match="has no commits yet"):
            history.commit("wild")
        chronicle = Chronicle([first, wild])
        assert chronicle.merge("wild").commit is None
        assert chronicle.merge("main", "wild").commit is not None
        assert chronicle.texts("wild") == ["number 0"]
        chronicle.remember("likes tea", on="wild")
        assert chronicle.texts("wild") == ["number 0", "likes tea"]

    def test_refs_that_make_no_sense(self) -> None:
        first = commit(0)
        history = used(
            [
                first,
                ref("delete", "main", 1, head=first.id),
                ref("create", "main", 2),
                ref("switch", "nowhere", 3),
                ref("delete", "nowhere", 4),
                ref("create", "HEAD", 5),
                ref("mend", "main", 6),
                ref("union", "main", 7, head=first.id),
                ref("create", "a~1\x00/..", 8, head=first.id, persona="x" * 100_000),
            ]
        )
        assert history.branches.current == "main"
        assert [held.text for held in history.shown().active()] == ["number 0"]

    def test_times_before_1970_and_of_other_zones(self) -> None:
        records = [
            Commit(branch="main", events=(), message="", parent_id=None, timestamp=when)
            for when in ("0001-01-01T00:00:00", "1969-12-31T23:59:59.999Z", "2026-02-02T00:00:00+14:00")
        ]
        assert used(records).records == tuple(records)

    EXT = st.fixed_dictionaries(
        {},
        optional={
            "item": st.fixed_dictionaries(
                {},
                optional={
                    "id": st.sampled_from(["durable-00000000", "durable-00000001", "", "x"]),
                    "text": st.sampled_from(["", " ", "likes tea", "x" * 3_000, "a\x00b\n"]),
                    "tags": st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=3),
                    "status": st.sampled_from(["active", "deprecated"]),
                    "source": st.dictionaries(st.text(max_size=4), st.none() | st.booleans(), max_size=2),
                    "createdAt": st.integers(0, NOW),
                    "updatedAt": st.integers(0, NOW),
                },
            ),
            "facets": st.fixed_dictionaries(
                {},
                optional={
                    "author": st.sampled_from(["stated", "inferred"]),
                    "key": st.none() | st.just("k"),
                    "links": st.lists(st.sampled_from(["durable-00000000", "", "nobody"]), max_size=3),
                },
            ),
            "conflict": st.dictionaries(
                st.sampled_from(["text", "reason", "other", "settled"]),
                st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=1),
            ),
            "link": st.dictionaries(
                st.sampled_from(["to", "on"]),
                st.sampled_from(["durable-00000000", "durable-00000001", "", 5, None, True, [], {}]),
            ),
            "triple": st.booleans() | st.none() | st.lists(st.text(max_size=2), max_size=2),
            "whatever": st.integers() | st.text(max_size=3),
        },
    )

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["add", "modify", "forget", "observe"]), EXT, st.sampled_from(["main", "b"])
            ),
            max_size=6,
        )
    )
    def test_events_with_anything_in_them(self, wild: list[Any]) -> None:
        records: list[Record] = [commit(0), commit(1, parent=commit(0))]
        parents = {"main": records[1].id, "b": records[0].id}
        for number, (kind, ext, branch) in enumerate(wild):
            when = iso_ms(NOW + 10 + number)
            event = Event(
                event_type=kind,
                subject="s",
                predicate="p",
                object="o",
                timestamp=when,
                ext=ext,
                parent_id=parents[branch],
            )
            forged = Commit(
                branch=branch,
                events=(event,),
                message="",
                parent_id=parents[branch],
                timestamp=when,
                metadata={"reverts": ext.get("whatever"), "picked": ext.get("link")},
            )
            parents[branch] = forged.id
            records.append(decode_line(encode_line(forged)))
        used(records)
        chronicle = Chronicle(records, now=NOW + MINUTE)
        live(chronicle, [("fork", 0, 0, True), ("merge", 0, 1, True), ("merge", 1, 0, True)])
        live(chronicle, [("pick", 0, 1, True), ("undo", 0, 0, True), ("settle", 0, 0, True)])
        live(chronicle, [("restore", 0, 3, True), ("revert", 0, 2, True), ("contradict", 0, 1, True)])
        used(chronicle.records)
