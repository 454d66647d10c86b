"""A hand-edited durable file becomes events: a three-way merge of the file, what was written, and now."""

from typing import Any

import pytest
from hypothesis import given

from discoclaw.core.draft import Draft
from discoclaw.core.item import Item, Source, item_id
from discoclaw.core.view import View, fold
from discoclaw.memory.subjects.durable_file import apply_edits
from tests.core.builders import NOW, PUBLIC_MESSAGE, Diary, as_file, inferred, item, stated
from tests.core.test_view import HISTORIES, live
from tests.examples import FEW


@pytest.fixture
def diary() -> Diary:
    """Two things the person said, one that was inferred."""
    diary = Diary()
    diary.remember("likes tea", tags=["drink"])
    diary.remember("works at Acme", "project")
    diary.remember("uses vim", "tool", inferred())
    return diary


def adopt(diary: Diary, base: View, edited: list[Item]) -> Draft:
    draft = diary.draft()
    apply_edits(draft, base.items, edited, stated())
    diary.keep(draft)
    return draft


def held(diary: Diary, text: str) -> Item:
    """The one item with this text."""
    (found,) = [one for one in diary.view.items.values() if one.text == text]
    return found


class TestAFileNobodyEditedChangesNothing:
    def test_the_order_of_its_items_is_no_edit(self, diary: Diary) -> None:
        before = diary.view
        adopt(diary, diary.view, as_file(list(diary.view.items.values()))[::-1])
        assert diary.view is before

    def test_an_old_file_that_is_read_late_takes_nothing_back(self, diary: Diary) -> None:
        base = diary.view
        diary.remember("likes coffee", given_id=held(diary, "likes tea").id)
        diary.deprecate(held(diary, "works at Acme"))
        draft = diary.draft()
        draft.remove(held(diary, "uses vim"), stated())
        diary.keep(draft)
        diary.remember("likes hiking")
        before = diary.view
        adopt(diary, base, as_file(list(base.items.values())))
        assert diary.view is before

    def test_a_tag_as_long_as_tags_can_be_is_no_edit(self, diary: Diary) -> None:
        diary.remember("uses nix", "tool", tags=["x" * 47 + " y"])
        before = diary.view
        adopt(diary, diary.view, as_file(list(diary.view.items.values())))
        assert diary.view is before

    @FEW
    @given(HISTORIES, HISTORIES)
    def test_whatever_happened_since(self, history: list[Any], later: list[Any]) -> None:
        diary = Diary()
        live(history, diary)
        base = diary.view
        live(later, diary)
        draft = diary.draft()
        apply_edits(draft, base.items, as_file(list(base.items.values())), stated())
        assert draft.commit("nothing") is None


class TestAnEditIsTakenOver:
    def test_of_a_text(self, diary: Diary) -> None:
        tea = held(diary, "likes tea")
        adopt(
            diary,
            diary.view,
            as_file(list(diary.view.items.values()), **{tea.id: {"text": " likes  coffee"}}),
        )
        changed = diary.view.items[tea.id]
        assert (changed.text, changed.tags, changed.created_at) == (
            "likes coffee",
            ("drink",),
            tea.created_at,
        )
        assert changed.updated_at == diary.now
        assert [event.event_type for event in diary.commits[-1].events] == ["modify"]
        assert diary.commits[-1].events[0].source == "manual"

    def test_of_an_inferred_item_which_is_stated_from_then_on(self, diary: Diary) -> None:
        vim = held(diary, "uses vim")
        adopt(diary, diary.view, as_file(list(diary.view.items.values()), **{vim.id: {"text": "uses emacs"}}))
        assert diary.view.items[vim.id].facets.author == "stated"
        assert held(diary, "likes tea").facets.author == "stated"

    @pytest.mark.parametrize(
        ("field", "value", "then"),
        [
            ("kind", "Preference", ("kind", "preference")),
            ("tags", ["A", "b"], ("tags", ("a", "b"))),
            ("tags", [], ("tags", ())),
            ("status", "deprecated", ("status", "deprecated")),
            (
                "source",
                {"type": "discord", "channelId": "1", "messageId": "2"},
                ("source", Source("discord", "1", "2")),
            ),
        ],
    )
    def test_of_any_other_field(
        self, diary: Diary, field: str, value: object, then: tuple[str, object]
    ) -> None:
        tea = held(diary, "likes tea")
        adopt(diary, diary.view, as_file(list(diary.view.items.values()), **{tea.id: {field: value}}))
        assert getattr(diary.view.items[tea.id], then[0]) == then[1]
        assert diary.view.items[tea.id].text == "likes tea"

    def test_of_a_time_alone_is_no_edit(self, diary: Diary) -> None:
        before = diary.view
        tea = held(diary, "likes tea")
        for field in ("updatedAt", "createdAt"):
            adopt(diary, diary.view, as_file(list(diary.view.items.values()), **{tea.id: {field: 5}}))
        assert diary.view is before

    def test_a_deleted_item_leaves_the_view_and_stays_in_history(self, diary: Diary) -> None:
        kept = [one for one in diary.view.items.values() if one.text != "works at Acme"]
        adopt(diary, diary.view, as_file(kept))
        assert diary.texts() == ["likes tea", "uses vim"]
        assert [event.event_type for event in diary.commits[-1].events] == ["forget"]
        assert "works at Acme" in [one.text for one in fold(diary.commits[:-1]).active()]

    def test_an_item_without_id_is_added_as_the_persons_words(self, diary: Diary) -> None:
        edited = [*as_file(list(diary.view.items.values())), item("likes hiking")]
        adopt(diary, diary.view, edited)
        hiking = held(diary, "likes hiking")
        assert hiking.id == item_id("fact", "likes hiking")
        assert hiking.facets.author == "stated"
        assert len(diary.view.items) == 4

    def test_an_item_with_an_id_of_its_own_keeps_it(self, diary: Diary) -> None:
        mine = as_file([item("likes hiking")], **{item("likes hiking").id: {"id": "mine-1"}})
        adopt(diary, diary.view, [*as_file(list(diary.view.items.values())), *mine])
        assert diary.view.items["mine-1"].text == "likes hiking"

    def test_everything_at_once_is_one_commit(self, diary: Diary) -> None:
        tea = held(diary, "likes tea")
        edited = as_file(list(diary.view.items.values()), **{tea.id: {"text": "likes coffee"}})[:2]
        adopt(diary, diary.view, [*edited, item("likes hiking")])
        assert diary.texts() == ["likes coffee", "works at Acme", "likes hiking"]
        assert sorted(event.event_type for event in diary.commits[-1].events) == ["add", "forget", "modify"]

    def test_taking_the_same_over_again_or_the_file_written_after_it_writes_nothing(
        self, diary: Diary
    ) -> None:
        tea = held(diary, "likes tea")
        base = diary.view
        edited = as_file(list(base.items.values()), **{tea.id: {"text": "likes coffee"}})[:2]
        adopt(diary, base, edited)
        before = diary.view
        adopt(diary, base, edited)
        adopt(diary, before, as_file(list(before.items.values())))
        assert diary.view is before


