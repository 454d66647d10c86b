"""What waits for a person's yes: never remembered before it, never lost, the same in every replica."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.draft_patch import apply_patch
from discoclaw.core.errors import Refused
from discoclaw.core.event import decode_line, encode_line
from discoclaw.core.history import History
from discoclaw.core.item import Facets, Source
from discoclaw.core.patch import Patch
from discoclaw.core.pending import MOST_PENDING, is_proposal
from discoclaw.core.view import View, fold
from discoclaw.memory.subjects.verbs import drop_proposed, keep_proposed
from tests.core.builders import DEEDS, NOW, WORDS, Chronicle, Diary, inferred, live, proposed, shown, stated
from tests.examples import FEW
from tests.tables import each_row

TEA, COFFEE = "User likes tea.", "User likes coffee."
SAID = Source("discord", "7", "700")


def asking(**given: Any) -> Origin:
    """What was inferred about somebody who wants to be asked."""
    return inferred(**{"source": SAID, "needs_yes": True, **given})


def propose(diary: Diary, *texts: str, origin: Origin | None = None, **given: Any) -> None:
    draft = diary.draft()
    for text in texts:
        draft.upsert("fact", text, origin or asking(), **given)
    diary.keep(draft)


def answer(diary: Diary, *, yes: bool) -> None:
    draft = diary.draft()
    for one in diary.view.pending:
        (keep_proposed if yes else drop_proposed)(draft, one, stated())
    diary.keep(draft)


def waiting(view: View) -> list[str]:
    return [one.text for one in view.pending]


class TestAProposal:
    def test_waits_outside_the_items_with_its_words_and_where_they_were_said(self) -> None:
        diary = Diary()
        propose(diary, TEA, tags=["drinks"], marked="private")
        assert (diary.texts(), diary.view.items) == ([], {})
        (one,) = diary.view.pending
        assert (one.text, one.kind, one.sensitivity, one.source, one.at) == (
            TEA, "fact", "private", SAID, diary.now,
        )  # fmt: skip
        assert one.item.tags == ("drinks",)

    def test_that_says_what_is_remembered_or_waits_already_writes_nothing(self) -> None:
        diary = Diary()
        diary.remember(COFFEE)
        propose(diary, TEA)
        before = len(diary.commits)
        propose(diary, COFFEE, "user likes  TEA.", TEA)
        assert len(diary.commits) == before

    def test_to_change_or_forget_what_was_inferred_leaves_it_as_it_is(self) -> None:
        diary = Diary()
        tea = diary.remember(TEA, origin=inferred())
        coffee = diary.remember(COFFEE, origin=inferred())
        propose(diary, "User likes green tea.", given_id=tea.id)
        draft = diary.draft()
        assert draft.deprecate(coffee, asking()) == "proposed"
        diary.keep(draft)
        assert diary.texts() == [TEA, COFFEE]
        assert [(one.item.id, one.item.active) for one in diary.view.pending] == [
            (tea.id, True),
            (coffee.id, False),
        ]

    def test_against_what_the_person_stated_is_a_question_as_ever(self) -> None:
        diary = Diary()
        tea = diary.remember(TEA)
        propose(diary, COFFEE, given_id=tea.id)
        assert diary.view.pending == ()
        assert [one.text for one in diary.view.conflicts] == [COFFEE]

    def test_raises_privacy_at_once_but_says_nothing_new(self) -> None:
        diary = Diary()
        diary.remember(TEA, origin=inferred())
        propose(diary, TEA, marked="private")
        assert diary.view.pending == ()
        assert diary.view.active()[0].facets.sensitivity == "private"

    def test_of_a_thousand_things_only_so_many_are_written(self) -> None:
        diary = Diary()
        for number in range(0, 100, 5):
            patch = Patch(upserts=[proposed(f"Fact {number + more}.") for more in range(5)])
            draft = diary.draft()
            apply_patch(draft, patch, shown(asking()))
            assert diary.keep(draft) is not None
        assert len(diary.view.pending) == MOST_PENDING

    def test_beyond_the_limit_takes_the_place_of_the_oldest(self) -> None:
        diary = Diary()
        for number in range(MOST_PENDING + 2):
            propose(diary, f"Fact {number}.")
        assert waiting(diary.view) == [f"Fact {number}." for number in range(2, MOST_PENDING + 2)]


class TestAYes:
    def test_remembers_it_as_stated_with_its_source_tags_key_relation_and_links(self) -> None:
        diary = Diary()
        coffee = diary.remember(COFFEE)
        facets = Facets(
            key="drink", category="taste", links=frozenset({coffee.id}), triple=("user", "likes", "tea")
        )
        propose(diary, TEA, tags=["drinks"], marked="private", facets=facets)
        answer(diary, yes=True)
        assert diary.view.pending == ()
        tea = diary.view.active()[1]
        assert (tea.text, tea.tags, tea.source) == (TEA, ("drinks",), SAID)
        assert (tea.facets.author, tea.facets.sensitivity, tea.facets.key) == ("stated", "private", "drink")
        assert (tea.facets.category, tea.facets.triple) == ("taste", ("user", "likes", "tea"))
        assert tea.facets.links == {coffee.id}

    def test_to_a_change_changes_the_item_and_to_forgetting_forgets_it(self) -> None:
        diary = Diary()
        tea = diary.remember(TEA, origin=inferred())
        coffee = diary.remember(COFFEE, origin=inferred())
        propose(diary, "User likes green tea.", given_id=tea.id)
        draft = diary.draft()
        draft.deprecate(coffee, asking())
        diary.keep(draft)
        answer(diary, yes=True)
        assert diary.texts() == ["User likes green tea."]
        assert diary.view.items[tea.id].source == SAID
        assert diary.view.pending == ()

    def test_where_it_is_given_makes_nothing_private(self) -> None:
        diary = Diary()
        propose(diary, "User lives in Oslo.")
        draft = diary.draft()
        keep_proposed(draft, diary.view.pending[0], stated(private=True))
        diary.keep(draft)
        assert diary.view.active()[0].facets.sensitivity == "normal"

    def test_counts_once(self) -> None:
        diary = Diary()
        propose(diary, TEA)
        (one,) = diary.view.pending
        answer(diary, yes=True)
        for decide in (keep_proposed, drop_proposed):
            with pytest.raises(Refused, match="settled already, or has lapsed"):
                decide(diary.draft(), one, stated())


class TestANo:
    def test_ends_it_and_older_words_do_not_ask_again(self) -> None:
        diary = Diary()
        propose(diary, TEA, origin=asking(said_at=NOW))
        answer(diary, yes=False)
        assert (diary.texts(), diary.view.pending) == ([], ())
        propose(diary, TEA, origin=asking(said_at=NOW))
        assert diary.view.pending == ()
        propose(diary, TEA, origin=asking(said_at=diary.now + 1))
        assert waiting(diary.view) == [TEA]

    def test_to_a_change_keeps_older_words_from_asking_again_too(self) -> None:
        diary = Diary()
        tea = diary.remember(TEA, origin=inferred(said_at=NOW))
        green = "User likes green tea."
        propose(diary, green, given_id=tea.id, origin=asking(said_at=NOW))
        answer(diary, yes=False)
        propose(diary, green, given_id=tea.id, origin=asking(said_at=NOW))
        assert (diary.texts(), diary.view.pending) == ([TEA], ())
        propose(diary, green, given_id=tea.id, origin=asking(said_at=diary.now + 1))
        assert waiting(diary.view) == [green]

    def test_to_forgetting_confirms_what_was_to_be_forgotten(self) -> None:
        diary = Diary()
        tea = diary.remember(TEA, origin=inferred())
        draft = diary.draft()
        draft.deprecate(tea, asking())
        diary.keep(draft)
        answer(diary, yes=False)
        assert diary.view.items[tea.id].facets.author == "stated"
        assert diary.view.pending == ()


class TestWhatThePersonSays:
    @each_row("words", [TEA, "user likes  TEA."])
    def test_remembering_the_same_settles_it(self, words: str) -> None:
        diary = Diary()
        propose(diary, TEA)
        diary.remember(words)
        assert diary.view.pending == ()

    def test_forgetting_or_changing_the_item_settles_it_and_something_else_does_not(self) -> None:
        for how in ("forget", "change", "something else"):
            diary = Diary()
            tea = diary.remember(TEA, origin=inferred())
            propose(diary, "User likes green tea.", given_id=tea.id)
            if how == "forget":
                diary.deprecate(tea)
            elif how == "change":
                diary.remember("User likes cocoa.", given_id=tea.id)
            else:
                diary.remember(COFFEE)
            assert len(diary.view.pending) == (how == "something else"), how


class TestTwoBranches:
    def both(self) -> Chronicle:
        chronicle = Chronicle()
        chronicle.remember("lives in Oslo")
        chronicle.fork("coding")
        chronicle.change(lambda draft: draft.upsert("fact", TEA, asking()), on="coding")
        return chronicle

    def decide(self, chronicle: Chronicle, on: str, *, yes: bool) -> None:
        def wish(draft: Draft) -> None:
            for one in draft.view.pending:
                (keep_proposed if yes else drop_proposed)(draft, one, stated())

        chronicle.change(wish, on=on)

    def test_a_merge_and_a_copy_bring_it_still_waiting(self) -> None:
        chronicle = self.both()
        chronicle.merge("coding")
        assert (waiting(chronicle.view()), chronicle.texts()) == ([TEA], ["lives in Oslo"])
        chronicle = self.both()
        head = chronicle.head("coding")
        assert head is not None
        chronicle.pick(head)
        assert (waiting(chronicle.view()), chronicle.texts()) == ([TEA], ["lives in Oslo"])
        assert chronicle.view().pending[0].source == SAID

    @each_row("yes", [True, False])
    def test_an_answer_there_counts_here(self, yes: bool) -> None:
        chronicle = self.both()
        chronicle.merge("coding")
        self.decide(chronicle, "coding", yes=yes)
        chronicle.merge("coding")
        assert chronicle.view().pending == ()
        assert (TEA in chronicle.texts()) == yes

    @each_row("yes", [True, False])
    def test_what_was_answered_here_is_not_asked_again(self, yes: bool) -> None:
        chronicle = self.both()
        chronicle.change(lambda draft: draft.upsert("fact", TEA, asking()))
        self.decide(chronicle, "main", yes=yes)
        chronicle.merge("coding")
        assert chronicle.view().pending == ()
        assert (TEA in chronicle.texts()) == yes

    def test_an_undo_takes_a_proposal_back_and_an_answer_too(self) -> None:
        chronicle = Chronicle()
        chronicle.change(lambda draft: draft.upsert("fact", TEA, asking()))
        self.decide(chronicle, "main", yes=True)
        chronicle.undo()
        assert (waiting(chronicle.view()), chronicle.texts()) == ([TEA], [])
        chronicle.undo()
        assert (chronicle.view().pending, chronicle.texts()) == ((), [])


def lived(deeds: Any, seed: int) -> Chronicle:
    """A random life, in which things are proposed and answered between the other deeds."""
    chronicle, dice = Chronicle(), random.Random(seed)
    for deed in deeds:
        live(chronicle, [deed])
        names = sorted(chronicle.history.branches.all)
        chronicle.change(lambda draft: _decide(draft, dice), on=dice.choice(names))
    return chronicle


def _decide(draft: Draft, dice: random.Random) -> None:
    pending, items = draft.view.pending, list(draft.items.values())
    act = dice.randrange(5)
    if act == 0:
        draft.upsert("fact", f"{dice.choice(WORDS)} a lot", asking())
    elif act == 1 and items:
        draft.upsert("fact", f"{dice.choice(WORDS)} a lot", asking(), given_id=dice.choice(items).id)
    elif act == 2 and items:
        draft.deprecate(dice.choice(items), asking())
    elif act == 3 and pending:
        dice.choice((keep_proposed, drop_proposed))(draft, dice.choice(pending), stated())


def claims(view: View) -> set[tuple[str, str, str]]:
    return {one.key for one in view.pending}


class TestForAnyHistoryWithProposals:
    @FEW
    @given(DEEDS, st.integers(0, 2**32), st.randoms(use_true_random=False))
    def test_what_waits_is_the_same_in_every_order_is_no_item_and_waits_again_at_a_restored_point(
        self, deeds: Any, seed: int, dice: random.Random
    ) -> None:
        chronicle = lived(deeds, seed)
        shuffled = list(chronicle.records)
        dice.shuffle(shuffled)
        one, other = chronicle.history, History(shuffled)
        for name in one.branches.all:
            head = one.branch(name).head
            assert one.view(head) == other.view(other.branch(name).head)
            silent = [_without_proposals(commit) for commit in one.chain(head)]
            assert fold(silent).items == one.view(head).items
        for commit in one.commits:
            view = one.view(commit)
            held = {(item.id, item.text.lower(), item.status) for item in view.items.values()}
            assert not {(one.item.id, one.text.lower(), one.item.status) for one in view.pending} & held
        for commit in list(one.commits)[-3:]:
            chronicle.restore(commit)
            assert claims(chronicle.view()) == claims(chronicle.history.view(commit))

    @FEW
    @given(DEEDS, DEEDS, st.integers(0, 2**32))
    def test_two_replicas_united_in_either_order_have_the_same_pending(
        self, deeds: Any, more: Any, seed: int
    ) -> None:
        here = lived(deeds, seed)
        there = here.replica(later=7)
        live(here, more[:3])
        here.change(lambda draft: draft.upsert("fact", TEA, asking()))
        there.change(lambda draft: draft.upsert("fact", TEA, asking()))
        one = History([*here.records, *there.records])
        other = History([*there.records, *here.records])
        for name in one.branches.all:
            view = one.view(one.branch(name).head)
            assert view.pending == other.view(other.branch(name).head).pending
            assert len(claims(view)) == len(view.pending)  # what both propose waits once


def _without_proposals(commit: Any) -> Any:
    """The commit as a version that knows no proposals folds it."""
    line = json.loads(encode_line(commit))
    kept = [event for event in commit.events if not is_proposal(event)]
    assert decode_line(encode_line(commit)).id == line["id"]
    return type(commit)(
        branch=commit.branch,
        events=tuple(kept),
        message=commit.message,
        parent_id=commit.parent_id,
        timestamp=commit.timestamp,
    )


class TestAMalformedProposal:
    @each_row("noted", [{}, {"settled": 7}, {"settled": "never heard of"}, {"new": [1]}])
    def test_is_folded_all_the_same(self, noted: dict[str, Any]) -> None:
        diary = Diary()
        diary.remember(COFFEE)
        draft = diary.draft()
        item = diary.view.active()[0]
        draft.emit("observe", item, {"text": TEA}, inferred(), noted={"proposal": noted})
        diary.keep(draft)
        assert diary.texts() == [COFFEE]
