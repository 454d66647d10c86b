"""A history as a graph in text. What we write for Mermaid is read again, by a strict reader and by Mermaid.

`gitgraph.read` runs always. It is held to Mermaid's own verdicts: 59 recorded ones, of Mermaid 11.17.2, and
fresh ones wherever node and the package are installed (see `record`).
"""

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.times import iso_ms
from discoclaw.show.graph import MOST_IN_MERMAID, Graph, digits, mermaid, timeline
from tests.core.builders import NOW
from tests.show.gitgraph import NoGitGraph, read
from tests.show.histories import NAMES, NASTY, Story, histories, long_story, named, told
from tests.show.record import INSTALLED, VERDICTS, ask, random_history
from tests.tables import each_row

RECORDED: list[dict[str, Any]] = json.loads(VERDICTS.read_text(encoding="utf-8"))


def drawn(history: History) -> dict[str, Any]:
    """What a reader makes of the history's gitGraph, commits by their real ids."""
    found = read(mermaid(history))
    ids = {Graph(history).short(one): one for one in history.commits}
    of = {commit["id"]: ids[commit["id"].split(" ")[0]] for commit in found["commits"]}
    return {
        "branches": found["branches"],
        "commits": {
            of[commit["id"]]: {**commit, "parents": [of[parent] for parent in commit["parents"]]}
            for commit in found["commits"]
        },
    }


def check(history: History) -> None:
    """The gitGraph has every commit, in order, on one lane each, with its parents."""
    shown = drawn(history)
    assert list(shown["commits"]) == list(history.commits)
    graph = Graph(history)
    for key, commit in shown["commits"].items():
        assert commit["branch"] == graph.lanes[graph.lane_of[key]].name
        assert commit["parents"] in (graph.parents(key), graph.parents(key)[: len(graph.parents(key)) - 1])
        chain = [one.id for one in history.chain(key)]
        assert commit["parents"][:1] == chain[-2:-1]
        merged = history.commits[key].metadata.get("merged")
        if merged is not None and len(commit["parents"]) < 2:
            assert f"merge {graph.short(merged)}" in commit["tags"]
    head = graph.head()
    assert [key for key, one in shown["commits"].items() if "HEAD" in one["tags"]] == ([head] if head else [])
    living = [lane.name for lane in graph.lanes if lane.alive]
    assert set(living) <= set(shown["branches"])


class TestTheReader:
    @each_row("number", range(len(RECORDED)))
    def test_it_takes_what_mermaid_takes_with_the_same_result_and_refuses_what_mermaid_refuses(
        self, number: int
    ) -> None:
        case = RECORDED[number]
        if "error" in case["said"]:
            with pytest.raises(NoGitGraph):
                read(case["text"])
        else:
            assert read(case["text"]) == case["said"]

    def test_there_are_verdicts_of_both_kinds(self) -> None:
        refused = sum("error" in case["said"] for case in RECORDED)
        assert (len(RECORDED), refused) == (59, 14)

    @pytest.mark.skipif(not INSTALLED, reason="Mermaid is not installed; the recorded verdicts are used")
    def test_mermaid_itself_says_the_same_of_three_hundred_histories(self) -> None:
        texts = [case["text"] for case in RECORDED]
        texts += [mermaid(random_history(seed)) for seed in range(1000, 1300)]
        for text, said in zip(texts, ask(texts), strict=True):
            try:
                mine = read(text)
            except NoGitGraph:
                mine = {}
            assert mine == ({} if "error" in said else said), text


