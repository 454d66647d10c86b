"""A memory and its history in words: golden texts, privacy, and people who try to forge a line."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Ref
from discoclaw.core.history import MAIN, Branch, Branches, History
from discoclaw.core.item import Source
from discoclaw.core.merge import Clash, ItemChange, MergeResult, diff
from discoclaw.core.times import iso_ms
from discoclaw.core.view import EMPTY, Conflict, View
from discoclaw.memory.subjects.durable_file import apply_edits
from discoclaw.show import text
from tests.core.builders import DAY, NOW, PUBLIC_MESSAGE, inferred, item, stated
from tests.show.histories import NASTY, Story, histories, named, told
from tests.tables import each_row

SECRET = "User takes the blue pills."

LOG = """\
commit aaaaaaaaaaaaaaaa [main] (main)
  2026-02-02 02:53Z
  undo of 9999999999999999
  “undo: said by command”
    - forget  13d56868 [fact] “User has a dog.” (manual)

commit 9999999999999999 [main]
  2026-02-02 02:52Z
  “said by command”
    + add     13d56868 [fact] “User has a dog.” (manual)

commit 8888888888888888 [coding] (HEAD -> coding)
  2026-02-02 02:51Z
  cherry-pick of 6666666666666666 from ideas
  “cherry-pick: said by command”
    + add     a9395b4f [project] “User builds a boat.” (manual)

commit 7777777777777777 [coding]
  2026-02-02 02:50Z
  “said by command”
    + add     63985a89 [preference] “User likes tea.” (manual)

commit 6666666666666666 [ideas] (ideas)
  2026-02-02 02:49Z
  “said by command”
    + add     a9395b4f [project] “User builds a boat.” (manual)

-- 2026-02-02 02:48Z branch ideas created at 5555555555555555

commit 5555555555555555 [main]
  2026-02-02 02:47Z
  merge of coding, second parent 3333333333333333
  “merge coding into main”
    + add     65306929 [fact] “User writes Rust.” (manual)

commit 4444444444444444 [main]
  2026-02-02 02:46Z
  “learned from talk”
    + add     30a80703 [fact] “User has a cat.” (manual)

commit 3333333333333333 [coding]
  2026-02-02 02:45Z, by extraction
  “learned from talk”
    + add     65306929 [fact] “User writes Rust.” (manual)

-- 2026-02-02 02:44Z HEAD moved to coding, by command

-- 2026-02-02 02:43Z branch coding created at 2222222222222222: “I write Python”

commit 2222222222222222 [main]
  2026-02-02 02:42Z, by extraction, messages 72 73
  “said by command”
    + add     c29716db [fact] “User lives in Graz.” (manual)

