"""What a person settles, and what else came with the history: keys, links, triples, taking, erasing."""

from typing import Any

import pytest
from hypothesis import given

from discoclaw.core.draft import RESOLUTIONS, Draft, Resolution
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event
from discoclaw.core.item import MANUAL, Facets, Item, Source, item_id
from discoclaw.core.times import iso_ms
from discoclaw.core.view import EMPTY, Conflict, View
from tests.core.builders import (
    DAY,
    DEEDS_AND_REVERTS,
    NOW,
    PUBLIC_MESSAGE,
    Chronicle,
    Diary,
    inferred,
    live,
    question,
    stated,
)
from tests.examples import FEW
from tests.tables import each_row


def settled(diary: Diary, how: Resolution, **origin: Any) -> Commit:
    """Settle the one open conflict."""
    (open_,) = diary.view.conflicts
    draft = diary.draft()
    draft.settle(open_, how, stated(**origin))
    commit = diary.keep(draft)
    assert commit is not None
    assert diary.view.conflicts == ()
    return commit


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def disputed(diary: Diary) -> Diary:
    """Tea was stated; later talk, in a DM, says juice."""
    tea = diary.remember("likes tea", tags=["drink"])
    diary.remember("likes juice", origin=inferred(evidence="“juice, please”", private=True), given_id=tea.id)
    (open_,) = diary.view.conflicts
    assert question(open_) == (tea.id, "likes juice", "“juice, please”", "private", "")
    return diary


class TestLaterTalkAgainstAStatement:
    def test_keep_old(self, disputed: Diary) -> None:
        before = dict(disputed.view.items)
        settled(disputed, "keep_old")
        assert dict(disputed.view.items) == before

    def test_use_new(self, disputed: Diary) -> None:
        (tea,) = disputed.view.items
        settled(disputed, "use_new")
        held = disputed.view.items[tea]
        assert (held.text, held.tags, held.source) == ("likes juice", ("drink",), MANUAL)
        assert (held.facets.author, held.facets.sensitivity) == ("stated", "private")
        assert len(disputed.view.items) == 1

    def test_both_valid(self, disputed: Diary) -> None:
        settled(disputed, "both_valid")
        tea, juice = disputed.view.active()
        assert (tea.text, tea.facets.sensitivity) == ("likes tea", "normal")
        assert (juice.text, juice.tags, juice.id) == (
            "likes juice",
            ("drink",),
            item_id("fact", "likes juice"),
        )
        assert (juice.facets.author, juice.facets.sensitivity) == ("stated", "private")

    def test_both_valid_where_the_item_began_with_these_words(self, diary: Diary) -> None:
        tea = diary.remember("likes tea")
        diary.remember("likes juice", given_id=tea.id)
        diary.remember("likes tea", origin=inferred(), given_id=tea.id)
        settled(diary, "both_valid")
        assert diary.texts() == ["likes juice", "likes tea"]
        assert len({held.id for held in diary.view.active()}) == 2
        assert diary.view.items[tea.id].text == "likes juice"

    @pytest.mark.parametrize("held", ["active", "deprecated"])
    def test_both_valid_where_the_new_words_are_remembered_already(self, disputed: Diary, held: str) -> None:
        juice = disputed.remember("likes juice")
        if held == "deprecated":
            disputed.deprecate(juice)
        settled(disputed, "both_valid")
        assert disputed.texts() == ["likes tea", "likes juice"]
        assert len(disputed.view.items) == 2

    @pytest.mark.parametrize("how", RESOLUTIONS)
    def test_it_can_not_be_settled_twice(self, disputed: Diary, how: Resolution) -> None:
        (open_,) = disputed.view.conflicts
        settled(disputed, "keep_old")
        draft = disputed.draft()
        with pytest.raises(Refused, match=r"^that is already settled$"):
            draft.settle(open_, how, stated())
        assert draft.events == []

    def test_the_answer_stands_in_the_history(self, disputed: Diary) -> None:
        commit = settled(disputed, "keep_old", evidence="the button")
        (event,) = commit.events
        assert event.event_type == "observe"
        assert event.ext["conflict"] == {"text": "likes juice", "reason": "", "settled": "keep_old"}
        assert (event.evidence, event.sensitivity) == ("the button", "private")

    def test_only_the_conflict_that_was_asked_about_is_settled(self, disputed: Diary) -> None:
        (tea,) = disputed.view.items
        disputed.remember("likes milk", origin=inferred(), given_id=tea)
        juice, milk = disputed.view.conflicts
        draft = disputed.draft()
        draft.settle(milk, "keep_old", stated())
        disputed.keep(draft)
        assert disputed.view.conflicts == (juice,)