class TestAnEditOfAnOldFile:
    def test_what_was_learned_since_is_not_removed(self, diary: Diary) -> None:
        base = diary.view
        tea = held(diary, "likes tea")
        diary.remember("likes hiking")
        adopt(diary, base, as_file(list(base.items.values()), **{tea.id: {"text": "likes coffee"}}))
        assert diary.texts() == ["likes coffee", "works at Acme", "uses vim", "likes hiking"]

    def test_fields_changed_on_both_sides_are_merged_one_by_one(self, diary: Diary) -> None:
        base = diary.view
        tea = held(diary, "likes tea")
        diary.remember("likes tea", tags=["drink", "hot"])
        adopt(diary, base, as_file(list(base.items.values()), **{tea.id: {"text": "likes coffee"}}))
        merged = diary.view.items[tea.id]
        assert (merged.text, merged.tags) == ("likes coffee", ("drink", "hot"))

    def test_the_persons_edit_wins_over_what_was_learned_since(self, diary: Diary) -> None:
        base = diary.view
        vim = held(diary, "uses vim")
        diary.remember("uses nano", "tool", inferred(), given_id=vim.id)
        adopt(diary, base, as_file(list(base.items.values()), **{vim.id: {"text": "uses emacs"}}))
        assert diary.view.items[vim.id].text == "uses emacs"

    def test_what_was_removed_since_and_not_edited_stays_removed(self, diary: Diary) -> None:
        base = diary.view
        tea = held(diary, "likes tea")
        draft = diary.draft()
        draft.remove(held(diary, "uses vim"), stated())
        diary.keep(draft)
        adopt(diary, base, as_file(list(base.items.values()), **{tea.id: {"text": "likes coffee"}}))
        assert diary.texts() == ["likes coffee", "works at Acme"]

    def test_what_was_removed_since_but_edited_is_kept(self, diary: Diary) -> None:
        base = diary.view
        vim = held(diary, "uses vim")
        draft = diary.draft()
        draft.remove(vim, stated())
        diary.keep(draft)
        adopt(diary, base, as_file(list(base.items.values()), **{vim.id: {"text": "uses emacs"}}))
        assert "uses emacs" in diary.texts()

    def test_without_a_base_nothing_is_removed(self, diary: Diary) -> None:
        adopt(diary, View(), [item("likes hiking")])
        assert diary.texts() == ["likes tea", "works at Acme", "uses vim", "likes hiking"]


class TestAnEditTouchesNothingElse:
    def test_an_item_written_by_hand_that_is_known_already_wipes_nothing(self, diary: Diary) -> None:
        tea = held(diary, "likes tea")
        base = View(items={k: v for k, v in diary.view.items.items() if k != tea.id})
        edited = [*as_file(list(base.items.values())), *as_file([item("likes tea")])]
        adopt(diary, base, edited)
        assert diary.view.items[tea.id].tags == ("drink",)
        assert diary.view.items[tea.id].created_at == tea.created_at

    def test_privacy_survives_an_edit(self, diary: Diary) -> None:
        secret = diary.remember("lives in Oslo", origin=inferred(private=True))
        adopt(
            diary,
            diary.view,
            as_file(list(diary.view.items.values()), **{secret.id: {"text": "lives in Rome"}}),
        )
        assert diary.view.items[secret.id].facets.sensitivity == "private"

    def test_forgetting_what_became_private_since_is_a_private_event(self, diary: Diary) -> None:
        base = diary.view
        tea = held(diary, "likes tea")
        draft = diary.draft()
        draft.mark(tea, "private", stated())
        diary.keep(draft)
        adopt(diary, base, as_file([one for one in base.items.values() if one.id != tea.id]))
        (event,) = diary.commits[-1].events
        assert (event.event_type, event.sensitivity) == ("forget", "private")

    @pytest.mark.parametrize("field", ["id", "source"])
    def test_no_edit_breaks_the_ledger(self, diary: Diary, field: str) -> None:
        hostile = {"id": "\ud83d", "source": {"type": "discord", "channelId": "\ud83d", "messageId": "1"}}
        fresh = item("likes hiking", source=PUBLIC_MESSAGE, updated_at=NOW)
        edited = as_file([fresh], **{fresh.id: {field: hostile[field]}})
        adopt(diary, diary.view, [*as_file(list(diary.view.items.values())), *edited])
        assert "likes hiking" in diary.texts()