commit 1111111111111111 [main]
  2026-02-02 02:41Z, by command, message 7/71
  “said by command”
    + add     062d97a6 [preference] “User prefers tabs.” (manual)"""


class TestLog:
    def test_it_tells_commits_and_what_happened_to_branches_newest_first(self) -> None:
        history = told().history
        assert named(history, text.log(history)) == LOG

    def test_one_line_for_each_commit(self) -> None:
        history = told().history
        assert named(history, text.log(history, oneline=True, limit=3)) == (
            "aaaaaaaaaaaaaaaa 2026-02-02 02:53Z [main, undo 99999999] undo: said by command\n"
            "9999999999999999 2026-02-02 02:52Z [main] said by command\n"
            "8888888888888888 2026-02-02 02:51Z [coding, cherry-pick 66666666] cherry-pick: said by command\n"
            "… 7 earlier commits"
        )

    def test_a_branch_has_its_own_chain_and_its_own_turns(self) -> None:
        story = told().history
        shown = text.log(story, branch="CODING")
        commits = [row.split()[1] for row in shown.splitlines() if row.startswith("commit ")]
        assert commits == [commit.id for commit in reversed(story.chain(story.branch("coding").head))]
        assert "HEAD moved to coding" in shown
        assert "branch ideas" not in shown

    def test_an_unknown_branch_is_refused_with_what_there_is(self) -> None:
        with pytest.raises(Refused, match="did you mean 'coding'"):
            text.log(told().history, branch="codin")

    @each_row(("limit", "earlier"), [(0, 10), (1, 9), (10, 0), (99, 0), (-5, 10)])
    def test_a_limit_counts_commits_and_says_what_is_left_out(self, limit: int, earlier: int) -> None:
        shown = text.log(told().history, limit=limit).splitlines()
        assert sum(row.startswith("commit ") for row in shown) == 10 - earlier
        assert (shown[-1] == (f"… {earlier} earlier commit" + "s" * (earlier != 1))) == (earlier > 0)

    def test_an_empty_history_says_so(self) -> None:
        assert text.log(History()) == text.log(History(), oneline=True) == "there are no commits yet"

    def test_repairs_unions_and_deletions_are_told(self) -> None:
        story = Story()
        story.say("x")
        story.fork("tmp")
        story.delete("tmp")
        story.keep(Ref(action="union", branch="", timestamp=iso_ms(story.tick()), metadata={"by": "cli"}))
        story.keep(Ref(action="mend", branch="", head="0123456789abcdef", timestamp=iso_ms(story.tick())))
        story.keep(Ref(action="create", branch="bare", timestamp=iso_ms(story.tick())))
        assert [row[20:] for row in text.log(story.history).splitlines() if row.startswith("--")] == [
            " branch bare created empty",
            " repaired: the lost commit 0123456789abcdef is accepted as lost",
            " records of another replica were taken in, by cli",
            f" branch tmp deleted, it stood at {next(iter(story.history.commits))}",
            f" branch tmp created at {next(iter(story.history.commits))}",
        ]

    def test_changes_links_conflicts_and_triples_are_told_in_words(self) -> None:
        story = Story()
        story.say("User prefers tabs.", kind="preference")
        story.say("User has a cat.")
        story.bare("user", "likes", "green tea")
        first, second, triple = story.view().items.values()
        draft = story.draft()
        draft.deprecate(second, stated())
        draft.link(first, triple, stated())
        draft.upsert("preference", "User prefers spaces.", inferred(), given_id=first.id)
        story.end(draft)
        draft = story.draft()
        draft.link(first, triple, stated(), on=False)
        draft.settle(draft.view.conflicts[0], "use_new", stated())
        story.end(draft)
        shown = [row.strip() for row in text.log(story.history).splitlines() if row.startswith("    ")]
        one, two, three = (held.id.removeprefix("durable-") for held in (first, second, triple))
        assert shown == [
            f"- forget  {one} no longer linked with {three} (manual)",
            f"? observe {one} [preference] settled, use_new: “User prefers spaces.” (manual)",
            f"~ modify  {one} [preference] “User prefers spaces.” (manual)",
            f"~ modify  {two} [fact, forgotten] “User has a cat.” (manual)",
            f"+ add     {one} linked with {three} (manual)",
            f"? observe {one} [preference] against it: “User prefers spaces.” (discord:123/456)",
            f"+ add     {three} “User likes green tea” (manual)",
            f"+ add     {two} [fact] “User has a cat.” (manual)",
            f"+ add     {one} [preference] “User prefers tabs.” (manual)",
        ]


class TestForgery:
    @each_row("nasty", NASTY)
    def test_no_name_message_or_persona_adds_a_line(self, nasty: str) -> None:
        def log_of(words: str) -> list[str]:
            story = Story()
            story.say(
                "x" + words.encode("utf-8", "replace").decode(), why=words, by=words, message=words + "1"
            )
            story.keep(
                Ref(
                    action="create",
                    branch=words,
                    persona=words,
                    timestamp=iso_ms(story.tick()),
                    metadata={"by": words},
                )
            )
            story.keep(
                Commit(
                    branch=words,
                    events=(),
                    message=words,
                    parent_id=None,
                    timestamp=iso_ms(story.tick()),
                    metadata={"merged": words, "from": words, "picked": words, "messages": [words, 7]},
                )
            )
            rows = text.log(story.history).splitlines() + text.log(story.history, oneline=True).splitlines()
            rows += text.branches(story.history.branches, {}).splitlines()
            return [*rows, *text.stats(story.history).splitlines()]

        plain, forged = log_of("plain"), log_of(nasty)
        assert len(forged) <= len(plain)
        kinds = [row.split(" ")[0] for row in forged if row.startswith(("commit ", "-- "))]
        assert kinds == ["commit", "--", "commit"]

    def test_no_name_can_pass_for_a_decoration(self) -> None:
        story = Story()
        story.keep(
            Commit(
                branch="x] (HEAD -> main",
                events=(),
                message="”) by owner",
                parent_id=None,
                timestamp=iso_ms(NOW),
            )
        )
        shown = text.log(story.history)
        assert "(HEAD" not in shown
        assert '“") by owner”' in shown

    @given(histories())
    def test_every_line_of_any_log_is_one_of_ours(self, history: History) -> None:
        rows = text.log(history, in_private=False).splitlines()
        starts = (
            "commit ",
            "  2",
            "  merge",
            "  cherry",
            "  undo",
            "  back",
            "  “",
            "    ",
            "-- 2",
            "there are",
        )
        assert all(row.startswith(starts) for row in rows if row)
        assert sum(row.startswith("commit ") for row in rows) == len(history.commits)


class TestPrivacy:
    def story(self) -> Story:
        story = Story()
        story.say("User prefers tabs.", kind="preference")
        story.say(SECRET, marked="private", origin=stated(evidence=f"“{SECRET}”"))
        return story

    def everything(self, story: Story, *, in_private: bool) -> str:
        history, view = story.history, story.view()
        secret = next(one for one in view.items.values() if "pills" in one.text or "dose" in one.text)
        clash = Clash(secret, secret)
        return "\n".join(
            [
                text.log(history, in_private=in_private),
                text.log(history, in_private=in_private, oneline=True),
                *text.brought_lines(
                    MergeResult(None, (*diff(EMPTY, view), *diff(view, EMPTY)), (clash,)),
                    in_private=in_private,
                ),
                *(told for _, told in text.figures(history, str, in_private=in_private)),
                text.why(history, secret, link=str, in_private=in_private),
                *(text.conflict(view, one, in_private=in_private) for one in view.conflicts),
                text.conflict(view, Conflict(secret.id, "x", "", "e"), in_private=in_private),
            ]
        )

    def test_elsewhere_private_words_are_nowhere_and_it_is_said_that_there_are_some(self) -> None:
        shown = self.everything(self.story(), in_private=False)
        assert "pills" not in shown
        assert "(private)" in shown
        assert "(2 private changes, not shown here)" in shown
        assert "! changed on both sides, ours stays: 1 private item, not shown here" in shown
        assert "User prefers tabs." in shown

    def test_in_private_everything_is_shown(self) -> None:
        shown = self.everything(self.story(), in_private=True)
        assert shown.count(SECRET) >= 7
        assert "(private)" not in shown

    def test_what_is_marked_private_later_is_private_in_its_whole_past(self) -> None:
        story = Story()
        story.say(SECRET)
        draft = story.draft()
        draft.mark(next(iter(story.view().items.values())), "private", stated())
        story.end(draft, "kept private")
        assert "pills" not in self.everything(story, in_private=False)

    def test_a_fork_that_shares_it_does_not_show_what_another_keeps_private(self) -> None:
        story = self.story()
        story.fork("open")
        secret = next(one for one in story.view().items.values() if one.text == SECRET)
        draft = story.draft("open")
        draft.mark(secret, "normal", stated())
        story.end(draft, branch="open")
        assert "pills" not in text.log(story.history, in_private=False)

    def test_what_the_person_shared_again_is_shown_from_then_on(self) -> None:
        story = self.story()
        secret = next(one for one in story.view().items.values() if one.text == SECRET)
        draft = story.draft()
        draft.mark(secret, "normal", stated())
        story.end(draft)
        assert text.log(story.history, in_private=False).count(SECRET) == 1

    def test_a_private_word_against_an_open_item_stays_private(self) -> None:
        story = Story()
        story.say("User takes the red dose.")
        draft = story.draft()
        held = next(iter(story.view().items.values()))
        draft.upsert("fact", SECRET, inferred(private=True, evidence=SECRET), given_id=held.id)
        story.end(draft)
        shown = self.everything(story, in_private=False)
        assert "pills" not in shown
        assert "red dose" in shown

    def test_what_was_private_when_it_was_forgotten_stays_private(self) -> None:
        story = self.story()
        draft = story.draft()
        draft.remove(next(one for one in story.view().items.values() if one.text == SECRET), stated())
        story.end(draft)
        assert "pills" not in text.log(story.history, in_private=False)
        assert "pills" in text.log(story.history)


class TestViews:
    def test_items_are_lines_forgotten_ones_last(self) -> None:
        gone = replace(item("User has a cat.", updated_at=NOW + DAY), status="deprecated")
        held = [gone, item("User likes tea.", "preference"), item("User is 40.", sensitivity="private")]
        view = View({one.id: one for one in held})
        ids = {one.text: one.id.removeprefix("durable-") for one in held}
        second, third = sorted(["User likes tea.", "User is 40."], key=lambda words: ids[words])
        traits = {"User likes tea.": "preference", "User is 40.": "fact, private"}
        assert text.view(view) == (
            f"{ids[second]} 2026-02-02 [{traits[second]}] {second}\n"
            f"{ids[third]} 2026-02-02 [{traits[third]}] {third}\n"
            f"{ids['User has a cat.']} 2026-02-03 [fact, forgotten] User has a cat."
        )

    def test_nothing_remembered_is_said(self) -> None:
        assert text.view(EMPTY) == text.stats(History()) == "nothing is remembered yet"

    def test_open_questions_come_behind_the_items(self) -> None:
        held = item("User prefers tabs.", "preference")
        view = View({held.id: held}, conflicts=(Conflict(held.id, "User prefers spaces.", "", "e"),))
        assert text.view(view).endswith(
            "\n\nto settle:\n- You told me “User prefers tabs.”; later talk suggests “User prefers spaces.”"
        )


class TestConflicts:
    held = item("User prefers tabs.", "preference")
    other = item("User prefers spaces.", "preference")
    view = View({held.id: held, other.id: other})

    @each_row(
        ("conflict", "said"),
        [
            (
                Conflict(held.id, "User prefers spaces.", "said in discord:1/2", "e"),
                "You told me “User prefers tabs.”; later talk suggests “User prefers spaces.”",
            ),
            (
                Conflict(held.id, "", "said in discord:1/2", "e"),
                "You told me “User prefers tabs.”; later talk suggests that it no longer holds",
            ),
            (
                Conflict(held.id, "User prefers spaces.", "the persona work says otherwise", "e"),
                "You told me “User prefers tabs.”; another persona says “User prefers spaces.”",
            ),
            (
                Conflict(held.id, "User prefers spaces.", "tabs aren't spaces", "e", other_id=other.id),
                "You told me “User prefers tabs.” and also “User prefers spaces.”; "
                "both can hardly hold (“tabs aren't spaces”)",
            ),
            (
                Conflict("durable-00000000", "x\n”y", "", "e"),
                'I remember 00000000; later talk suggests “x "y”',
            ),
        ],
    )
    def test_it_is_one_line(self, conflict: Conflict, said: str) -> None:
        assert text.conflict(self.view, conflict) == said

    def test_what_was_only_inferred_was_not_told(self) -> None:
        held = item("User prefers tabs.", author="inferred")
        said = text.conflict(View({held.id: held}), Conflict(held.id, "x", "", "e"))
        assert said == "I remember “User prefers tabs.”; later talk suggests “x”"

    def test_a_private_one_is_not_told_elsewhere(self) -> None:
        secret = Conflict(self.held.id, "x", "", "e", "private")
        assert text.conflict(self.view, secret, in_private=False) == "(private)"


class TestChanges:
    def test_each_kind_of_change_has_its_sign(self) -> None:
        tabs, spaces = (
            item("User prefers tabs."),
            replace(item("User prefers tabs."), text="User prefers spaces."),
        )
        gone = replace(tabs, status="deprecated")
        shared = replace(tabs, tags=("x",), facets=replace(tabs.facets, sensitivity="private", key="editor"))
        changes = [
            ItemChange(None, tabs),
            ItemChange(tabs, None),
            ItemChange(tabs, spaces),
            ItemChange(tabs, gone),
            ItemChange(gone, tabs),
            ItemChange(tabs, shared),
            ItemChange(shared, tabs),
            ItemChange(tabs, replace(tabs, updated_at=NOW + 1)),
        ]
        one = tabs.id.removeprefix("durable-")
        assert text.changes(changes).splitlines() == [
            f"+ {one} [fact] “User prefers tabs.”",
            f"- {one} [fact] “User prefers tabs.”",
            f"~ {one} [fact] “User prefers tabs.” → “User prefers spaces.”",
            f"- {one} [fact, forgotten] “User prefers tabs.” (forgotten)",
            f"+ {one} [fact] “User prefers tabs.” (restored)",
            f"~ {one} [fact, private] “User prefers tabs.” (tags, key, now private)",
            f"~ {one} [fact] “User prefers tabs.” (tags, key, shared)",
            f"~ {one} [fact] “User prefers tabs.” (confirmed)",
        ]

    def test_no_difference_is_said(self) -> None:
        assert text.changes([]) == "no difference"

    def test_what_is_private_on_one_side_is_shown_on_neither(self) -> None:
        tabs = item("User prefers tabs.")
        secret = replace(tabs, facets=replace(tabs.facets, sensitivity="private"))
        for change in (ItemChange(tabs, secret), ItemChange(secret, tabs)):
            done = MergeResult(None, (change,))
            assert text.brought_lines(done, in_private=False) == ["(1 private change, not shown here)"]


class TestBrought:
    def test_nothing_to_do_is_said(self) -> None:
        assert text.brought(MergeResult(None)) == "nothing to do: all of it is here already"

    def test_a_merge_tells_its_changes(self) -> None:
        story = Story()
        story.say("x")
        story.fork("coding")
        story.say("User writes Rust.", "coding")
        brought = story.merge("coding")
        assert brought.commit is not None
        assert text.brought(brought) == (
            f"“merge coding into main”: 1 change, commit {brought.commit.id}\n"
            "+ 65306929 [fact] “User writes Rust.”"
        )

    def test_a_merge_tells_what_clashed_and_that_ours_stays(self) -> None:
        story = Story()
        story.say("User prefers tabs.")
        held = next(iter(story.view().items.values()))
        story.fork("coding")
        story.say("User prefers spaces.", "coding", item=held)
        story.say("User prefers both.", item=held)
        brought = story.merge("coding")
        assert brought.commit is not None
        key = held.id.removeprefix("durable-")
        assert text.brought(brought) == (
            f"“merge coding into main”: no item changed, commit {brought.commit.id}\n"
            f"! {key} changed on both sides, ours stays: “User prefers both.”; theirs: “User prefers spaces.”"
        )

    def test_what_changed_since_is_named_by_an_undo_that_does_nothing(self) -> None:
        story = Story()
        first = story.say("User prefers tabs.")
        story.say("User prefers spaces.", item=next(iter(story.view().items.values())))
        brought = story.revert(first.id)
        assert brought.commit is None
        assert text.brought(brought).splitlines()[0] == "nothing to do"
        assert "ours stays: “User prefers spaces.”; theirs: removed" in text.brought(brought)


class TestBranches:
    def test_the_current_one_is_marked(self) -> None:
        history = told().history
        shown = text.branches(history.branches, {"main": 4, "coding": 1})
        assert named(history, shown) == (
            "  main     4 items  aaaaaaaaaaaaaaaa\n"
            "* coding    1 item  8888888888888888  “I write Python”\n"
            "  ideas    0 items  6666666666666666"
        )

    def test_a_branch_without_commits_says_so(self) -> None:
        assert text.branches(Branches(), {}) == "* main   0 items  no commits yet"

    def test_a_hostile_persona_stays_in_its_line(self) -> None:
        branches = Branches({MAIN: Branch(MAIN, None, "x\n* owner   9 items")})
        assert len(text.branches(branches, {}).splitlines()) == 1


class TestFigures:
    def test_they_are_told(self) -> None:
        assert text.stats(told().history) == (
            "memories   6, of these 0 private; 0 forgotten\n"
            "kinds      fact 3, preference 2, project 1\n"
            "to settle  0 questions\n"
            "commits    10, of these cherry-pick 1, merge 1, undo 1\n"
            "events     add 9, forget 1\n"
            "made by    unknown 7, extraction 2, command 1\n"
            "branches   3, HEAD is coding\n"
            "since      2026-02-02 02:41Z, last change 2026-02-02 02:53Z"
        )

    def test_programs_get_the_same_as_json(self) -> None:
        history = told().history
        figures = text.stats_json(history)
        assert json.loads(json.dumps(figures)) == figures
        assert figures["commits"] == 10
        assert figures["acts"] == {"merge": 1, "cherry-pick": 1, "undo": 1, "restore": 0}
        assert figures["branches"]["coding"] == {
            "head": history.branch("coding").head,
            "commits": 5,
            "active": 5,
        }
        assert (figures["first"], figures["last"]) == ("2026-02-02T02:41:00.000Z", "2026-02-02T02:53:00.000Z")

    def test_an_empty_history_has_figures_too(self) -> None:
        figures = text.stats_json(History())
        assert (figures["commits"], figures["first"], figures["head"]) == (0, None, "main")

    def test_tags_of_private_items_are_not_told_elsewhere(self) -> None:
        story = Story()
        draft = story.draft()
        draft.upsert("fact", "a secret", stated(), tags=["pills"], marked="private")
        draft.upsert("fact", "no secret", stated(), tags=["tea", "2026", "7.5"])
        story.end(draft)
        assert "tags       pills 1, tea 1\n" in text.stats(story.history)
        assert "pills 1, tea 1" in text.stats(story.history)
        assert "pills" not in str(text.figures(story.history, str, in_private=False))

    @given(histories())
    def test_any_history_has_figures_that_add_up(self, history: History) -> None:
        figures = text.stats_json(history)
        assert sum(figures["by"].values()) == len(history.commits)
        assert text.stats(history) and text.figures(history, str, people=True, in_private=False) is not None


class TestWhy:
    def story(self) -> Story:
        story = Story()
        told_by = inferred(evidence="I like tea, you know")
        story.say(
            "User likes tea.", origin=told_by, why="learned from talk", by="extraction", message="123/456"
        )
        held = next(iter(story.view().items.values()))
        story.fork("coding")
        story.say("User likes green tea.", "coding", item=held, by="command")
        story.say("User likes black tea.", item=held)
        return story

    def test_every_event_is_told_with_commit_source_and_evidence(self) -> None:
        story = self.story()
        held = next(iter(story.view().items.values()))
        first, second, third = story.history.commits
        assert text.why(story.history, held, link=lambda source: f"https://x/{source.message_id}") == (
            f"{held.id[8:]} [fact] User likes black tea.\n"
            "\n"
            f"2026-02-02 02:41Z commit {first} [main], by extraction, message 123/456\n"
            "  + add [fact] “User likes tea.”\n"
            "  source: https://x/456, inferred\n"
            "  evidence: “I like tea, you know”\n"
            "\n"
            f"2026-02-02 02:43Z commit {second} [coding], by command\n"
            "  ~ modify [fact] “User likes green tea.”\n"
            "  source: by hand, stated\n"
            "\n"
            f"2026-02-02 02:44Z commit {third} [main]\n"
            "  ~ modify [fact] “User likes black tea.”\n"
            "  source: by hand, stated"
        )

    def test_a_branch_leaves_out_what_others_did_but_not_what_it_merged(self) -> None:
        story = self.story()
        held = next(iter(story.view().items.values()))
        assert "green" not in text.why(story.history, held, link=str, branch="main")
        story.merge("coding")
        assert "green" in text.why(story.history, held, link=str, branch="main")
        with pytest.raises(Refused):
            text.why(story.history, held, link=str, branch="nowhere")

    def test_a_triple_and_what_changed_it_are_found(self) -> None:
        story = Story()
        first = story.bare("user", "likes", "tea").events[0]
        story.bare("user", "likes", "coffee", event_type="modify", parent_id=first.id)
        held = next(iter(story.view().items.values()))
        shown = text.why(story.history, held, link=str)
        assert "+ add “User likes tea”" in shown
        assert "~ modify “User likes coffee”" in shown

    def test_a_source_that_is_no_message_is_never_made_a_link(self) -> None:
        def never(source: Source) -> str:
            raise AssertionError(source)

        story = Story()
        for source in ("discord:../../x/1", "discord:1", "summary", "discord:1/2/3)", "\n- forged"):
            story.bare("user", "likes", source, source=source)
        for held in story.view().items.values():
            rows = text.why(story.history, held, link=never).splitlines()
            assert len(rows) == 5

    def test_an_item_nobody_recorded_is_told_as_such(self) -> None:
        shown = text.why(History(), item("User likes tea.", source=PUBLIC_MESSAGE), link=str)
        assert shown.endswith("\n\nthe history does not say where it came from")


class TestForgedRecords:
    def test_parents_of_events_that_form_a_circle_end(self) -> None:
        story = Story()
        first = story.bare("user", "likes", "tea", event_type="modify", parent_id="0" * 16)
        story.bare("user", "likes", "milk", event_type="modify", parent_id=first.events[0].id)
        assert text.log(story.history).count("~ modify") == 2

    def test_an_item_of_a_draft_with_any_id_stays_one_word(self) -> None:
        story = Story()
        draft: Draft = story.draft()
        apply_edits(draft, {}, [replace(item("x"), id="a b\nc")], stated())
        story.end(draft)
        assert "+ add     a_b_c [fact] “x” (manual)" in text.log(story.history)
        assert text.view(story.view()).startswith("a_b_c ")