class TestAnEndAgainstAStatement:
    """ "" : it is said that the item no longer holds."""

    @pytest.fixture
    def ended(self, diary: Diary) -> Diary:
        diary.remember("likes tea")
        diary.deprecate(diary.view.active()[0], inferred(evidence="stopped"))
        assert [question(one)[1:3] for one in diary.view.conflicts] == [("", "stopped")]
        return diary

    @pytest.mark.parametrize(
        ("how", "said"), [("keep_old", ["likes tea"]), ("use_new", []), ("both_valid", ["likes tea"])]
    )
    def test_all_three(self, ended: Diary, how: Resolution, said: list[str]) -> None:
        settled(ended, how)
        assert ended.texts() == said
        assert len(ended.view.items) == 1

    def test_what_ended_by_the_persons_word_is_not_brought_back_by_older_talk(self, ended: Diary) -> None:
        settled(ended, "use_new")
        ended.remember("likes tea", origin=inferred(said_at=NOW))
        assert ended.texts() == []


class TestTwoMemoriesAgainstEachOther:
    @pytest.fixture
    def torn(self, diary: Diary) -> Diary:
        for text in ("likes tea", "hates tea"):
            diary.remember(text, origin=inferred())
        draft = diary.draft()
        one, other = draft.items.values()
        for _ in range(2):  # once is enough
            assert draft.contradict(one, other, "one of them only", stated()) == "conflict"
        assert len(draft.events) == 1
        diary.keep(draft)
        assert [question(open_) for open_ in diary.view.conflicts] == [
            (one.id, "hates tea", "one of them only", "normal", other.id)
        ]
        return diary

    def test_it_is_as_private_as_the_more_private_of_the_two(self, diary: Diary) -> None:
        one, other = diary.remember("likes tea"), diary.remember("hates tea", marked="confidential")
        draft = diary.draft()
        draft.contradict(one, other, "", stated())
        assert [open_.sensitivity for open_ in draft.view.conflicts] == ["confidential"]
        assert [event.sensitivity for event in draft.events] == ["confidential"]

    @pytest.mark.parametrize(
        ("how", "said", "by_person"),
        [
            ("keep_old", ["likes tea"], ["likes tea", "hates tea"]),
            ("use_new", ["hates tea"], ["likes tea", "hates tea"]),
            ("both_valid", ["likes tea", "hates tea"], ["likes tea", "hates tea"]),
        ],
    )
    def test_all_three(self, torn: Diary, how: Resolution, said: list[str], by_person: list[str]) -> None:
        settled(torn, how)
        assert torn.texts() == said
        assert [held.text for held in torn.view.items.values() if held.facets.author == "stated"] == by_person

    @pytest.mark.parametrize("how", RESOLUTIONS)
    def test_what_a_person_said_holds_against_later_talk(self, torn: Diary, how: Resolution) -> None:
        settled(torn, how)
        for held in torn.view.active():
            torn.remember("likes milk", origin=inferred(), given_id=held.id)
            assert torn.view.items[held.id] == held
        assert len(torn.view.conflicts) == len(torn.view.active())

    @pytest.mark.parametrize("gone", ["deprecated", "removed"])
    @pytest.mark.parametrize("which", [0, 1])
    def test_it_is_settled_when_one_of_the_two_goes(self, torn: Diary, which: int, gone: str) -> None:
        target = torn.view.active()[which]
        draft = torn.draft()
        draft.deprecate(target, stated()) if gone == "deprecated" else draft.remove(target, stated())
        torn.keep(draft)
        assert torn.view.conflicts == ()

    def test_each_against_the_other_is_settled_with_one_answer(self, torn: Diary) -> None:
        draft = torn.draft()
        one, other = draft.items.values()
        draft.contradict(other, one, "the other way", stated())
        draft.settle(draft.view.conflicts[0], "keep_old", stated())
        torn.keep(draft)
        assert (torn.texts(), torn.view.conflicts) == (["likes tea"], ())