class TestMermaid:
    def test_a_story_with_branches_a_merge_a_pick_and_an_undo(self) -> None:
        history = told().history
        assert named(history, mermaid(history)) == (
            "gitGraph\n"
            '    commit id: "11111111 said by command"\n'
            '    commit id: "22222222 said by command"\n'
            '    branch "coding"\n'
            '    commit id: "33333333 learned from talk"\n'
            '    checkout "main"\n'
            '    commit id: "44444444 learned from talk"\n'
            '    merge "coding" id: "55555555 merge coding into main"\n'
            '    branch "ideas"\n'
            '    commit id: "66666666 said by command"\n'
            '    checkout "coding"\n'
            '    commit id: "77777777 said by command"\n'
            '    commit id: "88888888 cherry-pick: said by command" tag: "cherry-pick 66666666" tag: "HEAD"\n'
            '    checkout "main"\n'
            '    commit id: "99999999 said by command"\n'
            '    commit id: "aaaaaaaa undo: said by command" type: REVERSE tag: "undo 99999999"\n'
        )

    def test_no_commits(self) -> None:
        assert mermaid(History()) == "gitGraph\n"
        assert read(mermaid(History())) == {"commits": [], "branches": ["main"]}

    def test_branches_may_be_older_than_the_first_commit_of_main(self) -> None:
        story = Story()
        story.fork("one")
        story.fork("two")
        story.say("a", "one")
        story.say("b", "two")
        check(story.history)
        story.say("c")
        check(story.history)
        assert drawn(story.history)["branches"] == ["main", "one", "two"]

    def test_main_may_have_no_commits_at_all(self) -> None:
        story = Story()
        story.fork("one")
        story.say("a", "one")
        story.fork("two", start="one")
        check(story.history)

    def test_a_branch_may_fork_from_an_older_commit_than_the_newest(self) -> None:
        story = Story()
        first = story.say("a")
        story.say("b")
        story.fork_at("old", first.id)
        fork = story.say("c", "old")
        check(story.history)
        assert drawn(story.history)["commits"][fork.id]["parents"] == [first.id]

    def test_a_name_given_again_is_a_lane_of_its_own(self) -> None:
        story = Story()
        story.say("a")
        for number in range(3):
            story.fork("tmp")
            story.say(f"b{number}", "tmp")
            if number < 2:
                story.delete("tmp")
        check(story.history)
        assert drawn(story.history)["branches"] == ["main", "tmp", "tmp (2)", "tmp (3)"]

    def test_a_deleted_branch_without_commits_of_its_own_is_left_out(self) -> None:
        story = Story()
        story.say("a")
        story.fork("tmp")
        story.fork("kept")
        story.delete("tmp")
        assert drawn(story.history)["branches"] == ["main", "kept"]

    @each_row("name", NAMES)
    def test_any_name_names_a_branch(self, name: str) -> None:
        story = Story()
        story.say("a")
        story.fork(name)
        story.say("b", name)
        story.say("c")
        story.merge(name)
        check(story.history)
        assert drawn(story.history)["branches"] == ["main", name]

    @each_row("message", NASTY)
    def test_any_message_stays_a_message(self, message: str) -> None:
        story = Story()
        story.say("a", why=message)
        story.fork("x")
        story.say("b", "x", why=message)
        check(story.history)
        assert not re.search(r"%%|[{}<>#;&$`\\]|'", mermaid(story.history))

    def test_a_merge_mermaid_has_no_word_for_is_a_commit_with_a_tag(self) -> None:
        story = Story()
        story.say("a")
        story.fork("coding")
        newest = story.say("b")
        brought = story.merge("main", "coding")  # coding has no commit of its own
        assert brought.commit is not None
        check(story.history)
        assert drawn(story.history)["commits"][brought.commit.id]["tags"] == [f"merge {newest.id[:8]}"]

    def test_foreign_branches_of_one_word_are_told_apart(self) -> None:
        story = Story()
        for name in ("a b", "a\nb", "a_b", "main!", "__proto__"):
            story.keep(
                Commit(branch=name, events=(), message="x", parent_id=None, timestamp=iso_ms(story.tick()))
            )
        check(story.history)
        assert drawn(story.history)["branches"] == ["main", "a_b", "a_b (2)", "a_b (3)", "main_", "__proto__"]

    def test_a_long_history_shows_its_newest_commits_in_a_size_mermaid_draws(self) -> None:
        history = long_story(MOST_IN_MERMAID + 500).history
        shown = mermaid(history)
        assert "    %% 500 earlier commits left out\n" in shown
        assert len(read(shown)["commits"]) == MOST_IN_MERMAID
        assert len(shown) < 50_000

    def test_the_longest_names_and_messages_fit_too(self) -> None:
        story = Story()
        for number in range(MOST_IN_MERMAID):
            story.keep(
                Commit(
                    branch="ab"[number % 2] * 32,
                    events=(),
                    message="🦄" * 200,
                    parent_id=None,
                    timestamp=iso_ms(story.tick()),
                    metadata={"picked": "f" * 16},
                )
            )
        assert len(mermaid(story.history).encode("utf-16-le")) // 2 < 50_000

    def test_a_merge_forged_to_rest_on_a_younger_commit_is_no_circle(self) -> None:
        late = Commit(branch="b", events=(), message="x", parent_id=None, timestamp=iso_ms(NOW + 9))
        early = Commit(
            branch="a",
            events=(),
            message="x",
            parent_id=None,
            timestamp=iso_ms(NOW),
            metadata={"merged": late.id},
        )
        circle = Commit(
            branch="b",
            events=(),
            message="x",
            parent_id=None,
            timestamp=iso_ms(NOW + 9),
            metadata={"merged": early.id},
        )
        history = History([early, circle])
        assert read(mermaid(history))["commits"]
        assert len(timeline(history).splitlines()) == 3

    def test_ids_that_begin_alike_are_told_apart(self) -> None:
        found = [Commit(branch="main", events=(), message="", parent_id=None, timestamp=iso_ms(NOW))]
        assert Graph(History(found)).short(found[0].id) == found[0].id[:8]
        alike = [found[0].id, found[0].id[:10] + "z" * 6]
        assert digits(alike) == 11
        assert digits([]) == 8

    @given(histories())
    def test_any_history_is_drawn_whole(self, history: History) -> None:
        check(history)


