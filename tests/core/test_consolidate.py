"""The rules of consolidation: what a model may tidy away, and what stays whatever it says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.consolidate import (
    MOST_QUESTIONS,
    ConsolidationReport,
    PastDecisions,
    apply_proposal,
    available,
    past_decisions,
)
from discoclaw.core.draft import Draft
from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.history import History
from discoclaw.core.item import Item, Source
from discoclaw.core.merge import MergeContext, revert
from discoclaw.core.patch import Consolidation, Contradiction, Duplicate, Outdated, Suggestion
from discoclaw.core.text import normalise
from discoclaw.models.structured import checked
from tests.core.builders import NOW, Diary, inferred, stated
from tests.tables import each_row

PAGE = Source("discord", "7", "70")


def learned(diary: Diary, text: str, kind: str = "preference", **given: Any) -> Item:
    """An item a model concluded from an open message."""
    return diary.remember(text, kind, inferred(source=PAGE, said_at=diary.now), **given)


def said(diary: Diary, text: str, kind: str = "preference", **given: Any) -> Item:
    """An item the person stated."""
    return diary.remember(text, kind, stated(), **given)


def tidy(diary: Diary, proposal: Consolidation, shown: list[Item] | None = None) -> ConsolidationReport:
    """Apply a proposal about all items, or those shown, and commit it as consolidation does."""
    items = list(diary.view.items.values()) if shown is None else shown
    draft = diary.draft()
    origin = inferred(source=Source(), said_at=draft.now_ms)
    by_id = {item.id: item for item in items}
    report = apply_proposal(draft, proposal, by_id, origin, past_decisions(diary.commits))
    commit = draft.commit("a test", consolidated=report.counts)
    if commit is not None:
        diary.commits.append(commit)
        diary.view = diary.view.after(commit)
    return report


def same(keep: Item, *drop: Item, text: str | None = None) -> Consolidation:
    entry = Duplicate(keep=keep.id, drop=[item.id for item in drop], text=text)
    return Consolidation(duplicates=[entry])


def against(older: Item, newer: Item, reason: str = "both cannot be") -> Consolidation:
    return Consolidation(contradictions=[Contradiction(older=older.id, newer=newer.id, reason=reason)])


def over(*items: Item, reason: str = "it is over") -> Consolidation:
    return Consolidation(outdated=[Outdated(id=item.id, reason=reason) for item in items])


def now(diary: Diary, item: Item) -> Item:
    return diary.view.items[item.id]


class TestDuplicates:
    def test_the_kept_one_gets_all_tags_and_the_others_are_set_aside(self) -> None:
        diary = Diary()
        keep = learned(diary, "User prefers tabs.", tags=["tabs"])
        drop = learned(diary, "User likes tabs more.", tags=["indent", "tabs"])
        report = tidy(diary, same(keep, drop))
        assert (now(diary, keep).text, now(diary, keep).tags) == ("User prefers tabs.", ("tabs", "indent"))
        assert not now(diary, drop).active
        event = diary.commits[-1].events[-1]
        assert (event.evidence, event.ext["item"]["status"]) == (f"duplicate of {keep.id}", "deprecated")
        assert report.summary == "1 duplicate merged"
        assert report.lines[0].text == "the same: User prefers tabs. / User likes tabs more."

    def test_the_merged_text_takes_the_place_of_the_kept_ones(self) -> None:
        diary = Diary()
        keep, drop = learned(diary, "User drinks tea."), learned(diary, "User drinks tea with milk.")
        tidy(diary, same(keep, drop, text=" User drinks  tea with milk. "))
        assert diary.texts() == ["User drinks tea with milk."]
        assert now(diary, keep).active

    def test_the_message_it_came_from_stays_the_source_of_a_merged_text(self) -> None:
        diary = Diary()
        by_tool = diary.remember("User drinks tea.", "preference", inferred(source=Source()))
        drop = learned(diary, "User drinks green tea.")
        tidy(diary, same(by_tool, drop, text="User drinks green tea."))
        assert now(diary, by_tool).source == PAGE

    @each_row("text", ["x" * 40, "x" * 1001, "\u200b"])
    def test_an_impossible_text_refuses_the_entry(self, text: str) -> None:
        diary = Diary()
        keep, drop = learned(diary, "User drinks tea."), learned(diary, "User drinks teas.")
        before = diary.view
        assert len(tidy(diary, same(keep, drop, text=text)).refused) == 1
        assert diary.view == before

    def test_half_as_long_again_is_the_most(self) -> None:
        diary = Diary()
        keep, drop = learned(diary, "a" * 20), learned(diary, "b" * 10)
        tidy(diary, same(keep, drop, text="c" * 30))
        assert diary.texts() == ["c" * 30]

    def test_what_was_stated_stays_whichever_one_the_model_chose(self) -> None:
        diary = Diary()
        guess, word = learned(diary, "User likes tabs.", tags=["tabs"]), said(diary, "User prefers tabs.")
        report = tidy(diary, same(guess, word))
        assert now(diary, word) == word and not now(diary, guess).active
        assert report.merged == 1

    def test_a_stated_one_keeps_its_words_and_tags(self) -> None:
        diary = Diary()
        word, guess = said(diary, "User prefers tabs."), learned(diary, "User likes tabs.", tags=["tabs"])
        tidy(diary, same(word, guess, text="User prefers tabs!"))
        assert now(diary, word) == word and not now(diary, guess).active

    def test_what_a_stated_one_can_not_take_over_is_not_lost(self) -> None:
        diary = Diary()
        word, guess = said(diary, "User prefers tabs."), learned(diary, "User prefers tabs in Go.")
        report = tidy(diary, same(word, guess, text="User prefers tabs in Go."))
        assert now(diary, guess).active and report.merged == 0 and len(report.refused) == 1

    def test_two_that_were_stated_are_both_left_and_that_is_said(self) -> None:
        diary = Diary()
        one, other = said(diary, "User prefers tabs."), said(diary, "User likes tabs best.")
        guess = learned(diary, "User likes tabs.")
        report = tidy(diary, same(one, other, guess))
        assert [now(diary, item).active for item in (one, other, guess)] == [True, True, False]
        assert report.lines[1].text == "kept as they were stated: User prefers tabs. / User likes tabs best."

    def test_tags_beyond_the_most_are_left_out(self) -> None:
        diary = Diary()
        keep = learned(diary, "User prefers tabs.", tags=[f"a{number}" for number in range(16)])
        drop = learned(diary, "User likes tabs.", tags=["b"])
        tidy(diary, same(keep, drop))
        assert now(diary, keep).tags == keep.tags and not now(diary, drop).active


class TestPrivacy:
    def test_an_open_item_stays_for_a_private_one_that_says_the_same(self) -> None:
        diary = Diary()
        secret = learned(diary, "User likes tea a lot.", marked="private", tags=["rehab"])
        shown = learned(diary, "User likes tea.", tags=["tea"])
        report = tidy(diary, same(secret, shown))
        assert now(diary, shown) == shown and not now(diary, secret).active
        assert [line.sensitivity for line in report.lines] == ["private"]

    def test_no_text_is_merged_across_levels(self) -> None:
        diary = Diary()
        shown = learned(diary, "User likes tea.")
        secret = learned(diary, "User likes tea in rehab.", marked="private")
        report = tidy(diary, same(shown, secret, text="User likes tea in rehab."))
        assert (now(diary, shown), now(diary, secret)) == (shown, secret) and len(report.refused) == 1

    def test_a_stated_private_item_and_an_open_one_are_both_left(self) -> None:
        diary = Diary()
        secret, shown = said(diary, "User likes teas.", marked="private"), learned(diary, "User likes tea.")
        tidy(diary, same(secret, shown))
        assert now(diary, secret).active and now(diary, shown).active

    def test_a_merged_private_text_stays_private(self) -> None:
        diary = Diary()
        one, other = (learned(diary, text, marked="private") for text in ("User naps.", "User naps daily."))
        tidy(diary, same(one, other, text="User naps daily."))
        assert now(diary, one).facets.sensitivity == "private"
        assert {event.sensitivity for event in diary.commits[-1].events} == {"private"}

    @each_row("where", ["text", "reason", "outdated"])
    def test_words_that_tell_a_private_item_are_refused(self, where: str) -> None:
        diary = Diary()
        learned(diary, "User naps.", marked="private")
        one, other = learned(diary, "User drinks much tea."), learned(diary, "User drinks much green tea.")
        told = "Well, user  NAPS."
        proposal = {
            "text": same(one, other, text=told),
            "reason": against(one, other, told),
            "outdated": over(one, reason=told),
        }[where]
        before = diary.view
        assert len(tidy(diary, proposal).refused) == 1
        assert diary.view == before

    def test_what_the_open_items_say_themselves_is_no_secret(self) -> None:
        diary = Diary()
        learned(diary, "tea", marked="private")
        one, other = learned(diary, "User drinks tea."), learned(diary, "User drinks green tea.")
        assert tidy(diary, same(one, other, text="User drinks green tea.")).merged == 1

    def test_a_contradiction_across_levels_is_a_private_question(self) -> None:
        diary = Diary()
        guess, word = learned(diary, "User likes tea."), said(diary, "User hates tea.", marked="private")
        assert tidy(diary, against(guess, word)).questions == 1
        assert diary.view.conflicts[0].sensitivity == "private" and now(diary, guess).active


class TestContradictions:
    def test_of_two_that_were_inferred_the_person_decides(self) -> None:
        diary = Diary()
        older, newer = learned(diary, "User likes tea."), learned(diary, "User hates tea.")
        report = tidy(diary, against(older, newer, " tea \n or not "))
        (conflict,) = diary.view.conflicts
        assert (conflict.item_id, conflict.text, conflict.other_id) == (older.id, newer.text, newer.id)
        assert conflict.reason == "tea or not"
        assert (report.summary, diary.texts()) == ("1 question", [older.text, newer.text])

    def test_what_was_stated_since_ends_what_was_inferred(self) -> None:
        diary = Diary()
        older, newer = learned(diary, "User likes tea."), said(diary, "User hates tea.")
        report = tidy(diary, against(older, newer))
        assert diary.texts() == [newer.text] and report.summary == "1 outdated"
        assert diary.commits[-1].events[0].evidence == f"contradicted by {newer.id}: both cannot be"

    def test_what_was_inferred_since_is_a_question(self) -> None:
        diary = Diary()
        older, newer = said(diary, "User likes tea."), learned(diary, "User hates tea.")
        assert tidy(diary, against(older, newer)).questions == 1
        assert now(diary, older) == older and now(diary, newer).active

    def test_two_that_were_stated_are_a_question(self) -> None:
        diary = Diary()
        older, newer = said(diary, "User likes tea."), said(diary, "User hates tea.")
        assert tidy(diary, against(older, newer)).questions == 1
        assert diary.texts() == [older.text, newer.text]

    def test_the_dates_say_what_is_older_not_the_model(self) -> None:
        diary = Diary()
        word, guess = said(diary, "User likes tea."), learned(diary, "User hates tea.")
        assert tidy(diary, against(guess, word)).questions == 1  # the model had it the other way round
        assert diary.view.conflicts[0].item_id == word.id and now(diary, guess).active

    def test_a_settled_one_is_not_asked_again_whichever_way_round(self) -> None:
        diary = Diary()
        older, newer = learned(diary, "User likes tea."), learned(diary, "User likes coffee.")
        tidy(diary, against(older, newer))
        draft = diary.draft()
        draft.settle(diary.view.conflicts[0], "both_valid", stated())
        diary.keep(draft)
        for proposal in (against(older, newer), against(newer, older)):
            report = tidy(diary, proposal)
            assert report.questions == 0 and len(report.refused) == 1
        assert diary.view.conflicts == ()

    def test_new_words_make_a_new_question(self) -> None:
        diary = Diary()
        older, newer = learned(diary, "User likes tea."), learned(diary, "User likes coffee.")
        tidy(diary, against(older, newer))
        draft = diary.draft()
        draft.settle(diary.view.conflicts[0], "both_valid", stated())
        draft.upsert("preference", "User likes tea only.", stated(), given_id=older.id)
        diary.keep(draft)
        assert tidy(diary, against(now(diary, newer), now(diary, older))).questions == 1

    def test_not_more_questions_than_somebody_answers(self) -> None:
        diary = Diary()
        pairs = [
            (learned(diary, f"User likes number {n}."), learned(diary, f"User hates {n}."))
            for n in range(MOST_QUESTIONS + 2)
        ]
        entries = [Contradiction(older=one.id, newer=other.id) for one, other in pairs]
        report = tidy(diary, Consolidation(contradictions=entries))
        assert (report.questions, len(report.refused)) == (MOST_QUESTIONS, 2)
        assert len(diary.view.conflicts) == MOST_QUESTIONS


class TestOutdated:
    def test_what_was_inferred_is_set_aside_with_the_reason(self) -> None:
        diary = Diary()
        item = learned(diary, "User is on holiday until Friday.")
        assert tidy(diary, over(item)).summary == "1 outdated"
        assert diary.texts() == [] and diary.commits[-1].events[0].evidence == "it is over"

    def test_what_was_stated_becomes_a_question(self) -> None:
        diary = Diary()
        item = said(diary, "User is on holiday until Friday.")
        assert tidy(diary, over(item)).summary == "1 question"
        assert now(diary, item) == item
        (conflict,) = diary.view.conflicts
        assert (conflict.item_id, conflict.text, conflict.reason) == (item.id, "", "it is over")

    def test_a_person_who_said_it_holds_is_not_asked_again(self) -> None:
        diary = Diary()
        item = said(diary, "User is on holiday until Friday.")
        tidy(diary, over(item))
        draft = diary.draft()
        draft.settle(diary.view.conflicts[0], "keep_old", stated())
        diary.keep(draft)
        assert tidy(diary, over(item)).questions == 0 and diary.view.conflicts == ()


class TestWhatIsRefused:
    @each_row(
        "entry",
        [
            Duplicate(keep="durable-00000000", drop=["0"]),
            Duplicate(keep="0", drop=["durable-00000000"]),
            Duplicate(keep="0", drop=["0"]),
            Duplicate(keep="0", drop=["1", "0"]),
            Duplicate(keep="0", drop=["1", "1"]),
            Duplicate(keep="0", drop=[]),
            Contradiction(older="0", newer="0"),
            Contradiction(older="0", newer="x" * 5000),
            Outdated(id=""),
        ],
    )
    def test_an_entry_of_nonsense_while_the_rest_applies(self, entry: Any) -> None:
        diary = Diary()
        items = [learned(diary, f"User likes thing number {n}.") for n in range(4)]

        def named(value: Any) -> Any:
            return items[int(value)].id if isinstance(value, str) and value in ("0", "1") else value

        fields = {
            name: [named(one) for one in value] if isinstance(value, list) else named(value)
            for name, value in entry.model_dump().items()
        }
        lists: dict[str, list[Any]] = {"duplicates": [], "contradictions": [], "outdated": []}
        name = {Duplicate: "duplicates", Contradiction: "contradictions", Outdated: "outdated"}[type(entry)]
        lists[name].append(type(entry)(**fields))
        lists["outdated"].append(Outdated(id=items[3].id))
        report = tidy(diary, Consolidation(**lists))
        assert len(report.refused) == 1 and len(report.refused[0]) < 200
        assert [now(diary, item).active for item in items] == [True, True, True, False]

    def test_an_item_that_two_entries_name_goes_to_the_first(self) -> None:
        diary = Diary()
        one, other = learned(diary, "User likes tea."), learned(diary, "User likes teas.")
        proposal = Consolidation(
            duplicates=same(one, other).duplicates, outdated=[Outdated(id=one.id, reason="old")]
        )
        report = tidy(diary, proposal)
        assert report.summary == "1 duplicate merged" and now(diary, one).active
        assert report.refused == (f"{one.id} is named twice",)

    @each_row("change", ["text", "status", "private", "stated", "gone"])
    def test_what_changed_since_it_was_shown_is_left_alone(self, change: str) -> None:
        diary = Diary()
        keep, drop = learned(diary, "User likes tea."), learned(diary, "User likes teas.")
        shown = [keep, drop]
        draft = diary.draft()
        if change == "text":
            draft.upsert("preference", "User likes mate.", inferred(), given_id=drop.id)
        elif change == "status":
            draft.deprecate(keep, stated())
        elif change == "private":
            draft.mark(drop, "private", stated())
        elif change == "stated":
            draft.upsert("preference", drop.text, stated(), given_id=drop.id)
        else:
            draft.remove(drop, stated())
        diary.keep(draft)
        before = diary.view
        report = tidy(diary, same(keep, drop), shown)
        assert report.summary == "" and len(report.refused) == 1 and diary.view == before

    def test_what_waits_for_the_persons_answer_is_left_alone(self) -> None:
        diary = Diary()
        older, newer = learned(diary, "User likes tea."), learned(diary, "User hates tea.")
        third = learned(diary, "User likes teas.")
        tidy(diary, against(older, newer))
        before = diary.view
        assert tidy(diary, same(third, older)).merged == 0
        assert tidy(diary, over(newer)).outdated == 0
        assert diary.view == before

    def test_what_was_not_shown_can_not_be_named(self) -> None:
        diary = Diary()
        shown, hidden = learned(diary, "User likes tea."), learned(diary, "User likes teas.")
        assert tidy(diary, same(shown, hidden), [shown]).merged == 0

    def test_a_proposal_that_empties_a_memory_is_refused_as_a_whole(self) -> None:
        diary = Diary()
        items = [learned(diary, f"User likes thing number {n}.") for n in range(22)]
        before = diary.view
        assert len(tidy(diary, same(*items)).refused) == 1 and diary.view == before
        assert tidy(diary, same(*items[:12])).merged == 11


class TestWhatWasDecided:
    def test_what_a_person_brought_back_is_not_set_aside_again(self) -> None:
        diary = Diary()
        keep, drop = learned(diary, "User likes tea."), learned(diary, "User likes teas.")
        tidy(diary, same(keep, drop, text="User likes teas."))
        history = History(diary.commits)
        undone = revert(history, diary.commits[-1].id, MergeContext("main", stated(), diary.now + 1)).commit
        assert undone is not None
        diary.commits.append(undone)
        diary.view = diary.view.after(undone)
        assert diary.texts() == ["User likes tea.", "User likes teas."]
        keep, drop = now(diary, keep), now(diary, drop)
        assert len(tidy(diary, same(keep, drop)).refused) == 1
        assert diary.texts() == ["User likes tea.", "User likes teas."]

    def test_what_was_only_learned_again_is(self) -> None:
        diary = Diary()
        keep, drop = learned(diary, "User likes tea."), learned(diary, "User likes teas.")
        tidy(diary, same(keep, drop))
        draft = diary.draft()
        draft.upsert("preference", "User likes teas.", inferred())
        commit = draft.commit("learned from talk", by="extraction")
        assert commit is not None
        diary.commits.append(commit)
        diary.view = diary.view.after(commit)
        assert tidy(diary, same(now(diary, keep), now(diary, drop))).merged == 1

    def test_of_no_history_nothing_was(self) -> None:
        assert past_decisions([]) == PastDecisions()


class TestReport:
    def test_it_says_when_there_is_nothing(self) -> None:
        assert ConsolidationReport().text(in_private=True) == "Nothing to tidy."

    def test_it_counts_and_in_the_open_keeps_what_is_private(self) -> None:
        diary = Diary()
        one, other = (learned(diary, text, marked="private") for text in ("User naps.", "User naps daily."))
        three, four = learned(diary, "User likes tea."), learned(diary, "User likes teas.")
        proposal = Consolidation(duplicates=[*same(one, other).duplicates, *same(three, four).duplicates])
        report = tidy(diary, proposal)
        assert report.text(in_private=True) == (
            "Tidied: 2 duplicates merged.\n"
            "- the same: User naps. / User naps daily.\n"
            "- the same: User likes tea. / User likes teas."
        )
        assert report.text(in_private=False) == (
            "Tidied: 2 duplicates merged.\n- (private)\n- the same: User likes tea. / User likes teas."
        )

    def test_two_add_up(self) -> None:
        both = ConsolidationReport(1, 2, 0, branch="main") + ConsolidationReport(1, 0, 1, refused=("no",))
        assert (both.summary, both.branch, both.refused) == (
            "2 duplicates merged, 2 outdated, 1 question",
            "main",
            ("no",),
        )


class TestTheShape:
    def test_everything_that_is_documented_is_taken(self) -> None:
        given = {
            "duplicates": [{"keep": "a", "drop": ["b"], "text": "x"}, {"keep": "c", "drop": []}],
            "contradictions": [{"older": "a", "newer": "b", "reason": "r"}],
            "outdated": [{"id": "a", "reason": "r"}],
        }
        taken = checked(json.dumps(given), Consolidation)
        assert taken.duplicates[1] == Duplicate(keep="c", drop=[], text=None)
        assert taken.outdated == [Outdated(id="a", reason="r")]
        assert checked("{}", Consolidation) == Consolidation()
        assert checked('{"how": "both_valid", "reason": "r"}', Suggestion).how == "both_valid"

    @each_row(
        "value",
        [
            {"duplicates": [{"keep": "a"}]},
            {"duplicates": [{"keep": "a", "drop": "b"}]},
            {"duplicates": [{"keep": 1, "drop": []}]},
            {"contradictions": [{"older": "a"}]},
            {"contradictions": [["a", "b"]]},
            {"outdated": ["a"]},
            {"outdated": [{"id": "a", "reason": None}]},
        ],
    )
    def test_a_flawed_proposal_costs_itself_and_no_other(self, value: dict[str, Any]) -> None:
        sound = {"duplicates": {"keep": "a", "drop": ["b"]}, "contradictions": {"older": "a", "newer": "b"}}
        ((name, flawed),) = value.items()
        one = sound.get(name, {"id": "a"})
        given = json.dumps({name: [*flawed, one]})
        assert checked(given, Consolidation) == checked(json.dumps({name: [one]}), Consolidation)

    @each_row("value", [{"extra": 1}, {"duplicates": {}}, {"outdated": "a"}])
    def test_an_object_that_is_something_else_is_refused(self, value: dict[str, Any]) -> None:
        with pytest.raises(ModelBadOutput):
            checked(json.dumps(value), Consolidation)

    @each_row("value", [{}, {"how": "ask"}, {"how": "keep_old", "why": "x"}, {"how": None}])
    def test_a_suggestion_is_one_of_three(self, value: dict[str, Any]) -> None:
        with pytest.raises(ModelBadOutput):
            checked(json.dumps(value), Suggestion)


KINDS = ("stated", "inferred")
LEVELS = ("normal", "private", "confidential")


@st.composite
def memories(draw: st.DrawFn) -> Diary:
    """Items of every author and level, each with words and a tag of its own."""
    diary = Diary()
    for number in range(draw(st.integers(2, 7))):
        author, level = draw(st.sampled_from(KINDS)), draw(st.sampled_from(LEVELS))
        remember = said if author == "stated" else learned
        remember(diary, f"User likes {level} thing{number}x.", marked=level, tags=[f"{level}{number}"])
    return diary


def proposals(diary: Diary) -> st.SearchStrategy[Consolidation]:
    """Whatever a model may say, wild and tame, about the items of a memory."""
    texts = [item.text for item in diary.view.items.values()]
    ids = st.sampled_from([*diary.view.items, "durable-00000000", ""])
    words = st.one_of(
        st.none(),
        st.text(max_size=30),
        st.lists(st.sampled_from(texts), max_size=2).map(" ".join),
    )
    reasons = words.map(lambda text: text or "")
    return st.builds(
        Consolidation,
        duplicates=st.lists(
            st.builds(Duplicate, keep=ids, drop=st.lists(ids, max_size=4), text=words), max_size=3
        ),
        contradictions=st.lists(st.builds(Contradiction, older=ids, newer=ids, reason=reasons), max_size=3),
        outdated=st.lists(st.builds(Outdated, id=ids, reason=reasons), max_size=3),
    )


class TestWhateverAModelSays:
    @given(st.data())
    def test_stated_items_stay_private_ones_stay_private_and_the_counts_are_what_happened(
        self, data: st.DataObject
    ) -> None:
        diary = data.draw(memories())
        before = diary.view
        report = tidy(diary, data.draw(proposals(diary)))
        after = diary.view
        assert list(after.items) == list(before.items), "nothing is lost"
        gone = [key for key, item in before.items.items() if item.active and not after.items[key].active]
        assert len(gone) == report.merged + report.outdated
        assert len(after.conflicts) - len(before.conflicts) == report.questions
        assert bool(report.summary) == (len(diary.commits) > before.commits)
        for key, item in before.items.items():
            if item.facets.author == "stated":
                assert after.items[key] == item
            assert after.items[key].facets == item.facets  # nobody becomes less private, or more certain
        secrets = {
            normalise(item.text) for item in before.items.values() if item.facets.sensitivity != "normal"
        }
        for item in after.items.values():
            if item.facets.sensitivity == "normal":
                assert not any(secret in normalise(item.text) for secret in secrets)
                assert not any(tag.startswith(("private", "confidential")) for tag in item.tags)
        for event in diary.commits[-1].events if report.summary else ():
            if event.sensitivity == "normal":
                told = normalise(f"{event.object} {event.evidence} {event.ext.get('conflict', '')}")
                assert not any(secret in told for secret in secrets)
        shown = report.text(in_private=False)
        assert not any(secret in normalise(shown) for secret in secrets)

    @given(st.data())
    def test_a_second_time_the_same_changes_nothing_more(self, data: st.DataObject) -> None:
        diary = data.draw(memories())
        shown = list(diary.view.items.values())
        proposal = data.draw(proposals(diary))
        tidy(diary, proposal, shown)
        before = diary.view
        gone = [item for item in shown if before.items[item.id] != item]
        tidy(diary, proposal, gone)
        assert diary.view == before


def test_only_active_items_without_an_open_question_are_available() -> None:
    diary = Diary()
    one, other = learned(diary, "User likes tea."), learned(diary, "User likes coffee.")
    third = learned(diary, "User likes mate.")
    diary.deprecate(third)
    assert available(diary.view.items.values(), [one.id, ""]) == [other]


def test_the_draft_decides_by_the_time_the_items_were_looked_at() -> None:
    diary = Diary()
    item = said(diary, "User is on holiday.")
    draft = Draft(diary.view, now_ms=diary.now + 1)
    origin = inferred(source=Source(), said_at=NOW)  # before the person said it
    report = apply_proposal(draft, over(item), {item.id: item}, origin)
    assert draft.events == [] and report.refused == (f"{item.id} was stated again since it was shown",)


class TestADuplicateWithAKey:
    def test_is_the_one_that_stays(self) -> None:
        diary = Diary()
        zone = diary.remember("User's time zone is Europe/Berlin.", origin=inferred())
        other = diary.remember("User is in time zone Europe/Berlin.", origin=inferred())
        draft = diary.draft()
        proposal = Consolidation(duplicates=[Duplicate(keep=other.id, drop=[zone.id], text=zone.text)])
        apply_proposal(draft, proposal, {zone.id: zone, other.id: other}, inferred(said_at=draft.now_ms))
        diary.keep(draft)
        (left,) = diary.view.active()
        assert (left.id, left.facets.key) == (zone.id, "timezone")


def test_a_batch_of_flawed_proposals_has_nothing_to_tidy() -> None:
    assert checked('{"outdated": ["durable-00000001"]}', Consolidation) == Consolidation()