class TestAMergeClashIsSettledLikeAnyOther:
    @pytest.fixture
    def clashed(self) -> Chronicle:
        chronicle = Chronicle()
        tea = chronicle.remember("likes tea", facets=Facets(key="drink"))
        chronicle.fork("coding")
        chronicle.remember("likes juice", given_id=tea.id)
        chronicle.remember("likes milk", given_id=tea.id, on="coding", marked="private")
        chronicle.merge("coding")
        return chronicle

    @pytest.mark.parametrize(
        ("how", "said"),
        [
            ("keep_old", ["likes juice"]),
            ("use_new", ["likes milk"]),
            ("both_valid", ["likes juice", "likes milk"]),
        ],
    )
    def test_all_three(self, clashed: Chronicle, how: Resolution, said: list[str]) -> None:
        (open_,) = clashed.view().conflicts
        clashed.change(lambda draft: draft.settle(open_, how, stated()))
        assert (clashed.texts(), clashed.view().conflicts) == (said, ())
        assert clashed.texts("coding") == ["likes milk"]
        milk = [held for held in clashed.view().active() if held.text == "likes milk"]
        assert {held.facets.sensitivity for held in milk} <= {"private"}
        assert len([held for held in clashed.view().active() if held.facets.key == "drink"]) == 1

    def test_an_answer_can_be_taken_back(self, clashed: Chronicle) -> None:
        before = clashed.view()
        (open_,) = before.conflicts
        clashed.change(lambda draft: draft.settle(open_, "use_new", stated()))
        clashed.undo()
        assert dict(clashed.view().items) == dict(before.items)
        assert [question(one) for one in clashed.view().conflicts] == [question(open_)]