class TestTimeline:
    def test_lanes_run_down_to_where_they_began(self) -> None:
        history = told().history
        assert named(history, timeline(history)) == (
            "      2026-02-02\n"
            "*     02:53Z aaaaaaaa [main, undo 99999999] undo: said by command\n"
            "*     02:52Z 99999999 [main] said by command\n"
            "│ *   02:51Z 88888888 [coding, cherry-pick 66666666, HEAD] cherry-pick: said by command\n"
            "│ *   02:50Z 77777777 [coding] said by command\n"
            "│ │ * 02:49Z 66666666 [ideas] said by command\n"
            "*─┼─╯ 02:47Z 55555555 [main, merge 33333333] merge coding into main\n"
            "* │   02:46Z 44444444 [main] learned from talk\n"
            "│ *   02:45Z 33333333 [coding] learned from talk\n"
            "*─╯   02:42Z 22222222 [main] said by command\n"
            "*     02:41Z 11111111 [main] said by command"
        )

    def test_each_day_has_a_heading_through_which_lanes_run(self) -> None:
        story = Story()
        story.say("a")
        story.fork("x")
        story.tick(86_400_000)
        story.say("b", "x")
        story.say("c")
        rows = timeline(story.history).splitlines()
        assert [row[:14] for row in rows] == [
            "    2026-02-03",
            "*   02:44Z " + list(story.history.commits)[2][:3],
            "│ * 02:43Z " + list(story.history.commits)[1][:3],
            "│ │ 2026-02-02",
            "*─╯ 02:41Z " + next(iter(story.history.commits))[:3],
        ]

    @each_row(("limit", "earlier"), [(3, 7), (10, 0), (0, 10), (-1, 10), (99, 0)])
    def test_a_limit_counts_commits(self, limit: int, earlier: int) -> None:
        rows = timeline(told().history, limit=limit).splitlines()
        assert sum("*" in row[:6] for row in rows) == 10 - earlier
        assert (rows[-1] == f"… {earlier} earlier commits") == (earlier > 0)

    def test_no_commits(self) -> None:
        assert timeline(History()) == "there are no commits yet"

    @each_row("message", NASTY)
    def test_no_message_makes_a_line(self, message: str) -> None:
        story = Story()
        story.say("a", why=message)
        assert len(timeline(story.history).splitlines()) == 2

    @given(histories())
    def test_every_commit_has_one_line_and_every_line_of_a_lane_goes_on(self, history: History) -> None:
        graph = Graph(history)
        rows = list(graph.rows())
        assert [row.commit.id for row in rows] == list(reversed(history.commits))
        for row, following in pairwise(rows):
            assert row.below == following.above
        for row in rows:
            assert [edge.parent for edge in row.edges] == graph.parents(row.commit.id)
            assert all(row.below[edge.column] == edge.parent for edge in row.edges)
            assert row.commit.id not in row.below
            assert (row.column == 0) == (graph.lane_of[row.commit.id] == 0)
        if rows:
            assert set(rows[-1].below) <= {None}
        marked = [line for line in timeline(history).splitlines() if re.match(r"[^0-9]*\*", line)]
        assert len(marked) == len(history.commits)
