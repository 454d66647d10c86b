"""Every rule by which memory may change."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, find
from discoclaw.core.draft_patch import apply_patch
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets, Sensitivity, Source
from discoclaw.core.matching import one_saying
from discoclaw.core.patch import Patch
from discoclaw.core.view import EMPTY
from tests.core.builders import (
    DAY,
    NOW,
    PUBLIC_MESSAGE,
    Diary,
    inferred,
    item,
    outdated,
    proposed,
    shown,
    stated,
)
from tests.core.test_view import HISTORIES, live
from tests.counting import counted, grown
from tests.examples import FEW


@pytest.fixture
def diary() -> Diary:
    return Diary()


class TestAnUpsertFindsWhatIsMeant:
    def test_a_known_id_is_changed_and_keeps_id_and_creation(self, diary: Diary) -> None:
        held = diary.remember("likes tea", tags=["drink"])
        draft = diary.draft()
        changed, done = draft.upsert(
            "fact", "likes coffee", stated(source=PUBLIC_MESSAGE), tags=["bean"], given_id=held.id
        )
        assert done == "updated"
        assert (changed.id, changed.created_at) == (held.id, held.created_at)
        assert (changed.text, changed.tags, changed.source) == ("likes coffee", ("bean",), PUBLIC_MESSAGE)
        assert changed.updated_at == diary.now > held.updated_at

    @pytest.mark.parametrize("given_id", [None, "", "durable-ffffffff", "nonsense"])
    def test_an_unknown_id_falls_back_to_the_derived_one(self, diary: Diary, given_id: str | None) -> None:
        held = diary.remember("Likes tea")
        changed = diary.remember("likes   TEA", given_id=given_id, tags=["drink"])
        assert (changed.id, changed.created_at, changed.tags) == (held.id, held.created_at, ("drink",))
        assert len(diary.view.items) == 1

    def test_what_nobody_knows_is_inserted_with_its_derived_id(self, diary: Diary) -> None:
        added, done = diary.draft().upsert("tool", "uses TypeScript", inferred(), given_id="durable-ffffffff")
        assert (added.id, done) == ("durable-79d63977", "added")
        assert (added.created_at, added.updated_at) == (diary.now, diary.now)

    def test_the_same_words_of_another_kind_are_another_item(self, diary: Diary) -> None:
        assert diary.remember("uses vim", "tool").id != diary.remember("uses vim", "fact").id
        assert len(diary.view.items) == 2

    def test_saying_what_an_item_says_now_finds_it_though_its_id_comes_from_older_words(
        self, diary: Diary
    ) -> None:
        held = diary.remember("likes tea")
        diary.remember("likes coffee", given_id=held.id)
        draft = diary.draft()
        assert draft.upsert("fact", "Likes coffee", stated())[1] == "unchanged"
        assert draft.commit("nothing") is None

    def test_what_a_person_says_anew_does_not_cost_what_the_item_says_by_now(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        diary.remember("likes coffee", given_id=held.id)
        again = diary.remember("likes tea")
        assert again.id != held.id
        assert sorted(item.text for item in diary.view.active()) == ["likes coffee", "likes tea"]

    def test_what_a_model_says_anew_is_the_item_that_changed_since(self, diary: Diary) -> None:
        held = diary.remember("likes tea", origin=inferred())
        diary.remember("likes coffee", given_id=held.id, origin=inferred())
        again = diary.remember("likes tea", origin=inferred())
        assert (again.id, [item.text for item in diary.view.active()]) == (held.id, ["likes tea"])

    def test_kind_and_text_are_put_in_order(self, diary: Diary) -> None:
        held = diary.remember("  likes \n green   tea ", " FACT ")
        assert (held.kind, held.text) == ("fact", "likes green tea")

    @pytest.mark.parametrize(
        ("kind", "text"), [("note", "x"), ("", "x"), ("fact", " \n"), ("fact", "x" * 1001)]
    )
    def test_what_can_not_be_an_item_is_refused_and_changes_nothing(
        self, diary: Diary, kind: str, text: str
    ) -> None:
        draft = diary.draft()
        with pytest.raises(Refused):
            draft.upsert(kind, text, stated())
        assert draft.commit("nothing") is None

    def test_tags_that_are_not_given_stay(self, diary: Diary) -> None:
        held = diary.remember("uses Kubernetes", "tool", tags=["k8s"])
        assert diary.remember("uses Kubernetes and Helm", "tool", given_id=held.id).tags == ("k8s",)

    def test_the_statement_is_written_into_the_event(self, diary: Diary) -> None:
        diary.remember("uses vim", "tool", inferred(evidence="“I live in vim”"))
        (event,) = diary.commits[0].events
        assert (event.subject, event.predicate, event.object) == ("user", "tool", "uses vim")
        assert (event.source, event.evidence) == ("discord:123/456", "“I live in vim”")


class TestAddingWhatIsThereWritesNothing:
    @pytest.mark.parametrize("origin", [stated(), inferred()], ids=["stated", "inferred"])
    def test_the_same_words_by_the_same_author(self, diary: Diary, origin: Any) -> None:
        diary.remember("likes tea", origin=origin, tags=["drink"])
        before = diary.view
        for again in ("likes tea", " Likes  TEA "):
            diary.remember(again, origin=origin, tags=["drink"])
            diary.remember(again, origin=origin)
        assert diary.view is before

    def test_what_a_person_says_themselves_counts_more_than_what_was_inferred(self, diary: Diary) -> None:
        diary.remember("likes tea", origin=inferred())
        assert diary.remember("likes tea").facets.author == "stated"

    @FEW
    @given(HISTORIES)
    def test_whatever_happened_saying_again_what_holds_writes_nothing(self, history: list[Any]) -> None:
        diary = Diary()
        live(history, diary)
        draft = diary.draft()
        for held in diary.view.active():
            draft.upsert(held.kind, held.text, inferred(said_at=0))
        assert draft.commit("nothing") is None


class TestReactivation:
    def test_a_deprecated_text_comes_back_as_the_same_item(self, diary: Diary) -> None:
        held = diary.remember("likes tea", tags=["drink"])
        diary.deprecate(held)
        again, done = diary.draft().upsert("fact", "LIKES tea", stated())
        assert done == "restored"
        assert (again.id, again.created_at, again.status) == (held.id, held.created_at, "active")
        assert again.tags == ("drink",)
        assert again.updated_at == diary.now


class TestDeprecation:
    def test_by_id_it_touches_exactly_one(self, diary: Diary) -> None:
        kept = diary.remember("likes green tea", origin=inferred())
        gone = diary.remember("likes green teas", origin=inferred())
        draft = diary.draft()
        apply_patch(draft, Patch(deprecations=[outdated(id="i1")]), shown(inferred(), items=[gone.id]))
        diary.keep(draft)
        assert [held.id for held in diary.view.active()] == [kept.id]

    def test_by_text_it_touches_what_the_sixty_percent_rule_names(self, diary: Diary) -> None:
        texts = ("likes tea", "likes teas", "likes tea with a lot of milk and some sugar")
        ids = [diary.remember(text, origin=inferred()).id for text in texts]
        draft = diary.draft()
        patch = Patch(deprecations=[outdated(matchText="LIKES  tea")])
        apply_patch(draft, patch, shown(inferred(), items=ids))
        diary.keep(draft)
        assert diary.texts() == ["likes tea with a lot of milk and some sugar"]

    def test_the_reason_is_kept_as_evidence(self, diary: Diary) -> None:
        held = diary.remember("likes tea", origin=inferred())
        draft = diary.draft()
        apply_patch(
            draft,
            Patch(deprecations=[outdated(id="i1", reason="now drinks coffee")]),
            shown(inferred(), items=[held.id]),
        )
        assert draft.events[0].evidence == "now drinks coffee"

    def test_naming_nothing_that_is_there_is_noted(self, diary: Diary) -> None:
        held = diary.remember("likes tea", origin=inferred())
        draft = diary.draft()
        wishes = [outdated(id="i7"), outdated(id=held.id), outdated(matchText="tea"), outdated()]
        refused = apply_patch(draft, Patch(deprecations=wishes), shown(inferred(), items=[held.id]))
        assert draft.commit("nothing") is None
        assert len(refused) == 4
        assert refused[0] == "there is no item 'i7'"

    def test_a_person_names_an_item_by_id_by_its_digits_or_by_its_words(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        diary.remember("works at Acme")
        items = diary.view.items.values()
        for wanted in (held.id, held.id.removeprefix("durable-"), " Likes tea\n", "likes t"):
            assert find(items, wanted) == [held]
        for wanted in ("", "  ", "tea", "durable-"):
            assert find(items, wanted) == []

    def test_words_do_not_name_what_is_deprecated_already_but_its_id_does(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        diary.deprecate(held)
        assert find(diary.view.items.values(), "likes tea") == []
        assert [one.id for one in find(diary.view.items.values(), held.id)] == [held.id]


class TestTheCap:
    def fill(self, diary: Diary, count: int) -> list[str]:
        return [diary.remember(f"fact number {n}").id for n in range(count)]

    def test_then_the_oldest_active_ones(self) -> None:
        diary = Diary(max_items=4)
        ids = self.fill(diary, 4)
        diary.deprecate(diary.view.items[ids[3]])
        draft = diary.draft()
        for text in ("new one", "new two", "new three"):
            draft.upsert("fact", text, stated())
        diary.keep(draft)
        assert set(ids) - set(diary.view.items) == {ids[3], ids[0], ids[1]}
        assert len(diary.view.items) == 4

    def test_a_change_makes_an_item_young_again(self) -> None:
        diary = Diary(max_items=3)
        ids = self.fill(diary, 3)
        diary.remember("fact number 0 and more", given_id=ids[0])
        diary.remember("the newest")
        assert set(ids) - set(diary.view.items) == {ids[1]}

    def test_the_newest_words_are_always_taken(self) -> None:
        diary = Diary(max_items=25)
        for number in range(60):
            held = diary.remember(f"fact number {number}")
            assert diary.view.items[held.id].active

    def test_what_was_removed_is_a_forget_in_the_same_commit(self) -> None:
        diary = Diary(max_items=1)
        self.fill(diary, 2)
        assert [event.event_type for event in diary.commits[-1].events] == ["add", "forget"]
        assert "more than 1 items" in diary.commits[-1].events[1].evidence

    def test_a_lower_cap_takes_effect_with_the_next_commit(self) -> None:
        diary = Diary()
        self.fill(diary, 5)
        diary.max_items = 2
        diary.keep(diary.draft())
        assert diary.texts() == ["fact number 3", "fact number 4"]


class TestAPatchIsTakenItemByItem:
    def test_one_bad_upsert_is_noted_and_the_others_are_kept(self, diary: Diary) -> None:
        draft = diary.draft()
        upserts = [
            proposed("likes tea"),
            proposed("  "),
            proposed("x" * 1001),
            proposed("uses vim", kind="tool", tags=["Editor"]),
        ]
        refused = apply_patch(draft, Patch(upserts=upserts), shown(inferred()))
        diary.keep(draft)
        assert diary.texts() == ["likes tea", "uses vim"]
        assert len(refused) == 2

    def test_an_upsert_and_a_deprecation_are_one_commit(self, diary: Diary) -> None:
        held = diary.remember("lives in Oslo", origin=inferred())
        draft = diary.draft()
        patch = Patch(
            upserts=[proposed("lives in Rome")],
            deprecations=[outdated(id="i1")],
        )
        apply_patch(draft, patch, shown(inferred(), items=[held.id]))
        commit = diary.keep(draft)
        assert commit is not None
        assert [event.event_type for event in commit.events] == ["add", "modify"]
        assert diary.texts() == ["lives in Rome"]

    def test_each_proposal_rests_on_the_message_it_names(self, diary: Diary) -> None:
        there = inferred(source=Source("discord", "7", "8"), private=True)
        draft = diary.draft()
        upserts = [
            proposed("one", source="m2"),
            proposed("two", source="m3"),
            proposed("three", source="m1"),
        ]
        refused = apply_patch(draft, Patch(upserts=upserts), shown(inferred(), there))
        one, three = draft.items.values()
        assert (str(one.source), one.facets.sensitivity) == ("discord:7/8", "private")
        assert (str(three.source), three.facets.author) == ("discord:123/456", "inferred")
        assert refused == ["'m3' isn't a line of the person's"]

    @pytest.mark.parametrize("reason", ["half of \ud83d", "\x00", "x" * 5000])
    def test_no_reason_a_model_gives_breaks_the_ledger(self, diary: Diary, reason: str) -> None:
        held = diary.remember("likes tea", origin=inferred())
        draft = diary.draft()
        apply_patch(
            draft,
            Patch(deprecations=[outdated(id="i1").model_copy(update={"reason": reason})]),
            shown(inferred(), items=[held.id]),
        )
        diary.keep(draft)
        assert diary.texts() == []


class TestWhatWasInferredNeverOverridesWhatWasStated:
    def test_other_words_become_a_conflict_and_change_nothing(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        draft = diary.draft()
        now, done = draft.upsert("fact", "likes coffee", inferred(evidence="“coffee!”"), given_id=held.id)
        diary.keep(draft)
        assert (now, done) == (held, "conflict")
        assert diary.view.items == {held.id: held}
        (conflict,) = diary.view.conflicts
        assert (conflict.item_id, conflict.text, conflict.reason) == (held.id, "likes coffee", "“coffee!”")
        assert conflict.event_id == diary.commits[-1].events[0].id

    def test_an_inferred_end_becomes_a_conflict_too(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        draft = diary.draft()
        assert draft.deprecate(held, inferred()) == "conflict"
        diary.keep(draft)
        assert diary.texts() == ["likes tea"]
        assert diary.view.conflicts[0].text == ""

    def test_the_same_conflict_is_noted_once(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        for _ in range(3):
            diary.remember("likes coffee", origin=inferred(), given_id=held.id)
        assert len(diary.view.conflicts) == 1
        assert len(diary.commits) == 2

    def test_words_older_than_the_statement_are_ignored(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        draft = diary.draft()
        for said_at in (0, held.updated_at - DAY, held.updated_at):
            older = inferred(said_at=said_at)
            assert draft.upsert("fact", "likes coffee", older, given_id=held.id)[1] == "ignored"
            assert draft.deprecate(held, older) == "ignored"
        assert draft.commit("nothing") is None
        assert (
            draft.upsert("fact", "x", inferred(said_at=held.updated_at + 1), given_id=held.id)[1]
            == "conflict"
        )

    def test_what_was_inferred_is_changed_by_later_talk_and_anything_by_the_person(
        self, diary: Diary
    ) -> None:
        held = diary.remember("likes tea", origin=inferred())
        assert diary.remember("likes coffee", origin=inferred(), given_id=held.id).text == "likes coffee"
        changed = diary.remember("likes cocoa", given_id=held.id)
        assert (changed.text, changed.facets.author) == ("likes cocoa", "stated")
        assert diary.view.conflicts == ()

    @FEW
    @given(HISTORIES, st.sampled_from(["likes tea", "likes coffee"]))
    def test_nothing_inferred_ever_changes_a_stated_item_that_holds(
        self, history: list[Any], text: str
    ) -> None:
        diary = Diary()
        live(history, diary)
        draft = diary.draft()
        for held in diary.view.items.values():
            draft.upsert("fact", text, inferred(said_at=NOW * 2), given_id=held.id)
            draft.deprecate(draft.items[held.id], inferred(said_at=NOW * 2))
        for held in diary.view.items.values():
            if held.facets.author == "stated" and held.active:
                assert draft.items[held.id] == held

    def test_what_a_person_forgot_they_may_say_again(self, diary: Diary) -> None:
        held = diary.remember("uses vim")
        draft = diary.draft()
        draft.deprecate(held, stated())
        diary.keep(draft)
        forgotten_at = diary.view.items[held.id].updated_at
        older, newer = inferred(said_at=forgotten_at), inferred(said_at=forgotten_at + 1)
        assert diary.draft().upsert("fact", "uses vim", older)[1] == "ignored"
        again, done = diary.draft().upsert("fact", "uses vim", newer)
        assert (again.id, again.active, done) == (held.id, True, "restored")

    def test_older_words_do_not_undo_newer_ones(self, diary: Diary) -> None:
        newer = inferred(source=Source("discord", "1", "200"))
        held = diary.remember("lives in Rome", origin=newer)
        older = inferred(source=Source("discord", "1", "100"))
        assert diary.draft().upsert("fact", "lives in Paris", older, given_id=held.id)[1] == "ignored"
        assert diary.draft().deprecate(held, older) == "ignored"


class TestThePersonSettlesAConflict:
    @pytest.fixture
    def disputed(self, diary: Diary) -> Diary:
        held = diary.remember("likes tea")
        diary.remember("likes coffee", origin=inferred(), given_id=held.id)
        assert len(diary.view.conflicts) == 1
        return diary

    @pytest.mark.parametrize(
        ("by", "texts", "open_"),
        [
            ("accepting the new words", ["likes coffee"], 0),
            ("repeating the old words", ["likes tea"], 0),
            ("forgetting the item", [], 0),
            ("removing the item", [], 0),
            ("marking it private", ["likes tea"], 1),
        ],
    )
    def test_by_words_or_an_end_and_not_by_a_mark(
        self, disputed: Diary, by: str, texts: list[str], open_: int
    ) -> None:
        (held,) = disputed.view.items.values()
        draft = disputed.draft()
        if by == "accepting the new words":
            draft.upsert("fact", "likes coffee", stated(), given_id=held.id)
        elif by == "repeating the old words":
            draft.upsert("fact", "likes tea", stated())
        elif by == "forgetting the item":
            draft.deprecate(held, stated())
        elif by == "removing the item":
            draft.remove(held, stated())
        else:
            draft.mark(held, "private", stated())
        disputed.keep(draft)
        assert (disputed.texts(), len(disputed.view.conflicts)) == (texts, open_)

    def test_repeating_the_old_words_outranks_what_was_inferred_before(self, disputed: Diary) -> None:
        held = disputed.remember("likes tea")
        older = inferred(said_at=held.updated_at)
        assert disputed.draft().upsert("fact", "likes coffee", older, given_id=held.id)[1] == "ignored"


class TestTheForgottenStaysForgotten:
    def test_older_words_do_not_restore_what_a_person_deprecated(self, diary: Diary) -> None:
        held = diary.remember("likes tea", origin=inferred())
        diary.deprecate(held, stated())
        draft = diary.draft()
        assert draft.upsert("fact", "likes tea", inferred(said_at=diary.view.updated_at))[1] == "ignored"
        assert draft.commit("nothing") is None

    def test_older_words_do_not_bring_back_what_a_person_removed(self, diary: Diary) -> None:
        held = diary.remember("likes tea", origin=inferred())
        draft = diary.draft()
        draft.remove(held, stated())
        diary.keep(draft)
        draft = diary.draft()
        apply_patch(
            draft,
            Patch(upserts=[proposed("likes tea")]),
            shown(inferred(said_at=held.updated_at)),
        )
        assert draft.commit("nothing") is None
        assert dict(draft.items) == {}

    def test_words_said_after_it_was_removed_are_new(self, diary: Diary) -> None:
        held = diary.remember("likes tea", origin=inferred())
        draft = diary.draft()
        draft.remove(held, stated())
        diary.keep(draft)
        diary.remember("likes tea", origin=inferred(said_at=diary.now + 1))
        assert diary.texts() == ["likes tea"]

    def test_what_only_the_cap_removed_may_come_back(self) -> None:
        diary = Diary(max_items=1)
        diary.remember("likes tea", origin=inferred(said_at=NOW))
        diary.remember("likes coffee", origin=inferred(said_at=NOW))
        diary.remember("likes tea", origin=inferred(said_at=NOW))
        assert diary.texts() == ["likes tea"]


class TestPrivacyIsNeverLostOnTheWay:
    def learn(self, diary: Diary, text: str = "likes tea", **given: Any) -> Any:
        return diary.remember(text, origin=inferred(private=True), **given)

    def test_a_fact_from_a_dm_is_private_and_a_preference_is_not(self, diary: Diary) -> None:
        assert self.learn(diary, kind="fact").facets.sensitivity == "private"
        assert self.learn(diary, kind="preference").facets.sensitivity == "normal"

    def test_what_is_said_again_in_public_stays_private(self, diary: Diary) -> None:
        held = self.learn(diary)
        changed = diary.remember("likes black tea", origin=stated(private=False), given_id=held.id)
        assert changed.facets.sensitivity == "private"

    def test_a_public_item_that_changes_in_a_dm_becomes_private(self, diary: Diary) -> None:
        held = diary.remember("lives in Oslo", origin=inferred())
        assert self.learn(diary, "lives in Rome", given_id=held.id).facets.sensitivity == "private"

    def test_the_kind_that_counts_is_that_of_the_item_and_not_what_a_proposal_calls_it(
        self, diary: Diary
    ) -> None:
        held = diary.remember("works at Acme", "fact", inferred())
        changed = self.learn(diary, "was fired at Acme", kind="preference", given_id=held.id)
        assert changed.kind == "fact"
        assert changed.facets.sensitivity == "private"

    def test_a_mark_counts_though_the_words_are_known_already(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        diary.remember("likes tea", marked="private")
        assert diary.view.items[held.id].facets.sensitivity == "private"

    @pytest.mark.parametrize("marked", ["normal", "private"])
    def test_a_confidential_item_stays_confidential(self, diary: Diary, marked: Sensitivity) -> None:
        held = diary.remember("the code is 1234", marked="confidential")
        changed = diary.remember("the code is 5678", given_id=held.id, marked=marked)
        assert changed.facets.sensitivity == "confidential"

    def test_only_the_person_shares_what_was_private(self, diary: Diary) -> None:
        held = self.learn(diary)
        draft = diary.draft()
        with contextlib.suppress(Refused):
            draft.mark(held, "normal", inferred())
        assert draft.items[held.id].facets.sensitivity == "private"
        assert draft.mark(held, "normal", stated()) == "updated"
        assert draft.items[held.id].facets.sensitivity == "normal"

    def test_marking_says_nothing_about_the_words(self, diary: Diary) -> None:
        held = diary.remember("likes tea", origin=inferred(), tags=["drink"])
        draft = diary.draft()
        draft.mark(held, "private", stated())
        marked = draft.items[held.id]
        assert (marked.text, marked.tags, marked.source, marked.status) == (
            held.text, held.tags, held.source, "active",
        )  # fmt: skip

    @pytest.mark.parametrize("then", ["deprecate", "remove"])
    def test_an_item_in_hand_from_before_the_mark_does_not_undo_it(self, diary: Diary, then: str) -> None:
        held = diary.remember("likes tea")
        draft = diary.draft()
        draft.mark(held, "private", stated())
        getattr(draft, then)(held, stated())
        assert [event.sensitivity for event in draft.events] == ["private", "private"]

    def test_a_conflict_learned_in_a_dm_is_as_private_as_its_words(self, diary: Diary) -> None:
        held = diary.remember("lives with Ann")
        draft = diary.draft()
        draft.upsert("fact", "split up with Ann", inferred(private=True), given_id=held.id)
        (event,) = draft.events
        assert event.sensitivity == "private"
        diary.keep(draft)
        assert diary.view.items[held.id].facets.sensitivity == "normal"

    @FEW
    @given(HISTORIES)
    def test_no_event_about_a_private_item_is_less_private_than_the_item(self, history: list[Any]) -> None:
        diary = Diary()
        live(history, diary)
        rank = {"normal": 0, "private": 1, "confidential": 2}
        draft = diary.draft()
        for held in diary.view.items.values():
            draft.upsert(held.kind, f"{held.text} and more", inferred(said_at=NOW * 2), given_id=held.id)
            draft.deprecate(draft.items[held.id], stated())
            draft.remove(draft.items[held.id], stated())
        for event in draft.events:
            before = diary.view.items[event.ext["item"]["id"]].facets.sensitivity
            assert rank[event.sensitivity] >= rank[before]


class TestOnlyWhatIsThereIsTouched:
    def test_an_item_in_hand_ends_once(self, diary: Diary) -> None:
        held = diary.remember("likes tea")
        draft = diary.draft()
        assert draft.deprecate(held, stated()) == "updated"
        assert draft.deprecate(held, stated()) == "unchanged"
        assert draft.mark(held, "normal", stated()) == "unchanged"
        draft.remove(held, stated())
        draft.remove(held, stated())
        assert len(draft.events) == 2

    def test_branch_message_and_metadata_are_in_the_commit(self, diary: Diary) -> None:
        draft = diary.draft()
        draft.upsert("fact", "likes tea", stated())
        commit = draft.commit("remember", branch="work", by="ann")
        assert commit is not None
        assert (commit.branch, commit.message, commit.metadata) == ("work", "remember", {"by": "ann"})


class TestATimeZone:
    def test_a_forgotten_one_does_not_keep_its_key_from_the_next(self, diary: Diary) -> None:
        diary.deprecate(diary.remember("User's time zone is Europe/Berlin."))
        other = diary.remember("User likes clocks.")
        draft = diary.draft()
        draft.upsert("fact", "User's time zone is Asia/Tokyo.", stated(), given_id=other.id)
        diary.keep(draft)
        assert [item.facets.key for item in diary.view.active()] == ["timezone"]


class TestAModelThatSaysTheSame:
    @pytest.mark.parametrize(
        ("known", "proposed"),
        [
            ("User has a cat.", "The user has a cat"),
            ("User has a cat called Miso.", "User has the cat called miso!"),
            ("User's sister studies in Graz", "The user's sister studies in Graz."),
            ("User lives in Zürich.", "user lives in zürich"),
        ],
    )
    @pytest.mark.parametrize("author", ["stated", "inferred"])
    def test_in_other_words_adds_nothing_and_asks_nothing(
        self, diary: Diary, known: str, proposed: str, author: str
    ) -> None:
        held = diary.remember(known, origin=stated() if author == "stated" else inferred())
        diary.now += 1000
        draft = diary.draft()
        said = inferred(said_at=diary.now, source=PUBLIC_MESSAGE)
        item, done = draft.upsert("fact", proposed, said)
        assert (item.id, item.text, done) == (held.id, known, "unchanged")
        assert draft.view.conflicts == () and len(draft.items) == 1

    @pytest.mark.parametrize(
        ("known", "proposed"),
        [
            ("User has a cat.", "User has a dog."),
            ("User lives in Linz.", "User lives in Graz."),
            ("User likes tea.", "User does not like tea."),
            ("User's freezer is at 18 degrees.", "User's freezer is at -18 degrees."),
            ("User ran 1.5 km.", "User ran 15 km."),
            ("User pays 5 €.", "User pays 5 $."),
            ("User writes C.", "User writes C++."),
            ("User writes C.", "User writes C#."),
            ("User takes vitamin.", "User takes vitamin A."),
            ("User is in team a.", "User is in team."),
            ("User meets Ann at 10:30.", "User meets Ann at 10:31."),
            ("Ann likes Ben.", "Ben likes Ann."),
            ("User's mark is 2.", "User's mark is 2?"),
        ],
    )
    def test_never_overwrites_another_truth(self, diary: Diary, known: str, proposed: str) -> None:
        diary.remember(known, origin=inferred())
        diary.now += 1000
        diary.remember(proposed, origin=inferred(said_at=diary.now))
        assert sorted(item.text for item in diary.view.active()) == sorted([known, proposed])

    def test_may_correct_the_words_of_an_item_that_it_names(self, diary: Diary) -> None:
        held = diary.remember("User writes typescript.", origin=inferred())
        diary.now += 1000
        diary.remember("The user writes TypeScript.", given_id=held.id, origin=inferred(said_at=diary.now))
        assert [item.text for item in diary.view.active()] == ["The user writes TypeScript."]

    def test_is_recognised_among_thousands(self, diary: Diary) -> None:
        text = "User keeps number {} of the blue boxes in a cellar."
        many = [item(text.format(number)) for number in range(10_000)]
        assert one_saying(many, "fact", "The user keeps number 77 of blue boxes in the cellar") is many[77]


def test_one_more_memory_costs_the_same_however_many_there_are_already() -> None:
    counts = []
    for number in (100, 1_000):
        draft = Draft(EMPTY, now_ms=1, max_items=2_000)
        for one in range(number):
            draft.upsert("fact", f"User has {one} boxes.", stated(), facets=Facets(key=f"box:{one}"))
        with counted() as count:
            draft.upsert("fact", "User has a cat.", stated(), facets=Facets(key="cat"))
            draft.upsert("fact", "User has 99 boxes.", stated())
            draft.upsert("fact", "User has a dog.", stated(), facets=Facets(key="cat"))
        assert len(draft.items) == number + 1
        counts.append(count)
    assert grown(*counts, most_steps=0) == {}