class TestAnyConflictCanBeSettledAnyWay:
    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_and_is_then_closed_without_losing_what_is_kept(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        for branch in chronicle.history.branches.all.values():
            view = chronicle.history.view(branch.head)
            for open_ in view.conflicts:
                for how in RESOLUTIONS:
                    self.settles(view, open_, how)

    @staticmethod
    def settles(view: View, open_: Conflict, how: Resolution) -> None:
        draft = Draft(view, now_ms=NOW * 2)
        held = draft.items[open_.item_id]
        draft.settle(open_, how, stated())
        assert open_.event_id not in {one.event_id for one in draft.view.conflicts}
        after = draft.items
        if how != "use_new":
            assert (after[held.id].text, after[held.id].active or not held.active) == (held.text, True)
        if how != "keep_old" and open_.text:
            said = [one.text.lower() for one in after.values() if one.active]
            assert open_.text.lower() in said or open_.other_id
        assert after.keys() >= view.items.keys(), "a settlement removes nothing"
        for key, item in view.items.items():
            assert after[key].facets.links == item.facets.links
        commit = draft.commit("settled")
        assert commit is not None
        assert dict(view.after(commit).items) == dict(after)


class TestAKeyNamesOneItem:
    def test_an_upsert_with_a_key_goes_to_the_item_that_has_it(self, diary: Diary) -> None:
        vim = diary.remember("uses vim", facets=Facets(key="editor", category="tools", scope="work"))
        assert (vim.facets.key, vim.facets.category, vim.facets.scope) == ("editor", "tools", "work")
        emacs = diary.remember("uses emacs", kind="tool", facets=Facets(key="editor"))
        assert (emacs.id, emacs.text, emacs.kind) == (vim.id, "uses emacs", "fact")
        assert (emacs.facets.key, emacs.facets.category) == ("editor", "tools")
        assert len(diary.view.items) == 1

    def test_an_id_counts_more_than_a_key(self, diary: Diary) -> None:
        diary.remember("uses vim", facets=Facets(key="editor"))
        tea = diary.remember("likes tea")
        diary.remember("likes juice", given_id=tea.id, facets=Facets(key="editor"))
        assert diary.texts() == ["uses vim", "likes juice"]
        assert [held.facets.key for held in diary.view.active()] == ["editor", None], "it has a holder"

    def test_words_that_are_known_get_the_key(self, diary: Diary) -> None:
        diary.remember("uses vim")
        vim = diary.remember("uses vim", facets=Facets(key="editor"))
        assert vim.facets.key == "editor"
        diary.remember("uses emacs", facets=Facets(key="editor"))
        assert diary.texts() == ["uses emacs"]

    def test_what_was_stated_under_a_key_is_not_overridden_by_talk(self, diary: Diary) -> None:
        vim = diary.remember("uses vim", facets=Facets(key="editor"))
        held = diary.remember("uses emacs", origin=inferred(), facets=Facets(key="editor"))
        assert held == vim
        assert [one.text for one in diary.view.conflicts] == ["uses emacs"]

    def test_the_holder_that_is_active_counts_and_one_that_is_not_comes_back(self, diary: Diary) -> None:
        vim = diary.remember("uses vim", facets=Facets(key="editor"))
        diary.deprecate(vim)
        held = diary.remember("uses emacs", facets=Facets(key="editor"))
        assert (held.id, held.active) == (vim.id, True)

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_by_wishes_alone_no_two_items_get_one_key(self, deeds: Any) -> None:
        alone = ("fork", "switch", "delete", "merge", "pick", "revert", "restore", "undo")
        chronicle = live(Chronicle(), [deed for deed in deeds if deed[0] not in alone])
        keys = [held.facets.key for held in chronicle.view().items.values() if held.facets.key is not None]
        assert len(set(keys)) == len(keys)


class TestLinks:
    def test_hold_both_ways_and_come_off_both_ways(self, diary: Diary) -> None:
        one, other = diary.remember("likes tea"), diary.remember("plays chess")
        for on, done in ((True, "updated"), (True, "unchanged"), (False, "updated"), (False, "unchanged")):
            draft = diary.draft()
            assert draft.link(*draft.items.values(), stated(), on=on) == done
            diary.keep(draft)
            links = {held.id: held.facets.links for held in diary.view.items.values()}
            assert links == {one.id: {other.id} if on else set(), other.id: {one.id} if on else set()}
        assert [(event.event_type, event.predicate, event.object) for event in diary.commits[2].events] == [
            ("add", "linked_to", other.id)
        ]

    def test_change_neither_words_times_nor_what_is_open(self, diary: Diary) -> None:
        tea, chess = diary.remember("likes tea"), diary.remember("plays chess")
        diary.remember("hates tea", origin=inferred(), given_id=tea.id)
        before = diary.view
        draft = diary.draft()
        draft.link(tea, chess, stated())
        diary.keep(draft)
        assert [held.to_json() for held in diary.view.items.values()] == [
            held.to_json() for held in before.items.values()
        ]
        assert diary.view.conflicts == before.conflicts
        assert diary.view.last_event == before.last_event

    def test_with_itself_is_refused(self, diary: Diary) -> None:
        tea = diary.remember("likes tea")
        with pytest.raises(Refused, match="can't be linked with itself"):
            diary.draft().link(tea, tea, stated())

    def test_come_with_a_new_item(self, diary: Diary) -> None:
        tea = diary.remember("likes tea")
        chess = diary.remember("plays chess", facets=Facets(links=frozenset([tea.id, "durable-nobody"])))
        assert chess.facets.links == {tea.id}
        assert diary.view.items[tea.id].facets.links == {chess.id}

    def test_go_with_the_item(self, diary: Diary) -> None:
        tea, chess = diary.remember("likes tea"), diary.remember("plays chess")
        draft = diary.draft()
        draft.link(tea, chess, stated())
        draft.remove(tea, stated())
        diary.keep(draft)
        assert diary.view.items[chess.id].facets.links == frozenset()

    @pytest.mark.parametrize(
        "to", ["durable-nobody", "", 5, None, [], {}], ids=["nobody", "empty", "5", "None", "list", "dict"]
    )
    def test_to_nothing_change_nothing(self, diary: Diary, to: Any) -> None:
        tea = diary.remember("likes tea")
        event = Event(
            event_type="add",
            subject="user",
            predicate="linked_to",
            object="x",
            timestamp=iso_ms(NOW + DAY),
            ext={"item": {"id": tea.id}, "link": {"to": to, "on": True}},
        )
        commit = Commit(branch="main", events=(event,), message="", parent_id=None, timestamp=event.timestamp)
        assert diary.view.after(commit).items == diary.view.items

    @FEW
    @given(DEEDS_AND_REVERTS)
    def test_always_hold_both_ways_between_items_that_are_there(self, deeds: Any) -> None:
        chronicle = live(Chronicle(), deeds)
        for key in chronicle.history.commits:
            items = chronicle.history.view(key).items
            for held in items.values():
                for other in held.facets.links:
                    assert held.id in items[other].facets.links


class TestATripleWithWordsOfItsOwn:
    def test_is_in_the_event_and_in_the_item(self, diary: Diary) -> None:
        triple = ("user", "prefers backend", "Python")
        held = diary.remember(
            "User prefers Python for backends", facets=Facets(triple=triple, confidence=0.8)
        )
        (event,) = diary.commits[0].events
        assert (event.subject, event.predicate, event.object, event.confidence) == (*triple, 0.8)
        assert (held.text, held.facets.triple) == ("User prefers Python for backends", triple)
        assert diary.view.triples == {}, "only bare triples are found by their event"

    def test_stays_when_something_else_changes_and_goes_with_the_words(self, diary: Diary) -> None:
        triple = ("user", "likes", "tea")
        held = diary.remember("User likes tea", facets=Facets(triple=triple))
        diary.remember("User likes tea", tags=["hot"])
        draft = diary.draft()
        draft.mark(held, "private", stated())
        diary.keep(draft)
        assert diary.view.items[held.id].facets.triple == triple
        diary.remember("User likes juice", given_id=held.id)
        assert diary.view.items[held.id].facets.triple is None


class TestTakingAnItemFromAnotherPoint:
    @staticmethod
    def there() -> Item:
        other = Diary()
        chess = other.remember("plays chess")
        triple = ("user", "works at", "Acme")
        wanted = other.remember(
            "works at Acme",
            origin=inferred(private=True),
            tags=["job"],
            facets=Facets(
                "inferred", "private", "session", 0.5, "job", "work", frozenset([chess.id]), triple
            ),
        )
        assert wanted.facets.links == {chess.id}
        return wanted

    @pytest.mark.parametrize("held", ["nothing", "something else", "chess too"])
    def test_it_is_then_exactly_as_there_but_for_links_to_what_is_not_here(
        self, diary: Diary, held: str
    ) -> None:
        wanted = self.there()
        if held != "nothing":
            diary.remember("works at Acme", tags=["x"])
        if held == "chess too":
            diary.remember("plays chess")
        draft = diary.draft()
        draft.set_item(wanted.id, wanted, parent="0123456789abcdef", origin=stated(evidence="why"))
        diary.keep(draft)
        links = wanted.facets.links if held == "chess too" else frozenset()
        taken = diary.view.items[wanted.id]
        assert taken.to_json() == wanted.to_json()
        assert taken.facets.links == links
        for name in ("author", "sensitivity", "scope", "confidence", "key", "category", "triple"):
            assert getattr(taken.facets, name) == getattr(wanted.facets, name)
        event = diary.commits[-1].events[0]
        assert (event.parent_id, event.evidence, event.source) == (
            "0123456789abcdef",
            "why",
            str(PUBLIC_MESSAGE),
        )

    def test_what_is_here_already_is_not_written_again(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        draft = diary.draft()
        draft.set_item(held.id, held, parent=None, origin=stated())
        draft.set_item("durable-nobody", None, parent=None, origin=stated())
        draft.note_conflict(Conflict("durable-nobody", "x", "", ""), stated())
        assert draft.events == []

    def test_absent_there_is_absent_here(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        draft = diary.draft()
        draft.set_item(held.id, None, parent=None, origin=stated())
        diary.keep(draft)
        assert diary.view.items == {}
        assert held.id in diary.view.forgotten


class TestNotingAConflictOfAnotherPoint:
    def test_on_and_off(self, diary: Diary) -> None:
        tea = diary.remember("likes tea")
        noted = Conflict(tea.id, "hates tea", "said so", "0123456789abcdef", "private", "durable-other")
        draft = diary.draft()
        draft.note_conflict(noted, stated())
        diary.keep(draft)
        assert [question(one) for one in diary.view.conflicts] == [question(noted)]
        draft = diary.draft()
        draft.note_conflict(noted, stated(), on=False)
        diary.keep(draft)
        assert diary.view.conflicts == ()


class TestWhatWasErasedIsNotLearnedAgain:
    ERASED_AT = NOW + DAY

    def draft(self, view: View = EMPTY) -> Draft:
        return Draft(view, now_ms=NOW + 2 * DAY, erased_at=self.ERASED_AT)

    @each_row("given_id", [None, "durable-00000000"])
    def test_words_from_before_are_ignored(self, given_id: str | None) -> None:
        for said_at in (0, NOW, self.ERASED_AT):
            draft = self.draft()
            _, done = draft.upsert("fact", "likes tea", inferred(said_at=said_at), given_id=given_id)
            assert (done, draft.events, dict(draft.items)) == ("ignored", [], {})

    def test_words_from_after_are_learned_and_so_is_what_the_person_states(self) -> None:
        said = inferred(said_at=self.ERASED_AT + 1)
        for draft, origin in (
            (self.draft(), said),
            (self.draft(), stated()),
            (Draft(EMPTY, now_ms=NOW), inferred(said_at=0)),
        ):
            assert draft.upsert("fact", "likes tea", origin)[1] == "added"

    def test_words_from_before_do_not_come_in_by_way_of_an_item_from_after(self) -> None:
        source = Source("discord", "1", "no number")
        draft = self.draft()
        said = inferred(said_at=self.ERASED_AT + 1, source=source)
        held, _ = draft.upsert("fact", "likes tea", said, facets=Facets(key="drink"))
        events = list(draft.events)
        old = inferred(said_at=self.ERASED_AT, source=source)
        for meant in ({"given_id": held.id}, {"facets": Facets(key="drink")}):
            assert draft.upsert("fact", "likes juice", old, **meant)[1] == "ignored"
        assert draft.deprecate(held, old) == "ignored"
        assert draft.events == events
